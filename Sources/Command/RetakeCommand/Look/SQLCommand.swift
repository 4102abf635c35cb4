import ArgumentParser
import Dispatch
import FoundationEssentials
import Glibc
import Queries
import Replay
import Stats
import Synchronization
import Tape
import Wire

/// Runs SQL on takes.
struct SQLCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "sql",
    abstract: "Run SQL over a take; plain sqlite3 works as well.",
    discussion: """
      Without a query, a terminal shows a prompt with history and completion; queries also come \
      from --file, or from standard input, one after the other. Functions beside those of SQLite: \
      percentile(x, p), median(x), stddev(x), and x REGEXP pattern.

      Rows are printed as they come. Ctrl-C and --time-limit end a query; the rows so far are \
      printed, and the exit status is that of an interrupt, or 1. In tables and comma-separated \
      values, control characters are printed as \\u{1b}; JSON preserves them.

      For a folder, or several takes, a query runs in one of two ways. If it names only tables of \
      the catalogue (take, finding, quality, connection, voice_total, stream, selected_pair, \
      state, speaker, participant and others, each with a column take; --schema lists them), it \
      runs once, over the rows of all takes. Otherwise, and with --each, it runs on each take \
      separately, and the results are combined behind a column take: sums and counts are then per \
      take. --over is a second query over those results, in a table called rows. The catalogue is \
      kept beside the takes (.retake.catalogue), or in the user's cache. finding, quality, \
      connection and voice_total can also be used with the tables of a take, even of a single one.

      Examples:
        retake sql call.take "SELECT at_ns, machine, from_state, to_state FROM state"
        retake sql call.take "SELECT * FROM bitrate" --csv
        retake sql call.take
        retake sql call.take --file questions.sql --format markdown
        echo "SELECT * FROM lost_packet" | retake sql call.take --format jsonl
        retake sql takes/ "SELECT id, count(DISTINCT take) FROM finding GROUP BY id"
        retake sql takes/ "SELECT count(*) AS n FROM packet" \\
          --over "SELECT sum(n) FROM rows"
        retake sql --schema
      """)

  @Argument(
    help: "The take, or a folder of takes.", completion: .file(extensions: ["take"]),
    transform: Taking.path)
  var take: String?

  @Argument(
    help: "The query. Default: queries from --file, standard input, or a prompt.",
    transform: Taking.query)
  var query: String?

  @Option(
    help: "A file of queries with semicolons between them; - is standard input.",
    completion: .file(extensions: ["sql"]), transform: Taking.path)
  var file: String?

  @Argument(
    help: "With several takes: the further takes, and the query as the last argument.",
    transform: Taking.query)
  var more: [String] = []

  @Flag(help: "With several takes: run the query on each separately and combine the rows.")
  var each = false

  @Option(
    help: "With several takes: a second query over the combined rows, in the table rows.",
    transform: Taking.query)
  var over: String?

  @Option(
    help: "How rows are printed: table, csv, json, jsonl (a line of JSON a row) or markdown.")
  var format: OutputFormat = .table

  @Flag(help: "Print JSON, like --format json.")
  var json = false

  @Flag(help: "Print comma-separated values, like --format csv.")
  var csv = false

  @Option(
    help: "End the query after this time, as in 10, 10s or 500ms. Default: no limit.",
    transform: Taking.seconds(0.001...86_400))
  var timeLimit: Double?

  @Flag(help: "Print every table and column with its description.")
  var schema = false

  @OptionGroup var pager: PagerOptions

  func validate() throws {
    if !schema, take == nil {
      throw ValidationError("Give a take, or --schema.")
    }
    if file != nil, query != nil || schema {
      throw ValidationError("--file has the queries: leave out the query and --schema.")
    }
    if schema, json || csv || format != .table {
      throw ValidationError(
        "--schema prints text: leave --json, --csv and --format out; the tables sqlite_schema and "
          + "pragma_table_info of a take answer queries.")
    }
    if json, csv { throw ValidationError("Give --json or --csv, not both.") }
    if let take, each || over != nil, more.isEmpty, FileBytes.kind(of: take) == .file {
      throw ValidationError("--each and --over are for several takes, or for a folder of them.")
    }
  }

  func run() throws {
    if schema { return try printSchema() }
    guard let take else { return }
    if !more.isEmpty || FileBytes.kind(of: take) == .folder {
      guard let query else {
        throw CommandFailure(
          .usage, "\(CommandReading.oneLine(take)) is a folder: give a query over its takes")
      }
      // The last argument is the query.
      let words = [take, query] + more
      return try answer(words[words.count - 1], ofTakes: Array(words.dropLast()))
    }
    reportEndings(of: take)
    let chosen: SQLConsole.Format = json ? .json : csv ? .csv : format.format
    if let query { return try answer(query, take, chosen) }
    if file == nil, isatty(STDIN_FILENO) != 0, isatty(STDOUT_FILENO) != 0 {
      return try SQLPrompt(take: take, format: chosen, look: pager.look, limit: timeLimit).run()
    }
    let statements = SQLScript.statements(in: try SQLScript.read(file ?? "-"))
    guard !statements.isEmpty else {
      let place = file == nil || file == "-" ? "standard input" : file ?? ""
      throw CommandFailure(
        .usage, "\(place): it contains no query; write one that ends with a semicolon")
    }
    for statement in statements { try answer(statement, take, chosen) }
  }

  /// Runs a query on one take and prints the result; tables may go through a pager.
  private func answer(_ query: String, _ take: String, _ chosen: SQLConsole.Format) throws {
    if chosen != .table {
      let pieces = OutputPieces([.json, .jsonl].contains(chosen) ? .json : .text)
      let run = QueryRun(
        take: take, query: query, format: chosen, look: pager.look, limit: timeLimit)
      try run.answer { (text) throws(CommandFailure) in try pieces.write(text) }
      return
    }
    try pager.show { screen in
      let run = QueryRun(
        take: take, query: query, format: chosen, look: pager.look, limit: timeLimit)
      try run.answer {
        (text) throws(CommandFailure) in try screen.write(text)
      }
    }
  }

  private func printSchema() throws {
    var text = TakeSchema.migrations.map { $0 + "\n" }.joined()
    text +=
      "-- What stat.members has, by stat.type, and what of the standard cannot exist here:\n--\n"
    for line in StatsMembers.text.split(separator: "\n", omittingEmptySubsequences: false) {
      text += line.isEmpty ? "--\n" : "-- \(line)\n"
    }
    text += "\n" + JSONKey.text + "\n" + TakeSchema.functionsText
    try pager.show(text + "\n" + CatalogueSchema.text)
  }

  /// Runs a query over several takes and prints the result; tables may go through a pager.
  private func answer(_ query: String, ofTakes paths: [String]) throws {
    let chosen: SQLConsole.Format = json ? .json : csv ? .csv : format.format
    let question = FolderQuestion(
      paths: paths, query: query, isEach: each, over: over, format: chosen, look: pager.look,
      limit: timeLimit)
    guard chosen == .table else {
      let pieces = OutputPieces([.json, .jsonl].contains(chosen) ? .json : .text)
      return try question.answer { (text) throws(CommandFailure) in try pieces.write(text) }
    }
    try pager.show { screen in
      try question.answer { (text) throws(CommandFailure) in try screen.write(text) }
    }
  }
}

