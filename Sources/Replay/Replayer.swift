package import Media
import Peer
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
  }

  /// How much of a take is replayed, and what stands in for what.
  package struct Options: Sendable {
    package var until: Stop?
    /// Whether recorded frames stand in for the codecs; all but decoded media is compared still.
    package var skipsCodecs = false
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
  private let reader: TapeReader
  private let script: FrameScript?
  private let makeCodecs: () -> any CodecFactory
  private let makePeer: (any CodecFactory) -> any ReplayedPeer

  private var transcript: Transcript
  private var peers: [DrivenPeer] = []
  private var outbox = Outbox<PeerOutput>()
  private var history: [TapeChunk.Step] = []
  private var steps = 0
  private var at = Instant.zero

  /// Opens a take; the peers are made by `peer` with codecs of their own each.
  ///
  /// Throws when the file cannot be read, and when the codecs are to be skipped and the take was
  /// recorded without its media.
  package init(
    path: String, options: Options = Options(), codecs: @escaping () -> any CodecFactory,
    peer: @escaping (any CodecFactory) -> any ReplayedPeer
  ) throws(TapeError) {
    self.path = path
    self.options = options
    reader = try TapeReader(path: path)
    header = reader.header
    makeCodecs = codecs
    makePeer = peer
    let recorded = header.toolchain
    toolchainDifferences = (options.toolchain ?? recorded).differences(from: recorded).map {
      ToolchainDifference(part: $0.part, recorded: $0.there, present: $0.here)
    }
    if options.skipsCodecs, !reader.header.keepsMedia {
      throw TapeError(
        path: path, place: "",
        reason:
          "it was recorded without its media, so the codecs cannot be skipped; replay it whole")
    }
    script = options.skipsCodecs ? try FrameScript(path: path) : nil
    transcript = Transcript(
      keepsMedia: reader.header.keepsMedia, hashesMedia: !options.skipsCodecs)
  }

  /// The time of the last step of the take, for progress.
  package func lastTime() throws(TapeError) -> Instant? { try reader.lastTime() }

  /// Replays to the end, to the first difference or to where the options say; once only.
  package func run(progress: (Instant) -> Void = { _ in }) throws(TapeError) -> ReplayReport {
    let clock = ContinuousClock()
    let start = clock.now
    let isComplete = reader.ending != nil
    let feed = StepFeed(reader)
    defer { feed.cancel() }
    let verdict: Verdict
    do throws(TapeFault) {
      verdict = try verdictOf(feed, progress)
    } catch {
      switch error {
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
      peers: peers.map(\.label), isComplete: isComplete, skippedCodecs: options.skipsCodecs,
      stoppedEarly: stoppedEarly, toolchainDifferences: toolchainDifferences)
  }

  private var stoppedEarly = false

  private func verdictOf(_ feed: StepFeed, _ progress: (Instant) -> Void) throws(TapeFault)
    -> Verdict
  {
    while let chunk = try feed.next() {
      for step in chunk.steps {
        if isStop(step.head) {
          stoppedEarly = true
          return .identical
        }
        if let difference = replay(step, chunk.rows) {
          return .diverged(divergence(difference, step, chunk.rows))
        }
        steps += 1
        at = step.head.at
        remember(step)
      }
      progress(at)
    }
    return .identical
  }

  private func isStop(_ head: StepHead) -> Bool {
    switch options.until {
    case nil: false
    case .step(let number): head.number >= number
    case .time(let instant): head.at > instant
    }
  }

  // MARK: One step

  /// Executes a step and gives the first thing that is not as recorded.
  private func replay(_ step: TapeChunk.Step, _ rows: RowList) -> StepDifference? {
    let index = peerIndex(step, rows)
    let machine = peers[index].machine
    script?.begin(step: step.head.number)
    transcript.begin(peer: step.head.peer, at: step.head.at)
    transcript.adopt(rows, step.inputRows)
    machine.step(step.input, at: step.head.at, into: &outbox)
    while let output = outbox.next() { transcript.append(output) }
    return StepDifference(
      recorded: rows, step.outputRows, replayed: transcript.rows,
      comparesMedia: !options.skipsCodecs)
      ?? StepDifference(
        head: step.head, deadline: machine.deadline, entropyDrawn: machine.entropyDrawn)
  }

  /// Where the peer of a step stands; it is made by its first step.
  private func peerIndex(_ step: TapeChunk.Step, _ rows: RowList) -> Int {
    if let known = peers.firstIndex(where: { $0.number == step.head.peer }) { return known }
    var label = ""
    if step.head.kind == .genesis, let row = step.inputRows.first,
      case .text(let text) = rows[row, 2]
    {
      label = text
    }
    let codecs: any CodecFactory =
      script.map { ScriptedCodecs(peer: step.head.peer, script: $0) } ?? makeCodecs()
    peers.append(
      DrivenPeer(number: step.head.peer, label: label, machine: makePeer(codecs)))
    return peers.count - 1
  }

  private func remember(_ step: TapeChunk.Step) {
    if history.count == 2 * Divergence.historyLength {
      history.removeFirst(Divergence.historyLength)
    }
    history.append(step)
  }

  // MARK: Reports

  private func divergence(
    _ difference: StepDifference, _ step: TapeChunk.Step, _ rows: RowList
  ) -> Divergence {
    let machine = peers[peerIndex(step, rows)]
    return Divergence(
      difference, step: step, recordedRows: rows, replayedRows: transcript.rows,
      peerLabel: machine.label,
      entropy: (step.head.entropyDrawn, machine.machine.entropyDrawn),
      history: history.suffix(Divergence.historyLength), path: path)
  }

  /// What the stack makes of an altered step, when its input is still good.
  private func expectation(_ chunk: TapeChunk) -> String? {
    guard let step = chunk.steps.first, let difference = replay(step, chunk.rows) else {
      return nil
    }
    let divergence = divergence(difference, step, chunk.rows)
    return "\(divergence.what), \(divergence.field): the file has \(divergence.recorded), "
      + "a replay gives \(divergence.replayed)"
  }
}

/// A peer that is being replayed.
private struct DrivenPeer {
  var number: UInt32
  var label: String
  var machine: any ReplayedPeer
}
