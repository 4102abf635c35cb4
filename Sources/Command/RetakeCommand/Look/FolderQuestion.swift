import FoundationEssentials
import Queries
import Stats
import Synchronization
import Tape
import Wire

/// A query over several takes: on their catalogue if it has everything the query names, otherwise
/// on each take.
struct FolderQuestion {
  let paths: [String]
  let query: String
  /// Whether the query runs on each take, even if the catalogue has everything it names.
  let isEach: Bool
  /// The second query, over the combined rows.
  let over: String?
  let format: SQLConsole.Format
  let look: TableLook
  /// The time limit in seconds.
  let limit: Double?

  /// Runs the query and writes its text in pieces.
  func answer(_ write: @escaping (String) throws(CommandFailure) -> Void) throws {
    let list = try reading { () throws(TapeError) in try TakeList(paths) }
    let work = FolderWork("querying")
    let state = Writing(limit: limit)
    let watch = limit.map { QueryWatch(limit: $0, late(list, QueryWatch.reason)) }
    defer { watch?.end() }
    var failures: [TapeError] = []
    let count: Int
    do throws(TapeError) {
      let put: (String) -> Void = { text in
        work.clear()
        state.write(text, write)
      }
      if over == nil, !isEach, TakeCatalogue.answers(query) {
        (count, failures) = try answer(from: list, work, state, put)
      } else {
        (count, failures) = try answerByTake(list, work, state, put)
      }
    } catch {
      work.clear()
      guard error.place == SQLConsole.queryPlace else { throw CommandFailure(error) }
      throw CommandFailure(
        .usage,
        "\(list.title): \(error.description); retake sql --schema prints the tables and columns")
    }
    work.clear()
    FolderLook.report(failures)
    if let failure = state.failure { throw failure }
    let rows = "it gave \(counted(count, "row")) by then"
    if Interruption.isAsked {
      throw CommandFailure(.interrupted, "\(list.title): the query was interrupted; \(rows)")
    }
    if state.isLate { throw late(list, rows) }
    try FolderLook.fail(of: failures)
  }

  /// Updates the catalogue and runs the query on it.
  private func answer(
    from list: TakeList, _ work: FolderWork, _ state: Writing, _ put: @escaping (String) -> Void
  ) throws(TapeError) -> (Int, [TapeError]) {
    var progress = work.progress
    progress.isWanted = { state.isWanted }
    let catalogue = try work.follow { () throws(TapeError) in
      try TakeCatalogue(list, jobs: FolderWork.jobs, progress: progress)
    }
    guard state.isWanted else { return (0, catalogue.failures) }
    let count = try catalogue.answer(
      query, format: format, look: look, isWanted: { state.isWanted }, write: put)
    // If a table was cut, rows may be missing from the result.
    for cut in catalogue.cut where isNamed(cut) {
      printError(
        "retake: \(cut): it has more rows than the catalogue keeps of a take; --each reads all")
    }
    return (count, catalogue.failures)
  }

  /// Returns whether the query may use a cut table, listed as `calls/a.take: state, speaker`.
  private func isNamed(_ cut: String) -> Bool {
    let tables = cut.split(separator: ":").last.map { $0.split(separator: ",") } ?? []
    let words = query.lowercased()
    return tables.contains { words.contains($0.drop { $0 == " " }) }
  }

  private func answerByTake(
    _ list: TakeList, _ work: FolderWork, _ state: Writing, _ put: @escaping (String) -> Void
  ) throws(TapeError) -> (Int, [TapeError]) {
    try work.follow { () throws(TapeError) in
      let asked = try TakesQuery(
        list, sql: query, jobs: FolderWork.jobs, isWanted: { state.isWanted })
      guard let over else { return asked.print(format: format, look: look, write: put) }
      return try asked.print(over: over, format: format, look: look, write: put)
    }
  }

  private func late(_ list: TakeList, _ rows: String) -> CommandFailure {
    CommandFailure(
      .difference,
      "\(list.title): the query took longer than the --time-limit of "
        + "\(StatsValue.number(limit ?? 0).json) s; \(rows)")
  }

  /// The state of writing, and whether more output is wanted.
  private final class Writing: Sendable {
    private let begin = ContinuousClock.now
    private let limit: Double
    private let failed = Mutex<CommandFailure?>(nil)
    private let wasLate = Atomic(false)

    init(limit: Double?) { self.limit = limit ?? .infinity }

    /// The error that ended writing.
    var failure: CommandFailure? { failed.withLock { $0 } }
    /// Whether the time limit was exceeded.
    var isLate: Bool { wasLate.load(ordering: .relaxed) }

    var isWanted: Bool {
      if begin.duration(to: .now).seconds >= limit { wasLate.store(true, ordering: .relaxed) }
      return !isLate && !Interruption.isAsked && failure == nil
    }

    func write(_ text: String, _ body: (String) throws(CommandFailure) -> Void) {
      guard failure == nil else { return }
      do throws(CommandFailure) {
        try body(text)
      } catch {
        failed.withLock { $0 = error }
      }
    }
  }
}
