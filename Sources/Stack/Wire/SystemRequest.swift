/// What a peer asks the system for: the same request from the layer that makes it to whoever does
/// it, and in the take.
package enum SystemRequest: Hashable, Sendable {
  /// Open a UDP socket on this address, at any port.
  case bindSocket(id: UInt32, IPAddress)
  /// Listen for connections on this address, at any port; answered like a UDP socket. Whoever
  /// connects is told with `streamAccepted`.
  case listen(id: UInt32, IPAddress)
  /// Connect; answered like a UDP socket. Messages of the connection are datagrams from its own end
  /// to the target's, one at a time, and one that is lost is a send that failed.
  case openStream(id: UInt32, StreamTarget)
  /// The socket, or the connection to a server, is no longer needed.
  case closeSocket(SocketAddress)
  /// The connection to the peer, made or accepted, is no longer needed.
  case closeStream(local: SocketAddress, remote: SocketAddress)
  /// Resolve a name.
  case resolveName(id: UInt32, String)
  /// Answer multicast questions for a name (RFC 6762) with an address, until the peer is gone.
  case publishName(String, IPAddress)
}

/// What the system answers to a `SystemRequest`, with its number, or tells by itself.
package enum SystemAnswer: Hashable, Sendable {
  /// The socket is open at this endpoint.
  case socketBound(id: UInt32, SocketAddress)
  /// The socket could not be opened, or died; the code is the errno.
  case socketFailed(id: UInt32, code: Int32)
  /// Somebody connected to the socket that listens at the local end.
  case streamAccepted(local: SocketAddress, remote: SocketAddress)
  /// The addresses of the name; empty when there are none.
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
