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
