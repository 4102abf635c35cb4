import ICE
import Wire

extension PeerConfiguration {
  /// The STUN servers among `iceServers`; entries that are no `stun:` URI (RFC 7064) are left out.
  var parsedICEServers: [ICEServer] { iceServers.compactMap(ICEServer.init(uri:)) }

  /// The first entry of `iceServers` that cannot be used, or nil.
  public var firstUnusableICEServer: String? { iceServers.first { ICEServer(uri: $0) == nil } }
}

extension ICEServer {
  /// Reads `stun:host`, `stun:host:port` or `stun:[address]:port`.
  init?(uri: String) {
    guard uri.hasPrefix("stun:") else { return nil }
    let rest = uri.dropFirst("stun:".count)
    if let address = SocketAddress(rest) {
      self.init(host: .address(address.ip), port: address.port)
      return
    }
    if let address = IPAddress(rest) {
      self.init(host: .address(address), port: ICEServer.defaultPort)
      return
    }
    let parts = rest.split(separator: ":", omittingEmptySubsequences: false)
    guard let host = parts.first, !host.isEmpty, parts.count <= 2 else { return nil }
    let port = parts.count == 2 ? UInt16(parts[1]) : ICEServer.defaultPort
    guard let port, port > 0 else { return nil }
    self.init(host: .name(String(host)), port: port)
  }

  /// RFC 8489 section 8.
  private static var defaultPort: UInt16 { 3478 }
}
