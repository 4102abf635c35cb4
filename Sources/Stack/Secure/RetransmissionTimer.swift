import Wire

/// When an unanswered DTLS flight is retransmitted (RFC 6347 section 4.2.4.1).
///
/// The first retransmission is much earlier than the RFC's one second, as in browsers: ICE has just
/// proved the path alive, so silence means loss.
struct RetransmissionTimer {
  /// The time-out of the first copy of a flight.
  static let initial = Interval.milliseconds(100)
  /// The time-out doubles up to this.
  static let maximum = Interval.seconds(3)
  /// OpenSSL considers an association broken at the next one.
  static let retransmissionsMaximum = 12

  /// When to retransmit; nil if no flight waits or no retransmission is left.
  private(set) var deadline: Instant?

  private var flight: UInt32 = 0
  private var timeout = initial
  private var retransmissions = 0

  /// Records which flight waits, 0 for none; a new one starts with the initial time-out.
  mutating func follow(flight: UInt32, at now: Instant) {
    guard flight != self.flight else { return }
    self.flight = flight
    timeout = Self.initial
    retransmissions = 0
    deadline = flight == 0 ? nil : now + timeout
  }

  mutating func didRetransmit(at now: Instant) {
    retransmissions += 1
    timeout = min(timeout * 2, Self.maximum)
    deadline = retransmissions < Self.retransmissionsMaximum ? now + timeout : nil
  }
}
