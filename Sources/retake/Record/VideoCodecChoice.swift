import ArgumentParser
import JSEP
import Live
import Peer
import Wire

/// The codec of pictures to agree on before all others: `--video-codec vp8|vp9|h264`.
enum VideoCodecChoice: String, CaseIterable, ExpressibleByArgument {
  case vp8, vp9, h264

  /// All codecs of pictures, the chosen one first.
  var codecs: [RTPCodec] {
    let all = RTPCodec.capabilities(.video)
    let chosen = all.filter { $0.mimeType.lowercased() == "video/\(rawValue)" }
    return chosen + all.filter { !chosen.contains($0) }
  }
}

extension PeerConnection {
  /// Prefers a codec on all transceivers for pictures; nil leaves the order as it is.
  func prefer(_ choice: VideoCodecChoice?) async throws {
    guard let choice else { return }
    try await prefer(choice.codecs) { $0 != .stopped }
  }

  /// Sets the codecs of the transceivers for pictures that have one of some directions.
  func prefer(
    _ codecs: [RTPCodec], where isMeant: (TransceiverDirection) -> Bool
  ) async throws {
    for transceiver in try await transceivers
    where transceiver.kind == .video && isMeant(transceiver.direction) {
      try await setCodecPreferences(codecs, of: transceiver.id)
    }
  }
}
