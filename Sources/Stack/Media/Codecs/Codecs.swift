import COpus
import CVPX
package import RTP
import Wire

/// Creates codecs for tracks.
///
/// A replay that skips the codecs substitutes a factory that reads the take.
package protocol CodecFactory: AnyObject {
  /// The codecs that the application provides itself.
  var applicationCodecs: [OwnCodec] { get }
  func audioEncoder(track: String, _ settings: OpusSettings) throws(CodecError) -> any AudioEncoding
  func audioDecoder(track: String, _ codec: CodecName, channels: Int) throws(CodecError)
    -> any AudioDecoding
  func videoEncoder(track: String, _ settings: VideoSettings) throws(CodecError)
    -> any VideoEncoding
  func videoDecoder(track: String, _ codec: CodecName) throws(CodecError) -> any VideoDecoding
}

extension CodecFactory {
  /// Empty by default: libraries provide all codecs.
  package var applicationCodecs: [OwnCodec] { [] }

  package func audioDecoder(track: String, channels: Int) throws(CodecError)
    -> any AudioDecoding
  {
    try audioDecoder(track: track, .opus, channels: channels)
  }
}

/// A failure in a codec library.
package struct CodecError: Error, Hashable, Sendable {
  package var reason: String
  package init(reason: String) { self.reason = reason }
}

/// The settings that, together with the samples, determine an audio encoder's output.
package struct OpusSettings: Hashable, Sendable {
  /// The codec; G.711 uses only `channels`.
  package var codec = CodecName.opus
  package var channels = 1
  package var bitrate: Int32 = 32_000
  package var complexity: Int32 = 5
  package var usesInbandFEC = true
  package var usesDTX = false
  package init() {}
}

/// The settings that, together with the frames, determine a video encoder's output.
///
/// Encoders use one thread and do not adapt their effort to the time that encoding takes.
package struct VideoSettings: Hashable, Sendable {
  package var codec: CodecName
  package var width: Int
  package var height: Int
  package var framesPerSecond: Int
  package var bitrate: UInt64
  /// Whether the video is screen content, in which letters and edges matter more than motion.
  package var isScreen = false
  /// The number of temporal layers, 1 to 3; more than 1 only for VP8.
  package var temporalLayers = 1
  /// The largest H.264 unit in bytes if the peer accepts no fragments (packetization mode 0); nil
  /// for no limit.
  package var unitLimit: Int?
  /// libvpx's speed setting: negative for VP8, 0 to 9 for VP9.
  package var cpuUsed: Int32 { codec == .vp9 ? 7 : -6 }
  package init(
    codec: CodecName, width: Int, height: Int, framesPerSecond: Int, bitrate: UInt64
  ) {
    self.codec = codec
    self.width = width
    self.height = height
    self.framesPerSecond = framesPerSecond
    self.bitrate = bitrate
  }
}

/// An encoder for one track's audio, called once per 20 ms block.
package protocol AudioEncoding: AnyObject {
  /// Whether samples are needed; if not, sources need not generate any.
  var wantsSamples: Bool { get }
  /// Encodes the next 20 ms block; blocks without samples are silence.
  func encode(_ block: AudioBlock) throws(CodecError) -> EncodedAudio
  func setPacketLoss(percent: Int32)
}

/// An encoder's output for one block, with the loudness measured before encoding.
package struct EncodedAudio: Hashable, Sendable {
  /// The payload; at most two bytes long if, because of DTX, nothing needs to be sent.
  package var bytes: [UInt8]
  package var isVoice: Bool
  /// The block's RFC 6464 level, 0 to 127.
  package var level: UInt8
  /// The largest absolute sample.
  package var peak: UInt16
  /// The loudest channel's sum of squared samples.
  package var energy: UInt64
  package init(
    bytes: [UInt8], isVoice: Bool, level: UInt8, peak: UInt16 = 0, energy: UInt64 = 0
  ) {
    self.bytes = bytes
    self.isVoice = isVoice
    self.level = level
    self.peak = peak
    self.energy = energy
  }
}

