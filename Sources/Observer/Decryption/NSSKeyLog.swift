package import SDP
package import Secure
package import Wire

/// The label of a line in an NSS key log (draft-ietf-tls-keylogfile, section 2).
package struct SecretLabel: RawRepresentable, Hashable, Sendable {
  package var rawValue: String
  package init(rawValue: String) { self.rawValue = rawValue }

  /// The master secret of TLS and DTLS up to 1.2.
  package static let masterSecret = SecretLabel(rawValue: "CLIENT_RANDOM")
  package static let exporter = SecretLabel(rawValue: "EXPORTER_SECRET")
  package static let clientHandshake = SecretLabel(rawValue: "CLIENT_HANDSHAKE_TRAFFIC_SECRET")
  package static let serverHandshake = SecretLabel(rawValue: "SERVER_HANDSHAKE_TRAFFIC_SECRET")
  package static let clientTraffic = SecretLabel(rawValue: "CLIENT_TRAFFIC_SECRET_0")
  package static let serverTraffic = SecretLabel(rawValue: "SERVER_TRAFFIC_SECRET_0")
}

/// The secrets of one association in a key log, by label.
package struct LoggedSecrets: Hashable, Sendable {
  /// Secrets in the order of the log.
  private var entries: [(label: SecretLabel, secret: [UInt8])] = []

  private static let entriesMaximum = 16

  package subscript(label: SecretLabel) -> [UInt8]? {
    entries.first { $0.label == label }?.secret
  }

  /// Adds a secret; returns false if it is already known or there are too many.
  mutating func add(_ label: SecretLabel, _ secret: [UInt8]) -> Bool {
    guard self[label] == nil, entries.count < Self.entriesMaximum else { return false }
    entries.append((label, secret))
    return true
  }

  package static func == (left: Self, right: Self) -> Bool {
    left.entries.elementsEqual(right.entries) { $0 == $1 }
  }

  package func hash(into hasher: inout Hasher) {
    for entry in entries { hasher.combine(entry.secret) }
  }
}

/// A key log in the format of NSS, OpenSSL and BoringSSL, read incrementally while it grows.
package struct NSSKeyLog: Sendable {
  private static let lineMaximum = 1024
  private static let associationsMaximum = 1 << 17

  private var known: [[UInt8]: LoggedSecrets] = [:]
  /// The beginning of a line whose end has not arrived.
  private var waiting: [UInt8] = []
  private var isPassingOver = false

  /// The number of lines that are invalid or too long, or that belong to too many associations.
  package private(set) var refusedLines = 0

  package init() {}

  /// The number of associations with secrets.
  package var count: Int { known.count }

  /// Returns the secrets of the association with this client random; nil if there are none.
  package func secrets(of clientRandom: [UInt8]) -> LoggedSecrets? { known[clientRandom] }

  /// Adds bytes of the log; returns the client randoms that have new secrets.
  package mutating func append(_ bytes: some Sequence<UInt8>) -> [[UInt8]] {
    var news: [[UInt8]] = []
    for byte in bytes {
      guard byte == UInt8(ascii: "\n") || byte == UInt8(ascii: "\r") else {
        if waiting.count < Self.lineMaximum {
          waiting.append(byte)
        } else {
          isPassingOver = true
        }
        continue
      }
      endLine(&news)
    }
    return news
  }

  /// Parses the last line even if it is not terminated; returns the client randoms that have new
  /// secrets.
  package mutating func finish() -> [[UInt8]] {
    var news: [[UInt8]] = []
    endLine(&news)
    return news
  }

  private mutating func endLine(_ news: inout [[UInt8]]) {
    defer {
      waiting.removeAll(keepingCapacity: true)
      isPassingOver = false
    }
    guard let first = waiting.first, first != UInt8(ascii: "#") else { return }
    let fields = waiting.split(separator: UInt8(ascii: " "))
    guard !isPassingOver, fields.count == 3, let random = [UInt8](hexadecimal: fields[1]),
      random.count == 32, let secret = [UInt8](hexadecimal: fields[2]),
      (1...64).contains(secret.count)
    else {
      refusedLines += 1
      return
    }
    let label = SecretLabel(rawValue: String(decoding: fields[0], as: UTF8.self))
    guard known[random] != nil || known.count < Self.associationsMaximum else {
      refusedLines += 1
      return
    }
    if known[random, default: LoggedSecrets()].add(label, secret), news.last != random {
      news.append(random)
    }
  }
}

// MARK: - SRTPKey

