import COpus
import CVPX
package import RTP
import Wire

/// The real codecs: Opus by libopus, VP8 and VP9 by libvpx, each on the calling thread; H.264 by
/// OpenH264 and AV1 decoding by dav1d if this build has them.
package final class LibraryCodecs: CodecFactory {
  package init() {}

  /// The version of libopus, on which bit-exactness depends.
  package static var opusVersion: String {
    unsafe opus_get_version_string().map { unsafe String(cString: $0) } ?? "libopus ?"
  }

  /// The version of libvpx, on which bit-exactness depends.
  package static var vpxVersion: String {
    "libvpx " + (unsafe vpx_codec_version_str().map { unsafe String(cString: $0) } ?? "?")
  }

  /// The version of OpenH264, if this build has it.
  package static var openH264Version: String? {
    #if canImport(COpenH264)
      LibraryH264Decoder.version
    #else
      nil
    #endif
  }

  /// The version of dav1d, if this build has it.
  package static var dav1dVersion: String? {
    #if canImport(CDav1d)
      LibraryAV1Decoder.version
    #else
      nil
    #endif
  }

  /// The encoding names of codecs that this build can decode but that pass through unless genesis
  /// names them.
  package static var furtherDecoders: [String] {
    (openH264Version == nil ? [] : ["h264"]) + (dav1dVersion == nil ? [] : ["av1"])
  }

  /// The encoding names of codecs that this build can encode but that are only passed through
  /// unless genesis names them.
  package static var furtherEncoders: [String] { openH264Version == nil ? [] : ["h264"] }

  /// Why this build does not encode a codec, with the way out; nil if it does.
  package static func missingEncoder(_ codec: CodecName) -> String? {
    switch codec {
    case .vp8, .vp9: nil
    case .h264: openH264Version == nil ? missing("H.264", "encoded", "libopenh264") : nil
    default: "nothing is encoded as \(codec.codec?.title ?? codec.rawValue)"
    }
  }

  /// The decoders that this build lacks, each as a sentence with the way out.
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
