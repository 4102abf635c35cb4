import CSQLite
import Glibc
import Wire

/// An open SQLite database with a single owner, used from one thread at a time.
///
/// Statements may outlive it: SQLite closes the file once the last of them is gone.
package struct SQLiteConnection: ~Copyable {
  /// The mode in which a file is opened.
  package enum Mode: Sendable {
    /// Opens an existing file for reading and writing.
    case readWrite
    case readOnly
  }

  let handle: OpaquePointer
  /// Holds compiled statements between uses; nil if each is used once.
  let statements: StatementStore?

  /// Opens a database by path, or by URI if it begins with `file:///`.
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
  /// - Parameter memory: must come from `sqlite3_malloc64`; it is freed with the connection, or on
  ///   an error. While no statement is in use, other pages may be written into it: with another
  ///   file change counter, SQLite reads them again (SQLite file format section 1.3.7).
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

  /// The size limit of a row, so that a hostile file cannot make SQLite allocate gigabytes.
  private static let lengthLimit: Int32 = 256 << 20

  static func error(_ code: Int32, of handle: OpaquePointer?) -> SQLiteError {
    let words = handle.flatMap { sqlite3_errmsg($0) } ?? sqlite3_errstr(code)
    return SQLiteError(
      code: SQLiteError.Code(rawValue: code), message: words.map { String(cString: $0) } ?? "")
  }

  /// Installs a watch, which is polled while statements run and can abort them with the code
  /// `interrupted`; nil removes it.
  ///
  /// The watch is not retained and must outlive the statements.
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

  /// The number of SQLite's virtual machine operations between polls; most take far less than a
  /// microsecond.
  private static let operationsPerQuestion: Int32 = 2_000

  /// Runs statements that return no rows.
  package func execute(_ sql: String) throws(SQLiteError) {
    let code = sqlite3_exec(handle, sql, nil, nil, nil)
    guard code == SQLITE_OK else { throw SQLiteConnection.error(code, of: handle) }
  }

  /// Compiles one statement; any further text is an error, so that nothing is silently ignored.
  package func prepare(_ sql: String) throws(SQLiteError) -> SQLiteStatement {
    try SQLiteConnection.prepare(sql, on: handle, statements)
  }

  /// Compiles one statement on a connection that the caller keeps open.
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

  /// Returns the first row's first column as an integer; nil if there is no row.
  package func integer(_ sql: String) throws(SQLiteError) -> Int64? {
    let statement = try prepare(sql)
    return try statement.step() ? statement.integer(0) : nil
  }

  /// Returns the first row's first column as bytes; nil if there is no row.
  func bytes(_ sql: String) throws(SQLiteError) -> [UInt8]? {
    let statement = try prepare(sql)
    return try statement.step() ? statement.bytes(0) : nil
  }

  /// Refuses larger values from now on, both in the file and in results.
  func limitCells(to bytes: Int32) { sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, bytes) }

  /// Returns the database as a file's bytes; empty if memory runs out.
  func serialized() -> [UInt8] {
    var count: sqlite3_int64 = 0
    guard let bytes = sqlite3_serialize(handle, "main", &count, 0) else { return [] }
    defer { sqlite3_free(bytes) }
    return Array(UnsafeBufferPointer(start: bytes, count: Int(count)))
  }

  /// Registers the module of computed views and the query functions.
  func addViewModule() throws(SQLiteError) {
    try ViewModule.install(on: handle, statements)
    try SQLiteFunctions.install(on: handle)
  }

  /// Returns the file's size by its page count.
  package func byteCount() throws(SQLiteError) -> Int64 {
    (try integer("PRAGMA page_count") ?? 0) * (try integer("PRAGMA page_size") ?? 0)
  }
}

/// Decides whether running statements may continue.
package final class SQLiteWatch {
  let goesOn: () -> Bool

  package init(_ goesOn: @escaping () -> Bool) { self.goesOn = goesOn }
}

