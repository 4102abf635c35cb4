import CSQLite

/// Provides computed views to SQLite as virtual tables.
///
/// For example, `CREATE VIRTUAL TABLE temp.loss USING retake (loss)` replaces the view `loss`.
enum ViewModule {
  static let name = "retake"

  static func install(
    on handle: OpaquePointer, _ statements: StatementStore?
  ) throws(SQLiteError) {
    var module = sqlite3_module()
    module.xCreate = connect
    module.xConnect = connect
    module.xBestIndex = { table, info in ViewModule.choose(table, info) }
    module.xDisconnect = { table in ViewModule.free(table) }
    module.xDestroy = { table in ViewModule.free(table) }
    module.xOpen = { _, cursor in ViewModule.open(cursor) }
    module.xClose = { cursor in ViewModule.close(cursor) }
    module.xFilter = { cursor, index, _, _, values in ViewModule.filter(cursor, index, values) }
    module.xNext = { cursor in
      ViewModule.cursor(cursor)?.pointee.place += 1
      return SQLITE_OK
    }
    module.xEof = { cursor in ViewModule.isAtEnd(cursor) ? 1 : 0 }
    module.xColumn = { cursor, context, column in ViewModule.putCell(cursor, context, column) }
    module.xRowid = { cursor, row in
      row?.pointee = ViewModule.cursor(cursor)?.pointee.place ?? 0
      return SQLITE_OK
    }
    let facts = Unmanaged.passRetained(ViewFacts(handle: handle, statements))
    let code = csqlite_create_module(handle, name, module, facts.toOpaque()) { owner in
      guard let owner else { return }
      Unmanaged<ViewFacts>.fromOpaque(owner).release()
    }
    guard code == SQLITE_OK else { throw SQLiteConnection.error(code, of: handle) }
  }

  // MARK: Tables

  /// A virtual table; it computes the rows of its view when they are first read.
  private final class Owner {
    let view: ComputedView
    let facts: ViewFacts
    private var made: ComputedRows?
    private var stamp: ViewFacts.Stamp?
    /// The indexes of rows by value, for each column that was looked up.
    private var indexes: [Int: [Int64: [Int]]] = [:]

    init(view: ComputedView, facts: ViewFacts) {
      self.view = view
      self.facts = facts
    }

    func rows() throws(SQLiteError) -> ComputedRows {
      let now = try facts.currentStamp()
      if let made, stamp == now { return made }
      let rows = try view.rows(facts, nil)
      (made, stamp, indexes) = (rows, now, [:])
      return rows
    }

    /// Returns the rows that have the given value in a column; builds an index of the column when
    /// one is first needed.
    func rows(where column: Int, is value: Int64) throws(SQLiteError) -> Reading {
      if view.columns[column].name == view.key {
        return Reading(try view.rows(facts, value), nil)
      }
      let rows = try rows()
      if let index = indexes[column] { return Reading(rows, index[value] ?? []) }
      let index = rows.index(of: column)
      indexes[column] = index
      return Reading(rows, index[value] ?? [])
    }
  }

  /// The rows that a cursor visits: all, or those at certain indexes.
  private final class Reading {
    let rows: ComputedRows
    let places: [Int]?

    init(_ rows: ComputedRows, _ places: [Int]?) {
      self.rows = rows
      self.places = places
    }

    var count: Int { places?.count ?? rows.count }
  }

  private typealias Connect =
    @convention(c) (
      OpaquePointer?, UnsafeMutableRawPointer?, Int32, UnsafePointer<UnsafePointer<CChar>?>?,
      UnsafeMutablePointer<UnsafeMutablePointer<sqlite3_vtab>?>?,
      UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?
    ) -> Int32

  private static var connect: Connect {
    { handle, context, count, words, table, _ in
      guard let handle, let context, count > 3, let name = words?[3],
        let view = ComputedView.all.first(where: { $0.name == String(cString: name) })
      else { return SQLITE_ERROR }
      let module = context.assumingMemoryBound(to: csqlite_module.self)
      guard let shared = module.pointee.owner else { return SQLITE_ERROR }
      let columns = view.columns.map { "\"\($0.name)\" \($0.kind.sqlType)" }
      let code = sqlite3_declare_vtab(
        handle, "CREATE TABLE x (\(columns.joined(separator: ", ")))")
      guard code == SQLITE_OK else { return code }
      csqlite_allow_in_views(handle)
      let made = UnsafeMutablePointer<csqlite_table>.allocate(capacity: 1)
      made.initialize(to: csqlite_table())
      let facts = Unmanaged<ViewFacts>.fromOpaque(shared).takeUnretainedValue()
      made.pointee.owner = Unmanaged.passRetained(Owner(view: view, facts: facts)).toOpaque()
      table?.pointee = UnsafeMutableRawPointer(made).assumingMemoryBound(to: sqlite3_vtab.self)
      return SQLITE_OK
    }
  }

  private static func owner(_ table: UnsafeMutablePointer<sqlite3_vtab>?) -> Owner? {
    guard let table else { return nil }
    let made = UnsafeMutableRawPointer(table).assumingMemoryBound(to: csqlite_table.self)
    return made.pointee.owner.map { Unmanaged<Owner>.fromOpaque($0).takeUnretainedValue() }
  }

  private static func free(_ table: UnsafeMutablePointer<sqlite3_vtab>?) -> Int32 {
    guard let table else { return SQLITE_OK }
    let made = UnsafeMutableRawPointer(table).assumingMemoryBound(to: csqlite_table.self)
    if let owner = made.pointee.owner { Unmanaged<Owner>.fromOpaque(owner).release() }
    made.deallocate()
    return SQLITE_OK
  }

