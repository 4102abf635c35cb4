import Wire

/// A burst of inputs, during which datagrams wait briefly for more on the same path.
struct DatagramBurst {
  /// The longest time that a datagram waits.
  static let most = Interval.microseconds(300)

  private var begun: Instant?

  /// Whether a burst is under way.
  var isOpen: Bool { begun != nil }

  mutating func begin(at now: Instant) { begun = now }
  mutating func end() { begun = nil }

  /// Returns whether waiting datagrams have to be sent now; restarts the time.
  mutating func consumeDue(at now: Instant) -> Bool {
    guard let begun, now - begun > DatagramBurst.most else { return false }
    self.begun = now
    return true
  }
}
