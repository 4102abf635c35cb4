/// A request of a peer to the system, in the same form from the layer that makes it to the driver,
/// and in the take.
package enum SystemRequest: Hashable, Sendable {
  /// Open a UDP socket on this address, at any port.
  case bindSocket(id: UInt32, IPAddress)
  /// Listen for connections on this address, at any port; answered like a UDP socket.
  ///
  /// Each connection is reported by `streamAccepted`.
  case listen(id: UInt32, IPAddress)
  /// Connect; answered like a UDP socket.
  ///
  /// Messages are datagrams between the connection's local and remote end; one that is lost is a
  /// failed send.
  case openStream(id: UInt32, StreamTarget)
  /// Close a socket, or the connection to a server.
  case closeSocket(SocketAddress)
  /// Close a connection to the peer, opened or accepted.
  case closeStream(local: SocketAddress, remote: SocketAddress)
  /// Resolve a name.
  case resolveName(id: UInt32, String)
  /// Answer multicast queries for a name (RFC 6762) with an address, until the peer is closed.
  case publishName(String, IPAddress)
}

/// The system's answer to a `SystemRequest`, by its number, or an event.
package enum SystemAnswer: Hashable, Sendable {
  /// The socket is open at this endpoint.
  case socketBound(id: UInt32, SocketAddress)
  /// The socket could not be opened, or failed later; `code` is the errno.
  case socketFailed(id: UInt32, code: Int32)
  /// A connection was accepted by the socket that listens at the local end.
  case streamAccepted(local: SocketAddress, remote: SocketAddress)
  /// The addresses of the name; empty if there are none.
  case nameResolved(id: UInt32, [IPAddress])
}

/// The kind of network that an interface leads to, by the names of W3C (networkType of the
/// provisional statistics); any text may stand in a file.
package struct NetworkType: RawRepresentable, Hashable, Sendable {
  package let rawValue: String

  package init(rawValue: String) { self.rawValue = rawValue }

  package static let ethernet = NetworkType(rawValue: "ethernet")
  package static let wifi = NetworkType(rawValue: "wifi")
  package static let cellular = NetworkType(rawValue: "cellular")
  package static let bluetooth = NetworkType(rawValue: "bluetooth")
  package static let vpn = NetworkType(rawValue: "vpn")
  /// Loopback, and what the system does not tell.
  package static let unknown = NetworkType(rawValue: "unknown")
}
