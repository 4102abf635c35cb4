package import Secure
package import Wire

/// An SRTP master key with its salt, and the packets that it is for.
package struct SRTPKey: Hashable, Sendable {
  /// Which packets a key protects.
  package enum Scope: Hashable, Sendable {
    /// All that it fits.
    case any
    /// What comes from an address, of one port or of all.
    case source(IPAddress, port: UInt16?)
    case ssrc(UInt32)
  }

  package var scope: Scope
  /// The ways to protect that it may be for, the likeliest first.
  package var suites: [SRTPSuite]
  /// The key, then its salt.
  package var bytes: [UInt8]
  /// What names the key in each packet (MKI); empty when nothing does.
  package var identifier: [UInt8] = []

  package init(
    scope: Scope = .any, suites: [SRTPSuite], bytes: [UInt8], identifier: [UInt8] = []
  ) {
    self.scope = scope
    self.suites = suites
    self.bytes = bytes
    self.identifier = identifier
  }
}

/// A text that is no SRTP key.
package struct SRTPKeyError: Error, Hashable, Sendable {
  /// What is wrong, in words.
  package var reason: String
}

extension SRTPKey {
  /// Reads `[WHICH=][SUITE:]KEY`, as logs of servers have keys.
  ///
  /// The key and its salt are in hexadecimal or base64. `WHICH` is an SSRC (`ssrc:1234` or
  /// `ssrc:0x4d2`), or an address with or without a port that packets come from
  /// (`192.0.2.1:5000`). Without a suite, the length tells.
  package init(parsing text: String) throws(SRTPKeyError) {
    var rest = text[...]
    var scope = Scope.any
    // Base64 may end with equals signs, so only one that something else follows is ours.
    if let sign = rest.firstIndex(of: "="), rest[sign...].contains(where: { $0 != "=" }) {
      scope = try SRTPKey.scope(rest[..<sign])
      rest = rest[rest.index(after: sign)...]
    }
    var suites: [SRTPSuite]?
    if let colon = rest.firstIndex(of: ":") {
      let name = String(rest[..<colon])
      guard let suite = SRTPSuite(rawValue: name) else {
        let names = SRTPSuite.allCases.map(\.rawValue).joined(separator: ", ")
        throw SRTPKeyError(reason: "\(name) is none of \(names)")
      }
      suites = [suite]
      rest = rest[rest.index(after: colon)...]
    }
    guard let found = SRTPKey.read(rest.utf8, suites) else {
      throw SRTPKeyError(
        reason: "a key with its salt has 28, 30, 38, 44 or 46 bytes in hexadecimal or base64")
    }
    self.init(scope: scope, suites: found.suites, bytes: found.bytes)
  }

  private static func scope(_ text: Substring) throws(SRTPKeyError) -> Scope {
    if text.hasPrefix("ssrc:") {
      let digits = text.dropFirst(5)
      let number =
        digits.hasPrefix("0x") ? UInt32(digits.dropFirst(2), radix: 16) : UInt32(digits)
      if let number { return .ssrc(number) }
    } else if let address = SocketAddress(text) {
      return .source(address.ip, port: address.port)
    } else if let ip = IPAddress(text) {
      return .source(ip, port: nil)
    }
    throw SRTPKeyError(reason: "\(text) is neither an SSRC nor an address")
  }

  private static func read(_ text: Substring.UTF8View, _ suites: [SRTPSuite]?)
    -> (suites: [SRTPSuite], bytes: [UInt8])?
  {
    for bytes in [[UInt8](hexadecimal: text), [UInt8](base64: text)] {
      guard let bytes else { continue }
      let fitting = (suites ?? SRTPSuite.allCases).filter {
        $0.keyLength + $0.saltLength == bytes.count
      }
      if !fitting.isEmpty { return (fitting, bytes) }
    }
    return nil
  }
}
