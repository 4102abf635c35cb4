import Wire

/// When reports are sent: only while media is sent or received, and early at the start (RFC 3550
/// section 6.2).
struct ReportSchedule {
  /// How long a due report waits for a step that happens anyway.
  private static let slack = Interval.milliseconds(50)

  private(set) var due: Instant?
  private var hasReported = false
  private let entropy: EntropyStream

  init(_ entropy: EntropyStream) { self.entropy = entropy }

  /// When a report needs a step of its own.
  var deadline: Instant? { due.map { $0 + Self.slack } }

  /// Schedules the first report once media is sent or received.
  mutating func begin(at now: Instant) {
    guard due == nil else { return }
    let random = Int64(entropy.integer(below: 1_000_000_000))
    let interval = Interval(nanoseconds: 500_000_000 + random)
    due = now + (hasReported ? interval : interval / 2)
  }

  /// Returns whether a report is due, and clears the schedule if so.
  mutating func consumeDue(at now: Instant) -> Bool {
    guard let due, due <= now else { return false }
    self.due = nil
    hasReported = true
    return true
  }
}
