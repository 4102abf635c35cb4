import RTP
import Wire

/// The round trip to the peer, and the receivers' reference times that are still to be answered
/// (RFC 3611 section 4.4).
struct RoundTripMeter {
  private struct ReferenceTime {
    let ssrc: UInt32
    let compactNTP: UInt32
    let arrival: Instant
  }

  /// Longer round trips are taken for errors.
  private static let longest = Interval.seconds(30)
  /// The most reference times that are answered in one report.
  private static let referencesMaximum = 8

  /// The latest round trip; nil before the first measurement.
  private(set) var newest: Interval?
  private var references: [ReferenceTime] = []

  /// Measures a round trip, less the delay at the peer (RFC 3550 section 6.4.1); nil if there is no
  /// report to answer or the result is implausible.
  /// - Parameter arrival: the middle 32 bits of the NTP time at which the answer arrived.
  mutating func measure(lastReport: UInt32, delay: UInt32, arrival: UInt32) -> Interval? {
    guard lastReport != 0 else { return nil }
    let units = arrival &- lastReport &- delay
    // Rounding may make it slightly negative.
    let isNothing = Int32(bitPattern: units) <= 0 && Int32(bitPattern: units) > -65
    let length = Interval(compactUnits: isNothing ? 1 : units)
    guard length < Self.longest else { return nil }
    newest = length
    return length
  }

  /// The minimum time between two requests for the same packet.
  var requestSpacing: Interval {
    guard let newest else { return .milliseconds(100) }
    return max(newest * 5 / 4, .milliseconds(20))
  }

  /// The minimum time between two retransmissions of the same packet.
  var resendSpacing: Interval {
    min(max(newest ?? .milliseconds(20), .milliseconds(5)), .milliseconds(500))
  }

  /// Stores a receiver's reference time until the next report answers it.
  mutating func recordReference(_ ntpTime: UInt64, of ssrc: UInt32, arrival: Instant) {
    references.removeAll { $0.ssrc == ssrc }
    if references.count == Self.referencesMaximum { references.removeFirst() }
    references.append(
      ReferenceTime(
        ssrc: ssrc, compactNTP: UInt32(truncatingIfNeeded: ntpTime >> 16), arrival: arrival))
  }

  /// Returns the answers to the stored reference times and clears them.
  mutating func makeAnswers(at now: Instant) -> [ExtendedReport.DelayBlock] {
    defer { references.removeAll() }
    return references.map {
      ExtendedReport.DelayBlock(
        ssrc: $0.ssrc, lastReport: $0.compactNTP,
        delaySinceLastReport: (now - $0.arrival).compactUnits)
    }
  }
}
