import Flow
import Media
import Wire

// Audio and video frames that were captured together are played together.
extension TrackTable {
  /// Lets the tracks of each of the peer's streams wait for the slowest of them (W3C: the tracks of
  /// a MediaStream are synchronized), by the sender's clock as its reports tell it (RFC 3550
  /// section 6.4.1).
  ///
  /// - Parameter streams: the names of the streams that a transceiver receives.
  mutating func alignPlayouts(
    _ inbound: [InboundStreamCounters], streams: (_ transceiver: UInt32) -> [String]
  ) {
    receiving.alignPlayouts(inbound, streams: streams)
  }
}

extension [ReceivingTrack] {
  /// The most that one track waits for another: senders whose clocks say more mean something else.
  private static var mostAlignment: UInt64 { 1_000_000_000 }

  /// Lets the tracks of each stream wait for the slowest of them.
  mutating func alignPlayouts(
    _ inbound: [InboundStreamCounters], streams: (_ track: UInt32) -> [String]
  ) {
    for index in indices { self[index].align(by: 0) }
    for video in indices where self[video].kind == .video {
      let names = streams(self[video].transceiver)
      guard
        let audio = firstIndex(where: { track in
          track.kind == .audio && streams(track.transceiver).contains { names.contains($0) }
        }), let videoLag = self[video].lag(inbound), let audioLag = self[audio].lag(inbound)
      else { continue }
      let (distance, overflow) = videoLag.subtractingReportingOverflow(audioLag)
      guard !overflow, distance.magnitude <= Self.mostAlignment else { continue }
      self[distance > 0 ? audio : video].align(by: abs(distance))
    }
  }
}

extension ReceivingTrack {
  /// How many nanoseconds after its capture, by the sender's clock, the track would be played.
  ///
  /// That is, for itself. The clocks have nothing in common, so only differences mean something.
  fileprivate func lag(_ inbound: [InboundStreamCounters]) -> Int64? {
    guard let remote = inbound.last(where: { $0.mid == mid && $0.remote != nil })?.remote,
      let playout = ownPlayout(ofRTPTime: remote.remoteRTPTime)
    else { return nil }
    return playout.nanoseconds &- remote.remoteUnixNanoseconds
  }

  private func ownPlayout(ofRTPTime time: UInt32) -> Instant? {
    audio?.ownPlayout(ofRTPTime: time) ?? video?.ownPlayout(ofRTPTime: time)
  }
}
