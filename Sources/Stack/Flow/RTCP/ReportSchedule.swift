import Wire

/// Owns when reports are sent: not while nothing is sent or received, and early at the beginning,
/// so that the peer soon knows this end (RFC 3550 section 6.2).
struct ReportSchedule {
  /// A report that is due waits so long for a step that happens anyway.
  private static let slack = Interval.milliseconds(50)

  private(set) var due: Instant?
  private var hasReported = false
  private let entropy: EntropyStream

  init(_ entropy: EntropyStream) { self.entropy = entropy }

  /// When a step is wanted only to report.
  var deadline: Instant? { due.map { $0 + Self.slack } }

  /// Sets the time of the next report when none is set, because something is sent or received.
  mutating func begin(at now: Instant) {
    guard due == nil else { return }
    let random = Int64(entropy.integer(below: 1_000_000_000))
    let interval = Interval(nanoseconds: 500_000_000 + random)
    due = now + (hasReported ? interval : interval / 2)
  }

  /// Whether a report is to be sent now, for which the next one is not set yet.
  mutating func takeDue(at now: Instant) -> Bool {
    guard let due, due <= now else { return false }
    self.due = nil
    hasReported = true
    return true
  }
}
