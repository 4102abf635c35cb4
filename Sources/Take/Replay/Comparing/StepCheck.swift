import Dispatch
import FoundationEssentials
import Synchronization
import Tape
import Wire

/// The outcome of executing the first steps of a chunk.
struct ExecutedChunk: Sendable {
  /// The outputs of a step, and the machine's state after it.
  struct Step: Sendable {
    var outputs: any RecordedOutputs
    var deadline: Instant?
    var entropyDrawn: UInt64
  }

  let chunk: TapeChunk
  /// The steps that were executed, which may be fewer than the chunk has.
  var steps: [Step] = []

  init(_ chunk: TapeChunk) {
    self.chunk = chunk
    steps.reserveCapacity(chunk.steps.count)
  }

  /// The time of the last step that was executed; nil if none was.
  var last: Instant? { steps.isEmpty ? nil : chunk.steps[steps.count - 1].head.at }
}

/// Compares the stack's behaviour with the recording, step by step, up to the first difference.
///
/// One thread may read the result while another compares.
final class StepCheck: Sendable {
  /// A difference, with the data for a report about it.
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

  /// Starts checking a take.
  ///
  /// - Parameter comparesMedia: whether to compare decoded media; false if nothing was decoded.
  init(_ header: TakeHeader, comparesMedia: Bool) {
    comparison = Mutex(Comparison(header, comparesMedia: comparesMedia))
  }

  var finding: Finding? { comparison.withLock { $0.finding } }
  /// The first output that differs, after a step that differed only in state; nil if none was
  /// found.
  var consequence: Finding? { comparison.withLock { $0.consequence } }
  /// Whether no further step needs to be compared.
  var isDone: Bool { comparison.withLock { $0.isDone } }
  /// The number of steps before the first difference.
  var steps: Int { comparison.withLock { $0.steps } }
  /// The time of the last step before the first difference.
  var at: Instant { comparison.withLock { $0.at } }

  /// Locks a mutex once, for the reason that `TapeWalk.prepareForCopy` explains.
  static func useLock() { Mutex(0).withLock { $0 += 1 } }

  /// Compares a chunk's executed steps; does nothing once the check is done.
  func compare(_ executed: ExecutedChunk) { comparison.withLock { $0.compare(executed) } }

  /// Compares an executed step; does nothing once the check is done.
  func compare(
    _ step: TapeChunk.Step, _ rows: RowList, _ result: ExecutedChunk.Step
  ) {
    comparison.withLock { $0.compare(step, rows, result) }
  }
}

private struct Comparison {
  private(set) var finding: StepCheck.Finding?
  private(set) var consequence: StepCheck.Finding?
  /// Whether `finding` and `consequence` are set; testing the large values in every step would be
  /// slow.
  private var hasFinding = false
  private var hasConsequence = false
  var isDone: Bool { hasFinding && (hasConsequence || stepsAfter >= Comparison.outlook) }

  /// After a difference in state, this many steps are searched for an output that shows it.
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

  /// Compares the step at an index.
  ///
  /// It receives the whole arrays, because copying an element would retain each of its parts.
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
        // If the step's outputs differ, there is no need to look for a consequence.
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
    // Steps are read in place, because a copy would retain each of their parts.
    steps.span[index].writeInput(to: &transcript)
    results.span[index].outputs.write(to: &transcript)
    let shown = StepDifference(
      recorded: rows, steps[index].rows, replayed: transcript.rows, comparesMedia: comparesMedia)
    if shown != nil || !looksInside { return shown }
    return StepDifference(
      head: head, deadline: results[index].deadline, entropyDrawn: results[index].entropyDrawn)
  }

  /// Keeps the last steps as history, unless a difference was found.
  private mutating func remember(_ steps: ArraySlice<TapeChunk.Step>) {
    guard !hasFinding else { return }
    let length = Divergence.historyLength
    // On a slice, `suffix` does not copy every step to find the last steps.
    let last: ArraySlice<TapeChunk.Step> = steps.suffix(length)
    if history.count + last.count > 2 * length {
      history.removeFirst(min(history.count, length))
    }
    history += last
  }
}

// MARK: - CheckLine

/// Runs a check, on a separate thread if codecs run.
///
/// Codecs would otherwise wait while digests of frames are computed. Without codecs, the calling
/// thread compares: the outputs are still in the processor's caches, and their memory is reused
/// right away.
final class CheckLine: Sendable {
  private let check: StepCheck
  private let recycle: @Sendable (consuming TapeChunk) -> Void
  /// The thread's queue; nil without a thread.
  private let queue: BoundedQueue<ExecutedChunk>?
  private let hasFinding = Mutex(false)
  private let done = DispatchSemaphore(value: 0)

  /// The maximum number of queued chunks, because decoded frames stay in memory until compared.
  private static let depth = 8

  /// - Parameters:
  ///   - isThread: whether to compare on a separate thread.
  ///   - recycle: receives each chunk after it has been compared.
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

  /// Compares the next queued chunk and returns it for reuse; nil once the queue is finished.
  private func compareNext(_ queue: BoundedQueue<ExecutedChunk>) -> TapeChunk? {
    guard let next = queue.dequeue() else { return nil }
    check.compare(next)
    if check.isDone { hasFinding.withLock { $0 = true } }
    return next.chunk
  }

  /// Compares a chunk or queues it; returns false once no further chunk is needed.
  func put(_ executed: consuming ExecutedChunk) -> Bool {
    guard let queue else {
      check.compare(executed)
      let chunk = executed.chunk
      // This leaves no other reference to the chunk, so its memory can be reused.
      _ = consume executed
      recycle(chunk)
      return !check.isDone
    }
    return queue.put(executed) && !hasFinding.withLock { $0 }
  }

  /// Waits until all chunks have been compared; it may be called only once.
  func finish() {
    guard let queue else { return }
    queue.finish()
    done.wait()
  }
}

// MARK: - StepDifference

/// The first difference between a re-executed step and its recording.
enum StepDifference {
  /// Two rows of the same table differ in a column; each row number is an index into its own row
  /// list.
  case value(recorded: Int, replayed: Int, column: Int)
  /// Two rows of different tables, or a row that only one side has.
  case row(recorded: Int?, replayed: Int?)
  case deadline(recorded: Instant?, replayed: Instant?)
  case entropy(recorded: UInt64, replayed: UInt64)

  /// Whether only the machine's state differs, while the outputs are equal.
  var isInside: Bool {
    switch self {
    case .deadline, .entropy: true
    case .value, .row: false
    }
  }

  /// Finds the first difference between the rows of a step; fails if there is none.
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

  /// Compares the machine's state after a step with the recorded one; nil if they are equal.
  init?(head: StepHead, deadline: Instant?, entropyDrawn: UInt64) {
    if head.deadline != deadline {
      self = .deadline(recorded: head.deadline, replayed: deadline)
    } else if head.entropyDrawn != entropyDrawn {
      self = .entropy(recorded: head.entropyDrawn, replayed: entropyDrawn)
    } else {
      return nil
    }
  }

  /// For each table number, the index of the column whose value depends on a codec; nil if none
  /// does.
  private static let codecColumns: [Int?] =
    [nil] + Table.allCases.map { table in table.columns.firstIndex(where: \.needsCodec) }
}
