package import JSEP
package import Live
import Peer
package import RTP
package import Wire

/// The codec of video frames to agree on before all others: `--video-codec vp8|vp9|h264|...`.
package struct VideoCodecChoice: Hashable, Sendable, CustomStringConvertible {
  /// The encoding name.
  package let name: CodecName

  /// Reads the name of a codec of video frames.
  package init?(argument: String) {
    guard Self.allValueStrings.contains(argument) else { return nil }
    name = CodecName(rawValue: argument)
  }

  /// The names that can be given.
  package static var allValueStrings: [String] {
    Codec.all.filter { $0.kind == .video }.map(\.name.rawValue)
  }

  package var description: String { name.rawValue }

  /// The names that genesis has to give so that the codec is offered; nil when it is anyhow.
  package var offered: [String]? {
    guard name.codec?.isOffered == false else { return nil }
    return Codec.all.filter { $0.isOffered || $0.name == name }.map(\.spelling)
  }

  /// All codecs of video frames that are offered, the chosen one first.
  package var codecs: [RTPCodec] {
    let all = RTPCodec.capabilities(.video, offering: offered)
    let chosen = all.filter { $0.mimeType.lowercased() == "video/\(name.rawValue)" }
    return chosen + all.filter { !chosen.contains($0) }
  }
}

extension VideoCodecChoice? {
  /// The codecs that can be agreed on, as a sentence names them: `VP8, VP9 or H264`.
  package func names(of kind: MediaKind) -> String {
    let names = Codec.all.filter {
      $0.kind == kind && $0.name.carriesMedia && ($0.isOffered || $0.name == self?.name)
    }.map(\.spelling)
    guard let last = names.last, names.count > 1 else { return names.joined() }
    return names.dropLast().joined(separator: ", ") + " or " + last
  }
}

extension PeerConnection {
  /// Prefers a codec on all transceivers for video frames; nil leaves the order as it is.
  package func prefer(_ choice: VideoCodecChoice?) async throws {
    guard let choice else { return }
    try await prefer(choice.codecs) { $0 != .stopped }
  }

  /// Sets the codecs of the transceivers for video frames that have one of some directions.
  package func prefer(
    _ codecs: [RTPCodec], where isMeant: (TransceiverDirection) -> Bool
  ) async throws {
    for transceiver in try await transceivers
    where transceiver.kind == .video && isMeant(transceiver.direction) {
      try await setCodecPreferences(codecs, of: transceiver.id)
    }
  }
}
