package import Media
import Peer
import Wire

extension VirtualCall {
  /// Lets peers, all of them unless some are named, send sound and pictures of these sources.
  package func addMedia(
    sound: MediaSource = .tone(hertz: 440, pauseSeconds: 0), pictures: MediaSource? = nil,
    from senders: [Int]? = nil
  ) {
    for peer in senders ?? Array(network.links.indices) {
      call(peer, .addTrack(kind: .audio, streamIDs: ["s"], source: sound))
      guard let pictures else { continue }
      call(peer, .addTrack(kind: .video, streamIDs: ["s"], source: pictures))
    }
  }
}
