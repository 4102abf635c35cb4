import Dispatch
import FoundationEssentials
import Glibc
import Live
import Queries
import Stats
import Synchronization
package import Tape
import Wire

/// Runs each of a page's queries in a process of its own.
///
/// SQLite does not check for interruption while one of its functions runs, and some functions can
/// be made to run for hours. A process can be ended at any moment, which frees all of its memory.
struct QueryProcess: Sendable {
  /// The `retake` executable that runs queries; nil if there is none.
  var tool: String?
  /// The time limit of a query in seconds, including its wait for other queries.
  var seconds = 15.0
  /// Calls a closure after a delay in seconds, to end a query that exceeds its time limit; tests
  /// replace this to control the time.
  var schedule: @Sendable (Double, @escaping @Sendable () -> Void) -> Void = {
    DispatchQueue.global().asyncAfter(deadline: .now() + $0, execute: $1)
  }
  /// The time in seconds that must be left when a query starts; with less, the query is refused.
  var leastSeconds = 3.0

  enum Answer: Sendable {
    /// Rows as text in the requested form.
    case rows(String)
    /// Why there are no rows, in one sentence.
    case failed(String)
  }

  /// The longest query in bytes; longer ones do not fit into a process's environment.
  static let queryBytes = 100_000

  /// Answers a query; blocks until there is an answer.
  ///
  /// - Parameter begin: when the query was requested.
  func answer(
    _ sql: String, take path: String, as form: AnswerQuery.Form = .json,
    since begin: ContinuousClock.Instant
  ) -> Answer {
    let left = seconds - begin.duration(to: .now) / .seconds(1)
    guard left >= leastSeconds else {
      return .failed("other queries use all the time; try again when they have ended")
    }
    guard sql.utf8.count <= Self.queryBytes, !sql.utf8.contains(0) else {
      return .failed("the query is longer than \(Self.queryBytes) bytes, or contains a NUL")
    }
    guard let tool else {
      return .failed("this server cannot answer queries: the path of the program retake is unknown")
    }
    // Other users can see a process's arguments but not its environment.
    let environment = ProcessInfo.processInfo.environment.merging(
      [
        AnswerQuery.variable: sql, AnswerQuery.formVariable: form.rawValue,
        AnswerQuery.secondsVariable: String(Int(seconds.rounded(.up)) + AnswerQuery.spareSeconds),
      ],
      uniquingKeysWith: { $1 })
    let output: ChildPipe
    let process: ChildProcess
    do throws(SystemError) {
      output = try ChildPipe()
      process = try ChildProcess(
        tool, ["answer-query", path], environment: environment, output: .pipe(output.writing),
        errors: .nothing)
    } catch {
      return .failed("the query cannot be answered: no process could be started for it")
    }
    output.closeWriting()
    let isLate = Mutex(false)
    schedule(left) { [process] in
      isLate.withLock { $0 = true }
      process.end()
    }
    let text = output.readAll(atMost: 2 * AnswerQuery.answerBytes)
    process.end()
    let ending = process.waitUntilExit()
    if isLate.withLock({ $0 }) {
      return .failed("the query took longer than \(Int(seconds)) s")
    }
    guard let status = ending.status, !text.isEmpty else {
      return .failed("the query needs more memory than the limit for queries")
    }
    return status == 0 ? .rows(text) : .failed(text)
  }
}

// MARK: - AnswerQuery

