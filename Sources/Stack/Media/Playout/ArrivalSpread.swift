package import Wire

/// Measures how much later frames arrive than the fastest recent ones.
///
/// A frame's transit is its arrival minus its media time, both relative to the first frame. A frame
/// that is played at its media time plus the minimum transit plus a delay arrives in time if its
/// transit exceeds the minimum by no more than the delay. Minimum and maximum are kept per
/// half-second slot, so that old extremes expire and clocks may drift.
package struct ArrivalSpread {
  /// How a frame's arrival fits the stream's recent timing.
  package enum Observation: Hashable, Sendable {
    /// The arrival fits the stream's recent timing.
    case steady
    /// Media time jumped relative to arrival times; measuring restarts with this frame.
    case jumped
    /// An old frame, too late to be representative.
    case straggler
  }

  private struct Slot {
    var number: Int64 = .min
    var least: Int64 = 0
    var most: Int64 = 0
  }

  /// The length and number of the slots, which cover 6 s together.
  private static let slotNanoseconds: Int64 = 500_000_000
  private static let slotCount = 12
  /// A larger change in transit is a jump.
  private static let jumpNanoseconds: Int64 = 1_000_000_000
  /// Media times farther apart than this (11 years at 48 kHz) are a jump too.
  private static let farthest: Int64 = 1 << 44

  private let clockRate: Int64
  private var isStarted = false
  private var baseTime: Int64 = 0
  private var baseArrival = Instant.zero
  private var newestTime: Int64 = 0
  private var newestSequence: Int64 = 0
  private var newestTransit: Int64 = 0
  private var slots = [12 of Slot](repeating: Slot())
  private var least: Int64 = 0
  private var most: Int64 = 0

  /// Creates a measurement; the media clock rate is in Hz.
  package init(clockRate: Int) { self.clockRate = Int64(max(1, clockRate)) }

  // The next members are read for every frame; they are inlined because a call would copy all
  // slots.

  /// The difference between the slowest and the fastest recent transit.
  @inline(__always)
  package var spread: Interval { Interval(nanoseconds: most - least) }

  /// Returns when a frame would arrive with the fastest transit.
  @inline(__always)
  package func fastestArrival(of time: Int64) -> Instant {
    baseArrival + Interval(nanoseconds: nanoseconds(from: baseTime, to: time)) + leastTransit
  }

  /// Returns when a frame with this RTP time would arrive with the fastest transit; nil before the
  /// first frame.
  /// - Parameters:
  ///   - rtpTime: the RTP time, at most half of its range away from the newest frame's.
  ///   - ticks: ticks of this clock per tick of the RTP clock.
  package func fastestArrival(ofRTPTime rtpTime: UInt32, lasting ticks: Int64 = 1) -> Instant? {
    guard isStarted else { return nil }
    let newest = UInt32(truncatingIfNeeded: newestTime / max(1, ticks))
    let distance = Int32(bitPattern: rtpTime &- newest)
    return fastestArrival(of: newestTime &+ Int64(distance) &* ticks)
  }

  @inline(__always)
  private var leastTransit: Interval { Interval(nanoseconds: least) }

  /// Returns how much later than the fastest transit a frame arrived; negative if it was faster.
  @inline(__always)
  package func lateness(of time: Int64, arrival: Instant) -> Interval {
    arrival - fastestArrival(of: time)
  }

  package mutating func reset() { isStarted = false }

  /// Records a frame; `time` is its extended RTP timestamp.
  package mutating func observe(
    time: Int64, sequence: Int64, arrival: Instant
  ) -> Observation {
    guard isStarted, let distance = ticks(from: baseTime, to: time) else {
      let isFirst = !isStarted
      begin(time: time, sequence: sequence, arrival: arrival)
      return isFirst ? .steady : .jumped
    }
    let transit =
      (arrival - baseArrival - Interval(nanoseconds: nanoseconds(distance))).nanoseconds
    let change = (Interval(nanoseconds: transit) - Interval(nanoseconds: newestTransit)).nanoseconds
    let isNewest = sequence > newestSequence
    if change.magnitude > UInt64(ArrivalSpread.jumpNanoseconds) {
      guard isNewest else { return .straggler }
      begin(time: time, sequence: sequence, arrival: arrival)
      return .jumped
    }
    if isNewest {
      newestTime = time
      newestSequence = sequence
      newestTransit = transit
    }
    record(transit, at: arrival)
    return .steady
  }

  private mutating func begin(time: Int64, sequence: Int64, arrival: Instant) {
    isStarted = true
    baseTime = time
    baseArrival = arrival
    newestTime = time
    newestSequence = sequence
    newestTransit = 0
    slots = .init(repeating: Slot())
    record(0, at: arrival)
  }

  private mutating func record(_ transit: Int64, at arrival: Instant) {
    let number = arrival.nanoseconds / ArrivalSpread.slotNanoseconds
    let index = Int(number.magnitude % UInt64(ArrivalSpread.slotCount))
    if slots[index].number == number {
      guard transit < slots[index].least || transit > slots[index].most else { return }
      slots[index].least = min(slots[index].least, transit)
      slots[index].most = max(slots[index].most, transit)
    } else {
      slots[index] = Slot(number: number, least: transit, most: transit)
    }
    least = transit
    most = transit
    for slot in 0..<ArrivalSpread.slotCount
    where slots[slot].number > number - Int64(ArrivalSpread.slotCount) {
      least = min(least, slots[slot].least)
      most = max(most, slots[slot].most)
    }
  }

  /// Returns the ticks between two media times; nil if they are too far apart.
  @inline(__always)
  private func ticks(from start: Int64, to end: Int64) -> Int64? {
    let (distance, overflow) = end.subtractingReportingOverflow(start)
    return overflow || distance.magnitude > UInt64(ArrivalSpread.farthest) ? nil : distance
  }

  @inline(__always)
  private func nanoseconds(from start: Int64, to end: Int64) -> Int64 {
    nanoseconds(ticks(from: start, to: end) ?? 0)
  }

  @inline(__always)
  private func nanoseconds(_ ticks: Int64) -> Int64 {
    ticks / clockRate * 1_000_000_000 + ticks % clockRate * 1_000_000_000 / clockRate
  }
}
