import Media
import Peer
import Tape

/// Codecs that applications brought, as a take names them.
enum OwnCodecCheck {
  /// Whether the frames of a take have to stand in for its codecs, because peers of it had codecs
  /// of their application's that are not here; throws when the take cannot be read.
  static func needsFrames(
    _ reader: TapeReader, codecs: () -> any CodecFactory
  ) throws(TapeError) -> Bool {
    let configurations = try reader.peerConfigurations(with: "ownCodecs")
    let named = configurations.flatMap { text in
      CanonicalJSON.value(PeerConfiguration.self, from: text)?.ownCodecs ?? []
    }
    guard !named.isEmpty else { return false }
    let present = codecs().applicationCodecs
    return !named.allSatisfy { present.contains($0) }
  }
}
