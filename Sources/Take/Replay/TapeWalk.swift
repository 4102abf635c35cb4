package import Media
package import Peer
import SCTP
package import Stats
package import Tape
package import Wire

/// Executes a take step by step on one thread, with access to the machines' state.
///
/// The stack is compared with the recording as in a replay. No thread is started, so the process
/// may be forked.
package final class TapeWalk {
  /// An executed step and its recording.
  package struct Step: Sendable {
    package var recorded: TapeChunk.Step
    /// The rows of the chunk that contains the step.
    package var rows: RowList
    /// The SCTP packets in the step's DTLS datagrams.
    package var data: [ClearPacket] = []
  }

  /// Collects the SCTP packets that the stack reveals in a step.
  private final class Overheard {
    var data: [ClearPacket] = []
  }

  package let path: String
  package let header: TakeHeader
  /// The time of the take's last step, and the number of its steps.
  package let end: Instant
  package let stepCount: Int

  /// The last step that was executed; nil at the start.
  package private(set) var last: Step?
  /// The first difference from the recording; nil if there was none so far.
  package private(set) var divergence: Divergence?
  package private(set) var memory = RowMemory()

  private let source: StepSource
  private let check: StepCheck
  private var actors: DrivenActors
  private let overheard = Overheard()
  private var chunk = TapeChunk()
  private var position = 0

  /// The number of steps that are read together.
  private static let chunkSteps = 64

  /// Opens a take at its start; with `skipsCodecs`, recorded frames replace the codecs.
  package init(
    path: String, skipsCodecs: Bool, security: RecordedSecurity.Parts = [],
    kinds: MachineKinds = MachineKinds(), codecs: @escaping () -> any CodecFactory
  ) throws(TapeError) {
    self.path = path
    var skipsCodecs = skipsCodecs
    let reader = try TapeReader(path: path, kinds: kinds)
    if try OwnCodecCheck.needsFrames(reader, codecs: codecs) { skipsCodecs = true }
    var security = security
    if let redacted = reader.header.redacted {
      guard !redacted.isFactsOnly else {
        throw TapeError(
          path: path, place: "",
          reason: "it was redacted so that nothing in it can be executed; inspect it with "
            + "retake timeline, stats or sql")
      }
      security.formUnion(redacted.security)
      skipsCodecs = skipsCodecs || redacted.parts.contains(.media)
    }
    source = StepSource { () throws(TapeFault) in try reader.next(steps: TapeWalk.chunkSteps) }
    header = reader.header
    end = try reader.lastTime() ?? .zero
    stepCount = try reader.stepCount()
    let script =
      skipsCodecs ? try FrameScript(path: path, keepsMedia: header.keepsMedia) : nil
    let overheard = overheard
    actors = DrivenActors(
      script: script, security: security, kinds: kinds, codecs: codecs
    ) { codecs in
      let machine = PeerMachine(codecs: codecs)
      machine.onlooker = { if $0.kind == .sctp { overheard.data.append($0) } }
      return machine
    }
    actors.scriptsObservers = header.redacted?.parts.contains(.media) ?? false
    check = StepCheck(header, comparesMedia: !skipsCodecs)
    script?.follow(source)
  }

  /// The number of the last step that was executed; 0 at the start.
  package var number: Int { last?.recorded.head.number ?? 0 }

  /// The time of the last step that was executed; zero at the start.
  package var at: Instant { last?.recorded.head.at ?? .zero }

  /// Returns the head of the next step without executing it; nil at the end of the take.
  package func next() throws(TapeError) -> StepHead? {
    if position == chunk.steps.count {
      do throws(TapeFault) {
        guard let read = try source.next() else { return nil }
        (chunk, position) = (read, 0)
      } catch {
        throw error.reason(path)
      }
    }
    return chunk.steps[position].head
  }

  /// Executes the next step; nil at the end of the take.
  package func advance() throws(TapeError) -> Step? {
    guard try next() != nil else { return nil }
    let step = chunk.steps[position]
    position += 1
    overheard.data = []
    let (outputs, actor) = actors.execute(step, chunk.rows)
    try actors.requireKnown(path)
    memory.learn(chunk.rows, step.rows)
    compare(step, outputs, actor)
    last = Step(recorded: step, rows: chunk.rows, data: overheard.data)
    return last
  }

  private func compare(
    _ step: TapeChunk.Step, _ outputs: any RecordedOutputs, _ actor: DrivenActor
  ) {
    guard divergence == nil else { return }
    let result = ExecutedChunk.Step(
      outputs: outputs, deadline: actor.deadline, entropyDrawn: actor.entropyDrawn)
    check.compare(step, chunk.rows, result)
    if let finding = check.finding {
      divergence = Divergence(
        finding, label: actor.label, path: path, snapshot: actor.machine.machineSnapshot)
    }
  }

  /// Locks the comparison's mutex once before the process forks.
  ///
  /// The standard library's Mutex caches the thread's number, perhaps in two places for locking and
  /// unlocking. In the child, the thread has another number. If both places cached the number
  /// before the fork, they still agree, which is enough in a process with a single thread.
  package static func prepareForCopy() { StepCheck.useLock() }

  /// Returns whether the last step satisfies a condition.
  package func meets(_ condition: StepCondition) -> Bool {
    guard let last else { return false }
    return condition.matches(last.recorded, last.rows, memory) {
      stats(of: last.recorded.head.actor, of: condition.statsTypes)
    }
  }

  /// Returns for each peer whether its stats satisfy a condition.
  package func peersMeeting(_ condition: StepCondition) -> [UInt32: Bool] {
    var meeting: [UInt32: Bool] = [:]
    for actor in actors.all {
      guard let peer = actor.words.peer else { continue }
      meeting[peer] = condition.matches(
        actor.stats(of: condition.statsTypes), of: peer)
    }
    return meeting
  }

  package var states: [ActorState] { actors.states }

  /// Returns an actor's `getStats` result, limited to objects of `types` if it is not nil.
  package func stats(of actor: UInt32, of types: Set<String>? = nil) -> StatsReport {
    actors.actor(actor)?.stats(of: types) ?? StatsReport()
  }
}

extension TapeWalk.Step {
  /// The step as text: a line for its input, then a line for each output.
  package var lines: [String] {
    [InputText(recorded).line] + recorded.outputRows.map { "  \(RowText(rows, $0).title)" }
      + dataTitles.map { "  \($0)" }
  }

  /// Descriptions of the SCTP packets in the step's DTLS datagrams.
  private var dataTitles: [String] {
    data.map { "\($0.isInbound ? "in" : "out"): \(SCTPText.title($0.bytes.span.bytes))" }
  }

  /// The step as a JSON object.
  package var json: String {
    let head = recorded.head
    let outputs = recorded.outputRows.map { JSONText.text(RowText(rows, $0).title) }
    return JSONText.object([
      ("step", .integer(head.number)), ("at_ns", .integer(head.at.nanoseconds)),
      ("actor", .integer(head.actor)), ("peer", recorded.peer.map { .integer($0) } ?? .null),
      ("input", .text(InputText(recorded).title)), ("outputs", .list(outputs)),
      ("data", .list(dataTitles.map { .text($0) })),
    ]).text
  }
}
