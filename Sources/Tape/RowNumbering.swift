/// Numbers paths, formats and contents anew when some of them are left out of a copy.
///
/// They are counted in the order of first use over all peers of a take, so without one peer those
/// of the others are other numbers.
package struct RowNumbering {
  private var numbers: [Key: Int64] = [:]
  private var last: [Table: Int64] = [:]

  private struct Key: Hashable {
    var table: Table
    var number: Int64
  }

  package init() {}

  /// The rows of a step with numbers that leave nothing out.
  package mutating func renumbered(_ rows: RowList, _ range: Range<Int>) -> RowList {
    var copy = RowList()
    for row in range {
      let table = rows.table(row)
      var values = Array(rows.row(row))
      if table.key != "row", case .integer(let number) = values[0] {
        let next = (last[table] ?? 0) + 1
        last[table] = next
        numbers[Key(table: table, number: number)] = next
        values[0] = .integer(next)
      } else if let (column, named) = RowNumbering.reference(in: table),
        case .integer(let number) = values[column],
        let known = numbers[Key(table: named, number: number)]
      {
        values[column] = .integer(known)
      }
      copy.append(table, values)
    }
    return copy
  }

  /// The column of a table that holds the number of a row in another one.
  private static func reference(in table: Table) -> (column: Int, table: Table)? {
    let named: Table
    switch table {
    case .packet: named = .path
    case .frame: named = .format
    case .capture: named = .content
    default: return nil
    }
    return table.columns.firstIndex(of: named.storageName).map { ($0, named) }
  }
}
