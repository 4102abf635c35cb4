import CSQLite
import Glibc
import Wire

/// A connection to a database; it has a single owner, and only one thread at a time may use it.
///
/// Statements may outlive it: SQLite closes the file when the last statement is destroyed.
package struct SQLiteConnection: ~Copyable {
  /// How a file is opened.
  package enum Mode: Sendable {
    /// Opens an existing file for reading and writing.
    case readWrite
    case readOnly
  }

  let handle: OpaquePointer
  /// Keeps compiled statements for reuse; nil if each is used only once.
  let statements: StatementStore?

  /// Opens a database by its path, or by a URI that begins with `file:///`.
  package init(path: String, mode: Mode) throws(SQLiteError) {
    var opened: OpaquePointer?
    let flags =
      (mode == .readOnly ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE) | SQLITE_OPEN_NOMUTEX
      | SQLITE_OPEN_EXRESCODE | (path.hasPrefix("file:///") ? SQLITE_OPEN_URI : 0)
    let code = sqlite3_open_v2(path.systemPath, &opened, flags, nil)
    guard code == SQLITE_OK, let opened else {
      let error = SQLiteConnection.error(code, of: opened)
      sqlite3_close_v2(opened)
      throw error
    }
    handle = opened
    statements = nil
    sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, SQLiteConnection.lengthLimit)
    sqlite3_busy_timeout(handle, 2_000)
  }

  /// Opens memory as a read-only database, and keeps compiled statements for reuse.
  ///
  /// - Parameter memory: memory from `sqlite3_malloc64`, which is freed with the connection or
  ///   after an error. While no statement is in use, another file may be written into it; if its
  ///   change counter differs, SQLite reads all pages again (SQLite file format section 1.3.7).
  init(memory: UnsafeMutableRawBufferPointer) throws(SQLiteError) {
    var opened: OpaquePointer?
    let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE
    var code = sqlite3_open_v2("", &opened, flags, nil)
    guard code == SQLITE_OK, let opened else {
      let error = SQLiteConnection.error(code, of: opened)
      sqlite3_close_v2(opened)
      sqlite3_free(memory.baseAddress)
      throw error
    }
    code = sqlite3_deserialize(
      opened, "main", memory.baseAddress?.assumingMemoryBound(to: UInt8.self),
      sqlite3_int64(memory.count), sqlite3_int64(memory.count),
      UInt32(SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_READONLY))
    guard code == SQLITE_OK else {
      let error = SQLiteConnection.error(code, of: opened)
      sqlite3_close_v2(opened)
      throw error
    }
    handle = opened
    statements = StatementStore()
    sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, SQLiteConnection.lengthLimit)
  }

  deinit {
    statements?.close()
    sqlite3_close_v2(handle)
  }

  /// The maximum size of a row, so that SQLite does not allocate gigabytes for a hostile file.
  private static let lengthLimit: Int32 = 256 << 20

  static func error(_ code: Int32, of handle: OpaquePointer?) -> SQLiteError {
    let words = handle.flatMap { sqlite3_errmsg($0) } ?? sqlite3_errstr(code)
    return SQLiteError(
      code: SQLiteError.Code(rawValue: code), message: words.map { String(cString: $0) } ?? "")
  }

  /// Sets a watch that can abort running statements with the code `interrupted`; nil removes it.
  ///
  /// The watch is not retained, so it must outlive the statements.
  package func setWatch(_ watch: SQLiteWatch?) {
    guard let watch else { return sqlite3_progress_handler(handle, 0, nil, nil) }
    sqlite3_progress_handler(
      handle, SQLiteConnection.operationsPerQuestion,
      { context in
        guard let context else { return 0 }
        let watch = Unmanaged<SQLiteWatch>.fromOpaque(context).takeUnretainedValue()
        return watch.goesOn() ? 0 : 1
      }, Unmanaged.passUnretained(watch).toOpaque())
  }

  /// The number of SQLite's virtual machine operations between two calls of the watch; most
  /// operations take far less than a microsecond.
  private static let operationsPerQuestion: Int32 = 2_000

  /// Runs statements that return no rows.
  package func execute(_ sql: String) throws(SQLiteError) {
    let code = sqlite3_exec(handle, sql, nil, nil, nil)
    guard code == SQLITE_OK else { throw SQLiteConnection.error(code, of: handle) }
  }

  /// Compiles a single statement; text after it is an error, so that nothing is silently ignored.
  package func prepare(_ sql: String) throws(SQLiteError) -> SQLiteStatement {
    try SQLiteConnection.prepare(sql, on: handle, statements)
  }

  /// Compiles a single statement on a connection that the caller keeps open.
  static func prepare(
    _ sql: String, on handle: OpaquePointer, _ store: StatementStore?
  ) throws(SQLiteError) -> SQLiteStatement {
    if let store, let kept = store.remove(sql) {
      return SQLiteStatement(kept, of: handle, store.home(of: sql))
    }
    var compiled: OpaquePointer?
    var rest = 0
    let code = sql.withCString { text in
      var tail: UnsafePointer<CChar>?
      let code = sqlite3_prepare_v3(
        handle, text, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &compiled, &tail)
      rest = tail.map { strspn($0, " \t\r\n;") == strlen($0) ? 0 : 1 } ?? 0
      return code
    }
    guard code == SQLITE_OK else { throw SQLiteConnection.error(code, of: handle) }
    guard let compiled else {
      throw SQLiteError(code: .misuse, message: "an empty statement")
    }
    guard rest == 0 else {
      sqlite3_finalize(compiled)
      throw SQLiteError(code: .misuse, message: "more than one statement; give one at a time")
    }
    return SQLiteStatement(compiled, of: handle, store?.home(of: sql))
  }

  /// Returns the first value of the first row as an integer; 0 for NULL, and nil if there is no
  /// row.
  package func integer(_ sql: String) throws(SQLiteError) -> Int64? {
    let statement = try prepare(sql)
    return try statement.step() ? statement.integer(0) : nil
  }

  /// Returns the first value of the first row as bytes; nil if there is no row.
  func bytes(_ sql: String) throws(SQLiteError) -> [UInt8]? {
    let statement = try prepare(sql)
    return try statement.step() ? statement.bytes(0) : nil
  }

  /// Limits the size of values; reading or computing a larger one then fails.
  func limitCells(to bytes: Int32) { sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, bytes) }

  /// Returns the bytes of the database as a file; empty if memory is exhausted.
  func serialized() -> [UInt8] {
    var count: sqlite3_int64 = 0
    guard let bytes = sqlite3_serialize(handle, "main", &count, 0) else { return [] }
    defer { sqlite3_free(bytes) }
    return Array(UnsafeBufferPointer(start: bytes, count: Int(count)))
  }

  /// Registers computed views and the functions of `retake sql`.
  func addViewModule() throws(SQLiteError) {
    try ViewModule.install(on: handle, statements)
    try SQLiteFunctions.install(on: handle)
  }

  /// Returns the size of the file in bytes, computed from its number of pages.
  package func byteCount() throws(SQLiteError) -> Int64 {
    (try integer("PRAGMA page_count") ?? 0) * (try integer("PRAGMA page_size") ?? 0)
  }
}