/// A decoder for one track's audio in one codec.
package protocol AudioDecoding: AnyObject {
  /// Decodes a payload, recovers the previous block from its in-band FEC, or conceals a lost block.
  func decode(_ request: AudioDecodeRequest) throws(CodecError) -> DecodedAudio
}

/// How to produce the next block: from its packet, from the next packet's FEC, or by concealment.
package enum AudioDecodeRequest: Hashable, Sendable {
  case payload([UInt8])
  case recoverPrevious(from: [UInt8], frameCount: Int)
  case conceal(frameCount: Int)
}

/// A decoded block with its loudness.
package struct DecodedAudio: Hashable, Sendable {
  package var block: AudioBlock
  /// The largest absolute sample.
  package var peak: UInt16
  /// The loudest channel's sum of squared samples.
  package var energy: UInt64
  package init(block: AudioBlock, peak: UInt16, energy: UInt64) {
    self.block = block
    self.peak = peak
    self.energy = energy
  }
}

/// An encoder for one track's video frames: a library's, the application's, or a replay's.
package protocol VideoEncoding: AnyObject {
  /// Whether pixels are needed; if not, sources need not generate any.
  var wantsPixels: Bool { get }
  /// Encodes a video frame; returns nil if the encoder drops it.
  func encode(
    _ videoFrame: I420Buffer, mediaTime: UInt32, forceKey: Bool
  ) throws(CodecError) -> EncodedVideo?
  func setBitrate(_ bitsPerSecond: UInt64)
  /// Sets the next frame's temporal layer, if there are several.
  func begin(_ step: TemporalPattern.Step)
}

extension VideoEncoding {
  package func begin(_ step: TemporalPattern.Step) {}
}

/// A video encoder's output for one frame.
package struct EncodedVideo: Hashable, Sendable {
  package var bytes: [UInt8]
  package var isKey: Bool
  /// The quantiser index: 0 to 127 for VP8, 0 to 255 for VP9, 0 to 51 for H.264.
  package var quantiser: UInt8
  package init(bytes: [UInt8], isKey: Bool, quantiser: UInt8) {
    self.bytes = bytes
    self.isKey = isKey
    self.quantiser = quantiser
  }
}

/// A decoder for one track's video frames: a library's, the application's, or a replay's.
package protocol VideoDecoding: AnyObject {
  func decode(_ bytes: [UInt8]) throws(CodecError) -> DecodedVideo
}

/// A decoded video frame with its quantiser.
package struct DecodedVideo: Sendable {
  package var videoFrame: I420Buffer
  package var quantiser: UInt8
  package init(videoFrame: I420Buffer, quantiser: UInt8) {
    self.videoFrame = videoFrame
    self.quantiser = quantiser
  }
}

/// A codec that the application provides instead of a library, as listed in the genesis.
public struct OwnCodec: Hashable, Sendable, Codable {
  /// Whether the codec encodes or decodes.
  public enum Role: String, Hashable, Sendable, Codable {
    /// Encodes the frames that the local peer sends.
    case encoder
    /// Decodes the frames that the local peer receives.
    case decoder
  }

  /// The codec's encoding name in lower case: `vp8`.
  public var codec: String
  /// Whether the codec encodes or decodes.
  public var role: Role
  /// The application's name for the implementation.
  public var implementation: String

  /// Creates a description of a codec that the application provides.
  public init(codec: String, role: Role, implementation: String) {
    self.codec = codec
    self.role = role
    self.implementation = implementation
  }
}

// MARK: - LibraryCodecs

