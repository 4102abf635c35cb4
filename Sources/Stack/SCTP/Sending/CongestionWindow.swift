import Wire

/// Limits the bytes in flight: slow start and congestion avoidance (RFC 9260 section 7.2).
struct CongestionWindow {
  /// The number of bytes that may be in flight.
  private(set) var bytes: Int
  /// The last number in flight when a loss was detected; recovery ends once it is acknowledged.
  private(set) var recoveryPoint: UInt32?
  /// Whether only one packet may be in flight, from a timeout until data is acknowledged.
  private(set) var isProbing = false
  /// The largest data chunk that fits into a packet, including its header (PMDCS).
  private let chunkSize: Int
  private var threshold = Int.max
  private var credit = 0

  /// The largest window in bytes; no path needs more, and sums cannot overflow.
  private static let maximum = 64 << 20

  /// Creates the window for a new path.
  init(packetSize: Int) {
    chunkSize = packetSize - PacketBuilder.header
    // 4344 bytes are for IPv6; the 4404 bytes for IPv4 would allow the same number of packets of
    // the usual size (section 7.2.1).
    bytes = min(4 * chunkSize, max(2 * chunkSize, 4344))
  }

  /// Grows the window after an acknowledgement.
  ///
  /// - Parameters:
  ///   - acknowledged: newly acknowledged bytes, cumulatively or in gap reports.
  ///   - flight: bytes that were in flight before the acknowledgement.
  mutating func acknowledge(_ acknowledged: Int, flight: Int) {
    guard acknowledged > 0 else { return }
    isProbing = false
    // A window that is not full proves nothing about the path.
    guard flight >= bytes else { return }
    if bytes > threshold {
      // Grow by one chunk per round trip, a little with each acknowledgement. Growing by whole
      // chunks would make the window half a chunk smaller on average.
      credit += acknowledged * chunkSize
      let gain = credit / bytes
      credit -= gain * bytes
      bytes += gain
    } else if recoveryPoint == nil {
      bytes += min(acknowledged, 2 * chunkSize)
    }
    bytes = min(bytes, Self.maximum)
  }

  /// Records that nothing is in flight any more.
  mutating func drain() { credit = 0 }

  /// Ends recovery once everything that was in flight at its start is acknowledged.
  mutating func advance(to cumulative: UInt32) {
    guard let point = recoveryPoint, !point.isNewer(than: cumulative) else { return }
    recoveryPoint = nil
  }

  /// Halves the window, once per round trip, after acknowledgements showed a loss.
  ///
  /// - Returns: whether a recovery started.
  mutating func lose(lastInFlight: UInt32) -> Bool {
    guard recoveryPoint == nil else { return false }
    shrink()
    bytes = threshold
    recoveryPoint = lastInFlight
    return true
  }

  /// Falls back to one packet after a timeout (RFC 9260 section 7.2.3).
  mutating func timeOut() {
    shrink()
    bytes = chunkSize
    recoveryPoint = nil
    isProbing = true
  }

  /// Halves the window for each retransmission timeout that passed without sending (RFC 9260
  /// section 7.2.1).
  mutating func idle(for silence: Interval, timeout: Interval) {
    let least = 4 * chunkSize
    var left = silence
    while left > timeout, bytes > least {
      // This lets slow start return to the old window quickly.
      if left == silence { threshold = bytes }
      bytes = max(bytes / 2, least)
      left = left - timeout
    }
  }

  private mutating func shrink() {
    threshold = max(bytes / 2, 4 * chunkSize)
    credit = 0
  }
}

// MARK: - RoundTrip

/// The retransmission timeout, from the round trips of single chunks, by Karn's rule (RFC 9260
/// section 6.3.1).
///
/// Timeouts are shorter than in section 16, as in browsers: ICE checks liveness.
struct RoundTrip {
  /// Smoothed round-trip time; nil before the first measurement.
  private(set) var smoothed: Interval?
  /// The time to wait for an acknowledgement.
  private(set) var timeout = SCTPLimits.initialTimeout
  private var variation = Interval.zero
  /// The chunk whose round trip is being measured; nil if there is none.
  private var timed: (number: UInt32, at: Instant)?

  /// The number of the chunk whose round trip is being measured; nil if there is none.
  var timedNumber: UInt32? { timed?.number }

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

  /// Starts measuring a chunk's round trip, unless another chunk is being measured.
  mutating func begin(_ number: UInt32, at now: Instant) {
    if timed == nil { timed = (number, now) }
  }

  /// Ends the timed chunk's measurement, which is used only if the chunk was sent once (rule C5).
  mutating func finish(_ number: UInt32, transmissions: Int, at now: Instant) {
    guard let timed, timed.number == number else { return }
    if transmissions == 1 { measure(now - timed.at) }
    self.timed = nil
  }

  /// Discards the measurement, because the next acknowledgement would not show the path's round
  /// trip.
  mutating func cancel() { timed = nil }

  /// Doubles the timeout after it expired (section 6.3.3, rule E2).
  mutating func backOff() { timeout = min(timeout * 2, SCTPLimits.maximumTimeout) }

  /// Undoes the doubling once the peer acknowledges new data.
  mutating func settle() {
    guard let smoothed else { return }
    timeout = min(
      max(smoothed + variation * 4, SCTPLimits.minimumTimeout), SCTPLimits.maximumTimeout)
  }
}
