import Wire

/// The retransmission timeout: round trips of single chunks by Karn's rule, and how long to wait
/// for an acknowledgement (RFC 9260 section 6.3.1).
///
/// Timeouts are shorter than section 16 says, as those of browsers are: liveness is the business of
/// ICE.
struct RoundTrip {
  /// The smoothed round-trip time; nil before a measurement.
  private(set) var smoothed: Interval?
  /// How long to wait for an acknowledgement.
  private(set) var timeout = SCTPLimits.initialTimeout
  private var variation = Interval.zero
  /// The one chunk whose round trip is being measured.
  private var timed: (number: UInt32, at: Instant)?

  /// The number of the chunk whose round trip is being measured.
  var timedNumber: UInt32? { timed?.number }

  /// Adds a measurement.
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

  /// Measures the round trip of a chunk that is sent now, unless another's is being measured.
  mutating func begin(_ number: UInt32, at now: Instant) {
    if timed == nil { timed = (number, now) }
  }

  /// Measures the round trip of the timed chunk when it was sent only once (rule C5).
  mutating func finish(_ number: UInt32, transmissions: Int, at now: Instant) {
    guard let timed, timed.number == number else { return }
    if transmissions == 1 { measure(now - timed.at) }
    self.timed = nil
  }

  /// Discards the measurement: what comes next would say nothing about the path.
  mutating func cancel() { timed = nil }

  /// Doubles the timeout after it passed without an answer (section 6.3.3, rule E2).
  mutating func backOff() { timeout = min(timeout * 2, SCTPLimits.maximumTimeout) }

  /// Undoes the doubling once the peer acknowledges new data.
  mutating func settle() {
    guard let smoothed else { return }
    timeout = min(
      max(smoothed + variation * 4, SCTPLimits.minimumTimeout), SCTPLimits.maximumTimeout)
  }
}