/// An SRTP master key with its salt, and the packets that it applies to.
package struct SRTPKey: Hashable, Sendable {
  /// The packets that a supplied key applies to.
  package enum Scope: Hashable, Sendable {
    /// All packets that the key decrypts.
    case any
    /// Packets from an address, on one port or any.
    case source(IPAddress, port: UInt16?)
    case ssrc(UInt32)
  }

  package var scope: Scope
  /// The possible protection profiles, the most likely first.
  package var suites: [SRTPSuite]
  /// The key, followed by the salt.
  package var bytes: [UInt8]
  /// The MKI in each packet; empty if packets have none.
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

/// The reason that a string is not an SRTP key.
package struct SRTPKeyError: Error, Hashable, Sendable {
  /// What is wrong with the text.
  package var reason: String
}

extension SRTPKey {
  /// Parses `[WHICH=][SUITE:]KEY[|MKI:LENGTH]`, the form in which server logs contain keys.
  ///
  /// The key and its salt are in hexadecimal or base64. `WHICH` is an SSRC (`ssrc:1234` or
  /// `ssrc:0x4d2`), or the source address of the packets with or without a port (`192.0.2.1:5000`).
  /// Without `SUITE`, the key's length determines the possible suites.
  package init(parsing text: String) throws(SRTPKeyError) {
    var rest = text[...]
    var scope = Scope.any
    // Base64 may end with equals signs; other characters follow an equals sign that is a separator.
    if let sign = rest.firstIndex(of: "="), rest[sign...].contains(where: { $0 != "=" }) {
      scope = try SRTPKey.scope(rest[..<sign])
      rest = rest[rest.index(after: sign)...]
    }
    var identifier: [UInt8] = []
    if let bar = rest.firstIndex(of: "|") {
      guard let found = SRTPKey.identifier(rest[rest.index(after: bar)...]) else {
        throw SRTPKeyError(reason: "a key's identifier after | has the form MKI:LENGTH, as in 1:4")
      }
      identifier = found
      rest = rest[..<bar]
    }
    var suites: [SRTPSuite]?
    if let colon = rest.firstIndex(of: ":") {
      let name = String(rest[..<colon])
      guard let suite = SRTPSuite(rawValue: name) else {
        let names = SRTPSuite.allCases.map(\.rawValue).joined(separator: ", ")
        throw SRTPKeyError(reason: "\(name) is not one of \(names)")
      }
      suites = [suite]
      rest = rest[rest.index(after: colon)...]
    }
    guard let found = SRTPKey.read(rest.utf8, suites) else {
      throw SRTPKeyError(
        reason: "a key with its salt has 28, 30, 38, 44 or 46 bytes in hexadecimal or base64")
    }
    self.init(scope: scope, suites: found.suites, bytes: found.bytes, identifier: identifier)
  }

  /// Parses `MKI:LENGTH` into the bytes that packets contain (RFC 4568 section 6.1); nil if it is
  /// malformed.
  fileprivate static func identifier(_ text: Substring) -> [UInt8]? {
    guard let colon = text.firstIndex(of: ":"), let value = UInt64(text[..<colon]),
      let length = Int(text[text.index(after: colon)...]), (1...128).contains(length)
    else { return nil }
    return (0..<length).map { index in
      let shift = 8 * (length - 1 - index)
      return shift < 64 ? UInt8(truncatingIfNeeded: value >> UInt64(shift)) : 0
    }
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

// MARK: - CryptoAttribute

/// An SDP key attribute: `1 AES_CM_128_HMAC_SHA1_80 inline:BASE64|2^31|1:4` (RFC 4568).
///
/// WebRTC forbids it (RFC 8826 section 4.3.1), but phones and their gateways use it.
package struct CryptoAttribute: AttributeValue {
  package static let attributeName = AttributeName(rawValue: "crypto")
  package static let syntax = "TAG SUITE inline:KEY[|LIFETIME][|MKI:LENGTH][;...] [PARAMETERS]"

  /// Identifies the attribute in its section; an answer repeats the tag it accepts.
  package var tag: UInt32
  /// The crypto suite's name in the line, which may be unsupported.
  package var suite: String
  /// The keys with salts, each with its MKI in packets (empty if packets have none).
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
    // A lifetime may precede the MKI, which is the only part with a colon.
    guard let last = parts.dropFirst().last, last.contains(":") else { return (bytes, []) }
    return SRTPKey.identifier(last).map { (bytes, $0) }
  }

  /// The keys for packets from the description's author; empty if the suite is unsupported, or if
  /// parameters disable part of the protection.
  package var srtpKeys: [SRTPKey] {
    guard let known = SRTPSuite(rawValue: suite), unsupportedParameters.isEmpty else { return [] }
    return keys.filter { $0.bytes.count == known.keyLength + known.saltLength }.map {
      SRTPKey(suites: [known], bytes: $0.bytes, identifier: $0.identifier)
    }
  }

  /// The session parameters that change packets in unsupported ways (section 6.3).
  package var unsupportedParameters: [String] {
    parameters.filter { !$0.hasPrefix("WSH=") && !$0.hasPrefix("-") }
  }

  package static func == (left: Self, right: Self) -> Bool { left.text == right.text }

  package func hash(into hasher: inout Hasher) { hasher.combine(text) }
}

extension [UInt8] {
  /// Decodes base64 (RFC 4648 section 4), with or without padding; nil if there is any other
  /// character.
  init?(base64 text: some Collection<UInt8>) {
    var digits = Array(text)
    while digits.last == UInt8(ascii: "=") { digits.removeLast() }
    guard digits.count % 4 != 1 else { return nil }
    var bytes: [UInt8] = []
    var value: UInt32 = 0
    var bits = 0
    for digit in digits {
      let six: UInt8
      switch digit {
      case UInt8(ascii: "A")...UInt8(ascii: "Z"): six = digit - UInt8(ascii: "A")
      case UInt8(ascii: "a")...UInt8(ascii: "z"): six = digit - UInt8(ascii: "a") + 26
      case UInt8(ascii: "0")...UInt8(ascii: "9"): six = digit - UInt8(ascii: "0") + 52
      case UInt8(ascii: "+"): six = 62
      case UInt8(ascii: "/"): six = 63
      default: return nil
      }
      value = value << 6 | UInt32(six)
      bits += 6
      if bits >= 8 {
        bits -= 8
        bytes.append(UInt8(truncatingIfNeeded: value >> UInt32(bits)))
      }
    }
    self = bytes
  }
}
