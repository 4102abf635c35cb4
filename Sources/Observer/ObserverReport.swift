import Wire

/// An observer's outputs in order, including reports about what could not be seen.
struct ObserverReport {
  private var outbox = Outbox<Observer.Output>()
  private var coverage = CoverageLedger()

  /// Swaps the current outbox, to which outputs are appended, with another outbox.
  mutating func exchange(_ other: inout Outbox<Observer.Output>) { swap(&outbox, &other) }

  mutating func emit(_ output: consuming Observer.Output) { outbox.append(output) }

  /// Counts something that could not be seen, and reports it if it is the first of its kind.
  mutating func count(
    _ kind: CoverageReport.Kind, transport: Int? = nil, by count: UInt64 = 1,
    detail: @autoclosure () -> String = ""
  ) {
    if let row = coverage.count(kind, transport: transport, by: count, detail()) {
      outbox.append(.coverage(row))
    }
  }

  /// Reports counts that have grown since they were last reported.
  mutating func reportFinalCounts() {
    for row in coverage.finalRows { outbox.append(.coverage(row)) }
  }

  func count(of kind: CoverageReport.Kind, transport: Int? = nil) -> UInt64 {
    coverage.count(of: kind, transport: transport)
  }
}

/// Counts what could not be seen, and reports each kind at its first occurrence and at the end.
struct CoverageLedger {
  private struct Place: Hashable {
    var kind: CoverageReport.Kind
    var transport: Int?
  }

  private var rows: [CoverageReport] = []
  /// Each row's count when it was last reported.
  private var reported: [UInt64] = []
  private var places: [Place: Int] = [:]
  private static let rowsMaximum = 100_000

  /// Counts an occurrence; returns a row for the first of its kind, otherwise nil.
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
    reported.append(count)
    return rows.last
  }

  /// The rows whose counts have grown since they were reported.
  var finalRows: [CoverageReport] { zip(rows, reported).filter { $0.count != $1 }.map { $0.0 } }

  func count(of kind: CoverageReport.Kind, transport: Int? = nil) -> UInt64 {
    places[Place(kind: kind, transport: transport)].map { rows[$0].count } ?? 0
  }
}

/// Limits how many repeated reports a few packets can cause.
///
/// A description is reported for each transport that it names, a stream with each new name of its
/// source, and a path's streams whenever they move. Without a limit, the sender of such packets
/// could fill a disk with many times the amount that it sends.
struct ReportBudget {
  private static let descriptionBytesMaximum = 64 << 20
  private static let movedStreamsMaximum = 1 << 16
  /// The maximum number of changes to a stream's name.
  static let namesMaximum = 64

  private var descriptionBytes = 0
  private var movedStreams = 0

  /// Returns whether a description of this size may be reported; if so, counts it.
  mutating func allows(descriptionBytes count: Int) -> Bool {
    guard descriptionBytes + count <= Self.descriptionBytesMaximum else { return false }
    descriptionBytes += count
    return true
  }

  /// Returns whether this many streams may move; if so, counts them.
  mutating func moves(streams count: Int) -> Bool {
    guard movedStreams + count <= Self.movedStreamsMaximum else { return false }
    movedStreams += count
    return true
  }
}

/// The observer's current instant and next deadline.
struct ObserverTime {
  /// The longest that a packet can have waited for admission.
  private static let admissionMaximum = Interval.seconds(60)

  private(set) var now = Instant.zero
  private(set) var deadline: Instant?

  mutating func move(to instant: Instant) { now = instant }

  /// Moves back to when a waiting packet arrived, but by no more than `admissionMaximum`.
  mutating func moveBack(to arrival: Instant) {
    if arrival < now { now = max(arrival, now - ObserverTime.admissionMaximum) }
  }

  /// Requests a deadline no later than this.
  mutating func schedule(_ due: Instant?) { deadline = earliest(deadline, due) }

  mutating func forgetDeadline() { deadline = nil }
}
