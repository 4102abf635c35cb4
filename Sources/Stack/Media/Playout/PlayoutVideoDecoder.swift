import RTP

/// The decoder of a video playout, which is made for the first frame of its codec, and which codecs
/// are decoded at all.
struct PlayoutVideoDecoder {
  private let track: String
  private let codecs: any CodecFactory
  /// Whether anything is decoded.
  let isOn: Bool
  /// The codecs among those that are usually passed through that are decoded too.
  private let furtherDecoders: [CodecName]
  private var decoder: (any VideoDecoding)?
  /// What the decoder decodes, or was to decode when it could not be made.
  private var codec: CodecName?

  init(track: String, codecs: any CodecFactory, isOn: Bool, furtherDecoders: [CodecName]) {
    self.track = track
    self.codecs = codecs
    self.isOn = isOn
    self.furtherDecoders = furtherDecoders
  }

  /// Whether frames of a codec are decoded, and not passed on as they are.
  func decodes(_ codec: CodecName) -> Bool {
    isOn && (!codec.isPassedThrough || furtherDecoders.contains(codec))
  }

  mutating func decode(_ frame: ReceivedFrame) throws(CodecError) -> DecodedVideo {
    if codec != frame.codec {
      // Once is enough: a library that is not there will not come.
      codec = frame.codec
      decoder = nil
      decoder = try codecs.videoDecoder(track: track, frame.codec)
    }
    guard let decoder else { throw CodecError(reason: "no video decoder") }
    return try decoder.decode(frame.bytes)
  }
}