  /// Reports to SQLite which columns can be looked up fast (xBestIndex).
  ///
  /// The view's key column is preferred, and then a column with many distinct values.
  private static func choose(
    _ table: UnsafeMutablePointer<sqlite3_vtab>?,
    _ info: UnsafeMutablePointer<sqlite3_index_info>?
  ) -> Int32 {
    guard let info, let view = owner(table)?.view else { return SQLITE_ERROR }
    var best: (place: Int, column: Int, cost: Double)?
    for place in 0..<Int(info.pointee.nConstraint) {
      guard let constraint = info.pointee.aConstraint?[place], constraint.usable != 0,
        Int32(constraint.op) == SQLITE_INDEX_CONSTRAINT_EQ, constraint.iColumn >= 0,
        view.columns[Int(constraint.iColumn)].kind == .integer
      else { continue }
      let column = Int(constraint.iColumn)
      let name = view.columns[column].name
      let cost: Double = name == view.key ? 1 : costs[name] ?? 5_000
      if cost < best?.cost ?? .infinity { best = (place, column, cost) }
    }
    info.pointee.idxNum = Int32(best.map { $0.column + 1 } ?? 0)
    info.pointee.estimatedCost = best?.cost ?? 1e6
    info.pointee.estimatedRows = best == nil ? 100_000 : 25
    if let best { info.pointee.aConstraintUsage?[best.place].argvIndex = 1 }
    return SQLITE_OK
  }

  private static let costs: [String: Double] = [
    "row": 10, "packet_row": 10, "frame_row": 10, "sent_row": 10, "original_sequence": 50,
    "sequence": 50, "rtp_time": 50, "ssrc": 1_000,
  ]

  // MARK: Cursors

  private static func cursor(
    _ cursor: UnsafeMutablePointer<sqlite3_vtab_cursor>?
  ) -> UnsafeMutablePointer<csqlite_cursor>? {
    cursor.map { UnsafeMutableRawPointer($0).assumingMemoryBound(to: csqlite_cursor.self) }
  }

  private static func reading(_ made: UnsafeMutablePointer<csqlite_cursor>?) -> Reading? {
    made?.pointee.owner.map { Unmanaged<Reading>.fromOpaque($0).takeUnretainedValue() }
  }

  private static func open(
    _ cursor: UnsafeMutablePointer<UnsafeMutablePointer<sqlite3_vtab_cursor>?>?
  ) -> Int32 {
    let made = UnsafeMutablePointer<csqlite_cursor>.allocate(capacity: 1)
    made.initialize(to: csqlite_cursor())
    cursor?.pointee = UnsafeMutableRawPointer(made).assumingMemoryBound(
      to: sqlite3_vtab_cursor.self)
    return SQLITE_OK
  }

  private static func close(_ cursor: UnsafeMutablePointer<sqlite3_vtab_cursor>?) -> Int32 {
    guard let made = self.cursor(cursor) else { return SQLITE_OK }
    if let owner = made.pointee.owner { Unmanaged<Reading>.fromOpaque(owner).release() }
    made.deallocate()
    return SQLITE_OK
  }

  private static func filter(
    _ cursor: UnsafeMutablePointer<sqlite3_vtab_cursor>?, _ index: Int32,
    _ values: UnsafeMutablePointer<OpaquePointer?>?
  ) -> Int32 {
    guard let made = self.cursor(cursor), let table = made.pointee.base.pVtab,
      let owner = owner(table)
    else { return SQLITE_ERROR }
    if let former = made.pointee.owner { Unmanaged<Reading>.fromOpaque(former).release() }
    made.pointee.owner = nil
    (made.pointee.place, made.pointee.count) = (0, 0)
    do throws(SQLiteError) {
      let reading: Reading
      if index > 0, let value = values?[0], sqlite3_value_numeric_type(value) == SQLITE_INTEGER {
        reading = try owner.rows(where: Int(index) - 1, is: sqlite3_value_int64(value))
      } else {
        // SQLite drops rows that do not match.
        reading = Reading(try owner.rows(), nil)
      }
      made.pointee.count = Int64(reading.count)
      made.pointee.owner = Unmanaged.passRetained(reading).toOpaque()
      return SQLITE_OK
    } catch {
      sqlite3_free(table.pointee.zErrMsg)
      table.pointee.zErrMsg = csqlite_copy(error.message)
      return error.code.rawValue
    }
  }

  private static func isAtEnd(_ cursor: UnsafeMutablePointer<sqlite3_vtab_cursor>?) -> Bool {
    guard let made = self.cursor(cursor) else { return true }
    return made.pointee.place >= made.pointee.count
  }

  private static func putCell(
    _ cursor: UnsafeMutablePointer<sqlite3_vtab_cursor>?, _ context: OpaquePointer?, _ column: Int32
  ) -> Int32 {
    guard let made = self.cursor(cursor), let reading = reading(made) else { return SQLITE_ERROR }
    let place = Int(made.pointee.place)
    switch reading.rows.cell(reading.places?[place] ?? place, Int(column)) {
    case .null: sqlite3_result_null(context)
    case .integer(let number): sqlite3_result_int64(context, number)
    case .real(let number): sqlite3_result_double(context, number)
    case .text(let text): csqlite_result_text(context, text, Int32(text.utf8.count))
    }
    return SQLITE_OK
  }
}
