import COpus
import CVPX

/// The real codecs: Opus by libopus and VP8 by libvpx, each on the calling thread.
package final class LibraryCodecs: CodecFactory {
  package init() {}

  /// The versions that bit-exactness depends on: `libopus 1.3.1, libvpx v1.12.0`.
  package static var codecVersions: String {
    let opus = unsafe opus_get_version_string().map { unsafe String(cString: $0) } ?? "libopus ?"
    let vpx = unsafe vpx_codec_version_str().map { unsafe String(cString: $0) } ?? "?"
    return "\(opus), libvpx \(vpx)"
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
    track: String, _ settings: VP8Settings
  ) throws(CodecError) -> any VideoEncoding {
    try LibraryVP8Encoder(settings)
  }

  package func videoDecoder(track: String) throws(CodecError) -> any VideoDecoding {
    try LibraryVP8Decoder()
  }
}
