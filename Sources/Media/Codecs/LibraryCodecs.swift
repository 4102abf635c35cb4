import COpus
import CVPX
package import RTP
import Wire

/// The real codecs: Opus by libopus, VP8 and VP9 by libvpx, each on the calling thread.
package final class LibraryCodecs: CodecFactory {
  package init() {}

  /// The version of libopus that bit-exactness depends on.
  package static var opusVersion: String {
    unsafe opus_get_version_string().map { unsafe String(cString: $0) } ?? "libopus ?"
  }

  /// The version of libvpx that bit-exactness depends on.
  package static var vpxVersion: String {
    "libvpx " + (unsafe vpx_codec_version_str().map { unsafe String(cString: $0) } ?? "?")
  }

  package func audioEncoder(
    track: String, _ settings: OpusSettings
  ) throws(CodecError) -> any AudioEncoding {
    try LibraryOpusEncoder(settings)
  }

  package func audioDecoder(
    track: String, channels: Int
  ) throws(CodecError) -> any AudioDecoding {
    try LibraryOpusDecoder(channels: channels)
  }

  package func videoEncoder(
    track: String, _ settings: VideoSettings
  ) throws(CodecError) -> any VideoEncoding {
    try LibraryVPXEncoder(settings)
  }

  package func videoDecoder(
    track: String, _ codec: CodecName
  ) throws(CodecError) -> any VideoDecoding {
    guard let known = codec.codec, known.kind == .video, !known.isPassedThrough else {
      throw CodecError(reason: "no decoder for \(codec.rawValue)")
    }
    return try LibraryVPXDecoder(codec)
  }
}
