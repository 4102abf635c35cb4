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

/// How much may be told of what few packets can make be told again and again.
///
/// A description is told of each transport that it names, a stream with each new name of its
/// source, all streams of a path when they go on elsewhere: whoever sends such packets would fill a
/// disk with many times what was sent.
struct ReportBudget {
  private static let descriptionBytesMaximum = 64 << 20
  private static let movedStreamsMaximum = 1 << 16
  /// How often the name of one stream may change.
  static let namesMaximum = 64

  private var descriptionBytes = 0
  private var movedStreams = 0

  /// Whether a description of so many bytes may be told once more.
  mutating func tells(descriptionBytes count: Int) -> Bool {
    guard descriptionBytes + count <= Self.descriptionBytesMaximum else { return false }
    descriptionBytes += count
    return true
  }

  /// Whether so many streams may go on elsewhere.
  mutating func moves(streams count: Int) -> Bool {
    guard movedStreams + count <= Self.movedStreamsMaximum else { return false }
    movedStreams += count
    return true
  }
}

/// The instant at which an observer works, and when it wants its next deadline.
struct ObserverTime {
  /// What waited longer to show that it is of a call was not of one.
  private static let admissionMaximum = Interval.seconds(60)

  private(set) var now = Instant.zero
  private(set) var deadline: Instant?

  /// Works at an instant from now on.
  mutating func move(to instant: Instant) { now = instant }

  /// Works at the instant when something came that waited since; at most so long is believed.
  mutating func moveBack(to arrival: Instant) {
    if arrival < now { now = max(arrival, now - ObserverTime.admissionMaximum) }
  }

  /// Wants a deadline no later than this.
  mutating func schedule(_ due: Instant?) { deadline = earliest(deadline, due) }

  /// The deadline is there, or no more wanted.
  mutating func forgetDeadline() { deadline = nil }
}
