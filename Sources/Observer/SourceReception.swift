package import Wire

/// What RFC 3550 counts of a stream where it was captured: losses, and the jitter of arrivals.
///
/// A sender that begins its sequence numbers anew (appendix A.1) begins a part of its own; what the
/// numbers of two parts are apart is no loss. A silence after which as many packets are missing as
/// it would have had is one.
package struct SourceReception: Sendable {
  /// From how many numbers on a step may be a new beginning, and how many backwards when time goes
  /// forwards: what comes late has the time at which it was sent.
  private static let jump = 3000
  private static let backwards = -100

  package private(set) var packets: UInt64 = 0
  package private(set) var bytes: UInt64 = 0
  /// Packets that came again.
  package private(set) var duplicates: UInt64 = 0
  /// How often the sequence numbers began anew.
  package private(set) var restarts: UInt64 = 0
  package private(set) var first: Instant?
  package private(set) var last: Instant?
  /// In units of the RTP clock (RFC 3550 appendix A.8).
  package private(set) var jitter: Double = 0
  package private(set) var maximumJitter: Double = 0
  private var jitterSum: Double = 0
  private var jitterCount: UInt64 = 0

  /// The packets that earlier parts should have had.
  private var expectedBefore: UInt64 = 0
  private var base: Int64 = 0
  private var highest: Int64 = 0
  /// How many packets the present part has, and the highest number of the part before: a single
  /// packet from elsewhere begins no part.
  private var partPackets: UInt64 = 0
  private var before: (base: Int64, highest: Int64)?
  /// The packet before: its number, without the wrap of its 16 bits, its time and its arrival.
  private var lastNumber: Int64 = 0
  private var times = TimestampUnwrapper()
  private var lastRTPTime: Int64 = 0
  private var lastArrival = Instant.zero

  package init() {}

  /// How many packets the sequence numbers say there were.
  package var expected: UInt64 {
    packets == 0 ? 0 : expectedBefore &+ UInt64(highest - base + 1)
  }

  /// How many of them are missing; late and repeated packets make it smaller (appendix A.3).
  package var lost: Int64 { Int64(expected) - Int64(packets) }

  /// The mean of the jitter after each packet.
  package var meanJitter: Double { jitterCount == 0 ? 0 : jitterSum / Double(jitterCount) }

  /// Counts a packet.
  mutating func add(
    _ sequence: UInt16, _ timestamp: UInt32, size: Int, at arrival: Instant, clockRate: UInt32
  ) {
    let step = Int16(bitPattern: sequence &- UInt16(truncatingIfNeeded: lastNumber))
    let number = packets == 0 ? Int64(sequence) : lastNumber + Int64(step)
    let rtpTime = times.unwrap(timestamp)
    defer { (lastNumber, lastRTPTime, lastArrival) = (number, rtpTime, arrival) }
    guard let first else {
      first = arrival
      (base, highest, partPackets) = (number, number, 1)
      return count(size, at: arrival)
    }
    if let before, partPackets == 1, (1..<Int64(Self.jump)).contains(number - before.highest) {
      // The packet from elsewhere was alone.
      expectedBefore -= UInt64(before.highest - before.base + 1)
      expectedBefore += 1
      (base, highest, partPackets) = (before.base, before.highest, 2)
      self.before = nil
      restarts -= 1
    } else if beginsAnew(Int(step), rtpTime, first, arrival) {
      expectedBefore += UInt64(highest - base + 1)
      before = partPackets > 1 ? (base, highest) : nil
      (base, highest, partPackets) = (number, number, 0)
      restarts += 1
    } else if partPackets > 1 {
      before = nil
    }
    partPackets += 1
    base = min(base, number)
    highest = max(highest, number)
    count(size, at: arrival)
    // A new beginning has times of its own, too.
    if partPackets > 1 { addJitter(rtpTime, arrival, clockRate) }
  }

  private mutating func count(_ size: Int, at arrival: Instant) {
    bytes += UInt64(size)
    packets += 1
    last = arrival
  }

  /// Whether a packet begins the numbers anew, as the view `loss` has it.
  private func beginsAnew(
    _ step: Int, _ rtpTime: Int64, _ first: Instant, _ arrival: Instant
  ) -> Bool {
    guard abs(step) >= Self.jump || step <= Self.backwards && rtpTime > lastRTPTime else {
      return false
    }
    guard step > 0, let last else { return true }
    // As many as the stream has had in such a time, within a factor of two, are missing packets.
    let usual = Double(packets) * (arrival - last).seconds
    let missing = Double(step) * (last - first).seconds
    return !(missing >= usual / 2 && missing <= usual * 2)
  }

  private mutating func addJitter(_ rtpTime: Int64, _ arrival: Instant, _ clockRate: UInt32) {
    guard clockRate > 0 else { return }
    let elapsed = (arrival - lastArrival).seconds * Double(clockRate)
    let difference = abs(elapsed - Double(rtpTime - lastRTPTime))
    jitter += (difference - jitter) / 16
    maximumJitter = max(maximumJitter, jitter)
    jitterSum += jitter
    jitterCount += 1
  }

  /// Counts a packet that came before.
  mutating func addDuplicate() { duplicates += 1 }
}
