import Wire

/// Estimates the receive rate for peers that rely on REMB.
///
/// It does not limit the peer while packets get through, and follows the loss when they do not.
struct IncomingBitrate {
  private static let initial = 1_000_000.0
  private static let minimum = 50_000.0
  private static let maximum = 100_000_000.0

  private var current = IncomingBitrate.initial
  /// The last estimate in bits per second; nil before the first.
  private(set) var latest: UInt64?
  private var bytes = 0
  private var since: Instant?
  private var fractionLost: UInt8 = 0

  mutating func receive(bytes: Int, at arrival: Instant) {
    if since == nil { since = arrival }
    self.bytes += bytes
  }

  /// Handles the share of packets lost since the last report, in 1/256.
  mutating func receive(fractionLost: UInt8) { self.fractionLost = fractionLost }

  /// Returns the estimate for the time since the last one, in bits per second; nil if nothing
  /// arrived.
  mutating func estimate(at now: Instant) -> UInt64? {
    guard let since, now - since >= .milliseconds(100) else { return nil }
    let rate = Double(bytes) * 8 / (now - since).seconds
    let lost = Double(fractionLost) / 256
    if lost > 0.1 {
      current = min(current, rate) * (1 - 0.5 * lost)
    } else if lost < 0.02 {
      current = max(current, 1.5 * rate)
    }
    current = min(max(current, IncomingBitrate.minimum), IncomingBitrate.maximum)
    bytes = 0
    self.since = now
    latest = UInt64(current)
    return latest
  }
}
