import Wire

/// A series of inputs whose datagrams wait for more that go the same way, but not for long.
struct DatagramBurst {
  /// How long a datagram may wait.
  static let most = Interval.microseconds(300)

  private var begun: Instant?

  /// Whether datagrams wait for the end of a series.
  var isOpen: Bool { begun != nil }

  mutating func begin(at now: Instant) { begun = now }
  mutating func end() { begun = nil }

  /// Whether what waits has to go now; the time of what comes after counts anew.
  mutating func consumeDue(at now: Instant) -> Bool {
    guard let begun, now - begun > DatagramBurst.most else { return false }
    self.begun = now
    return true
  }
}