/// An SQLite error: the extended result code and the message.
package struct SQLiteError: Error, Hashable, Sendable, CustomStringConvertible {
  /// A result code; in a `switch`, a primary code matches its extended codes.
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

/// Process-wide SQLite settings.
package enum SQLiteLibrary {
  /// Turns off SQLite's memory statistics, which make all threads share a lock at each allocation.
  ///
  /// Programs call this before they open a database; an application that uses the library decides
  /// for itself.
  package static func countNoMemory() { _ = csqlite_count_no_memory() }

  /// Limits SQLite's memory in the whole process.
  ///
  /// Processes that only answer a query call this before they open a database.
  package static func limitMemory(toBytes count: Int64) {
    _ = csqlite_count_memory()
    sqlite3_hard_heap_limit64(count)
  }
}

// MARK: - SQLiteReading

/// Limits for queries from an untrusted source.
package struct SQLiteReadLimits: Sendable {
  /// A cell's size limit in bytes, stored or computed.
  package var cellBytes: Int32

  package init(cellBytes: Int32) { self.cellBytes = cellBytes }
}

extension SQLiteConnection {
  /// Restricts statements compiled from now on to reading the database: they cannot open other
  /// files, load extensions or change settings.
  package func restrict(_ limits: SQLiteReadLimits) throws(SQLiteError) {
    for (limit, value) in [
      (SQLITE_LIMIT_LENGTH, limits.cellBytes), (SQLITE_LIMIT_SQL_LENGTH, 100_000),
      (SQLITE_LIMIT_ATTACHED, 0), (SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1_000),
      (SQLITE_LIMIT_TRIGGER_DEPTH, 1), (SQLITE_LIMIT_WORKER_THREADS, 0),
    ] {
      sqlite3_limit(handle, limit, value)
    }
    // SQLite creates such a function's table when it is first named, which is not a read.
    for function in Self.tableFunctions { _ = try prepare("SELECT 1 FROM \(function) LIMIT 0") }
    sqlite3_set_authorizer(
      handle,
      { _, action, first, second, _, _ in
        SQLitePermission.allows(
          action, first.map { String(cString: $0) }, second.map { String(cString: $0) })
          ? SQLITE_OK : SQLITE_DENY
      }, nil)
  }

  /// The table-valued functions.
  private static let tableFunctions = [
    "json_each('[]')", "json_tree('[]')", "pragma_compile_options", "pragma_foreign_key_list('')",
    "pragma_function_list", "pragma_index_info('')", "pragma_index_list('')",
    "pragma_table_info('')", "pragma_table_list", "pragma_table_xinfo('')",
  ]

  /// Aborts running statements with the code `interrupted`; may be called from any thread while the
  /// connection is open.
  package func interrupt() { sqlite3_interrupt(handle) }
}

/// The actions allowed for read-only statements.
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

  /// Pragmas that read a setting without an argument but change it with one.
  private static let tellingPragmas: Set = [
    "application_id", "auto_vacuum", "cache_size", "cell_size_check", "collation_list",
    "compile_options", "data_version", "database_list", "encoding", "freelist_count",
    "function_list", "journal_mode", "module_list", "page_count", "page_size", "pragma_list",
    "query_only", "schema_version", "temp_store", "trusted_schema", "user_version",
  ]

  /// Pragmas whose argument only names their subject.
  private static let askingPragmas: Set = [
    "foreign_key_check", "foreign_key_list", "index_info", "index_list", "index_xinfo",
    "integrity_check", "quick_check", "table_info", "table_list", "table_xinfo",
  ]

  private static func allows(pragma name: String, argument: String?) -> Bool {
    askingPragmas.contains(name) || (argument == nil && tellingPragmas.contains(name))
  }
}

extension SQLiteError {
  /// The message if a statement was refused because it does more than read; nil for other errors.
  package var refusal: String? {
    switch code.primary {
    case .unauthorised:
      "a take is only read, never written: a query opens no other file, loads nothing and sets "
        + "nothing"
    case .tooBig: "a value is longer than a query may have: \(message)"
    case .noMemory: "the query needs more memory than it may have"
    default: nil
    }
  }
}

/// Holds a connection's compiled statements between uses.
///
/// SQLite takes longer to compile a query over views than to run it on a short take.
final class StatementStore {
  private var idle: [String: [OpaquePointer]] = [:]
  private var idleCount = 0
  private var isClosed = false
  /// The number of statements in use.
  private(set) var usedCount = 0
  /// Identifies the database's contents: a different number for each.
  var content = 0
  /// The result of checking its schema, which does not change.
  var schema: SchemaCheck?

  /// The maximum number of stored statements; any others are compiled for each use, because some
  /// have row numbers in their text.
  private static let most = 600

  /// The store that a statement returns to after use.
  struct Home {
    fileprivate let store: StatementStore
    fileprivate let sql: String

    func receive(_ statement: OpaquePointer) { store.receive(statement, sql) }
  }

  /// Counts a statement that is now in use.
  func home(of sql: String) -> Home {
    usedCount += 1
    return Home(store: self, sql: sql)
  }

  /// Returns a compiled statement that is not in use; nil if it has to be compiled.
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

  /// Releases all statements; those in use follow when they are returned.
  func close() {
    isClosed = true
    for statement in idle.values.joined() { sqlite3_finalize(statement) }
    (idle, idleCount) = ([:], 0)
  }
}
