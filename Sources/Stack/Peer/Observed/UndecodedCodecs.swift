import Media
import RTP

/// Codecs for streams that are not decoded: audio becomes silence of the right length, so that
/// playouts wait and conceal as usual; video is never decoded.
///
/// G.711 is decoded anyway: it needs no library and almost no time.
final class UndecodedCodecs: CodecFactory {
  func audioDecoder(track: String, _ codec: CodecName, channels: Int) throws(CodecError)
    -> any AudioDecoding
  {
    if let law = G711Law(codec) { return G711Decoder(law, channels: channels) }
    return SilentDecoder(channels: channels)
  }

  func audioEncoder(track: String, _ settings: OpusSettings) throws(CodecError)
    -> any AudioEncoding
  {
    throw CodecError(reason: "nothing is encoded")
  }

  func videoEncoder(track: String, _ settings: VideoSettings) throws(CodecError)
    -> any VideoEncoding
  {
    throw CodecError(reason: "nothing is encoded")
  }

  func videoDecoder(track: String, _ codec: CodecName) throws(CodecError) -> any VideoDecoding {
    throw CodecError(reason: "nothing is decoded")
  }
}

private final class SilentDecoder: AudioDecoding {
  private let channels: Int

  init(channels: Int) { self.channels = channels }

  func decode(_ request: AudioDecodeRequest) throws(CodecError) -> DecodedAudio {
    let frameCount =
      switch request {
      case .payload(let bytes): OpusPacket(bytes)?.duration ?? 960
      case .recoverPrevious(_, let count), .conceal(let count): count
      }
    return DecodedAudio(
      block: AudioBlock(blank: frameCount, channels: channels), peak: 0, energy: 0)
  }
}

extension ReceivedFrame {
  /// The size of a key frame in pixels, if its bytes contain it.
  var codedSize: (width: Int, height: Int)? { codec.size(ofKeyFrame: bytes) }
}

extension CodecName {
  /// The size of a key frame in pixels, given its first bytes.
  func size(ofKeyFrame bytes: [UInt8]) -> (width: Int, height: Int)? {
    switch self {
    case .vp8: return VP8BitstreamHeader(bytes.span.bytes).map { ($0.width, $0.height) }
    case .vp9:
      guard let header = try? VP9FrameHeader(parsing: bytes.span.bytes) else { return nil }
      return (header.width, header.height)
    default: return codec?.look?(bytes.span.bytes).size
    }
  }
}
