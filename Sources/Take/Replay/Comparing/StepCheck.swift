import Dispatch
import FoundationEssentials
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

  /// The time of the last executed step.
  var last: Instant? { steps.isEmpty ? nil : chunk.steps[steps.count - 1].head.at }
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

  /// Locks and unlocks once with the code of this file; `TapeWalk.prepareForCopy` says why.
  static func useLock() { Mutex(0).withLock { $0 += 1 } }

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
  /// Whether there are these two, which are large: every step asks.
  private var hasFinding = false
  private var hasConsequence = false
  var isDone: Bool { hasFinding && (hasConsequence || stepsAfter >= Comparison.outlook) }

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
    for index in executed.steps.indices {
      compare(executed.chunk.steps, executed.chunk.rows, executed.steps, index)
      if isDone { return }
    }
    remember(executed.chunk.steps[..<executed.steps.count])
  }

  mutating func compare(
    _ step: TapeChunk.Step, _ rows: RowList, _ result: ExecutedChunk.Step
  ) {
    guard !isDone else { return }
    compare([step], rows, [result], 0)
    remember([step])
  }

  /// Compares one of some steps; all of these are handed over, because a copy of one would count
  /// every part of it.
  private mutating func compare(
    _ steps: [TapeChunk.Step], _ rows: RowList, _ results: [ExecutedChunk.Step], _ index: Int
  ) {
    let isFirst = !hasFinding
    if !isFirst { stepsAfter += 1 }
    if let difference = difference(steps, rows, results, index, inside: isFirst) {
      if isFirst { remember(steps[..<index]) }
      let found = StepCheck.Finding(
        difference: difference, step: steps[index], recordedRows: rows,
        replayedRows: transcript.rows, deadline: results[index].deadline,
        entropyDrawn: results[index].entropyDrawn,
        history: history.suffix(Divergence.historyLength))
      if !isFirst {
        consequence = found
        hasConsequence = true
      } else {
        finding = found
        hasFinding = true
        // What shows at once needs no search for where it shows.
        if !difference.isInside { stepsAfter = Comparison.outlook }
      }
    }
    guard !hasFinding else { return }
    self.steps += 1
    at = steps[index].head.at
  }

  private mutating func difference(
    _ steps: [TapeChunk.Step], _ rows: RowList, _ results: [ExecutedChunk.Step], _ index: Int,
    inside looksInside: Bool
  ) -> StepDifference? {
    let head = steps[index].head
    if head.kind == .genesis { transcript.adopt(ActorWords(steps[index], rows), of: head.actor) }
    transcript.begin(actor: head.actor, at: head.at)
    // Where they are, because a copy counts every part.
    steps.span[index].writeInput(to: &transcript)
    results.span[index].outputs.write(to: &transcript)
    let shown = StepDifference(
      recorded: rows, steps[index].rows, replayed: transcript.rows, comparesMedia: comparesMedia)
    if shown != nil || !looksInside { return shown }
    return StepDifference(
      head: head, deadline: results[index].deadline, entropyDrawn: results[index].entropyDrawn)
  }

  /// Records steps that were equal, up to the first difference.
  private mutating func remember(_ steps: ArraySlice<TapeChunk.Step>) {
    guard !hasFinding else { return }
    let length = Divergence.historyLength
    // A slice: the suffix of a sequence would copy every step to find the last ones.
    let last: ArraySlice<TapeChunk.Step> = steps.suffix(length)
    if history.count + last.count > 2 * length {
      history.removeFirst(min(history.count, length))
    }
    history += last
  }
}

// MARK: - CheckLine

/// Runs a check on a thread of its own where codecs run: digesting video frames takes time that
/// they would otherwise wait for.
///
/// Where none run, rows are made and compared right where the outputs are still in the processor's
/// caches, and their memory is free for the next ones at once.
final class CheckLine: Sendable {
  private let check: StepCheck
  private let recycle: @Sendable (consuming TapeChunk) -> Void
  /// What waits for the thread; nil without one.
  private let queue: BoundedQueue<ExecutedChunk>?
  private let hasFinding = Mutex(false)
  private let done = DispatchSemaphore(value: 0)

