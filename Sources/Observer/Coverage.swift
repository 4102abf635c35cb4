/// Counts what could not be seen; each kind is told when it begins, and once more at the end.
struct CoverageLedger {
  private struct Place: Hashable {
    var kind: CoverageRow.Kind
    var transport: Int?
  }

  private var rows: [CoverageRow] = []
  private var places: [Place: Int] = [:]
  private static let rowsMaximum = 100_000

  /// Counts; gives the row when it is the first of its kind.
  mutating func count(
    _ kind: CoverageRow.Kind, transport: Int? = nil, _ detail: @autoclosure () -> String = ""
  ) -> CoverageRow? {
    let place = Place(kind: kind, transport: transport)
    if let index = places[place] {
      rows[index].count += 1
      return nil
    }
    guard rows.count < Self.rowsMaximum else { return nil }
    places[place] = rows.count
    rows.append(CoverageRow(kind: kind, transport: transport, count: 1, detail: detail()))
    return rows.last
  }

  /// The rows whose counts went on after they were told.
  var finalRows: [CoverageRow] { rows.filter { $0.count > 1 } }

  /// How much was counted.
  func count(of kind: CoverageRow.Kind, transport: Int? = nil) -> UInt64 {
    places[Place(kind: kind, transport: transport)].map { rows[$0].count } ?? 0
  }
}
