import DequeModule
import Dispatch
import FoundationEssentials
package import Media
import Synchronization
package import Tape
package import Wire

/// Re-drives the whole client stack from a take and compares everything it does with the recording.
package final class Replayer {
  /// Where a replay ends before the end of the take.
  package enum Stop: Hashable, Sendable {
    /// Just before this step.
    case step(Int)
    /// Before the first step that is later than this.
    case time(Instant)
    /// Where a condition holds: before a step or time, after the step that meets any other one.
    case condition(StepCondition)
  }

  /// How much of a take is replayed, and what stands in for what.
  package struct Options: Sendable {
    package var until: Stop?
    /// Whether recorded frames stand in for the codecs; all but decoded media is compared still.
    package var skipsCodecs = false
    /// What of DTLS and SRTP is taken from the recording.
    package var security: RecordedSecurity.Parts = []
    /// The toolchain that the replay runs on; nil when it is not known.
    package var toolchain: Toolchain?
    package init() {}
  }

  /// The `take` row of the file.
  package let header: TakeHeader
  /// What the toolchain differs in from the recorder's: part, recorded, present.
  ///
  /// Worth telling before the replay starts: it explains divergences in DTLS and media.
  package let toolchainDifferences: [ToolchainDifference]

  private let path: String
  private let options: Options
  private let kinds: MachineKinds
  private let reader: TapeReader
  private let check: StepCheck
  private var actors: DrivenActors
  private var memory = RowMemory()

  /// Opens a take; the peers are made by `peer` with codecs of their own each, machines of other
  /// kinds by `kinds`.
  ///
  /// Throws when the file cannot be read, and when the codecs are to be skipped and the take has
  /// neither its media nor the keys of its packets.
  package init(
    path: String, options: Options = Options(), kinds: MachineKinds = MachineKinds(),
    codecs: @escaping () -> any CodecFactory,
    peer: @escaping (any CodecFactory) -> any ReplayedPeer
  ) throws(TapeError) {
    self.path = path
    var options = options
    reader = try TapeReader(path: path, kinds: kinds)
    if try OwnCodecCheck.needsFrames(reader, codecs: codecs) { options.skipsCodecs = true }
    if let redacted = reader.header.redacted {
      options.security.formUnion(redacted.security)
      options.skipsCodecs = options.skipsCodecs || redacted.parts.contains(.media)
    }
    self.options = options
    self.kinds = kinds
    header = reader.header
    let recorded = header.toolchain
    toolchainDifferences = (options.toolchain ?? recorded).differences(from: recorded).map {
      ToolchainDifference(part: $0.part, recorded: $0.there, present: $0.here)
    }
    let script =
      options.skipsCodecs ? try FrameScript(path: path, keepsMedia: header.keepsMedia) : nil
    actors = DrivenActors(
      script: script, security: options.security, kinds: kinds, codecs: codecs, peer: peer)
    actors.scriptsObservers = header.redacted?.parts.contains(.media) ?? false
    check = StepCheck(reader.header, comparesMedia: !options.skipsCodecs)
  }

  /// The time of the last step of the take, for progress.
  package func lastTime() throws(TapeError) -> Instant? { try reader.lastTime() }

  /// Replays to the end, to the first difference or to where the options say; once only.
  package func run(progress: (Instant) -> Void = { _ in }) throws(TapeError) -> ReplayReport {
    let clock = ContinuousClock()
    let start = clock.now
    let isComplete = reader.ending != nil
    if header.redacted?.isFactsOnly == true { return try audited(since: start, isComplete) }
    let fault = drive(progress)
    let (steps, at) = (check.steps, check.at)
    let verdict: Verdict
    // A difference stands before a fault: what is read ahead is not replayed yet.
    if let finding = check.finding {
      verdict = .diverged(divergence(finding))
    } else {
      switch fault {
      case nil: verdict = .identical
      case .unreadable(let reason): throw reason
      case .altered(var alteration, let suspect):
        alteration.expectation = suspect.flatMap { expectation($0) }
        verdict = .altered(alteration)
      }
    }
    let elapsed = (clock.now - start).components
    return ReplayReport(
      path: path, verdict: verdict, steps: steps, durationNanoseconds: at.nanoseconds,
      elapsedSeconds: Double(elapsed.seconds) + Double(elapsed.attoseconds) / 1e18,
      peers: actors.all.map(\.label), isComplete: isComplete, skippedCodecs: options.skipsCodecs,
      framesNotSent: actors.script?.unsent?.count ?? 0,
      firstFrameNotSent: actors.script?.unsent?.step,
      substituted: actors.substituted?.words(options.security) ?? [],
      reported: actors.all.count { $0.words.kind == .reported }, redaction: header.redacted,
      stoppedEarly: stoppedEarly, toolchainDifferences: toolchainDifferences)
  }

  /// The report on a take of which nothing can be executed: whether it is what was written.
  private func audited(since start: ContinuousClock.Instant, _ isComplete: Bool) throws(TapeError)
    -> ReplayReport
  {
    let audit = try TapeAudit.run(path: path)
    let elapsed = (ContinuousClock().now - start).components
    return ReplayReport(
      path: path, verdict: audit.alteration.map { .altered($0) } ?? .identical, steps: audit.steps,
      durationNanoseconds: audit.at.nanoseconds,
      elapsedSeconds: Double(elapsed.seconds) + Double(elapsed.attoseconds) / 1e18, peers: [],
      isComplete: isComplete, skippedCodecs: true, substituted: [], redaction: header.redacted,
      stoppedEarly: false, toolchainDifferences: [])
  }

  private var stoppedEarly = false

  /// Executes the take to its end, to a stop, to a difference or to what is wrong with the file.
  ///
  /// Three threads share the work: one reads, this one executes, one compares; the latter only
  /// where there are decoded media to compare.
  private func drive(_ progress: (Instant) -> Void) -> TapeFault? {
    let feed: StepFeed
    do throws(TapeError) {
      feed = StepFeed(try TapeReader(path: path, kinds: kinds))
    } catch {
      return .unreadable(error)
    }
    defer { feed.cancel() }
    let source = StepSource { () throws(TapeFault) in try feed.next() }
    actors.script?.follow(source)
    let line = CheckLine(check, isThread: !options.skipsCodecs) { feed.recycle($0) }
    defer { line.finish() }
    do throws(TapeFault) {
      while let executed = try source.next().map({ execute($0) }) {
        do throws(TapeError) {
          try actors.requireKnown(path)
        } catch {
          throw TapeFault.unreadable(error)
        }
        let last = executed.last
        guard line.put(consume executed), !stoppedEarly else { return nil }
        if let last { progress(last) }
      }
    } catch {
      return error
    }
    return nil
  }

  private func isStop(before step: StepHead) -> Bool {
    switch options.until {
    case nil: false
    case .step(let number): step.number >= number
    case .time(let instant): step.at > instant
    case .condition(let condition): condition.stopsBefore && condition.isReached(before: step)
    }
  }

  /// Whether the step just executed is the one that the replay was to stop after.
  private func isStop(
    after step: TapeChunk.Step, _ rows: RowList, _ actor: DrivenActor
  ) -> Bool {
    guard case .condition(let condition)? = options.until, !condition.stopsBefore else {
      return false
    }
    return condition.matches(step, rows, memory) { actor.stats(of: condition.statsTypes) }
  }

  /// The actors as far as they were driven.
  var drivenActors: [DrivenActor] { actors.all }

  /// The state of every actor where the replay ended.
  package var states: [ActorState] { actors.states }

  // MARK: Steps

  private func execute(_ chunk: TapeChunk) -> ExecutedChunk {
    var executed = ExecutedChunk(chunk)
    for index in chunk.steps.indices {
      if isStop(before: chunk.steps[index].head) {
        stoppedEarly = true
        break
      }
      let (outputs, actor) = actors.execute(chunk, index)
      executed.steps.append(
        ExecutedChunk.Step(
          outputs: outputs, deadline: actor.deadline, entropyDrawn: actor.entropyDrawn))
      // What rows refer to is only needed to tell whether they meet a condition.
      guard case .condition = options.until else { continue }
      memory.learn(chunk.rows, chunk.steps[index].rows)
      if isStop(after: chunk.steps[index], chunk.rows, actor) {
        stoppedEarly = true
        break
      }
    }
    return executed
  }

  // MARK: Reports

  private func divergence(_ finding: StepCheck.Finding) -> Divergence {
    Divergence(
      finding, consequence: check.consequence, label: actors.label(of: finding.step.head.actor),
      path: path)
  }

  /// What the stack makes of an altered step, when its input is still good.
  private func expectation(_ chunk: TapeChunk) -> String? {
    actors.script?.learn(chunk)
    check.compare(execute(chunk))
    guard let finding = check.finding else { return nil }
    let divergence = divergence(finding)
    return "\(divergence.what), \(divergence.field): the file has \(divergence.recorded), "
      + "a replay gives \(divergence.replayed)"
  }
}

