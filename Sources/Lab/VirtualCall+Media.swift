package import Media
import Peer
import Wire

extension VirtualCall {
  /// Makes peers, by default all, send audio and video of these sources.
  package func addMedia(
    audio: MediaSource = .tone(hertz: 440, pauseSeconds: 0), videoFrames: MediaSource? = nil,
    from senders: [Int]? = nil
  ) {
    for peer in senders ?? Array(network.links.indices) {
      call(peer, .addTrack(kind: .audio, streamIDs: ["s"], source: audio))
      guard let videoFrames else { continue }
      call(peer, .addTrack(kind: .video, streamIDs: ["s"], source: videoFrames))
    }
  }
}
