import DequeModule
import Dispatch
import FoundationEssentials
package import Media
import Synchronization
package import Tape
package import Wire

/// Re-executes a take and compares everything that the stack does with the recording.
package final class Replayer {
  /// Where a replay stops before the end of the take.
  package enum Stop: Hashable, Sendable {
    /// Before the step with this number.
    case step(Int)
    /// Before the first step after this time.
    case time(Instant)
    /// Before the step or time that a condition names, or after the step that satisfies it.
    case condition(StepCondition)
  }

  /// How far a take is replayed, and what is substituted.
  package struct Options: Sendable {
    package var until: Stop?
    /// Whether recorded frames replace the codecs, in which case decoded media is not compared.
    package var skipsCodecs = false
    /// The parts of DTLS and SRTP that come from the recording.
    package var security: RecordedSecurity.Parts = []
    /// This process's toolchain; nil if unknown.
    package var toolchain: Toolchain?
    package init() {}
  }

  /// The `take` row of the file.
  package let header: TakeHeader
  /// The differences from the recorder's toolchain, which may explain a divergence in DTLS or
  /// media.
  package let toolchainDifferences: [ToolchainDifference]

  private let path: String
  private let options: Options
  private let kinds: MachineKinds
  private let reader: TapeReader
  private let check: StepCheck
  private var actors: DrivenActors
  private var memory = RowMemory()

  /// Opens a take.
  ///
  /// `peer` creates each endpoint with its codecs, and `kinds` creates the other machines.
  ///
  /// - Throws: an error if the file cannot be read, or if codecs are skipped and the take has
  ///   neither media nor the keys of its packets.
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

  /// Returns the time of the take's last step, to show progress; nil if the take is empty.
  package func lastTime() throws(TapeError) -> Instant? { try reader.lastTime() }

  /// Replays to the take's end, a difference or the stop; it may be called only once.
  package func run(progress: (Instant) -> Void = { _ in }) throws(TapeError) -> ReplayReport {
    let clock = ContinuousClock()
    let start = clock.now
    let isComplete = reader.ending != nil
    if header.redacted?.isFactsOnly == true { return try audited(since: start, isComplete) }
    let fault = drive(progress)
    let (steps, at) = (check.steps, check.at)
    let verdict: Verdict
    // A difference comes before any fault in the file, because faults are found while reading
    // ahead.
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
      peers: actors.all.map(\.label), areEndpoints: actors.all.allSatisfy { $0.endpoint != nil },
      isComplete: isComplete, skippedCodecs: options.skipsCodecs,
      framesNotSent: actors.script?.unsent?.count ?? 0,
      firstFrameNotSent: actors.script?.unsent?.step,
      substituted: actors.substituted?.words(options.security) ?? [],
      reported: actors.all.count { $0.words.kind == .reported }, redaction: header.redacted,
      stoppedEarly: stoppedEarly, toolchainDifferences: toolchainDifferences)
  }

  /// Checks the digests of a take that cannot be executed, and reports the result.
  private func audited(since start: ContinuousClock.Instant, _ isComplete: Bool) throws(TapeError)
    -> ReplayReport
  {
    let audit = try TapeAudit.run(path: path)
    let elapsed = (ContinuousClock().now - start).components
    return ReplayReport(
      path: path, verdict: audit.alteration.map { .altered($0) } ?? .identical, steps: audit.steps,
      durationNanoseconds: audit.at.nanoseconds,
      elapsedSeconds: Double(elapsed.seconds) + Double(elapsed.attoseconds) / 1e18, peers: [],
      areEndpoints: true,
      isComplete: isComplete, skippedCodecs: true, substituted: [], redaction: header.redacted,
      stoppedEarly: false, toolchainDifferences: [])
  }

  private var stoppedEarly = false

  /// Runs the stack until the take's end, a stop, a difference or a fault in the file.
  ///
  /// One thread reads the take, and the calling thread executes it. If decoded media is compared, a
  /// third thread compares.
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

  /// Returns whether the step just executed satisfies the condition to stop at.
  private func isStop(
    after step: TapeChunk.Step, _ rows: RowList, _ actor: DrivenActor
  ) -> Bool {
    guard case .condition(let condition)? = options.until, !condition.stopsBefore else {
      return false
    }
    return condition.matches(step, rows, memory) { actor.stats(of: condition.statsTypes) }
  }

  /// The actors that have started.
  var drivenActors: [DrivenActor] { actors.all }

  /// The states of all actors where the replay ended.
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
      // Only conditions need the rows that other rows refer to.
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

  /// Executes an altered step whose input is intact, and describes the first row that differs from
  /// the file; nil if none does.
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

