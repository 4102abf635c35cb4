package import SDP
package import Secure
package import Wire

/// What a line of an NSS key log is the secret of (draft-ietf-tls-keylogfile, section 2).
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

/// The secrets that a key log has of one association, by their labels.
package struct LoggedSecrets: Hashable, Sendable {
  /// In the order of the log; a few at most.
  private var entries: [(label: SecretLabel, secret: [UInt8])] = []

  private static let entriesMaximum = 16

  package subscript(label: SecretLabel) -> [UInt8]? {
    entries.first { $0.label == label }?.secret
  }

  /// Adds a secret; false when it is known, or there are too many.
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

/// A key log as NSS, OpenSSL and BoringSSL write it, however its bytes arrive: a file that grows is
/// read as it grows.
package struct NSSKeyLog: Sendable {
  private static let lineMaximum = 1024
  private static let associationsMaximum = 1 << 17

  private var known: [[UInt8]: LoggedSecrets] = [:]
  /// A line that has not ended yet.
  private var waiting: [UInt8] = []
  private var isPassingOver = false

  /// Lines that are no comment and no secret, or one too many.
  package private(set) var refusedLines = 0

  package init() {}

  /// How many associations there are secrets of.
  package var count: Int { known.count }

  /// The secrets of the association whose client drew this random value.
  package func secrets(of clientRandom: [UInt8]) -> LoggedSecrets? { known[clientRandom] }

  /// Adds bytes of the log and gives the client randoms that there are new secrets for.
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

  /// Takes the last line, when no line end follows it.
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

// MARK: - CryptoAttribute

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

extension [UInt8] {
  /// Decodes base64 (RFC 4648 section 4), with or without its padding.
  ///
  /// nil if any other character is in it.
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
