import Wire

/// Counts what could not be seen; each kind is told when it begins, and once more at the end.
struct CoverageLedger {
  private struct Place: Hashable {
    var kind: CoverageReport.Kind
    var transport: Int?
  }

  private var rows: [CoverageReport] = []
  /// What every row had counted when it was told.
  private var told: [UInt64] = []
  private var places: [Place: Int] = [:]
  private static let rowsMaximum = 100_000

  /// Counts; gives the row when it is the first of its kind.
  mutating func count(
    _ kind: CoverageReport.Kind, transport: Int? = nil, by count: UInt64 = 1,
    _ detail: @autoclosure () -> String = ""
  ) -> CoverageReport? {
    let place = Place(kind: kind, transport: transport)
    if let index = places[place] {
      rows[index].count +|= count
      return nil
    }
    guard rows.count < Self.rowsMaximum else { return nil }
    places[place] = rows.count
    rows.append(CoverageReport(kind: kind, transport: transport, count: count, detail: detail()))
    told.append(count)
    return rows.last
  }

  /// The rows whose counts went on after they were told.
  var finalRows: [CoverageReport] { zip(rows, told).filter { $0.count != $1 }.map { $0.0 } }

  /// How much was counted.
  func count(of kind: CoverageReport.Kind, transport: Int? = nil) -> UInt64 {
    places[Place(kind: kind, transport: transport)].map { rows[$0].count } ?? 0
  }
}
