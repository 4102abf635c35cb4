public import Wire

/// A transport address offered for a call (RFC 8445 section 5.1, RFC 8839 section 5.1).
public struct ICECandidate: Hashable, Sendable {
  /// How a candidate was obtained.
  public enum Kind: String, Hashable, Sendable {
    /// A local interface's address.
    case host
    /// The address as a STUN server saw it.
    case serverReflexive = "srflx"
    /// An address found by checks: the source of a remote peer's check, or the mapped address in a
    /// response to a local check.
    case peerReflexive = "prflx"
    /// An address on a TURN server.
    case relayed = "relay"
  }

  /// A candidate's host: an address, or a name that is yet to be resolved (mDNS).
  public enum Host: Hashable, Sendable, CustomStringConvertible {
    /// An IPv4 or IPv6 address.
    case address(IPAddress)
    /// A name such as `5ab1….local`.
    case name(String)

    /// The host as the candidate attribute writes it in connection-address.
    public var description: String {
      switch self {
      case .address(let address): address.description
      case .name(let name): name
      }
    }
  }

  /// The foundation; pairs whose candidates have equal foundations unfreeze together.
  public var foundation: String
  /// The component: 1 for RTP, because RTCP is always multiplexed.
  public var component: UInt16
  /// The transport protocol, `udp` or `tcp`, in lower case.
  public var transport: String
  /// The candidate's priority; higher is better (RFC 8445 section 5.1.2).
  public var priority: UInt32
  /// The address, or the mDNS name that hides it.
  public var host: Host
  /// The port; 9 for active TCP candidates, which do not listen on any.
  public var port: UInt16
  /// How the candidate was obtained.
  public var kind: Kind
  /// The base of a reflexive candidate, or the mapped address of a relayed one, as signaled; nil if
  /// none is stated.
  public var related: SocketAddress?
  /// The rest of the attribute (`ufrag`, `network-id`, `tcptype`, ...) in order.
  public var extensions: [Extension]

  /// A name and value at the end of a candidate attribute.
  public struct Extension: Hashable, Sendable {
    /// The name, such as `ufrag`.
    public var name: String
    /// The value; empty if the attribute ends after the name.
    public var value: String

    /// Creates an extension; neither part may contain spaces.
    public init(name: String, value: String) {
      self.name = name
      self.value = value
    }
  }

  /// Creates a candidate, by default for UDP and component 1.
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

  /// The address with port, or nil while the host is a name.
  public var address: SocketAddress? {
    guard case .address(let ip) = host else { return nil }
    return SocketAddress(ip, port: port)
  }
}

// MARK: - TCP

/// The role of a TCP candidate in opening a connection (RFC 6544 section 4.5).
public enum ICETCPType: String, Hashable, Sendable {
  /// Opens connections to passive candidates; the candidate's port is meaningless.
  case active
  /// Waits for connections from active candidates.
  case passive
  /// Opens the connection at the same time as the remote peer.
  case simultaneousOpen = "so"
}

extension ICECandidate {
  /// The port that active candidates state, because they do not listen on any (RFC 6544 section
  /// 4.5).
  package static let activePort: UInt16 = 9

  /// Whether the candidate's traffic uses a TCP connection.
  package var isTCP: Bool { transport == "tcp" }

  /// The role in opening a connection; nil for UDP and for unknown values.
  public var tcpType: ICETCPType? {
    isTCP ? value(ofExtension: "tcptype").flatMap { ICETCPType(rawValue: $0) } : nil
  }

  /// The type preference (RFC 8445 section 5.1.2.2); TCP ranks below all direct paths over UDP,
  /// because it stalls on loss, and above relays.
  package var typePreference: UInt32 { ICEPriority.typePreference(kind, isTCP: isTCP) }

  /// Returns whether this local candidate can be checked with a remote one (RFC 6544 section 6.2);
  /// over TCP, only the active candidate opens a connection.
  func pairs(with remote: ICECandidate) -> Bool {
    guard transport == remote.transport else { return false }
    switch (tcpType, remote.tcpType) {
    case (nil, nil): return !isTCP
    case (.active, .passive): return true
    // A passive candidate is paired only with the peer-reflexive candidate of an incoming
    // connection.
    case (.passive, .active): return remote.kind == .peerReflexive
    default: return false
    }
  }