  /// How many chunks may wait: their decoded video frames are held until they are compared.
  private static let depth = 8

  /// - Parameters:
  ///   - isThread: whether it compares on a thread of its own.
  ///   - recycle: gets each chunk once it is compared.
  init(
    _ check: StepCheck, isThread: Bool,
    recycle: @escaping @Sendable (consuming TapeChunk) -> Void
  ) {
    self.check = check
    self.recycle = recycle
    queue = isThread ? BoundedQueue(depth: CheckLine.depth) : nil
    guard let queue else { return }
    startWorker(named: "take check") { [self] in run(queue) }
  }

  private func run(_ queue: BoundedQueue<ExecutedChunk>) {
    while let chunk = compareNext(queue) { recycle(chunk) }
    done.signal()
  }

  /// Compares the next chunk and gives it away; nil at the end.
  private func compareNext(_ queue: BoundedQueue<ExecutedChunk>) -> TapeChunk? {
    guard let next = queue.dequeue() else { return nil }
    check.compare(next)
    if check.isDone { hasFinding.withLock { $0 = true } }
    return next.chunk
  }

  /// Hands a chunk over; false when a difference was found in an earlier one, or in this one.
  func put(_ executed: consuming ExecutedChunk) -> Bool {
    guard let queue else {
      check.compare(executed)
      let chunk = executed.chunk
      // The chunk alone has its memory then, which is needed to use it again.
      _ = consume executed
      recycle(chunk)
      return !check.isDone
    }
    return queue.put(executed) && !hasFinding.withLock { $0 }
  }

  /// Waits until everything that was handed over is compared; called once.
  func finish() {
    guard let queue else { return }
    queue.finish()
    done.wait()
  }
}

// MARK: - StepDifference

/// The first thing in which a re-executed step differs from its recording.
enum StepDifference {
  /// A column of two rows of one table; row numbers are those of the two lists.
  case value(recorded: Int, replayed: Int, column: Int)
  /// Rows of different tables, or a row that only one side has.
  case row(recorded: Int?, replayed: Int?)
  case deadline(recorded: Instant?, replayed: Instant?)
  case entropy(recorded: UInt64, replayed: UInt64)

  /// Whether the difference is inside of the machine and shows in no output yet.
  var isInside: Bool {
    switch self {
    case .deadline, .entropy: true
    case .value, .row: false
    }
  }

  /// Compares the rows of a step; nil when they are equal.
  init?(
    recorded: borrowing RowList, _ range: Range<Int>, replayed: borrowing RowList,
    comparesMedia: Bool
  ) {
    let count = replayed.count
    if recorded.equals(range, replayed, 0..<count) { return nil }
    for index in 0..<max(range.count, count) {
      let row = range.lowerBound + index
      guard index < count, index < range.count, recorded.table(row) == replayed.table(index) else {
        self = .row(
          recorded: index < range.count ? row : nil, replayed: index < count ? index : nil)
        return
      }
      let ignored =
        comparesMedia ? nil : StepDifference.codecColumns[Int(replayed.table(index).rawValue)]
      if let column = recorded.firstDifference(row, replayed, index, ignoring: ignored) {
        self = .value(recorded: row, replayed: index, column: column)
        return
      }
    }
    return nil
  }

  /// Compares what is told of the machine after the step; nil when it is equal.
  init?(head: StepHead, deadline: Instant?, entropyDrawn: UInt64) {
    if head.deadline != deadline {
      self = .deadline(recorded: head.deadline, replayed: deadline)
    } else if head.entropyDrawn != entropyDrawn {
      self = .entropy(recorded: head.entropyDrawn, replayed: entropyDrawn)
    } else {
      return nil
    }
  }

  /// The column of each table that only a codec can tell, by the table's number.
  private static let codecColumns: [Int?] =
    [nil] + Table.allCases.map { table in table.columns.firstIndex(where: \.needsCodec) }
}