/// Decides whether running statements may continue.
package final class SQLiteWatch {
  let goesOn: () -> Bool

  package init(_ goesOn: @escaping () -> Bool) { self.goesOn = goesOn }
}

/// An SQLite error, with its extended result code and its message.
package struct SQLiteError: Error, Hashable, Sendable, CustomStringConvertible {
  /// A result code; a primary code in a `switch` also matches its extended codes.
  package struct Code: RawRepresentable, Hashable, Sendable {
    package var rawValue: Int32
    package init(rawValue: Int32) { self.rawValue = rawValue }

    package var primary: Code { Code(rawValue: rawValue & 0xff) }

    package static let full = Code(rawValue: SQLITE_FULL)
    package static let cannotOpen = Code(rawValue: SQLITE_CANTOPEN)
    package static let notADatabase = Code(rawValue: SQLITE_NOTADB)
    package static let corrupt = Code(rawValue: SQLITE_CORRUPT)
    package static let readOnly = Code(rawValue: SQLITE_READONLY)
    package static let busy = Code(rawValue: SQLITE_BUSY)
    package static let misuse = Code(rawValue: SQLITE_MISUSE)
    package static let constraint = Code(rawValue: SQLITE_CONSTRAINT)
    package static let inputOutput = Code(rawValue: SQLITE_IOERR)
    package static let interrupted = Code(rawValue: SQLITE_INTERRUPT)
    package static let permission = Code(rawValue: SQLITE_PERM)
    package static let unauthorised = Code(rawValue: SQLITE_AUTH)
    package static let tooBig = Code(rawValue: SQLITE_TOOBIG)
    package static let noMemory = Code(rawValue: SQLITE_NOMEM)
  }

  package var code: Code
  package var message: String

  package init(code: Code, message: String) {
    self.code = code
    self.message = message
  }

  package var description: String { "\(message) (SQLite \(code.rawValue))" }
}

