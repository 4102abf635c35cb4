import ICE
import Wire

/// The URIs of one STUN or TURN service (W3C RTCIceServer).
public struct ICEServerConfiguration: Hashable, Sendable, Codable {
  /// `stun:`, `turn:` and `turns:` URIs (RFC 7064, RFC 7065), the latter two perhaps with
  /// `?transport=udp` or `?transport=tcp`.
  public var urls: [String]
  /// The user name for a TURN server.
  public var username: String?
  /// The password for a TURN server.
  public var credential: String?

  /// Creates a server entry.
  public init(urls: [String], username: String? = nil, credential: String? = nil) {
    self.urls = urls
    self.username = username
    self.credential = credential
  }
}

/// W3C RTCIceTransportPolicy.
public enum ICETransportPolicy: String, Hashable, Sendable, Codable, CaseIterable {
  /// All candidates.
  case all
  /// Only relayed candidates, which hide the local addresses from the peer.
  case relay
}

/// Whether TCP connections between the peers may carry a call (ICE-TCP, RFC 6544).
public enum ICETCPPolicy: String, Hashable, Sendable, Codable, CaseIterable {
  /// TCP candidates are gathered as well, and used if UDP finds no path.
  case also
  /// Only TCP candidates are gathered, and no servers used.
  case only
}

/// What host candidates show instead of local addresses.
public enum ICEAddressPrivacy: String, Hashable, Sendable, Codable, CaseIterable {
  /// mDNS names, which only hosts of the same link can resolve (RFC 6762).
  case names
}

extension PeerConfiguration {
  /// The settings of the ICE agent.
  var iceSettings: ICESettings {
    ICESettings(
      servers: parsedICEServers, relayOnly: iceTransportPolicy == .relay,
      usesUDP: iceTCP != .only, usesTCP: iceTCP != nil, hidesAddresses: iceAddressPrivacy != nil,
      silence: iceReceivingTimeoutMilliseconds.map { .milliseconds(Int64(max(100, $0))) })
  }

  /// The servers in `iceServers`; unusable URIs are left out.
  var parsedICEServers: [ICEServer] {
    iceServers.flatMap { entry in entry.urls.compactMap { ICEServer(uri: $0, of: entry) } }
  }

  /// The first unusable URI in `iceServers`, if any.
  public var firstUnusableICEServer: String? {
    for entry in iceServers {
      for uri in entry.urls where ICEServer(uri: uri, of: entry) == nil { return uri }
    }
    return nil
  }
}

extension ICEServer {
  /// Parses `stun:host`, `turn:host:port?transport=tcp`, `turns:[address]` and the like.
  ///
  /// A TURN server without name and password is refused, as in W3C; so is DTLS (`turns:` over UDP),
  /// which no known server needs.
  init?(uri: String, of entry: ICEServerConfiguration) {
    guard let colon = uri.firstIndex(of: ":") else { return nil }
    let scheme = uri[..<colon].lowercased()
    let parts = uri[uri.index(after: colon)...].split(
      separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
    var transport = Transport.udp
    var credentials: TURNCredentials?
    switch scheme {
    case "stun": guard parts.count == 1 else { return nil }
    case "turn", "turns":
      guard let username = entry.username, let password = entry.credential else { return nil }
      credentials = TURNCredentials(username: username, password: password)
      let isSecure = scheme == "turns"
      switch parts.count == 2 ? parts[1].lowercased() : "" {
      case "": transport = isSecure ? .tls : .udp
      case "transport=udp": if isSecure { return nil }
      case "transport=tcp": transport = isSecure ? .tls : .tcp
      default: return nil
      }
    default: return nil
    }
    guard let host = parts.first, let (name, port) = ICEServer.split(host) else { return nil }
    // RFC 8489 section 8, RFC 7065 section 3.2.
    self.init(
      host: name, port: port ?? (transport == .tls ? 5349 : 3478), transport: transport,
      credentials: credentials)
  }

  private static func split(_ text: Substring) -> (ICECandidate.Host, UInt16?)? {
    if let end = SocketAddress(text) { return end.port > 0 ? (.address(end.ip), end.port) : nil }
    if text.hasPrefix("["), text.hasSuffix("]") {
      return IPAddress(text.dropFirst().dropLast()).map { (.address($0), nil) }
    }
    if let address = IPAddress(text) { return (.address(address), nil) }
    let parts = text.split(separator: ":", omittingEmptySubsequences: false)
    guard let host = parts.first, !host.isEmpty, parts.count <= 2 else { return nil }
    guard parts.count == 2 else { return (.name(String(host)), nil) }
    guard let port = UInt16(parts[1]), port > 0 else { return nil }
    return (.name(String(host)), port)
  }
}
