/// The remote end of a connection, and what it carries.
package struct StreamTarget: Hashable, Sendable {
  /// The kind of the remote end, which decides how messages are framed.
  package enum Kind: Hashable, Sendable {
    /// A TURN server (RFC 8656 section 12.5).
    case server
    /// A TURN server over TLS; the take has the plain messages.
    case secureServer
    /// The peer of the call (RFC 6544 section 3, RFC 4571).
    case peer
  }

  package var local: IPAddress
  package var remote: SocketAddress
  package var kind: Kind
  /// The name or address that the server's certificate must state.
  package var name: String

  package init(local: IPAddress, remote: SocketAddress, kind: Kind, name: String) {
    self.local = local
    self.remote = remote
    self.kind = kind
    self.name = name
  }
}
