import CXXHash
import Wire

/// The 128-bit XXH3 of messages, in its canonical form: 16 bytes, high byte first.
///
/// It notices any difference that chance could make, at the speed of memory, and is no protection
/// against somebody who wants two messages to have the same one.
package enum XXH3 {
  /// How many bytes a digest has.
  package static let length = 16

  /// A digest as two numbers, for comparing alone: half of the memory of an array of bytes.
  package struct Mark: Hashable, Sendable {
    private let high: UInt64
    private let low: UInt64

    fileprivate init(_ hash: XXH128_hash_t) { (high, low) = (hash.high64, hash.low64) }
  }

  /// The digest of one message.
  package static func hash(_ message: RawSpan) -> [UInt8] {
    var canonical = XXH128_canonical_t()
    XXH128_canonicalFromHash(&canonical, digest(message))
    return withUnsafeBytes(of: canonical.digest) { [UInt8]($0) }
  }

  /// The digest of one message, for comparing alone.
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