/// Reads a take on a separate thread, ahead of the replay.
///
/// Reading and hashing take about as long as running the stack.
final class StepFeed: Sendable {
  /// Locked by the reading thread while it runs.
  private let reader: Mutex<TapeReader>
  private let queue = BoundedQueue<Result<TapeChunk, TapeFault>>(depth: StepFeed.depth)
  /// Chunks that were compared and can be reused.
  private let spare = Mutex<[TapeChunk]>([])

  /// The number of steps per chunk, and of chunks read ahead; all of them fit into a processor's
  /// cache.
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

  /// Returns the next chunk of steps; nil at the end of the take.
  func next() throws(TapeFault) -> TapeChunk? { try queue.dequeue()?.get() }

  /// Keeps a chunk for reuse, since its memory is still in the cache.
  func recycle(_ chunk: consuming TapeChunk) {
    let chunk = chunk
    spare.withLock { if $0.count < StepFeed.depth { $0.append(chunk) } }
  }

  /// Stops the reading thread; `next` must not be called afterwards.
  func cancel() { queue.cancel() }
}

/// The steps of a take in order; a caller can also read ahead.
final class StepSource {
  private let read: () throws(TapeFault) -> TapeChunk?
  private var ahead = Deque<TapeChunk>()
  /// How reading ended: at the end of the take or with a fault; nil while it goes on.
  private var end: Result<Void, TapeFault>?
  /// Receives each chunk when it is read, perhaps long before `next` returns it.
  var onlooker: ((TapeChunk) -> Void)?

  /// - Parameter read: returns the next chunk; it is not called again after it has returned nil.
  init(_ read: @escaping () throws(TapeFault) -> TapeChunk?) { self.read = read }

  /// Returns the next chunk of steps; nil at the end of the take.
  func next() throws(TapeFault) -> TapeChunk? {
    if ahead.isEmpty { pull() }
    if let chunk = ahead.popFirst() { return chunk }
    try end?.get()
    return nil
  }

  /// Reads one more chunk ahead; returns false if there is none.
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

/// A queue of limited size between two threads; the producer waits while the queue is full, and the
/// consumer waits while it is empty.
///
/// Waking a thread costs more than handling several elements, so a waiting producer is woken only
/// when half the queue is free.
final class BoundedQueue<Element: Sendable>: Sendable {
  private struct State {
    var waiting = Deque<Element>()
    var isCancelled = false
    var isFinished = false
    /// Whether the producer and the consumer are waiting, or about to wait, and must be woken.
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

  /// - Parameter depth: the maximum number of elements.
  init(depth: Int) { self.depth = depth }

  /// Waits until there is room and adds an element; returns false without adding it after `cancel`.
  func put(_ element: Element) -> Bool {
    guard waitForRoom() else { return false }
    add(element)
    return true
  }

  /// Waits for room before the caller creates an element; returns false after `cancel`.
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

  /// Adds an element, after `waitForRoom` has returned true.
  func add(_ element: Element) {
    let wakes = state.withLock { state in
      state.waiting.append(element)
      return state.wakeTaker()
    }
    if wakes { filled.signal() }
  }

  /// Marks the end: `dequeue` returns nil after the elements that are queued.
  func finish() {
    let wakes = state.withLock { state in
      state.isFinished = true
      return state.wakeTaker()
    }
    if wakes { filled.signal() }
  }

  /// Waits for the next element; nil after the last one.
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

  /// Makes the producer stop, even while it waits for room.
  func cancel() {
    let wakes = state.withLock { state in
      state.isCancelled = true
      return state.wakeGiver()
    }
    if wakes { free.signal() }
  }
}
