import Wire

/// When the stats of an observed peer are sampled: while packets arrive, and shortly after.
struct SampleSchedule {
  /// After this long without packets there is nothing to sample.
  private static let silence = Interval.seconds(5)

  private var lastPacket: Instant?
  /// When the next sample is due, if any.
  private(set) var due: Instant?

  /// Records the arrival of packets.
  mutating func recordPackets(at now: Instant) {
    lastPacket = now
    if due == nil { due = now + ObservedPeer.statsInterval }
  }

  /// Returns whether a sample is due; missed ones are left out.
  mutating func consumeDue(at now: Instant) -> Bool {
    guard let due, due <= now else { return false }
    let isSilent = lastPacket.map { now - $0 > SampleSchedule.silence } ?? true
    let next = due + ObservedPeer.statsInterval
    self.due = isSilent ? nil : next > now ? next : now + ObservedPeer.statsInterval
    return true
  }
}
