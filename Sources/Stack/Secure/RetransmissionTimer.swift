import Wire

/// Says when a DTLS flight that got no answer is to be sent again (RFC 6347 section 4.2.4.1).
///
/// The first retransmission comes much earlier than the RFC's second, as in browsers: the path was
/// just found alive by ICE, so silence means loss.
struct RetransmissionTimer {
  /// How long the first copy of a flight may stay without an answer.
  static let initial = Interval.milliseconds(100)
  /// The time-out doubles up to this.
  static let maximum = Interval.seconds(3)
  /// OpenSSL calls an association broken at the next one.
  static let retransmissionsMaximum = 12

  /// When the flight is to be sent again; nil when no flight waits or no copy is left.
  private(set) var deadline: Instant?

  private var flight: UInt32 = 0
  private var timeout = initial
  private var retransmissions = 0

  /// Records which flight waits after a call, 0 for none; a new one begins with the first time-out.
  mutating func follow(flight: UInt32, at now: Instant) {
    guard flight != self.flight else { return }
    self.flight = flight
    timeout = Self.initial
    retransmissions = 0
    deadline = flight == 0 ? nil : now + timeout
  }

  /// Records that the flight was sent again.
  mutating func didRetransmit(at now: Instant) {
    retransmissions += 1
    timeout = min(timeout * 2, Self.maximum)
    deadline = retransmissions < Self.retransmissionsMaximum ? now + timeout : nil
  }
}