/// The real codecs: Opus with libopus, VP8 and VP9 with libvpx, all on the calling thread; H.264
/// with OpenH264 and AV1 decoding with dav1d if this build has them.
package final class LibraryCodecs: CodecFactory {
  package init() {}

  /// The libopus version, on which bit-exactness depends.
  package static var opusVersion: String {
    unsafe opus_get_version_string().map { unsafe String(cString: $0) } ?? "libopus ?"
  }

  /// The libvpx version, on which bit-exactness depends.
  package static var vpxVersion: String {
    "libvpx " + (unsafe vpx_codec_version_str().map { unsafe String(cString: $0) } ?? "?")
  }

  /// The OpenH264 version; nil if this build lacks the library.
  package static var openH264Version: String? {
    #if canImport(COpenH264)
      LibraryH264Decoder.version
    #else
      nil
    #endif
  }

  /// The dav1d version; nil if this build lacks the library.
  package static var dav1dVersion: String? {
    #if canImport(CDav1d)
      LibraryAV1Decoder.version
    #else
      nil
    #endif
  }

  /// The encoding names of codecs that this build can decode, but passes through unless the genesis
  /// lists them.
  package static var furtherDecoders: [String] {
    (openH264Version == nil ? [] : ["h264"]) + (dav1dVersion == nil ? [] : ["av1"])
  }

  /// The encoding names of codecs that this build can encode, but passes through unless the genesis
  /// lists them.
  package static var furtherEncoders: [String] { openH264Version == nil ? [] : ["h264"] }

  /// Returns a sentence that says why this build does not encode a codec and, if possible, how to
  /// change that; nil if the build encodes the codec.
  package static func missingEncoder(_ codec: CodecName) -> String? {
    switch codec {
    case .vp8, .vp9: nil
    case .h264: openH264Version == nil ? missing("H.264", "encoded", "libopenh264") : nil
    default: "nothing is encoded as \(codec.codec?.title ?? codec.rawValue)"
    }
  }

  /// The decoders that this build lacks, each as a sentence that says how to get it.
  package static var missingDecoders: [String] {
    [("H.264", "libopenh264", openH264Version), ("AV1", "libdav1d", dav1dVersion)]
      .filter { $0.2 == nil }.map { missing($0.0, "decoded", $0.1) }
  }

  private static func missing(_ title: String, _ what: String, _ library: String) -> String {
    "\(title) is not \(what): this build has no \(library); install \(library)-dev, "
      + "run swift package purge-cache, and build again"
  }

  package func audioEncoder(
    track: String, _ settings: OpusSettings
  ) throws(CodecError) -> any AudioEncoding {
    if let law = G711Law(settings.codec) { return G711Encoder(law, channels: settings.channels) }
    return try LibraryOpusEncoder(settings)
  }

  package func audioDecoder(
    track: String, _ codec: CodecName, channels: Int
  ) throws(CodecError) -> any AudioDecoding {
    if let law = G711Law(codec) { return G711Decoder(law, channels: channels) }
    guard codec == .opus else { throw CodecError(reason: "no decoder for \(codec.rawValue)") }
    return try LibraryOpusDecoder(channels: channels)
  }

  package func videoEncoder(
    track: String, _ settings: VideoSettings
  ) throws(CodecError) -> any VideoEncoding {
    guard settings.codec == .h264 else { return try LibraryVPXEncoder(settings) }
    #if canImport(COpenH264)
      return try LibraryH264Encoder(settings)
    #else
      throw CodecError(reason: LibraryCodecs.missing("H.264", "encoded", "libopenh264"))
    #endif
  }

  package func videoDecoder(
    track: String, _ codec: CodecName
  ) throws(CodecError) -> any VideoDecoding {
    switch codec {
    case .vp8, .vp9: return try LibraryVPXDecoder(codec)
    case .h264:
      #if canImport(COpenH264)
        return try LibraryH264Decoder()
      #else
        throw CodecError(reason: LibraryCodecs.missing("H.264", "decoded", "libopenh264"))
      #endif
    case .av1:
      #if canImport(CDav1d)
        return try LibraryAV1Decoder()
      #else
        throw CodecError(reason: LibraryCodecs.missing("AV1", "decoded", "libdav1d"))
      #endif
    default: throw CodecError(reason: "no decoder for \(codec.rawValue)")
    }
  }
}