  static func tcpType(_ type: ICETCPType) -> Extension {
    Extension(name: "tcptype", value: type.rawValue)
  }
}

// MARK: - Text

/// The reason that a string is not a usable candidate attribute.
public struct ICECandidateError: Error, Hashable, Sendable, CustomStringConvertible {
  /// What is wrong with the text, in one sentence.
  public var description: String

  /// Creates an error from a sentence that says what is wrong.
  public init(_ description: String) { self.description = description }
}

extension ICECandidate {
  /// Longer strings are refused without parsing.
  private static let lengthMaximum = 2048

  /// Parses `candidate:...` or `a=candidate:...` (RFC 8839 section 5.1).
  ///
  /// Names and values alternate after the port, in any order.
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

  /// The attribute as text without `a=`, as in signaling.
  public var attribute: String {
    var text = "candidate:\(foundation) \(component) \(transport) \(priority) \(host) \(port)"
    text += " typ \(kind.rawValue)"
    if let related { text += " raddr \(related.ip) rport \(related.port)" }
    for item in extensions {
      text += item.value.isEmpty ? " \(item.name)" : " \(item.name) \(item.value)"
    }
    return text
  }

  package func value(ofExtension name: String) -> String? {
    for item in extensions where item.name == name { return item.value }
    return nil
  }

  /// Parses `typ`, `raddr`, `rport` and the extensions.
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
    // Privacy filters may write a name here instead of an address; a name is dropped.
    if let relatedAddress, let ip = IPAddress(relatedAddress), let relatedPort,
      let port = ICECandidate.number(relatedPort, UInt16.self)
    {
      related = SocketAddress(ip, port: port)
    }
  }

  /// Parses a plain decimal number: one to ten digits; nil for anything else.
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
  /// Parses the connection-address: a literal, or a host name of letters, digits, `-`, `_` and `.`;
  /// nil for anything else.
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
    // Digits and dots alone are a malformed address rather than a name.
    let hasLetter = bytes.contains { $0 >= 0x41 }
    guard isName, hasLetter, bytes.count <= 253 else { return nil }
    self = .name(String(text))
  }
}

extension ICECandidate: CustomStringConvertible {
  /// The candidate as it is signaled, without `a=`.
  public var description: String { attribute }
}

// MARK: - ICEPriority

/// Computes candidate and pair priorities (RFC 8445 sections 5.1.2 and 6.1.2.3).
package enum ICEPriority {
  /// Returns a candidate's priority for component 1 (RFC 8445 section 5.1.2.1).
  package static func candidate(
    _ kind: ICECandidate.Kind, isTCP: Bool = false, localPreference: UInt16
  ) -> UInt32 {
    typePreference(kind, isTCP: isTCP) << 24 | UInt32(localPreference) << 8 | 255
  }

  package static func typePreference(_ kind: ICECandidate.Kind, isTCP: Bool) -> UInt32 {
    switch kind {
    case .host: isTCP ? 90 : 126
    case .peerReflexive: isTCP ? 80 : 110
    case .serverReflexive: 100
    case .relayed: 0
    }
  }

  /// Returns a TCP candidate's local preference: active ranks above passive (RFC 6544 section 4.2,
  /// for candidates on local addresses).
  static func localPreference(_ type: ICETCPType, of address: UInt16) -> UInt16 {
    let direction: UInt16 =
      switch type {
      case .active: 6
      case .passive: 4
      case .simultaneousOpen: 2
      }
    // Addresses are numbered down from the largest value; the low 13 bits of the number are used.
    return direction << 13 | address & 0x1fff
  }

  /// Returns a pair's priority, in which the lower of the two candidates' priorities weighs more;
  /// both agents order pairs alike.
  package static func pair(controlling: UInt32, controlled: UInt32) -> UInt64 {
    // The range ends at 2^31 - 1 (RFC 8839 section 5.1); clamping keeps the sum within 64 bits.
    let greater = UInt64(min(max(controlling, controlled), 0x7fff_ffff))
    let lesser = UInt64(min(controlling, controlled, 0x7fff_ffff))
    return lesser << 32 + greater << 1 + (controlling > controlled ? 1 : 0)
  }

  /// Sorts a host's addresses, best first: IPv6 and IPv4 alternate (RFC 8421 section 4), then
  /// link-local ones, then loopback.
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