/// Runs a query, which ends early if it is interrupted or exceeds its time limit.
struct QueryRun {
  let take: String
  let query: String
  let format: SQLConsole.Format
  let look: TableLook
  /// The time limit in seconds; nil if there is none.
  let limit: Double?

  /// Runs the query and writes the formatted result in pieces; returns the number of rows.
  @discardableResult
  func answer(_ write: @escaping (String) throws(CommandFailure) -> Void) throws -> Int {
    let begin = ContinuousClock.now
    let progress = Progress("querying")
    defer { progress.clear() }
    Interruption.notice()
    let state = State()
    let isWanted: () -> Bool = {
      let seconds = begin.duration(to: .now).seconds
      if seconds >= limit ?? .infinity { state.isLate = true }
      if state.failure == nil, !state.hasPrinted {
        progress.show("querying: \(decimal(seconds, 1)) s")
      }
      return !state.isLate && !Interruption.isAsked && state.failure == nil
    }
    let watch = limit.map { QueryWatch(limit: $0, late(QueryWatch.reason)) }
    defer { watch?.end() }
    let count: Int
    do throws(TapeError) {
      count = try SQLConsole.run(
        path: take, sql: query, format: format, look: look, isWanted: isWanted
      ) { text in
        if !state.hasPrinted { progress.clear() }
        state.hasPrinted = true
        guard state.failure == nil else { return }
        do throws(CommandFailure) {
          try write(text)
        } catch {
          state.failure = error
        }
      }
    } catch {
      guard error.place == SQLConsole.queryPlace else { throw CommandFailure(error) }
      throw CommandFailure(
        .usage, "\(error.description); retake sql --schema prints the tables and columns")
    }
    if let failure = state.failure { throw failure }
    let rows = "it gave \(counted(count, "row")) by then"
    if Interruption.isAsked {
      throw CommandFailure(.interrupted, "\(take): the query was interrupted; \(rows)")
    }
    if state.isLate { throw late(rows) }
    return count
  }