// MARK: - StepFeed

/// Reads a take ahead of its replay on a thread of its own: reading and hashing take about as long
/// as stepping the stack.
final class StepFeed: Sendable {
  /// Held by the thread that reads, from its beginning to its end.
  private let reader: Mutex<TapeReader>
  private let queue = BoundedQueue<Result<TapeChunk, TapeFault>>(depth: StepFeed.depth)
  /// Chunks that nobody needs any more, to be read into again.
  private let spare = Mutex<[TapeChunk]>([])

  /// How many steps are handed over at once, and how many of these chunks may be read ahead: few
  /// enough to stay in the cache.
  private static let chunkSteps = 128
  private static let depth = 8

  init(_ reader: sending TapeReader) {
    self.reader = Mutex(reader)
    startWorker(named: "take reader") { [self] in self.reader.withLock { read($0) } }
  }

  private func read(_ reader: TapeReader) {
    while queue.waitForRoom() {
      do throws(TapeFault) {
        let warm = spare.withLock { $0.popLast() } ?? TapeChunk()
        guard let chunk = try reader.next(steps: StepFeed.chunkSteps, reusing: warm) else {
          return queue.finish()
        }
        queue.add(.success(chunk))
      } catch {
        return queue.add(.failure(error))
      }
    }
  }

