package import Wire

/// What RFC 3550 counts of a stream where it was captured: losses, and the jitter of arrivals.
package struct ReceptionStatistics: Sendable {
  package private(set) var packets: UInt64 = 0
  package private(set) var bytes: UInt64 = 0
  /// Packets that came again.
  package private(set) var duplicates: UInt64 = 0
  package private(set) var first: Instant?
  package private(set) var last: Instant?
  /// In units of the RTP clock (RFC 3550 appendix A.8).
  package private(set) var jitter: Double = 0
  package private(set) var maximumJitter: Double = 0
  private var jitterSum: Double = 0
  private var jitterCount: UInt64 = 0

  private var base: Int64 = 0
  private var highest: Int64 = 0
  private var unwrapper = SequenceUnwrapper()
  private var times = TimestampUnwrapper()
  private var lastRTPTime: Int64 = 0
  private var lastArrival = Instant.zero

  package init() {}

  /// How many packets the sequence numbers say there were.
  package var expected: UInt64 { packets == 0 ? 0 : UInt64(highest - base + 1) }

  /// How many of them are missing; late and repeated packets make it smaller (appendix A.3).
  package var lost: Int64 { Int64(expected) - Int64(packets) }

  /// The mean of the jitter after each packet.
  package var meanJitter: Double { jitterCount == 0 ? 0 : jitterSum / Double(jitterCount) }

  /// Counts a packet.
  mutating func add(
    _ sequence: UInt16, _ timestamp: UInt32, size: Int, at arrival: Instant, clockRate: UInt32
  ) {
    let number = unwrapper.unwrap(sequence)
    let rtpTime = times.unwrap(timestamp)
    bytes += UInt64(size)
    packets += 1
    last = arrival
    guard first != nil else {
      first = arrival
      base = number
      highest = number
      lastRTPTime = rtpTime
      lastArrival = arrival
      return
    }
    base = min(base, number)
    highest = max(highest, number)
    guard clockRate > 0 else { return }
    let elapsed = (arrival - lastArrival).seconds * Double(clockRate)
    let difference = abs(elapsed - Double(rtpTime - lastRTPTime))
    jitter += (difference - jitter) / 16
    maximumJitter = max(maximumJitter, jitter)
    jitterSum += jitter
    jitterCount += 1
    lastRTPTime = rtpTime
    lastArrival = arrival
  }

  /// Counts a packet that came before.
  mutating func addDuplicate() { duplicates += 1 }
}
