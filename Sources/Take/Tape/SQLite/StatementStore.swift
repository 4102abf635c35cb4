import CSQLite

/// The compiled statements of a connection between their uses.
///
/// SQLite compiles a query over views for longer than it runs on a short take.
final class StatementStore {
  private var idle: [String: [OpaquePointer]] = [:]
  private var idleCount = 0
  private var isClosed = false
  /// How many statements somebody has.
  private(set) var usedCount = 0
  /// Which contents the database has: another number for each.
  var content = 0
  /// What is known of its schema, which stays.
  var schema: SchemaCheck?

  /// Statements beyond these are compiled for each use: some have numbers of rows in their texts.
  private static let most = 600

  /// Where a statement goes after its use.
  struct Home {
    fileprivate let store: StatementStore
    fileprivate let sql: String

    func receive(_ statement: OpaquePointer) { store.receive(statement, sql) }
  }

  /// Counts a statement that somebody has from now on.
  func home(of sql: String) -> Home {
    usedCount += 1
    return Home(store: self, sql: sql)
  }

  /// Returns a compiled statement that nobody has; nil where it has to be compiled.
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

  /// Lets go of all statements; those that somebody has follow after their use.
  func close() {
    isClosed = true
    for statement in idle.values.joined() { sqlite3_finalize(statement) }
    (idle, idleCount) = ([:], 0)
  }
}
