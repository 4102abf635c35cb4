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
    /// What of DTLS and SRTP is taken from the recording.
    package var security: RecordedSecurity.Parts = []
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
  private var peers: DrivenPeers
  /// The deadline that was recorded after each peer's last step.
  private var recordedDeadlines: [Instant?] = []
  private var transcript: Transcript
  /// What the old take would say, where it has another format.
  private var comparison: Transcript?
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
    let script = options.skipsCodecs ? try FrameScript(path: path) : nil
    peers = DrivenPeers(
      script: script, security: options.security, codecs: codecs, peer: peer)
    copy = try TakeCopy(path: output, header: options.header ?? reader.header)
    let format = (options.header ?? reader.header).format
    transcript = Transcript(
      keepsMedia: reader.header.keepsMedia, hashesMedia: !options.skipsCodecs, format: format)
    if format != reader.header.format {
      comparison = Transcript(
        keepsMedia: reader.header.keepsMedia, hashesMedia: !options.skipsCodecs,
        format: reader.header.format)
    }
  }

  /// Drives all inputs; throws when the take cannot be read or the new one cannot be written.
  package func run(progress: (Instant) -> Void = { _ in }) throws(TapeError) -> Summary {
    let isComplete = reader.ending != nil
    while let chunk = try reader.chunk() {
      for step in chunk.steps { try follow(step, chunk.rows) }
      progress(now)
    }
    try copy.finish(isComplete: isComplete)
    summary.steps = copy.steps
    return summary
  }

  // MARK: Steps

  private func follow(_ step: TapeChunk.Step, _ rows: RowList) throws(TapeError) {
    try fireTimers(before: step.head.at)
    summary.recordedSteps += 1
    let index = peers.index(of: step, rows)
    if index == recordedDeadlines.count {
      recordedDeadlines.append(nil)
      let words = PeerWords(step, rows)
      transcript.adopt(words, of: step.head.peer)
      comparison?.adopt(words, of: step.head.peer)
    }
    defer { recordedDeadlines[index] = step.head.deadline }
    if step.head.kind == .deadline, !wantsTimer(index, at: step.head.at) {
      summary.timersLeftOut += 1
      note(step.head.number)
      return
    }
    now = max(now, step.head.at)
    var step = step
    let recordedAt = step.head.at
    step.head.at = now
    let peer = peers.execute(step, rows, into: &outbox)
    let head = try write(step.input, kind: step.head.kind, peer)
    if now != recordedAt || head.deadline != step.head.deadline
      || head.entropyDrawn != step.head.entropyDrawn || !isSame(rows, step.rows)
    {
      note(step.head.number)
    }
  }

  /// The timer that a peer has and its recording has not.
  private func ownTimer(_ index: Int) -> Instant? {
    let due = peers.all[index].deadline
    return due == recordedDeadlines[index] ? nil : due
  }

  /// Whether a timer that was recorded is one of this stack too.
  private func wantsTimer(_ index: Int, at instant: Instant) -> Bool {
    guard let due = peers.all[index].deadline else { return false }
    return due == recordedDeadlines[index] || due <= instant
  }

  /// Fires the timers that the recorded stack did not have and this one has.
  private func fireTimers(before limit: Instant) throws(TapeError) {
    var budget = Redrive.timersPerInstant
    while budget > 0 {
      var chosen: (index: Int, due: Instant)?
      for index in peers.all.indices {
        guard let due = ownTimer(index), due < limit, due < chosen?.due ?? limit else { continue }
        chosen = (index, due)
      }
      guard let chosen else { return }
      budget = chosen.due > now ? Redrive.timersPerInstant : budget - 1
      now = max(now, chosen.due)
      summary.timersAdded += 1
      note(summary.recordedSteps + 1)
      let peer = peers.all[chosen.index]
      peer.step(.deadline, at: now, into: &outbox)
      _ = try write(.deadline, kind: .deadline, peer)
    }
  }

  private func note(_ step: Int) {
    if summary.firstDifference == nil { summary.firstDifference = step }
  }

  /// Writes down what a peer was given and what it did.
  private func write(_ input: PeerInput, kind: StepKind, _ peer: DrivenPeer) throws(TapeError)
    -> StepHead
  {
    transcript.begin(peer: peer.number, at: now)
    transcript.append(input)
    comparison?.begin(peer: peer.number, at: now)
    comparison?.append(input)
    while let output = outbox.next() {
      transcript.append(output)
      comparison?.append(output)
    }
    let rows = transcript.rows
    let head = StepHead(
      number: copy.steps + 1, kind: kind, peer: peer.number, at: now,
      deadline: peer.deadline, entropyDrawn: peer.entropyDrawn, rowCount: rows.count)
    try copy.append(head, rows, 0..<rows.count)
    return head
  }

  /// Whether the rows of the step under way are the recorded ones.
  private func isSame(_ rows: RowList, _ range: Range<Int>) -> Bool {
    StepDifference(
      recorded: rows, range, replayed: (comparison ?? transcript).rows,
      comparesMedia: peers.script == nil) == nil
  }
}
