import Peer
import Synchronization
import Tape
import Wire

/// What the stack did with the first steps of a chunk.
struct ExecutedChunk: Sendable {
  /// What is told of the machine after a step, and where its outputs end.
  struct Step: Sendable {
    var outputsEnd: Int
    var deadline: Instant?
    var entropyDrawn: UInt64
  }

  let chunk: TapeChunk
  /// The executed steps, perhaps not all of the chunk.
  var steps: [Step] = []
  /// The outputs of all of them, one after the other.
  var outputs: [PeerOutput] = []

  init(_ chunk: TapeChunk) {
    self.chunk = chunk
    steps.reserveCapacity(chunk.steps.count)
    outputs.reserveCapacity(4 * chunk.steps.count)
  }
}

/// Compares what the stack did with the recording, step by step, up to the first difference.
///
/// One thread compares while another may ask what was found.
final class StepCheck: Sendable {
  /// A difference with all that a report about it says.
  struct Finding: Sendable {
    var difference: StepDifference
    var step: TapeChunk.Step
    var recordedRows: RowList
    var replayedRows: RowList
    var entropyDrawn: UInt64
    var history: ArraySlice<TapeChunk.Step>
  }

  private let comparison: Mutex<Comparison>

  init(keepsMedia: Bool, comparesMedia: Bool) {
    comparison = Mutex(Comparison(keepsMedia: keepsMedia, comparesMedia: comparesMedia))
  }

  /// The first difference.
  var finding: Finding? { comparison.withLock { $0.finding } }
  /// How many steps were equal.
  var steps: Int { comparison.withLock { $0.steps } }
  /// The time of the last of them.
  var at: Instant { comparison.withLock { $0.at } }

  /// Compares the executed steps of a chunk; nothing once a difference was found.
  ///
  /// - Returns: whether a difference was found by now.
  @discardableResult
  func compare(_ executed: ExecutedChunk) -> Bool {
    comparison.withLock { comparison in
      comparison.compare(executed)
      return comparison.finding != nil
    }
  }
}

/// What a check has compared so far.
private struct Comparison {
  private(set) var finding: StepCheck.Finding?
  private(set) var steps = 0
  private(set) var at = Instant.zero

  private var transcript: Transcript
  private let comparesMedia: Bool
  private var history: [TapeChunk.Step] = []

  init(keepsMedia: Bool, comparesMedia: Bool) {
    self.comparesMedia = comparesMedia
    transcript = Transcript(keepsMedia: keepsMedia, hashesMedia: comparesMedia)
  }

  mutating func compare(_ executed: ExecutedChunk) {
    guard finding == nil else { return }
    var start = 0
    for (step, result) in zip(executed.chunk.steps, executed.steps) {
      let outputs = executed.outputs[start..<result.outputsEnd]
      start = result.outputsEnd
      if let difference = difference(step, executed.chunk.rows, outputs, result) {
        finding = StepCheck.Finding(
          difference: difference, step: step, recordedRows: executed.chunk.rows,
          replayedRows: transcript.rows, entropyDrawn: result.entropyDrawn,
          history: history.suffix(Divergence.historyLength))
        return
      }
      steps += 1
      at = step.head.at
      remember(step)
    }
  }

  private mutating func difference(
    _ step: TapeChunk.Step, _ rows: RowList, _ outputs: ArraySlice<PeerOutput>,
    _ result: ExecutedChunk.Step
  ) -> StepDifference? {
    transcript.begin(peer: step.head.peer, at: step.head.at)
    transcript.adopt(rows, step.inputRows)
    for output in outputs { transcript.append(output) }
    return StepDifference(
      recorded: rows, step.outputRows, replayed: transcript.rows, comparesMedia: comparesMedia)
      ?? StepDifference(
        head: step.head, deadline: result.deadline, entropyDrawn: result.entropyDrawn)
  }

  private mutating func remember(_ step: TapeChunk.Step) {
    if history.count == 2 * Divergence.historyLength {
      history.removeFirst(Divergence.historyLength)
    }
    history.append(step)
  }
}
