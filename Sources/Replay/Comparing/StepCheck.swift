import Synchronization
import Tape
import Wire

/// What the stack did with the first steps of a chunk.
struct ExecutedChunk: Sendable {
  /// What followed from a step, and what is told of the machine after it.
  struct Step: Sendable {
    var outputs: any RecordedOutputs
    var deadline: Instant?
    var entropyDrawn: UInt64
  }

  let chunk: TapeChunk
  /// The executed steps, perhaps not all of the chunk.
  var steps: [Step] = []

  init(_ chunk: TapeChunk) {
    self.chunk = chunk
    steps.reserveCapacity(chunk.steps.count)
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
    var deadline: Instant?
    var entropyDrawn: UInt64
    var history: ArraySlice<TapeChunk.Step>
  }

  private let comparison: Mutex<Comparison>

  /// Begins the check of a take; decoded media is not compared where nothing was decoded.
  init(_ header: TakeHeader, comparesMedia: Bool) {
    comparison = Mutex(Comparison(header, comparesMedia: comparesMedia))
  }

  /// The first difference.
  var finding: Finding? { comparison.withLock { $0.finding } }
  /// The first output that differs after a difference inside, which the wire did not show yet.
  var consequence: Finding? { comparison.withLock { $0.consequence } }
  /// Whether nothing more is to be found out.
  var isDone: Bool { comparison.withLock { $0.isDone } }
  /// How many steps were equal.
  var steps: Int { comparison.withLock { $0.steps } }
  /// The time of the last of them.
  var at: Instant { comparison.withLock { $0.at } }

  /// Compares the executed steps of a chunk; nothing once all was found out.
  func compare(_ executed: ExecutedChunk) { comparison.withLock { $0.compare(executed) } }

  /// Compares one executed step; nothing once all was found out.
  func compare(
    _ step: TapeChunk.Step, _ rows: RowList, _ result: ExecutedChunk.Step
  ) {
    comparison.withLock { $0.compare(step, rows, result) }
  }
}

/// What a check has compared so far.
private struct Comparison {
  private(set) var finding: StepCheck.Finding?
  private(set) var consequence: StepCheck.Finding?
  var isDone: Bool { finding != nil && (consequence != nil || stepsAfter >= Comparison.outlook) }

  /// For how many steps a difference inside is followed until it shows.
  private static let outlook = 4_096
  private var stepsAfter = 0
  private(set) var steps = 0
  private(set) var at = Instant.zero

  private var transcript: Transcript
  private let comparesMedia: Bool
  private var history: [TapeChunk.Step] = []

  init(_ header: TakeHeader, comparesMedia: Bool) {
    self.comparesMedia = comparesMedia
    transcript = Transcript(
      keepsMedia: header.keepsMedia, hashesMedia: comparesMedia, format: header.format)
  }

  mutating func compare(_ executed: ExecutedChunk) {
    guard !isDone else { return }
    for (step, result) in zip(executed.chunk.steps, executed.steps) {
      compare(step, executed.chunk.rows, result)
      if isDone { return }
    }
  }

  mutating func compare(
    _ step: TapeChunk.Step, _ rows: RowList, _ result: ExecutedChunk.Step
  ) {
    guard !isDone else { return }
    let isFirst = finding == nil
    if !isFirst { stepsAfter += 1 }
    if let difference = difference(step, rows, result, inside: isFirst) {
      let found = StepCheck.Finding(
        difference: difference, step: step, recordedRows: rows,
        replayedRows: transcript.rows, deadline: result.deadline,
        entropyDrawn: result.entropyDrawn,
        history: history.suffix(Divergence.historyLength))
      if !isFirst {
        consequence = found
      } else {
        finding = found
        // What shows at once needs no search for where it shows.
        if !difference.isInside { stepsAfter = Comparison.outlook }
      }
    }
    guard finding == nil else { return }
    steps += 1
    at = step.head.at
    remember(step)
  }

  private mutating func difference(
    _ step: TapeChunk.Step, _ rows: RowList, _ result: ExecutedChunk.Step,
    inside looksInside: Bool
  ) -> StepDifference? {
    if step.head.kind == .genesis {
      transcript.adopt(ActorWords(step, rows), of: step.head.actor)
    }
    transcript.begin(actor: step.head.actor, at: step.head.at)
    step.input.write(to: &transcript)
    result.outputs.write(to: &transcript)
    let shown = StepDifference(
      recorded: rows, step.rows, replayed: transcript.rows, comparesMedia: comparesMedia)
    if shown != nil || !looksInside { return shown }
    return StepDifference(
      head: step.head, deadline: result.deadline, entropyDrawn: result.entropyDrawn)
  }

  private mutating func remember(_ step: TapeChunk.Step) {
    if history.count == 2 * Divergence.historyLength {
      history.removeFirst(Divergence.historyLength)
    }
    history.append(step)
  }
}
