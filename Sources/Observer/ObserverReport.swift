import Wire

/// What an observer tells: its outputs, in order, and among them what could not be seen.
struct ObserverReport {
  private var outbox = Outbox<Observer.Output>()
  private var coverage = CoverageLedger()

  /// Takes another outbox to write to, and gives the present one.
  mutating func exchange(_ other: inout Outbox<Observer.Output>) { swap(&outbox, &other) }

  mutating func emit(_ output: consuming Observer.Output) { outbox.append(output) }

  /// Counts what could not be seen, and tells it when it is the first of its kind.
  mutating func count(
    _ kind: CoverageReport.Kind, transport: Int? = nil, by count: UInt64 = 1,
    detail: @autoclosure () -> String = ""
  ) {
    if let row = coverage.count(kind, transport: transport, by: count, detail()) {
      outbox.append(.coverage(row))
    }
  }

  /// Tells the counts that went on after they were told.
  mutating func tellFinalCounts() {
    for row in coverage.finalRows { outbox.append(.coverage(row)) }
  }

  /// How much was counted.
  func count(of kind: CoverageReport.Kind, transport: Int? = nil) -> UInt64 {
    coverage.count(of: kind, transport: transport)
  }
}
