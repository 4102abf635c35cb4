import Crypto
import Media
package import Peer
import Wire

// Digests of decoded media.
//
// A minute of small video is a gigabyte of video frames: a cryptographic digest of them alone would
// cost more than a twentieth of the call. The digest has to notice that a decoder gave something
// else, nothing more: what guards the file is the chain of SHA-256 digests over the rows.
extension DecodedMedia {
  /// The digest of what was decoded; nil when that is nothing.
  package var digest: [UInt8]? {
    switch self {
    case .none: return nil
    case .audio(let block): return block.samples.isEmpty ? nil : block.digest
    case .videoFrame(let videoFrame): return videoFrame.samples.isEmpty ? nil : videoFrame.digest
    case .digest(let digest): return digest
    }
  }
}

extension AudioBlock {
  fileprivate var digest: [UInt8] {
    #if _endian(little)
      return XXH3.hash(samples.span.bytes)
    #else
      let bytes = littleEndianBytes(samples)
      return XXH3.hash(bytes.span.bytes)
    #endif
  }
}

extension I420Buffer {
  /// The digest of the samples, planes in order.
  var digest: [UInt8] {
    let samples = samples
    return XXH3.hash(samples.span.bytes)
  }
}