/// Answers a page's query in a separate process, which ends if it exceeds its memory or time limit.
package struct AnswerQuery {
  let take: String

  package init(take: String) { self.take = take }

  /// The environment variable that holds the query.
  static let variable = "RETAKE_QUERY"
  /// The environment variable that holds the answer's form.
  static let formVariable = "RETAKE_QUERY_FORM"
  /// The variable that holds the processor time limit, in seconds.
  static let secondsVariable = "RETAKE_QUERY_SECONDS"
  /// The number of seconds by which the processor time limit exceeds the caller's timeout, so that
  /// the timeout ends a query first.
  static let spareSeconds = 15

  enum Form: String, Sendable {
    /// `{columns, rows, isCut}`, cut off at a maximum number of rows or bytes.
    case json
    /// RFC 4180 with a header line; an answer that is too long is refused, because a file cannot
    /// show that it was cut.
    case csv
  }

  /// The longest answer in bytes.
  static let answerBytes = 32 << 20
  private static let rowMaximum = 20_000
  private static let cellBytes: Int32 = 16 << 20
  /// Memory limits for SQLite and for the entire process.
  private static let memoryBytes: Int64 = 192 << 20
  private static let processBytes = rlim_t(2 << 30)
  /// The processor time limit in seconds, if the environment sets none.
  private static let processorSeconds = rlim_t(60)

  /// Sets the process's limits, and answers the query in its environment.
  package func run() throws(TapeError) -> String {
    let environment = ProcessInfo.processInfo.environment
    let seconds = environment[Self.secondsVariable].flatMap(rlim_t.init)
    SQLiteLibrary.limitMemory(toBytes: Self.memoryBytes)
    for (resource, value) in [
      (RLIMIT_AS, Self.processBytes), (RLIMIT_CPU, seconds ?? Self.processorSeconds),
      (RLIMIT_CORE, 0),
    ] {
      var limit = rlimit(rlim_cur: value, rlim_max: value)
      setrlimit(__rlimit_resource_t(resource.rawValue), &limit)
    }
    let sql = environment[Self.variable] ?? ""
    let form = environment[Self.formVariable].flatMap(Form.init) ?? .json
    return try answer(sql, form)
  }

  private func answer(_ sql: String, _ form: Form) throws(TapeError) -> String {
    // Keep temporary data in memory, where the memory limit applies, so that no files are written
    // beside the take.
    let connection = try TakeFile.openForQueries(take, keepsInMemory: true)
    try TakeRelations.put(namedIn: sql, over: connection, path: take)
    do throws(SQLiteError) {
      try connection.restrict(SQLiteReadLimits(cellBytes: Self.cellBytes))
      let statement = try connection.prepare(sql)
      // A statement without result columns is not a query.
      guard statement.isReadOnly, statement.columnCount > 0 else {
        throw SQLiteError(code: .readOnly, message: "a take is only read, never written")
      }
      return form == .csv ? try lines(of: statement) : try rows(of: statement)
    } catch {
      throw TapeError(
        path: take, place: SQLConsole.queryPlace, reason: error.refusal ?? error.message,
        kind: .failed)
    }
  }

  private func lines(of statement: borrowing SQLiteStatement) throws(SQLiteError) -> String {
    let columns = 0..<statement.columnCount
    var text = CSVText.line(columns.map { statement.columnName($0) })
    while try statement.step() {
      text += CSVText.line(columns.map { statement.value($0) ?? .null }.map(\.csv))
      guard text.utf8.count <= Self.answerBytes else {
        throw SQLiteError(
          code: .full,
          message: "the answer is longer than \(Self.answerBytes >> 20) MiB; retake sql --csv "
            + "writes all of it")
      }
    }
    return text
  }

  private func rows(of statement: borrowing SQLiteStatement) throws(SQLiteError) -> String {
    let names = (0..<statement.columnCount).map { jsonString(statement.columnName($0)) }
    var text = "{\"columns\":[\(names.joined(separator: ","))],\"rows\":["
    var count = 0
    var isCut = false
    while !isCut, try statement.step() {
      var row = count == 0 ? "[" : ",\n["
      for column in names.indices {
        if column > 0 { row += "," }
        // Stop even in the middle of a row: a row with long cells could far exceed the limit.
        guard text.utf8.count + row.utf8.count <= Self.answerBytes else {
          isCut = true
          break
        }
        row += (statement.value(column) ?? .null).json.text
      }
      if isCut { break }
      text += row + "]"
      count += 1
      isCut = count == Self.rowMaximum
    }
    return text + "],\"isCut\":\(isCut)}"
  }
}
