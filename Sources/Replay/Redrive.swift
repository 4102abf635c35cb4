package import Media
import Peer
package import Tape
package import Wire

/// Drives the stack with the inputs of a take on its own terms, and writes what it does into a new
/// take.
///
/// A replay ends at the first difference; this goes on. Recorded timers are followed as long as the
/// stack wants the same ones, and otherwise its own are fired when they are due, so a stack that
/// does nothing else than the recorded one gives the same take again.
package final class Redrive {
  /// How the new take differs in what it is.
  package struct Options: Sendable {
    /// Whether recorded frames stand in for the codecs.
    package var skipsCodecs = false
    /// The `take` row of the new take; nil: that of the old one.
    package var header: TakeHeader?
    package init() {}
  }

  /// What came of it.
  package struct Summary: Hashable, Sendable {
    /// How many steps the recording has, and how many the stack made of its inputs.
    package var recordedSteps = 0
    package var steps = 0
    /// The first recorded step that came out different; nil when all were the same.
    package var firstDifference: Int?
    /// How many recorded timers were not wanted, and how many others were.
    package var timersLeftOut = 0
    package var timersAdded = 0
  }

  private let path: String
  private let reader: TapeReader
  private let copy: TakeCopy
  private let script: FrameScript?
  private let makeCodecs: () -> any CodecFactory
  private let makePeer: (any CodecFactory) -> any ReplayedPeer
  private var peers: [RedrivenPeer] = []
  private var transcript: Transcript
  private var outbox = Outbox<PeerOutput>()
  private var now = Instant.zero
  private var summary = Summary()

  /// How many timers of its own a peer may have in a row without time going on.
  private static let timersPerInstant = 256

  /// Opens a take and creates the new one, which must not exist.
  package init(
    path: String, output: String, options: Options = Options(),
    codecs: @escaping () -> any CodecFactory,
    peer: @escaping (any CodecFactory) -> any ReplayedPeer
  ) throws(TapeError) {
    self.path = path
    reader = try TapeReader(path: path)
    if options.skipsCodecs, !reader.header.keepsMedia {
      throw TapeError(
        path: path, place: "",
        reason: "it was recorded without its media, so nothing can stand in for the codecs")
    }
    script = options.skipsCodecs ? try FrameScript(path: path) : nil
    makeCodecs = codecs
    makePeer = peer
    copy = try TakeCopy(path: output, header: options.header ?? reader.header)
    transcript = Transcript(
      keepsMedia: reader.header.keepsMedia, hashesMedia: !options.skipsCodecs)
  }

  /// Drives all inputs; throws when the take cannot be read or the new one cannot be written.
  package func run(progress: (Instant) -> Void = { _ in }) throws(TapeError) -> Summary {
    let isComplete = reader.ending != nil
    while let chunk = try next() {
      for step in chunk.steps { try follow(step, chunk.rows) }
      progress(now)
    }
    try copy.finish(isComplete: isComplete)
    summary.steps = copy.steps
    return summary
  }

  private func next() throws(TapeError) -> TapeChunk? {
    do throws(TapeFault) {
      return try reader.next()
    } catch {
      switch error {
      case .unreadable(let reason): throw reason
      case .altered(let alteration, _):
        throw TapeError(path: path, place: "", reason: alteration.description)
      }
    }
  }

  // MARK: Steps

  private func follow(_ step: TapeChunk.Step, _ rows: RowList) throws(TapeError) {
    try fireTimers(before: step.head.at)
    summary.recordedSteps += 1
    let index = peerIndex(step, rows)
    defer { peers[index].recordedDeadline = step.head.deadline }
    if step.head.kind == .deadline, !peers[index].wantsTimer(at: step.head.at) {
      summary.timersLeftOut += 1
      note(step.head.number)
      return
    }
    now = max(now, step.head.at)
    script?.begin(step: step.head.number)
    let head = try execute(step.input, kind: step.head.kind, index)
    if now != step.head.at || head.deadline != step.head.deadline
      || head.entropyDrawn != step.head.entropyDrawn || !isSame(rows, step.rows)
    {
      note(step.head.number)
    }
  }

  /// Fires the timers that the recorded stack did not have and this one has.
  private func fireTimers(before limit: Instant) throws(TapeError) {
    var budget = Redrive.timersPerInstant
    while budget > 0 {
      var chosen: (index: Int, due: Instant)?
      for (index, peer) in peers.enumerated() {
        guard let due = peer.ownTimer, due < limit, due < chosen?.due ?? limit else { continue }
        chosen = (index, due)
      }
      guard let chosen else { return }
      budget = chosen.due > now ? Redrive.timersPerInstant : budget - 1
      now = max(now, chosen.due)
      summary.timersAdded += 1
      note(summary.recordedSteps + 1)
      _ = try execute(.deadline, kind: .deadline, chosen.index)
    }
  }

  private func note(_ step: Int) {
    if summary.firstDifference == nil { summary.firstDifference = step }
  }

  private func execute(_ input: PeerInput, kind: StepKind, _ index: Int) throws(TapeError)
    -> StepHead
  {
    let machine = peers[index].machine
    machine.step(input, at: now, into: &outbox)
    transcript.begin(peer: peers[index].number, at: now)
    transcript.append(input)
    while let output = outbox.next() { transcript.append(output) }
    let rows = transcript.rows
    let head = StepHead(
      number: copy.steps + 1, kind: kind, peer: peers[index].number, at: now,
      deadline: machine.deadline, entropyDrawn: machine.entropyDrawn, rowCount: rows.count)
    try copy.append(head, rows, 0..<rows.count)
    return head
  }

  /// Whether the rows of the step under way are the recorded ones.
  private func isSame(_ rows: RowList, _ range: Range<Int>) -> Bool {
    StepDifference(
      recorded: rows, range, replayed: transcript.rows, comparesMedia: script == nil) == nil
  }

  private func peerIndex(_ step: TapeChunk.Step, _ rows: RowList) -> Int {
    if let known = peers.firstIndex(where: { $0.number == step.head.peer }) { return known }
    transcript.adoptName(of: step, rows)
    let codecs: any CodecFactory =
      script.map { ScriptedCodecs(peer: step.head.peer, script: $0) } ?? makeCodecs()
    peers.append(RedrivenPeer(number: step.head.peer, machine: makePeer(codecs)))
    return peers.count - 1
  }
}

/// A peer that is driven, and the timer that its recording had.
private struct RedrivenPeer {
  var number: UInt32
  var machine: any ReplayedPeer
  /// The deadline that was recorded after the peer's last step.
  var recordedDeadline: Instant?

  /// The timer that the recording does not have.
  var ownTimer: Instant? {
    let due = machine.deadline
    return due == recordedDeadline ? nil : due
  }

  /// Whether a timer that was recorded is one of this stack too.
  func wantsTimer(at instant: Instant) -> Bool {
    guard let due = machine.deadline else { return false }
    return due == recordedDeadline || due <= instant
  }
}

extension Transcript {
  /// Takes the words of a peer, which no input has, from its row.
  mutating func adoptName(of step: TapeChunk.Step, _ rows: RowList) {
    guard let row = step.inputRows.first, rows.table(row) == .peer,
      case .text(let label) = rows[row, 2], case .text(let role) = rows[row, 3]
    else { return }
    name(peer: step.head.peer, label: label, role: role)
  }
}