  private func late(_ rows: String) -> CommandFailure {
    CommandFailure(
      .difference,
      "\(take): the query took longer than the --time-limit of "
        + "\(StatsValue.number(limit ?? 0).json) s; \(rows)")
  }

  private final class State {
    var isLate = false
    var hasPrinted = false
    var failure: CommandFailure?
  }
}

/// Output formats by their names on the command line.
enum OutputFormat: String, ExpressibleByArgument, CaseIterable {
  case table, csv, json, jsonl, markdown

  var format: SQLConsole.Format {
    switch self {
    case .table: .table
    case .csv: .csv
    case .json: .json
    case .jsonl: .jsonl
    case .markdown: .markdown
    }
  }
}

/// Ends the process if a query outlasts its time limit: SQLite does not check for interruption
/// while one of its functions runs.
final class QueryWatch: Sendable {
  /// The reason in the error message.
  static let reason = "a function in it did not finish"

  private let failure: CommandFailure
  private let isEnded = Atomic(false)

  /// The processor time in seconds that a query may use beyond its limit.
  ///
  /// Elapsed time alone would also end a query that waits for a processor.
  private static let grace = 0.5
  /// The number of times, a second apart, that the grace is checked before the process ends anyway.
  private static let checks = 20

  init(limit: Double, _ failure: CommandFailure) {
    self.failure = failure
    after(limit) { [self] in check(since: Self.processorSeconds, remaining: Self.checks) }
  }

  func end() { isEnded.store(true, ordering: .relaxed) }

  private func check(since used: Double, remaining: Int) {
    after(1) { [self] in
      guard Self.processorSeconds - used < Self.grace, remaining > 1 else {
        printError("retake: \(failure.message)")
        _exit(failure.status.rawValue)
      }
      check(since: used, remaining: remaining - 1)
    }
  }

  private func after(_ seconds: Double, _ body: @escaping @Sendable () -> Void) {
    DispatchQueue.global().asyncAfter(deadline: .now() + seconds) { [self] in
      if !isEnded.load(ordering: .relaxed) { body() }
    }
  }

  /// The processor time of all the process's threads so far, in seconds.
  private static var processorSeconds: Double {
    var usage = rusage()
    guard getrusage(Int32(truncatingIfNeeded: RUSAGE_SELF.rawValue), &usage) == 0 else { return 0 }
    func seconds(_ time: timeval) -> Double { Double(time.tv_sec) + Double(time.tv_usec) / 1e6 }
    return seconds(usage.ru_utime) + seconds(usage.ru_stime)
  }
}

// MARK: - FolderQuestion

/// A query over several takes, which runs on their catalogue if that has everything the query
/// names, and otherwise on each take.
struct FolderQuestion {
  let paths: [String]
  let query: String
  /// Whether the query runs on each take, even if the catalogue has everything it names.
  let isEach: Bool
  /// The second query, over the combined rows; nil if there is none.
  let over: String?
  let format: SQLConsole.Format
  let look: TableLook
  /// The time limit in seconds; nil if there is none.
  let limit: Double?

  /// Runs the query and writes the formatted result in pieces.
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
    // If the catalogue has only some of a table's rows, rows may be missing from the result.
    for cut in catalogue.cut where isNamed(cut) {
      printError(
        "retake: \(cut): it has more rows than the catalogue keeps of a take; --each reads all")
    }
    return (count, catalogue.failures)
  }

  /// Returns whether the query may use an incomplete table; `cut` lists a take's incomplete tables,
  /// as in `calls/a.take: state, speaker`.
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

  /// Records whether more output is wanted, and why writing ended.
  private final class Writing: Sendable {
    private let begin = ContinuousClock.now
    private let limit: Double
    private let failed = Mutex<CommandFailure?>(nil)
    private let wasLate = Atomic(false)

    init(limit: Double?) { self.limit = limit ?? .infinity }

    /// The error that ended writing; nil while there is none.
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
