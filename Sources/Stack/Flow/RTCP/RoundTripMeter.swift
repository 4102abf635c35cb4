import RTP
import Wire

/// Owns the round trip to the peer as reports show it, and the reference times of the peer's
/// receivers that wait for an answer (RFC 3611 section 4.4).
struct RoundTripMeter {
  private struct ReferenceTime {
    let ssrc: UInt32
    let compactNTP: UInt32
    let arrival: Instant
  }

  /// A round trip this long is not believed.
  private static let longest = Interval.seconds(30)
  /// How many receivers' reference times are answered at once.
  private static let referencesMaximum = 8

  /// The newest round trip that was measured; nil before the first.
  private(set) var newest: Interval?
  private var references: [ReferenceTime] = []

  /// Measures the time from a report to its answer without the time it lay at the peer (RFC 3550
  /// section 6.4.1); nil when nothing was answered, or when the answer cannot be true.
  ///
  /// - Parameter arrival: when the answer arrived, in the middle 32 bits of NTP time.
  mutating func measure(lastReport: UInt32, delay: UInt32, arrival: UInt32) -> Interval? {
    guard lastReport != 0 else { return nil }
    let units = arrival &- lastReport &- delay
    // Rounding may give slightly less than nothing.
    let isNothing = Int32(bitPattern: units) <= 0 && Int32(bitPattern: units) > -65
    let length = Interval(compactUnits: isNothing ? 1 : units)
    guard length < Self.longest else { return nil }
    newest = length
    return length
  }

  /// How long a repeated request waits for the answer to the one before.
  var requestSpacing: Interval {
    guard let newest else { return .milliseconds(100) }
    return max(newest * 5 / 4, .milliseconds(20))
  }

  /// How long a packet that was sent again is not sent once more.
  var resendSpacing: Interval {
    min(max(newest ?? .milliseconds(20), .milliseconds(5)), .milliseconds(500))
  }

  /// Keeps a receiver's reference time until the next report answers it.
  mutating func keep(_ ntpTime: UInt64, of ssrc: UInt32, arrival: Instant) {
    references.removeAll { $0.ssrc == ssrc }
    if references.count == Self.referencesMaximum { references.removeFirst() }
    references.append(
      ReferenceTime(
        ssrc: ssrc, compactNTP: UInt32(truncatingIfNeeded: ntpTime >> 16), arrival: arrival))
  }

  /// The answers to the reference times that were kept.
  mutating func takeAnswers(at now: Instant) -> [ExtendedReport.DelayBlock] {
    defer { references.removeAll() }
    return references.map {
      ExtendedReport.DelayBlock(
        ssrc: $0.ssrc, lastReport: $0.compactNTP,
        delaySinceLastReport: (now - $0.arrival).compactUnits)
    }
  }
}