/// Settings of SQLite for the whole process.
package enum SQLiteLibrary {
  /// Turns off SQLite's memory statistics, because counting makes all threads share a lock.
  ///
  /// Programs call this before they open a database. The library leaves the decision to the
  /// application.
  package static func countNoMemory() { _ = csqlite_count_no_memory() }

  /// Limits the memory that SQLite uses in this process.
  ///
  /// It is for processes that only answer a query, and must be called before a database is opened.
  package static func limitMemory(toBytes count: Int64) {
    _ = csqlite_count_memory()
    sqlite3_hard_heap_limit64(count)
  }
}

// MARK: - SQLiteReading

/// Limits for queries from an untrusted source.
package struct SQLiteReadLimits: Sendable {
  /// The maximum size in bytes of a value, whether it is stored or computed.
  package var cellBytes: Int32

  package init(cellBytes: Int32) { self.cellBytes = cellBytes }
}

extension SQLiteConnection {
  /// Allows statements that are compiled from now on only to read this database.
  ///
  /// They cannot open other files, load extensions or change settings.
  package func restrict(_ limits: SQLiteReadLimits) throws(SQLiteError) {
    for (limit, value) in [
      (SQLITE_LIMIT_LENGTH, limits.cellBytes), (SQLITE_LIMIT_SQL_LENGTH, 100_000),
      (SQLITE_LIMIT_ATTACHED, 0), (SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1_000),
      (SQLITE_LIMIT_TRIGGER_DEPTH, 1), (SQLITE_LIMIT_WORKER_THREADS, 0),
    ] {
      sqlite3_limit(handle, limit, value)
    }
    // SQLite creates the table of a table-valued function at its first use, which the restriction
    // would prevent later.
    for function in Self.tableFunctions { _ = try prepare("SELECT 1 FROM \(function) LIMIT 0") }
    sqlite3_set_authorizer(
      handle,
      { _, action, first, second, _, _ in
        SQLitePermission.allows(
          action, first.map { String(cString: $0) }, second.map { String(cString: $0) })
          ? SQLITE_OK : SQLITE_DENY
      }, nil)
  }

  /// The table-valued functions that queries may use: the JSON functions, and a function for each
  /// allowed pragma.
  private static let tableFunctions =
    ["json_each", "json_tree"] + SQLitePermission.pragmas.sorted().map { "pragma_\($0)" }

  /// Aborts running statements with the code `interrupted`.
  ///
  /// Any thread may call it while the connection is open.
  package func interrupt() { sqlite3_interrupt(handle) }
}

