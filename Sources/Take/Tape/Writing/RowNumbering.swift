/// Numbers paths, formats and contents anew in a copy that leaves some of them out, or that takes
/// them from several takes.
///
/// They are counted in the order of first use over all peers of a take, so without one peer those
/// of the others are other numbers, and what two takes have both is written down once.
package struct RowNumbering {
  private var numbers: [Key: Int64] = [:]
  private var known: [Table: Numbering<[Value]>] = [:]

  private struct Key: Hashable {
    var source: Int
    var table: Table
    var number: Int64
  }

  package init() {}

  /// The rows of a step with numbers that leave nothing out.
  ///
  /// - Parameter source: which take the rows are of, when there are several.
  package mutating func renumbered(_ rows: RowList, _ range: Range<Int>, source: Int = 0)
    -> RowList
  {
    var copy = RowList()
    for row in range {
      let table = rows.table(row)
      var values = rows.row(row)
      if let own = table.columns.firstIndex(where: { $0.name == table.definition.key }),
        case .integer(let number) = values[own]
      {
        // What is the same is told by all the rest of the row; of contents the digest is enough.
        let what = ContentRow(rows, row).map { [.blob($0.digest)] } ?? Array(values.dropFirst())
        let (next, isNew) = known[table, default: Numbering()].number(of: what)
        numbers[Key(source: source, table: table, number: number)] = next
        guard isNew else { continue }
        values[own] = .integer(next)
      } else if let (column, named) = RowNumbering.reference(in: table),
        case .integer(let number) = values[column],
        let known = numbers[Key(source: source, table: named, number: number)]
      {
        values[column] = .integer(known)
      }
      copy.append(table, values)
    }
    return copy
  }

  /// The column of a table that holds the number of a row in another one.
  private static func reference(in table: Table) -> (column: Int, table: Table)? {
    for (index, column) in table.columns.enumerated() {
      if case .reference(let named) = column.kind { return (index, named) }
    }
    return nil
  }
}
