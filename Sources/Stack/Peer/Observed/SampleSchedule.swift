import Wire

/// When the stats of an observed peer are sampled: as long as packets come, and not much longer.
struct SampleSchedule {
  /// After so long without packets there is nothing to sample.
  private static let silence = Interval.seconds(5)

  private var lastPacket: Instant?
  /// When the next sample is due; nil when none is.
  private(set) var due: Instant?

  /// Records packets.
  mutating func notePackets(at now: Instant) {
    lastPacket = now
    if due == nil { due = now + ObservedPeer.statsInterval }
  }

  /// Whether a sample is to be taken now; those that were missed are left out.
  mutating func takeDue(at now: Instant) -> Bool {
    guard let due, due <= now else { return false }
    let isSilent = lastPacket.map { now - $0 > SampleSchedule.silence } ?? true
    let next = due + ObservedPeer.statsInterval
    self.due = isSilent ? nil : next > now ? next : now + ObservedPeer.statsInterval
    return true
  }
}