  /// The next steps; nil at the end of the take.
  func next() throws(TapeFault) -> TapeChunk? { try queue.dequeue()?.get() }

  /// Takes a chunk back that nobody needs any more: its memory is warm, and new memory is not.
  func recycle(_ chunk: consuming TapeChunk) {
    let chunk = chunk
    spare.withLock { if $0.count < StepFeed.depth { $0.append(chunk) } }
  }

  /// Ends the reading; nothing more must be asked for.
  func cancel() { queue.cancel() }
}

/// The steps of a take in their order, of which some can be looked at before it is their turn.
final class StepSource {
  private let read: () throws(TapeFault) -> TapeChunk?
  private var ahead = Deque<TapeChunk>()
  /// How the take ended for whoever reads; nil while it continues.
  private var end: Result<Void, TapeFault>?
  /// Sees every chunk when it is read, before somebody gets it.
  var onlooker: ((TapeChunk) -> Void)?

  /// - Parameter read: gives the next steps; it is not asked any more once it gave none.
  init(_ read: @escaping () throws(TapeFault) -> TapeChunk?) { self.read = read }

  /// The next steps; nil at the end of the take.
  func next() throws(TapeFault) -> TapeChunk? {
    if ahead.isEmpty { pull() }
    if let chunk = ahead.popFirst() { return chunk }
    try end?.get()
    return nil
  }

  /// Reads on; false when there is nothing more to be looked at.
  func lookAhead() -> Bool {
    let count = ahead.count
    pull()
    return ahead.count > count
  }

  private func pull() {
    guard end == nil else { return }
    do throws(TapeFault) {
      guard let chunk = try read() else { return end = .success(()) }
      onlooker?(chunk)
      ahead.append(chunk)
    } catch {
      end = .failure(error)
    }
  }
}

// MARK: - BoundedQueue

/// A queue of few elements from one thread to another: who gives waits for room, who takes waits
/// for an element.
///
/// Waking a thread costs more than what some elements cost, so whoever waits for room sleeps until
/// half of the queue is free.
final class BoundedQueue<Element: Sendable>: Sendable {
  private struct State {
    var waiting = Deque<Element>()
    var isCancelled = false
    var isFinished = false
    /// Who sleeps, or is about to, and has to be woken once.
    var giverSleeps = false
    var takerSleeps = false

    mutating func wakeGiver() -> Bool {
      defer { giverSleeps = false }
      return giverSleeps
    }

    mutating func wakeTaker() -> Bool {
      defer { takerSleeps = false }
      return takerSleeps
    }
  }

  private let depth: Int
  private let state = Mutex(State())
  private let filled = DispatchSemaphore(value: 0)
  private let free = DispatchSemaphore(value: 0)

  /// - Parameter depth: how many elements may wait.
  init(depth: Int) { self.depth = depth }

  /// Waits for room and hands an element over; false, and not handed over, when nobody wants more.
  func put(_ element: Element) -> Bool {
    guard waitForRoom() else { return false }
    add(element)
    return true
  }

  /// Waits for the room of an element that is made only then; false when nobody wants more.
  func waitForRoom() -> Bool {
    while true {
      let hasRoom = state.withLock { state -> Bool? in
        if state.isCancelled { return false }
        if state.waiting.count < depth { return true }
        state.giverSleeps = true
        return nil
      }
      if let hasRoom { return hasRoom }
      free.wait()
    }
  }

  /// Hands the element over that room was waited for.
  func add(_ element: Element) {
    let wakes = state.withLock { state in
      state.waiting.append(element)
      return state.wakeTaker()
    }
    if wakes { filled.signal() }
  }

  /// Ends what is given: after what waits comes nothing.
  func finish() {
    let wakes = state.withLock { state in
      state.isFinished = true
      return state.wakeTaker()
    }
    if wakes { filled.signal() }
  }

  /// Waits for the next element; nil at the end.
  func dequeue() -> Element? {
    while true {
      let (next, isOver, wakes) = state.withLock { state in
        guard let next = state.waiting.popFirst() else {
          state.takerSleeps = !state.isFinished
          return (nil as Element?, state.isFinished, false)
        }
        let wakes = state.waiting.count <= depth / 2 && state.wakeGiver()
        return (next, false, wakes)
      }
      if wakes { free.signal() }
      if next != nil || isOver { return next }
      filled.wait()
    }
  }

  /// Wants nothing more: whoever waits for room continues without it.
  func cancel() {
    let wakes = state.withLock { state in
      state.isCancelled = true
      return state.wakeGiver()
    }
    if wakes { free.signal() }
  }
}
