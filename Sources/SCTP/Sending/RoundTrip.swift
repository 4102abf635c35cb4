import Wire

/// The retransmission timeout from measured round trips (RFC 9260 section 6.3.1).
struct RoundTrip {
  /// The smoothed round-trip time; nil before a measurement.
  private(set) var smoothed: Interval?
  /// How long to wait for an acknowledgement.
  private(set) var timeout = SCTPLimits.initialTimeout
  private var variation = Interval.zero

  /// Takes a measurement in.
  mutating func measure(_ sample: Interval) {
    let sample = max(.zero, sample)
    if let smoothed {
      let difference = max(smoothed, sample) - min(smoothed, sample)
      variation = (variation * 3 + difference) / 4
      self.smoothed = (smoothed * 7 + sample) / 8
    } else {
      smoothed = sample
      variation = sample / 2
    }
    settle()
  }

  /// Doubles the timeout after it passed without an answer.
  mutating func backOff() { timeout = min(timeout * 2, SCTPLimits.maximumTimeout) }

  /// Takes the doubling back once the peer acknowledges new data.
  mutating func settle() {
    guard let smoothed else { return }
    timeout = min(
      max(smoothed + variation * 4, SCTPLimits.minimumTimeout), SCTPLimits.maximumTimeout)
  }
}
