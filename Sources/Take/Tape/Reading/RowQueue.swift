/// The rows of all tables in the order of their numbers.
struct RowQueue {
  /// What is wrong with the rows of a step.
  enum Fault: Error {
    /// A row of this table has a number that comes too early.
    case added(Table)
    /// A row is missing after so many.
    case missing(Int)
    case damaged(Table, String)
    case unreadable(Table, SQLiteError)
  }

  private let cursors: [TableCursor]
  /// The number of the row that is next in each cursor's table: every row is looked for here.
  private var next: [Int64]
  /// The place of the table that the last row was in: the next one is often in the same.
  private var place = 0

  init(_ cursors: [TableCursor]) {
    self.cursors = cursors
    next = cursors.map(\.next)
  }

  /// The first table that has rows left.
  var left: Table? {
    next.firstIndex { $0 != .max }.map { cursors[$0].table }
  }

  /// Reads the rows of a step, of which there are so many.
  mutating func read(_ count: Int, ofStep number: Int, into rows: inout RowList) throws(Fault) {
    let first = RowNumber.first(ofStep: number)
    for ordinal in 0..<count {
      let wanted = first + Int64(ordinal)
      guard let place = next[place] == wanted ? place : next.firstIndex(of: wanted) else {
        if let early = early(before: wanted) { throw .added(early) }
        throw .missing(ordinal)
      }
      let cursor = cursors[place]
      let isGood: Bool
      do throws(SQLiteError) {
        isGood = try cursor.read(into: &rows)
      } catch {
        throw .unreadable(cursor.table, error)
      }
      next[place] = cursor.next
      self.place = place
      guard isGood else { throw .damaged(cursor.table, cursor.damage) }
    }
    if let extra = early(before: RowNumber.first(ofStep: number + 1)) { throw .added(extra) }
  }

  private func early(before number: Int64) -> Table? {
    next.firstIndex { $0 < number }.map { cursors[$0].table }
  }
}
