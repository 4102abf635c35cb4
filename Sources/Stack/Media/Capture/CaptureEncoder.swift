import RTP
import Wire

/// The encoder of a video capture, created for the first frame, with its settings.
struct CaptureEncoder {
  private let track: String
  private let codec: CodecName
  private let codecs: any CodecFactory
  private var encoder: (any VideoEncoding)?
  private var wantsKeyframe = true
  private var bitrate = VideoCapture.startBitrate
  private var isScreen = false
  private var temporalLayers = 1
  private let unitLimit: Int?
  private var pattern: TemporalPattern?

  init(track: String, codec: CodecName, codecs: any CodecFactory, unitLimit: Int? = nil) {
    self.unitLimit = unitLimit
    self.track = track
    self.codec = codec
    self.codecs = codecs
  }

  mutating func requestKeyframe() { wantsKeyframe = true }

  mutating func setBitrate(_ bitsPerSecond: UInt64) {
    guard bitsPerSecond != bitrate else { return }
    bitrate = bitsPerSecond
    encoder?.setBitrate(bitsPerSecond)
  }

  mutating func setScreen(_ isScreen: Bool) {
    guard isScreen != self.isScreen else { return }
    self.isScreen = isScreen
    // An encoder is configured for its content once, so another one replaces it.
    replace()
  }

  mutating func setTemporalLayers(_ count: Int) {
    guard count != temporalLayers else { return }
    temporalLayers = count
    pattern = count > 1 ? TemporalPattern(count: count) : nil
    replace()
  }

  private mutating func replace() {
    encoder = nil
    wantsKeyframe = true
  }

  mutating func close() { encoder = nil }

  /// Creates the encoder for the first frame's size; it adapts to later sizes.
  /// - Returns: whether it needs pixels.
  mutating func open(
    width: Int, height: Int, framesPerSecond: Int
  ) throws(CodecError) -> Bool {
    try opened(width: width, height: height, framesPerSecond: framesPerSecond).wantsPixels
  }

  private mutating func opened(
    width: Int, height: Int, framesPerSecond: Int
  ) throws(CodecError) -> any VideoEncoding {
    if let encoder { return encoder }
    var settings = VideoSettings(
      codec: codec, width: width, height: height, framesPerSecond: framesPerSecond,
      bitrate: bitrate)
    settings.isScreen = isScreen
    settings.temporalLayers = temporalLayers
    settings.unitLimit = unitLimit
    let made = try codecs.videoEncoder(track: track, settings)
    encoder = made
    return made
  }

  /// Encodes a video frame; nil if the encoder drops it.
  /// - Parameter framesPerSecond: the frame rate for which an encoder is created.
  mutating func encode(
    _ videoFrame: I420Buffer, mediaTime: UInt32, framesPerSecond: Int
  ) throws(CodecError) -> (frame: EncodedFrame, encoded: EncodedVideo)? {
    let encoder = try opened(
      width: videoFrame.width, height: videoFrame.height, framesPerSecond: framesPerSecond)
    let step = pattern?.next(isKey: wantsKeyframe)
    if let step { encoder.begin(step) }
    let encoded = try encoder.encode(videoFrame, mediaTime: mediaTime, forceKey: wantsKeyframe)
    guard let encoded else { return nil }
    if encoded.isKey { wantsKeyframe = false }
    // H.264 has even sizes: a last odd column or row is cut off.
    let mask = codec == .h264 ? ~1 : ~0
    var frame = EncodedFrame(
      kind: .video, codec: codec, mediaTime: mediaTime, bytes: encoded.bytes,
      isKey: encoded.isKey, width: UInt16(clamping: videoFrame.width & mask),
      height: UInt16(clamping: videoFrame.height & mask))
    if let step { frame.temporal = pattern?.record(step, isKey: encoded.isKey) }
    return (frame, encoded)
  }
}
