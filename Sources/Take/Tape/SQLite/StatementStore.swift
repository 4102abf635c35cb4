import CSQLite

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
