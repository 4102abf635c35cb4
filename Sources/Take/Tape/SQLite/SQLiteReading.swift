import CSQLite

/// What a query that somebody else has written may ask for.
package struct SQLiteReadLimits: Sendable {
  /// The longest cell, whether it is in the file or made on the way, in bytes.
  package var cellBytes: Int32

  package init(cellBytes: Int32) { self.cellBytes = cellBytes }
}

extension SQLiteConnection {
  /// Lets statements that are compiled from here on read the database, and do nothing else: they
  /// open no other file, load no extension, and set nothing.
  package func restrict(_ limits: SQLiteReadLimits) throws(SQLiteError) {
    for (limit, value) in [
      (SQLITE_LIMIT_LENGTH, limits.cellBytes), (SQLITE_LIMIT_SQL_LENGTH, 100_000),
      (SQLITE_LIMIT_ATTACHED, 0), (SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1_000),
      (SQLITE_LIMIT_TRIGGER_DEPTH, 1), (SQLITE_LIMIT_WORKER_THREADS, 0),
    ] {
      sqlite3_limit(handle, limit, value)
    }
    // SQLite makes the table of such a function when it is first named, which is not reading.
    for function in Self.tableFunctions { _ = try prepare("SELECT 1 FROM \(function) LIMIT 0") }
    sqlite3_set_authorizer(
      handle,
      { _, action, first, second, _, _ in
        SQLitePermission.allows(
          action, first.map { String(cString: $0) }, second.map { String(cString: $0) })
          ? SQLITE_OK : SQLITE_DENY
      }, nil)
  }

  /// The functions that stand for tables.
  private static let tableFunctions = [
    "json_each('[]')", "json_tree('[]')", "pragma_compile_options", "pragma_foreign_key_list('')",
    "pragma_function_list", "pragma_index_info('')", "pragma_index_list('')",
    "pragma_table_info('')", "pragma_table_list", "pragma_table_xinfo('')",
  ]

  /// Ends the statements that run with the code `interrupted`; may be called from any thread while
  /// the connection is open.
  package func interrupt() { sqlite3_interrupt(handle) }
}

/// What statements may do that only read.
enum SQLitePermission {
  /// Decides on one action of a statement (`sqlite3_set_authorizer`).
  static func allows(_ action: Int32, _ first: String?, _ second: String?) -> Bool {
    switch action {
    case SQLITE_SELECT, SQLITE_READ, SQLITE_RECURSIVE: true
    case SQLITE_FUNCTION: !outwardFunctions.contains(second?.lowercased() ?? "")
    case SQLITE_PRAGMA: allows(pragma: first?.lowercased() ?? "", argument: second)
    default: false
    }
  }

  /// Functions that do something else than compute.
  private static let outwardFunctions: Set = [
    "load_extension", "fts3_tokenizer", "readfile", "writefile", "edit", "sqlite_log", "eval",
  ]

  /// Pragmas that tell something, and set it when they have an argument.
  private static let tellingPragmas: Set = [
    "application_id", "auto_vacuum", "cache_size", "cell_size_check", "collation_list",
    "compile_options", "data_version", "database_list", "encoding", "freelist_count",
    "function_list", "journal_mode", "module_list", "page_count", "page_size", "pragma_list",
    "query_only", "schema_version", "temp_store", "trusted_schema", "user_version",
  ]

  /// Pragmas whose argument says what they are about.
  private static let askingPragmas: Set = [
    "foreign_key_check", "foreign_key_list", "index_info", "index_list", "index_xinfo",
    "integrity_check", "quick_check", "table_info", "table_list", "table_xinfo",
  ]

  private static func allows(pragma name: String, argument: String?) -> Bool {
    askingPragmas.contains(name) || (argument == nil && tellingPragmas.contains(name))
  }
}

extension SQLiteError {
  /// Why a statement is not run that does something else than read; nil for another error.
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