/// Decides what restricted statements may do.
enum SQLitePermission {
  /// Returns whether a statement may perform an action (`sqlite3_set_authorizer`).
  static func allows(_ action: Int32, _ first: String?, _ second: String?) -> Bool {
    switch action {
    case SQLITE_SELECT, SQLITE_READ, SQLITE_RECURSIVE: true
    case SQLITE_FUNCTION: !outwardFunctions.contains(second?.lowercased() ?? "")
    case SQLITE_PRAGMA: allows(pragma: first?.lowercased() ?? "", argument: second)
    default: false
    }
  }

  /// Functions with side effects or access to the outside.
  private static let outwardFunctions: Set = [
    "load_extension", "fts3_tokenizer", "readfile", "writefile", "edit", "sqlite_log", "eval",
  ]

  /// Pragmas that are allowed without an argument; with one, many of them change a setting.
  private static let tellingPragmas: Set = [
    "application_id", "auto_vacuum", "cache_size", "cell_size_check", "collation_list",
    "compile_options", "data_version", "database_list", "encoding", "freelist_count",
    "function_list", "journal_mode", "module_list", "page_count", "page_size", "pragma_list",
    "query_only", "schema_version", "temp_store", "trusted_schema", "user_version",
  ]

  /// Pragmas whose argument names what to inspect rather than a value to set.
  private static let askingPragmas: Set = [
    "foreign_key_check", "foreign_key_list", "index_info", "index_list", "index_xinfo",
    "integrity_check", "quick_check", "table_info", "table_list", "table_xinfo",
  ]

  /// The names of all allowed pragmas.
  static var pragmas: Set<String> { tellingPragmas.union(askingPragmas) }

  private static func allows(pragma name: String, argument: String?) -> Bool {
    askingPragmas.contains(name) || (argument == nil && tellingPragmas.contains(name))
  }
}

extension SQLiteError {
  /// The message for a statement that does more than read or exceeds a limit; nil for other errors.
  package var refusal: String? {
    switch code.primary {
    case .unauthorised:
      "a take is only read, never written: a query opens no other file, loads nothing and sets "
        + "nothing"
    case .tooBig: "a value is longer than the limit for queries: \(message)"
    case .noMemory: "the query needs more memory than the limit for queries"
    default: nil
    }
  }
}

/// Keeps a connection's compiled statements for reuse.
///
/// For a short take, SQLite needs longer to compile a query over views than to run it.
final class StatementStore {
  private var idle: [String: [OpaquePointer]] = [:]
  private var idleCount = 0
  private var isClosed = false
  /// The number of statements in use.
  private(set) var usedCount = 0
  /// Identifies the contents of the database; the number changes when another file is loaded.
  var content = 0
  /// The result of checking the schema, which all contents share; nil before the check.
  var schema: SchemaCheck?

  /// The maximum number of statements that are kept.
  ///
  /// Some statements have row numbers in their text, so the number of different statements has no
  /// limit.
  private static let most = 600

  /// Puts a statement back into the store after use.
  struct Home {
    fileprivate let store: StatementStore
    fileprivate let sql: String

    func receive(_ statement: OpaquePointer) { store.receive(statement, sql) }
  }

  /// Counts a statement as used; the result puts it back into the store after use.
  func home(of sql: String) -> Home {
    usedCount += 1
    return Home(store: self, sql: sql)
  }

  /// Returns a kept statement that is not in use; nil if it must be compiled.
  func remove(_ sql: String) -> OpaquePointer? {
    guard let statement = idle[sql]?.popLast() else { return nil }
    idleCount -= 1
    return statement
  }

  private func receive(_ statement: OpaquePointer, _ sql: String) {
    usedCount -= 1
    guard !isClosed, idleCount < Self.most else {
      sqlite3_finalize(statement)
      return
    }
    sqlite3_reset(statement)
    sqlite3_clear_bindings(statement)
    idle[sql, default: []].append(statement)
    idleCount += 1
  }

  /// Destroys all statements; a statement in use is destroyed when it is returned.
  func close() {
    isClosed = true
    for statement in idle.values.joined() { sqlite3_finalize(statement) }
    (idle, idleCount) = ([:], 0)
  }
}
