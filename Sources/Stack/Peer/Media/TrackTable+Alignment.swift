import Flow
import Media
import Wire

// Plays audio and video together that were captured together.
extension TrackTable {
  /// Synchronises the tracks of each of the peer's streams (W3C: the tracks of a MediaStream are
  /// synchronized) by the sender's clock in its reports (RFC 3550 section 6.4.1).
  /// - Parameter streams: the stream identifiers that a transceiver receives.
  mutating func alignPlayouts(
    _ inbound: [InboundStreamCounters], streams: (_ transceiver: UInt32) -> [String]
  ) {
    receiving.alignPlayouts(inbound, streams: streams)
  }
}

extension [ReceivingTrack] {
  /// The most that one track waits for another; larger offsets cannot be right.
  private static var mostAlignment: UInt64 { 1_000_000_000 }

  /// Synchronises the tracks of each stream.
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
  /// The track's own playout delay in nanoseconds after capture by the sender's clock.
  ///
  /// The clocks are unrelated, so only differences are meaningful.
  fileprivate func lag(_ inbound: [InboundStreamCounters]) -> Int64? {
    guard let remote = inbound.last(where: { $0.mid == mid && $0.remote != nil })?.remote,
      let playout = independentPlayout(ofRTPTime: remote.remoteRTPTime)
    else { return nil }
    return playout.nanoseconds &- remote.remoteUnixNanoseconds
  }

  private func independentPlayout(ofRTPTime time: UInt32) -> Instant? {
    audio?.independentPlayout(ofRTPTime: time) ?? video?.independentPlayout(ofRTPTime: time)
  }
}
