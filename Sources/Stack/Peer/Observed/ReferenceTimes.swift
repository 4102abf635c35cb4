import RTP
import Wire

/// The reference times that an observed peer sent, and the round trips that their answers show:
/// from the point of capture to the sender and back (RFC 3611 sections 4.4 and 4.5).
struct ReferenceTimes {
  /// The most times remembered.
  private static let most = 16

  private var sent: [(compactNTP: UInt32, at: Instant)] = []

  /// Records a reference time.
  mutating func send(_ time: UInt64, at now: Instant) {
    if sent.count >= ReferenceTimes.most { sent.removeFirst() }
    sent.append((UInt32(truncatingIfNeeded: time >> 16), now))
  }

  /// The round trip of an answer; nil if its request was not seen.
  func roundTrip(_ answer: ExtendedReport.DelayBlock, at now: Instant) -> Interval? {
    guard answer.lastReport != 0,
      let asked = sent.last(where: { $0.compactNTP == answer.lastReport })
    else { return nil }
    // In units of 1/65536 s.
    let lay = Interval(
      nanoseconds: Int64((UInt64(answer.delaySinceLastReport) * 1_000_000_000) >> 16))
    return max((now - asked.at) - lay, .zero)
  }
}
