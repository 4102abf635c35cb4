package import SDP
import Secure
import Wire

/// A key that a description gives: `1 AES_CM_128_HMAC_SHA1_80 inline:BASE64|2^31|1:4` (RFC 4568).
///
/// WebRTC forbids it (RFC 8826 section 4.3.1), but telephones use it, and what forwards to them.
package struct CryptoAttribute: AttributeValue {
  package static let attributeName = AttributeName(rawValue: "crypto")
  package static let syntax = "TAG SUITE inline:KEY[|LIFETIME][|MKI:LENGTH][;...] [PARAMETERS]"

  /// Tells it from the others of a section; the answer has that of the one it takes.
  package var tag: UInt32
  /// The suite's name, known or not.
  package var suite: String
  /// The keys with their salts, each with what names it in packets (empty: nothing does).
  package var keys: [(bytes: [UInt8], identifier: [UInt8])]
  /// Session parameters, such as `UNENCRYPTED_SRTP`.
  package var parameters: [String]
  package let text: String

  package init?(_ text: String) {
    let fields = text.split(separator: " ").map(String.init)
    guard fields.count >= 3, let tag = UInt32(fields[0]) else { return nil }
    self.tag = tag
    self.text = text
    suite = fields[1]
    parameters = Array(fields.dropFirst(3))
    keys = []
    for part in fields[2].split(separator: ";") {
      guard part.hasPrefix("inline:"), let key = CryptoAttribute.key(part.dropFirst(7)) else {
        return nil
      }
      keys.append(key)
    }
    guard !keys.isEmpty else { return nil }
  }

  private static func key(_ text: Substring) -> (bytes: [UInt8], identifier: [UInt8])? {
    let parts = text.split(separator: "|", omittingEmptySubsequences: false)
    guard let first = parts.first, let bytes = [UInt8](base64: first.utf8) else {
      return nil
    }
    // A lifetime may stand before the identifier, which alone has a colon.
    guard let last = parts.dropFirst().last, let colon = last.firstIndex(of: ":") else {
      return (bytes, [])
    }
    guard let value = UInt64(last[..<colon]),
      let length = Int(last[last.index(after: colon)...]), (1...128).contains(length)
    else { return nil }
    let identifier = (0..<length).map { index in
      let shift = 8 * (length - 1 - index)
      return shift < 64 ? UInt8(truncatingIfNeeded: value >> UInt64(shift)) : 0
    }
    return (bytes, identifier)
  }

  /// The keys for packets of the side that gave them; empty for a suite that is not supported, or
  /// where parameters switch parts of the protection off.
  package var srtpKeys: [SRTPKey] {
    guard let known = SRTPSuite(rawValue: suite), unsupportedParameters.isEmpty else { return [] }
    return keys.filter { $0.bytes.count == known.keyLength + known.saltLength }.map {
      SRTPKey(suites: [known], bytes: $0.bytes, identifier: $0.identifier)
    }
  }

  /// The session parameters that change packets in ways that are not read here (section 6.3).
  package var unsupportedParameters: [String] {
    parameters.filter { !$0.hasPrefix("WSH=") && !$0.hasPrefix("-") }
  }

  package static func == (left: Self, right: Self) -> Bool { left.text == right.text }

  package func hash(into hasher: inout Hasher) { hasher.combine(text) }
}
