import CSQLite

/// What holds for all of SQLite in a process.
package enum SQLiteLibrary {
  /// Has SQLite keep no count of its memory, for which all threads wait for one lock at each
  /// allocation; nobody here asks for it.
  ///
  /// For programs, before they open a database: an application that uses the library decides for
  /// itself.
  package static func countNoMemory() { _ = csqlite_count_no_memory() }

  /// Has SQLite refuse what would take more memory than that in the whole process.
  ///
  /// For processes that do nothing else but answer a query, before they open a database.
  package static func limitMemory(toBytes count: Int64) {
    _ = csqlite_count_memory()
    sqlite3_hard_heap_limit64(count)
  }
}
