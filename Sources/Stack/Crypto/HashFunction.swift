import COpenSSL

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

  /// HMAC (RFC 2104).
  package func hmac(key: [UInt8], _ message: [UInt8]) -> [UInt8] {
    var digest = [UInt8](repeating: 0, count: length)
    var count: UInt32 = 0
    _ = HMAC(method, key, Int32(key.count), message, message.count, &digest, &count)
    return digest
  }

  /// HKDF-Expand (RFC 5869 section 2.3).
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
