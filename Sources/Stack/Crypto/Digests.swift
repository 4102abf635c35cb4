import COpenSSL
import CXXHash
import Wire

/// Incremental SHA-256 (FIPS 180-4) through OpenSSL.
package struct SHA256: ~Copyable {
  private let context: OpaquePointer?

  /// The length of a digest in bytes.
  package static let length = 32

  package init() {
    context = EVP_MD_CTX_new()
    EVP_DigestInit_ex(context, EVP_sha256(), nil)
  }

  deinit { EVP_MD_CTX_free(context) }

  package mutating func update(_ bytes: [UInt8]) {
    _ = bytes.withUnsafeBytes { EVP_DigestUpdate(context, $0.baseAddress, $0.count) }
  }

  package mutating func update(_ bytes: RawSpan) {
    _ = bytes.withUnsafeBytes { EVP_DigestUpdate(context, $0.baseAddress, $0.count) }
  }

  /// Returns the digest; the next update starts a new message.
  package mutating func finish() -> [UInt8] {
    var digest = [UInt8](repeating: 0, count: SHA256.length)
    finish(into: &digest)
    return digest
  }

  /// Writes the digest into an array, which is replaced if it is not 32 bytes long; the next update
  /// starts a new message.
  package mutating func finish(into digest: inout [UInt8]) {
    guard digest.count == SHA256.length else { return digest = finish() }
    _ = digest.withUnsafeMutableBufferPointer { EVP_DigestFinal_ex(context, $0.baseAddress, nil) }
    // Passing nil keeps the context's hash function; passing the function would look it up again.
    EVP_DigestInit_ex(context, nil, nil)
  }

  package static func hash(_ bytes: [UInt8]) -> [UInt8] {
    var hash = SHA256()
    hash.update(bytes)
    return hash.finish()
  }
}

/// Returns the HMAC-SHA1 of a message (RFC 2104), 20 bytes, as STUN uses it.
package func hmacSHA1(key: [UInt8], _ message: RawSpan) -> [UInt8] {
  var digest = [UInt8](repeating: 0, count: 20)
  var length: UInt32 = 0
  key.withUnsafeBytes { key in
    message.withUnsafeBytes { message in
      digest.withUnsafeMutableBufferPointer { digest in
        _ = HMAC(
          EVP_sha1(), key.baseAddress, Int32(key.count),
          message.baseAddress?.assumingMemoryBound(to: UInt8.self), message.count,
          digest.baseAddress, &length)
      }
    }
  }
  return digest
}

/// Returns the MD5 of a message (RFC 1321), 16 bytes; for protocols that prescribe MD5.
package func md5(_ message: [UInt8]) -> [UInt8] {
  var digest = [UInt8](repeating: 0, count: 16)
  var length: UInt32 = 0
  _ = message.withUnsafeBytes { message in
    digest.withUnsafeMutableBufferPointer { digest in
      EVP_Digest(message.baseAddress, message.count, digest.baseAddress, &length, EVP_md5(), nil)
    }
  }
  return digest
}

/// Hashes a certificate with the function named in SDP (RFC 8122 section 5); nil if the name is
/// unknown.
package func certificateHash(_ algorithm: String, _ bytes: [UInt8]) -> [UInt8]? {
  let method: OpaquePointer?
  switch algorithm.lowercased() {
  case "sha-1": method = EVP_sha1()
  case "sha-224": method = EVP_sha224()
  case "sha-256": method = EVP_sha256()
  case "sha-384": method = EVP_sha384()
  case "sha-512": method = EVP_sha512()
  default: return nil
  }
  var digest = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
  var length: UInt32 = 0
  _ = bytes.withUnsafeBytes { message in
    digest.withUnsafeMutableBufferPointer { digest in
      EVP_Digest(message.baseAddress, message.count, digest.baseAddress, &length, method, nil)
    }
  }
  return Array(digest.prefix(Int(length)))
}

/// Compares two byte strings in a time that does not depend on where they differ.
package func equalInConstantTime(_ left: [UInt8], _ right: [UInt8]) -> Bool {
  guard left.count == right.count else { return false }
  return zip(left, right).reduce(0) { $0 | ($1.0 ^ $1.1) } == 0
}

// MARK: - HashFunction

/// A hash function of a cipher suite (FIPS 180-4).
package enum HashFunction: Hashable, Sendable {
  case sha256, sha384

  /// The length of a digest in bytes.
  package var length: Int { self == .sha256 ? 32 : 48 }

  private var method: OpaquePointer? { self == .sha256 ? EVP_sha256() : EVP_sha384() }

  package func hash(_ message: [UInt8]) -> [UInt8] {
    var digest = [UInt8](repeating: 0, count: length)
    var count: UInt32 = 0
    _ = message.withUnsafeBytes { message in
      digest.withUnsafeMutableBufferPointer { digest in
        EVP_Digest(message.baseAddress, message.count, digest.baseAddress, &count, method, nil)
      }
    }
    return digest
  }

  /// Returns the HMAC of a message (RFC 2104), `length` bytes.
  package func hmac(key: [UInt8], _ message: [UInt8]) -> [UInt8] {
    var digest = [UInt8](repeating: 0, count: length)
    var count: UInt32 = 0
    _ = HMAC(method, key, Int32(key.count), message, message.count, &digest, &count)
    return digest
  }

  /// Derives key material by HKDF-Expand (RFC 5869 section 2.3).
  package func expand(_ key: [UInt8], _ info: [UInt8], count: Int) -> [UInt8] {
    var material: [UInt8] = []
    var block: [UInt8] = []
    var number: UInt8 = 1
    while material.count < count, number < .max {
      block = hmac(key: key, block + info + [number])
      material += block
      number += 1
    }
    return Array(material.prefix(count))
  }
}

/// 128-bit XXH3 in its canonical form: 16 bytes, high byte first.
///
/// It detects accidental changes at memory speed; it does not resist deliberate collisions.
package enum XXH3 {
  /// The length of a digest in bytes.
  package static let length = 16

  /// A digest as two words, for comparison only; it needs less memory than an array.
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

  /// Returns a message's digest for comparison only.
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

/// Returns the CRC-32 of ITU V.42, as STUN's FINGERPRINT uses it (RFC 8489 section 14.7).
package func crc32(_ bytes: RawSpan) -> UInt32 {
  var crc: UInt32 = 0xffff_ffff
  for offset in 0..<bytes.byteCount {
    crc = table[Int(UInt8(truncatingIfNeeded: crc) ^ bytes.byte(at: offset))] ^ crc >> 8
  }
  return ~crc
}

private let table: [UInt32] = (0..<256).map { index in
  (0..<8).reduce(UInt32(index)) { value, _ in value & 1 == 1 ? 0xedb8_8320 ^ value >> 1 : value >> 1
  }
}
