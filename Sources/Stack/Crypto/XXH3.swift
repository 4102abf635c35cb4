import CXXHash
import Wire

/// 128-bit XXH3 in its canonical form: 16 bytes, high byte first.
///
/// It detects accidental changes at the speed of memory; it does not resist somebody who looks for
/// collisions.
package enum XXH3 {
  /// The length of a digest in bytes.
  package static let length = 16

  /// A digest as two words, for comparing only: half the memory of an array.
  package struct Mark: Hashable, Sendable {
    private let high: UInt64
    private let low: UInt64

    fileprivate init(_ hash: XXH128_hash_t) { (high, low) = (hash.high64, hash.low64) }
  }

  package static func hash(_ message: RawSpan) -> [UInt8] {
    var canonical = XXH128_canonical_t()
    XXH128_canonicalFromHash(&canonical, digest(message))
    return withUnsafeBytes(of: canonical.digest) { [UInt8]($0) }
  }

  /// Returns the digest of a message for comparing only.
  package static func mark(_ message: RawSpan) -> Mark { Mark(digest(message)) }

  private static func digest(_ message: RawSpan) -> XXH128_hash_t {
    message.withUnsafeBytes { bytes in
      #if arch(x86_64)
        XXH3_128bits_dispatch(bytes.baseAddress, bytes.count)
      #else
        XXH3_128bits(bytes.baseAddress, bytes.count)
      #endif
    }
  }
}
