import Crypto
import Wire

extension STUNMessage {
  /// How many bytes an HMAC-SHA1 has.
  static let integrityLength = 20
  /// What the CRC-32 of FINGERPRINT is masked with (section 14.7).
  static let fingerprintMask: UInt32 = 0x5354_554e

  /// Whether the message carries MESSAGE-INTEGRITY at all.
  package var hasIntegrity: Bool { integrityOffset != nil }

  /// Whether MESSAGE-INTEGRITY is there and right for a key, over the bytes as received.
  ///
  /// Section 14.5: the HMAC covers what stands before the attribute, with a length in the header
  /// that ends with the attribute. The key of short-term credentials is the password
  /// (section 9.1.1).
  package func verifiesIntegrity(key: [UInt8]) -> Bool {
    guard let offset = integrityOffset else { return false }
    let start = offset + 4
    guard Int(bytes.span.bytes.uint16(at: offset + 2)) == STUNMessage.integrityLength else {
      return false
    }
    let end = start + STUNMessage.integrityLength
    let received = Array(bytes[start..<end])
    if end == bytes.count {
      let expected = hmacSHA1(key: key, bytes.span.bytes.extracting(0..<offset))
      return equalInConstantTime(expected, received)
    }
    var covered = Array(bytes[..<offset])
    let length = UInt16(truncatingIfNeeded: end - STUNMessage.headerLength)
    covered[2] = UInt8(length >> 8)
    covered[3] = UInt8(truncatingIfNeeded: length)
    return equalInConstantTime(hmacSHA1(key: key, covered.span.bytes), received)
  }

  /// Whether FINGERPRINT is right; nil when there is none (section 14.7).
  package var hasValidFingerprint: Bool? {
    guard let offset = fingerprintOffset else { return nil }
    let span = bytes.span.bytes
    guard span.uint16(at: offset + 2) == 4, offset + 8 == bytes.count else { return false }
    let expected = crc32(span.extracting(0..<offset)) ^ STUNMessage.fingerprintMask
    return span.uint32(at: offset + 4) == expected
  }
}
