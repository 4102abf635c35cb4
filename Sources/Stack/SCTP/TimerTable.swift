import Wire

/// What an association waits for, in the order in which timers that are due together are served.
enum SCTPTimer: Int, CaseIterable {
  /// INIT or COOKIE ECHO is sent again (T1, RFC 9260 sections 5.1 and 4).
  case initiation
  /// A delayed SACK is sent (RFC 9260 section 6.2).
  case acknowledgement
  /// Data is deemed lost (T3-rtx, RFC 9260 section 6.3).
  case retransmission
  /// A request to reset streams is sent again (RFC 6525 section 5.1.1).
  case reset
  /// An idle peer is sent a heartbeat (RFC 9260 section 8.3).
  case heartbeat
  /// SHUTDOWN or SHUTDOWN ACK is sent again (T2, RFC 9260 section 9.2).
  case shutdown
}

/// The deadlines of an association: the one place that knows them all.
struct TimerTable {
  private var deadlines: [6 of Instant?] = .init(repeating: nil)

  /// The earliest deadline; nil when nothing is waited for.
  var next: Instant? {
    var next: Instant?
    for index in deadlines.indices { next = earliest(next, deadlines[index]) }
    return next
  }

  /// When a timer passes; nil when it does not run.
  subscript(timer: SCTPTimer) -> Instant? { deadlines[timer.rawValue] }

  /// Whether a timer has passed and was not armed again or canceled.
  func isDue(_ timer: SCTPTimer, at now: Instant) -> Bool {
    deadlines[timer.rawValue].map { $0 <= now } ?? false
  }

  /// Lets a timer pass at an instant, whatever it was set to.
  mutating func arm(_ timer: SCTPTimer, at instant: Instant) {
    deadlines[timer.rawValue] = instant
  }

  /// Lets a timer pass at an instant unless it runs already.
  mutating func armIfIdle(_ timer: SCTPTimer, at instant: Instant) {
    if deadlines[timer.rawValue] == nil { deadlines[timer.rawValue] = instant }
  }

  /// Stops a timer.
  mutating func cancel(_ timer: SCTPTimer) { deadlines[timer.rawValue] = nil }

  /// Stops all timers.
  mutating func cancelAll() { self = TimerTable() }
}
