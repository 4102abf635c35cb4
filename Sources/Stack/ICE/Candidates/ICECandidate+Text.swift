import Wire

/// Why a text is not a candidate attribute that can be used.
public struct ICECandidateError: Error, Hashable, Sendable, CustomStringConvertible {
  /// What is wrong, in words.
  public var description: String

  /// Creates an error from its words.
  public init(_ description: String) { self.description = description }
}

extension ICECandidate {
  /// Texts beyond this are refused rather than looked at.
  private static let lengthMaximum = 2048

  /// Parses `candidate:...` or `a=candidate:...` (RFC 8839 section 5.1).
  ///
  /// What follows the port comes in pairs of a name and a value, accepted in any order.
  public init(attribute text: String) throws(ICECandidateError) {
    guard text.utf8.count <= ICECandidate.lengthMaximum else {
      throw ICECandidateError("the candidate is longer than \(ICECandidate.lengthMaximum) bytes")
    }
    var rest = text[...]
    if rest.hasPrefix("a=") { rest = rest.dropFirst(2) }
    guard rest.hasPrefix("candidate:") else {
      throw ICECandidateError("the text does not begin with candidate:")
    }
    rest = rest.dropFirst("candidate:".count)
    let fields = rest.split(whereSeparator: \.isWhitespace)
    guard fields.count >= 8 else { throw ICECandidateError("fields of the candidate are missing") }
    guard fields[0].utf8.allSatisfy(ICECandidate.isPrintable) else {
      throw ICECandidateError("the foundation has characters that are not allowed")
    }
    guard let component = ICECandidate.number(fields[1], UInt16.self), component > 0 else {
      throw ICECandidateError("the component is not a number from 1 on")
    }
    guard fields[2].utf8.allSatisfy(ICECandidate.isPrintable) else {
      throw ICECandidateError("the transport has characters that are not allowed")
    }
    guard let priority = ICECandidate.number(fields[3], UInt32.self) else {
      throw ICECandidateError("the priority is not a 32-bit number")
    }
    guard let host = Host(attribute: fields[4]) else {
      throw ICECandidateError("the address is neither an IP address nor a name")
    }
    guard let port = ICECandidate.number(fields[5], UInt16.self) else {
      throw ICECandidateError("the port is not a number up to 65535")
    }
    self.init(
      foundation: String(fields[0]), component: component, transport: fields[2].lowercased(),
      priority: priority, host: host, port: port, kind: .host)
    try readTrailing(fields[6...])
  }

  /// The text of the attribute without `a=`: what signaling carries.
  public var attribute: String {
    var text = "candidate:\(foundation) \(component) \(transport) \(priority) \(host) \(port)"
    text += " typ \(kind.rawValue)"
    if let related { text += " raddr \(related.ip) rport \(related.port)" }
    for item in extensions {
      text += item.value.isEmpty ? " \(item.name)" : " \(item.name) \(item.value)"
    }
    return text
  }

  /// The value of the first extension of a name.
  package func value(ofExtension name: String) -> String? {
    for item in extensions where item.name == name { return item.value }
    return nil
  }

  /// Reads `typ`, `raddr`, `rport` and the extensions.
  private mutating func readTrailing(_ fields: ArraySlice<Substring>) throws(ICECandidateError) {
    var kind: Kind?
    var relatedAddress: Substring?
    var relatedPort: Substring?
    var index = fields.startIndex
    while index < fields.endIndex {
      let name = fields[index]
      let value = index + 1 < fields.endIndex ? fields[index + 1] : ""
      switch name {
      case "typ":
        guard let known = Kind(rawValue: value.lowercased()) else {
          throw ICECandidateError("the type \(value) is not known")
        }
        kind = known
      case "raddr" where relatedAddress == nil: relatedAddress = value
      case "rport" where relatedPort == nil: relatedPort = value
      default: extensions.append(Extension(name: String(name), value: String(value)))
      }
      index += 2
    }
    guard let kind else { throw ICECandidateError("the type of the candidate is missing") }
    self.kind = kind
    // Privacy filters put names or zeros here; only a literal endpoint is of use.
    if let relatedAddress, let ip = IPAddress(relatedAddress), let relatedPort,
      let port = ICECandidate.number(relatedPort, UInt16.self)
    {
      related = SocketAddress(ip, port: port)
    }
  }

  /// A plain decimal number: digits only, ten at most.
  private static func number<Value: FixedWidthInteger>(
    _ text: Substring, _: Value.Type
  ) -> Value? {
    guard (1...10).contains(text.utf8.count), text.utf8.allSatisfy({ (0x30...0x39).contains($0) })
    else { return nil }
    return Value(text)
  }

  private static func isPrintable(_ byte: UInt8) -> Bool { (0x21...0x7e).contains(byte) }
}

extension ICECandidate.Host {
  /// Reads the connection-address: a literal, or a host name of letters, digits, `-`, `_` and `.`.
  init?(attribute text: Substring) {
    if let address = IPAddress(text) {
      self = .address(address)
      return
    }
    let bytes = text.utf8
    let isName = bytes.allSatisfy { byte in
      switch byte {
      case 0x30...0x39, 0x41...0x5a, 0x61...0x7a, 0x2d, 0x2e, 0x5f: true
      default: false
      }
    }
    // A text of digits and dots alone is a wrong address rather than a name.
    let hasLetter = bytes.contains { $0 >= 0x41 }
    guard isName, hasLetter, bytes.count <= 253 else { return nil }
    self = .name(String(text))
  }
}

extension ICECandidate: CustomStringConvertible {
  /// The text of the attribute.
  public var description: String { attribute }
}
