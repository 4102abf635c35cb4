import Wire

/// How many bytes may be in flight: slow start and congestion avoidance (RFC 9260 section 7.2).
struct CongestionWindow {
  /// The window in bytes.
  private(set) var bytes: Int
  /// The last number in flight when losses were seen; recovery ends when it is acknowledged.
  private(set) var recoveryPoint: UInt32?
  private let packetSize: Int
  private var threshold = Int.max
  private var partiallyAcknowledged = 0

  /// No path of data channels needs more, and sums stay far from overflow.
  private static let maximum = 64 << 20

  /// Creates the window of a new path: ten packets, as peers in browsers begin.
  init(packetSize: Int) {
    self.packetSize = packetSize
    bytes = 10 * packetSize
  }

  /// Grows the window after the cumulative acknowledgement advanced.
  ///
  /// - Parameters:
  ///   - acknowledged: bytes that became acknowledged.
  ///   - flight: bytes that were in flight before.
  mutating func acknowledge(_ acknowledged: Int, flight: Int) {
    // A window that is not used says nothing about the path.
    guard recoveryPoint == nil, flight + packetSize > bytes else { return }
    if bytes <= threshold {
      bytes += min(acknowledged, 2 * packetSize)
    } else {
      partiallyAcknowledged += acknowledged
      if partiallyAcknowledged >= bytes {
        partiallyAcknowledged -= bytes
        bytes += packetSize
      }
    }
    bytes = min(bytes, Self.maximum)
  }

  /// Ends the recovery when all that was in flight at its beginning is acknowledged.
  mutating func advance(to cumulative: UInt32) {
    guard let point = recoveryPoint, !point.isNewer(than: cumulative) else { return }
    recoveryPoint = nil
    partiallyAcknowledged = 0
  }

  /// Halves the window, once per round trip, when acknowledgements show a loss.
  ///
  /// - Returns: whether a recovery began.
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
    bytes = packetSize
    recoveryPoint = nil
  }

  /// Halves the window for each timeout of silence (RFC 9260 section 7.2.1).
  mutating func idle(for silence: Interval, timeout: Interval) {
    var left = silence
    while left > timeout, bytes > 10 * packetSize {
      bytes = max(bytes / 2, 10 * packetSize)
      left = left - timeout
    }
  }

  private mutating func shrink() {
    threshold = max(bytes / 2, 4 * packetSize)
    partiallyAcknowledged = 0
  }
}
