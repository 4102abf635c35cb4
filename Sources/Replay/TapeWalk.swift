package import Media
package import Peer
import SCTP
package import Stats
package import Tape
package import Transport
package import Wire

/// A take that is executed step by step on one thread, for those who want to stop and look.
///
/// What the stack does is compared with the recording on the way, as in a whole replay. Nothing
/// here starts a thread, so a process that walks may be forked.
package final class TapeWalk {
  /// A step that was executed.
  package struct Step: Sendable {
    package var recorded: TapeChunk.Step
    /// The rows of the chunk that the step stands in.
    package var rows: RowList
    /// The SCTP packets that DTLS carried in the datagrams of the step.
    package var data: [ClearPacket] = []
  }

  /// What the stack shows of the step under way.
  private final class Overheard {
    var data: [ClearPacket] = []
  }

  package let path: String
  package let header: TakeHeader
  /// The time of the take's last step, and the number of all.
  package let end: Instant
  package let stepCount: Int

  /// The step that was executed last; nil at the beginning.
  package private(set) var last: Step?
  /// The first thing that the stack did differently.
  package private(set) var divergence: Divergence?
  package private(set) var memory = RowMemory()

  private let reader: TapeReader
  private let check: StepCheck
  private var peers: DrivenPeers
  private let overheard = Overheard()
  private var outbox = Outbox<PeerOutput>()
  private var chunk = TapeChunk()
  private var position = 0

  /// How many steps are read at once.
  private static let chunkSteps = 64

  /// Opens a take at its beginning; with `skipsCodecs` recorded frames stand in for the codecs.
  package init(
    path: String, skipsCodecs: Bool, security: RecordedSecurity.Parts = [],
    codecs: @escaping () -> any CodecFactory
  ) throws(TapeError) {
    self.path = path
    reader = try TapeReader(path: path)
    header = reader.header
    end = try reader.lastTime() ?? .zero
    stepCount = try reader.stepCount()
    let script = skipsCodecs ? try FrameScript(path: path) : nil
    let overheard = overheard
    peers = DrivenPeers(script: script, security: security, codecs: codecs) { codecs in
      let machine = PeerMachine(codecs: codecs)
      machine.onlooker = { if $0.kind == .sctp { overheard.data.append($0) } }
      return machine
    }
    check = StepCheck(header, comparesMedia: !skipsCodecs)
  }

  /// The number of the step that was executed last; 0 at the beginning.
  package var number: Int { last?.recorded.head.number ?? 0 }

  /// The time of the step that was executed last.
  package var at: Instant { last?.recorded.head.at ?? .zero }

  /// The step that is executed next; nil at the end of the take.
  package func next() throws(TapeError) -> StepHead? {
    if position == chunk.steps.count {
      guard let read = try reader.chunk(steps: TapeWalk.chunkSteps) else { return nil }
      (chunk, position) = (read, 0)
    }
    return chunk.steps[position].head
  }

  /// Executes the next step; nil at the end of the take.
  package func advance() throws(TapeError) -> Step? {
    guard try next() != nil else { return nil }
    let step = chunk.steps[position]
    position += 1
    overheard.data = []
    let peer = peers.execute(step, chunk.rows, into: &outbox)
    var outputs: [PeerOutput] = []
    while let output = outbox.next() { outputs.append(output) }
    memory.learn(chunk.rows, step.rows)
    compare(step, outputs, peer)
    last = Step(recorded: step, rows: chunk.rows, data: overheard.data)
    return last
  }

  private func compare(
    _ step: TapeChunk.Step, _ outputs: [PeerOutput], _ peer: DrivenPeer
  ) {
    guard divergence == nil else { return }
    let result = ExecutedChunk.Step(
      outputsEnd: outputs.count, deadline: peer.deadline,
      entropyDrawn: peer.entropyDrawn)
    check.compare(step, chunk.rows, outputs[...], result)
    if let finding = check.finding {
      divergence = Divergence(
        finding, peerLabel: peers.label(of: step.head.peer), path: path,
        snapshot: peer.machine.snapshot)
    }
  }

  /// Whether the last step meets a condition.
  package func meets(_ condition: StepCondition) -> Bool {
    guard let last else { return false }
    return condition.matches(last.recorded, last.rows, memory) {
      stats(of: last.recorded.head.peer, of: condition.statsTypes)
    }
  }

  /// Whether each peer's stats meet a condition.
  package func peersMeeting(_ condition: StepCondition) -> [UInt32: Bool] {
    var meeting: [UInt32: Bool] = [:]
    for peer in peers.all {
      meeting[peer.number] = condition.matches(
        stats(of: peer.number, of: condition.statsTypes), of: peer.number)
    }
    return meeting
  }

  /// The number, label and state of every peer so far.
  package var states: [(peer: UInt32, label: String, snapshot: PeerSnapshot)] {
    peers.all.compactMap { peer in
      peer.machine.snapshot.map { (peer.number, peer.label, $0) }
    }
  }

  /// What getStats would give for a peer, or its objects of some types.
  package func stats(of peer: UInt32, of types: Set<String>? = nil) -> StatsReport {
    peers.all.first { $0.number == peer }?.machine.stats(of: types) ?? StatsReport()
  }
}

extension TapeWalk.Step {
  /// The step in words: its input on one line, then what followed.
  package var lines: [String] {
    [InputText(recorded).line] + recorded.outputRows.map { "  \(RowText(rows, $0).title)" }
      + dataTitles.map { "  \($0)" }
  }

  /// What the encrypted datagrams of the step carried.
  private var dataTitles: [String] {
    data.map { "\($0.isInbound ? "in" : "out"): \(SCTPText.title($0.bytes.span.bytes))" }
  }

  /// The step as a JSON object.
  package var json: String {
    let head = recorded.head
    let outputs = recorded.outputRows.map { jsonString(RowText(rows, $0).title) }
    return "{\"step\":\(head.number),\"at_ns\":\(head.at.nanoseconds),\"peer\":\(head.peer),"
      + "\"input\":\(jsonString(InputText(recorded).title)),"
      + "\"outputs\":[\(outputs.joined(separator: ","))],"
      + "\"data\":[\(dataTitles.map(jsonString).joined(separator: ","))]}"
  }
}
