import RTP

/// The decoder of a video playout, created for the first frame of its codec, and the codecs that
/// are decoded.
struct PlayoutVideoDecoder {
  private let track: String
  private let codecs: any CodecFactory
  /// Whether anything is decoded.
  let isOn: Bool
  /// Pass-through codecs that are decoded here.
  private let furtherDecoders: [CodecName]
  private var decoder: (any VideoDecoding)?
  /// The decoder's codec, even if it could not be created.
  private var codec: CodecName?

  init(track: String, codecs: any CodecFactory, isOn: Bool, furtherDecoders: [CodecName]) {
    self.track = track
    self.codecs = codecs
    self.isOn = isOn
    self.furtherDecoders = furtherDecoders
  }

  /// Whether frames of a codec are decoded rather than passed through.
  func decodes(_ codec: CodecName) -> Bool {
    isOn && (!codec.isPassedThrough || furtherDecoders.contains(codec))
  }

  mutating func decode(_ frame: ReceivedFrame) throws(CodecError) -> DecodedVideo {
    if codec != frame.codec {
      // Try once: a missing library will not appear.
      codec = frame.codec
      decoder = nil
      decoder = try codecs.videoDecoder(track: track, frame.codec)
    }
    guard let decoder else { throw CodecError(reason: "no video decoder") }
    return try decoder.decode(frame.bytes)
  }
}
