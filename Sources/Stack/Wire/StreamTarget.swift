/// Where a connection goes, and what it carries.
package struct StreamTarget: Hashable, Sendable {
  /// Whom a connection leads to, which says how its messages are told apart.
  package enum Kind: Hashable, Sendable {
    /// A TURN server (RFC 8656 section 12.5).
    case server
    /// A TURN server, inside of TLS; the messages of the take are the plain ones.
    case secureServer
    /// The other side of the call (RFC 6544 section 3, RFC 4571).
    case peer
  }

  /// The local address.
  package var local: IPAddress
  package var remote: SocketAddress
  package var kind: Kind
  /// The name or address that a server's certificate has to state.
  package var name: String

  package init(local: IPAddress, remote: SocketAddress, kind: Kind, name: String) {
    self.local = local
    self.remote = remote
    self.kind = kind
    self.name = name
  }
}
