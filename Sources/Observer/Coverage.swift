import Wire

/// Counts what could not be seen; each kind is told when it begins, and once more at the end.
struct CoverageLedger {
  private struct Place: Hashable {
    var kind: CoverageRow.Kind
    var transport: Int?
  }

  private var rows: [CoverageRow] = []
  /// What every row had counted when it was told.
  private var told: [UInt64] = []
  private var places: [Place: Int] = [:]
  private static let rowsMaximum = 100_000

  /// Counts; gives the row when it is the first of its kind.
  mutating func count(
    _ kind: CoverageRow.Kind, transport: Int? = nil, by count: UInt64 = 1,
    _ detail: @autoclosure () -> String = ""
  ) -> CoverageRow? {
    let place = Place(kind: kind, transport: transport)
    if let index = places[place] {
      rows[index].count +|= count
      return nil
    }
    guard rows.count < Self.rowsMaximum else { return nil }
    places[place] = rows.count
    rows.append(CoverageRow(kind: kind, transport: transport, count: count, detail: detail()))
    told.append(count)
    return rows.last
  }

  /// The rows whose counts went on after they were told.
  var finalRows: [CoverageRow] { zip(rows, told).filter { $0.count != $1 }.map { $0.0 } }

  /// How much was counted.
  func count(of kind: CoverageRow.Kind, transport: Int? = nil) -> UInt64 {
    places[Place(kind: kind, transport: transport)].map { rows[$0].count } ?? 0
  }
}
