import Flow
import JSEP
import Media
import Wire

// Sound and pictures that were captured together are played together.
extension PeerStack {
  /// The most that one track waits for another: senders whose clocks say more mean something else.
  private static let mostAlignment: Int64 = 1_000_000_000

  /// Lets the tracks of each of the peer's streams wait for the slowest of them (W3C: the tracks of
  /// a MediaStream are synchronized), by the sender's clock as its reports tell it (RFC 3550
  /// section 6.4.1).
  func alignPlayouts() {
    let inbound = bundles.inboundStreams
    for index in tracks.receiving.indices { tracks.receiving[index].align(by: 0) }
    for video in tracks.receiving.indices where tracks.receiving[video].kind == .video {
      let streams = remoteStreams(of: tracks.receiving[video])
      guard
        let audio = tracks.receiving.firstIndex(where: { track in
          track.kind == .audio && remoteStreams(of: track).contains { streams.contains($0) }
        }), let pictures = lag(of: tracks.receiving[video], inbound),
        let sound = lag(of: tracks.receiving[audio], inbound)
      else { continue }
      let (distance, overflow) = pictures.subtractingReportingOverflow(sound)
      guard !overflow, distance.magnitude <= UInt64(PeerStack.mostAlignment) else { continue }
      tracks.receiving[distance > 0 ? audio : video].align(by: abs(distance))
    }
  }

  private func remoteStreams(of track: ReceivingTrack) -> [String] {
    negotiation.transceivers.first { $0.id == track.transceiver }?.remoteStreamIDs ?? []
  }

  /// How many nanoseconds after its capture, by the sender's clock, a track would be played.
  ///
  /// That is, for itself. The clocks have nothing in common, so only differences mean something.
  private func lag(of track: ReceivingTrack, _ inbound: [InboundStreamCounters]) -> Int64? {
    guard let remote = inbound.last(where: { $0.mid == track.mid && $0.remote != nil })?.remote,
      let playout = track.ownPlayout(ofRTPTime: remote.remoteRTPTime)
    else { return nil }
    return playout.nanoseconds &- remote.remoteUnixNanoseconds
  }
}

extension ReceivingTrack {
  fileprivate func ownPlayout(ofRTPTime time: UInt32) -> Instant? {
    audio?.ownPlayout(ofRTPTime: time) ?? video?.ownPlayout(ofRTPTime: time)
  }

  /// Lets the track wait so many nanoseconds longer than it would for itself.
  fileprivate mutating func align(by nanoseconds: Int64) {
    let extra = Interval(nanoseconds: nanoseconds)
    if let own = audio?.ownDelay { audio?.alignedDelay = nanoseconds == 0 ? .zero : own + extra }
    if let own = video?.ownDelay { video?.alignedDelay = nanoseconds == 0 ? .zero : own + extra }
  }
}
