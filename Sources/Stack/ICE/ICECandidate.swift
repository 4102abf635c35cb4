public import Wire

/// A transport address that may be used for a call (RFC 8445 section 5.1, RFC 8839 section 5.1).
public struct ICECandidate: Hashable, Sendable {
  /// How the candidate was obtained.
  public enum Kind: String, Hashable, Sendable {
    /// An address of a local interface.
    case host
    /// The address a STUN server saw.
    case serverReflexive = "srflx"
    /// The address a peer's check came from.
    case peerReflexive = "prflx"
    /// An address on a TURN server.
    case relayed = "relay"

  }

  /// Where the candidate is reached: an address, or a name still to be resolved (mDNS).
  public enum Host: Hashable, Sendable, CustomStringConvertible {
    /// A literal address.
    case address(IPAddress)
    /// A name such as `5ab1….local`.
    case name(String)

    /// The text of the candidate attribute's connection-address.
    public var description: String {
      switch self {
      case .address(let address): address.description
      case .name(let name): name
      }
    }
  }

  /// Candidates with equal foundations share fate in the frozen algorithm.
  public var foundation: String
  /// 1 for RTP; RTCP is always multiplexed.
  public var component: UInt16
  /// `udp` or `tcp`, lower case.
  public var transport: String
  /// The priority (RFC 8445 section 5.1.2).
  public var priority: UInt32
  /// The address or name.
  public var host: Host
  /// The port.
  public var port: UInt16
  /// How it was obtained.
  public var kind: Kind
  /// The base of a reflexive or relayed candidate, as signaled.
  public var related: SocketAddress?
  /// The rest of the attribute (`ufrag`, `network-id`, `tcptype`, ...) in order, as name and value.
  public var extensions: [Extension]

  /// One name and value at the end of a candidate attribute.
  public struct Extension: Hashable, Sendable {
    /// The name.
    public var name: String
    /// The value.
    public var value: String

    /// Creates an extension.
    public init(name: String, value: String) {
      self.name = name
      self.value = value
    }
  }

  /// Creates a candidate from its parts.
  public init(
    foundation: String, component: UInt16 = 1, transport: String = "udp", priority: UInt32,
    host: Host, port: UInt16, kind: Kind, related: SocketAddress? = nil,
    extensions: [Extension] = []
  ) {
    self.foundation = foundation
    self.component = component
    self.transport = transport
    self.priority = priority
    self.host = host
    self.port = port
    self.kind = kind
    self.related = related
    self.extensions = extensions
  }

  /// The literal endpoint, or nil while the host is a name.
  public var address: SocketAddress? {
    guard case .address(let ip) = host else { return nil }
    return SocketAddress(ip, port: port)
  }
}

// MARK: - TCP

/// The role of a TCP candidate in opening a connection (RFC 6544 section 4.5).
public enum ICETCPType: String, Hashable, Sendable {
  /// It opens connections to passive candidates; its port is meaningless.
  case active
  /// It waits for connections of active candidates.
  case passive
  /// Both sides open the same connection at the same time.
  case simultaneousOpen = "so"
}

extension ICECandidate {
  /// The port that active candidates show, because they have none (RFC 6544 section 4.5).
  package static let activePort: UInt16 = 9

  /// Whether a connection carries its traffic.
  package var isTCP: Bool { transport == "tcp" }

  /// Its role in opening a connection; nil for UDP, and for an unknown attribute value.
  public var tcpType: ICETCPType? {
    isTCP ? value(ofExtension: "tcptype").flatMap { ICETCPType(rawValue: $0) } : nil
  }

  /// The type preference (RFC 8445 section 5.1.2.2); connections come after all direct paths over
  /// UDP, because they stall on loss, and before relays.
  package var typePreference: UInt32 { ICEPriority.typePreference(kind, isTCP: isTCP) }

  /// Whether checks may begin from this local candidate to that one of the peer (RFC 6544 section
  /// 6.2): over TCP it is always the active side that begins.
  func pairs(with remote: ICECandidate) -> Bool {
    guard transport == remote.transport else { return false }
    switch (tcpType, remote.tcpType) {
    case (nil, nil): return !isTCP
    case (.active, .passive): return true
    // An incoming connection is known by its source address.
    case (.passive, .active): return remote.kind == .peerReflexive
    default: return false
    }
  }

  static func tcpType(_ type: ICETCPType) -> Extension {
    Extension(name: "tcptype", value: type.rawValue)
  }
}

// MARK: - Text

/// Why a text is not a candidate attribute that can be used.
public struct ICECandidateError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The error as a sentence.
  public var description: String

  /// Creates an error from its words.
  public init(_ description: String) { self.description = description }
}

extension ICECandidate {
  /// Texts beyond this are refused rather than looked at.
  private static let lengthMaximum = 2048

  /// Parses `candidate:...` or `a=candidate:...` (RFC 8839 section 5.1).
  ///
  /// After the port, names and values alternate, in any order.
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

  /// The text of the attribute without `a=`, as in signaling.
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

// MARK: - ICEPriority

/// The arithmetic of candidate and pair priorities (RFC 8445 sections 5.1.2 and 6.1.2.3).
package enum ICEPriority {
  /// The priority of a candidate of component 1 (RFC 8445 section 5.1.2.1).
  package static func candidate(
    _ kind: ICECandidate.Kind, isTCP: Bool = false, localPreference: UInt16
  ) -> UInt32 {
    typePreference(kind, isTCP: isTCP) << 24 | UInt32(localPreference) << 8 | 255
  }

  /// How much a kind of candidate is preferred.
  package static func typePreference(_ kind: ICECandidate.Kind, isTCP: Bool) -> UInt32 {
    switch kind {
    case .host: isTCP ? 90 : 126
    case .peerReflexive: isTCP ? 80 : 110
    case .serverReflexive: 100
    case .relayed: 0
    }
  }

  /// The local preference of a TCP candidate on an address: who can begin comes before who waits
  /// (RFC 6544 section 4.2, for candidates on local addresses).
  static func localPreference(_ type: ICETCPType, of address: UInt16) -> UInt16 {
    let direction: UInt16 =
      switch type {
      case .active: 6
      case .passive: 4
      case .simultaneousOpen: 2
      }
    // Addresses are numbered down from the greatest value; 13 bits of that remain.
    return direction << 13 | address & 0x1fff
  }

  /// The priority of a pair: the lower of both sides first, so that they agree on the order.
  package static func pair(controlling: UInt32, controlled: UInt32) -> UInt64 {
    // The range ends at 2^31 - 1 (RFC 8839 section 5.1); clamping keeps the sum inside 64 bits.
    let greater = UInt64(min(max(controlling, controlled), 0x7fff_ffff))
    let lesser = UInt64(min(controlling, controlled, 0x7fff_ffff))
    return lesser << 32 + greater << 1 + (controlling > controlled ? 1 : 0)
  }

  /// Orders the addresses of a host, best first: IPv6 and IPv4 alternate (RFC 8421 section 4),
  /// link-local ones come later, loopback ones last.
  package static func ordered(_ addresses: [IPAddress]) -> [IPAddress] {
    var result: [IPAddress] = []
    for scope in 0..<3 {
      let group = addresses.filter { ($0.isLoopback ? 2 : $0.isLinkLocal ? 1 : 0) == scope }
      let six = group.filter { !$0.isIPv4 }
      let four = group.filter(\.isIPv4)
      for index in 0..<max(six.count, four.count) {
        if index < six.count { result.append(six[index]) }
        if index < four.count { result.append(four[index]) }
      }
    }
    return result
  }
}
