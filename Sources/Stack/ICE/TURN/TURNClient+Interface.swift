package import Wire

/// The name and password that a TURN server knows a client by (RFC 8489 section 9.2).
package struct TURNCredentials: Hashable, Sendable {
  package var username: String
  package var password: String

  package init(username: String, password: String) {
    self.username = username
    self.password = password
  }
}

extension TURNClient {
  /// What can happen to a client.
  package enum Input {
    /// Asks for the allocation.
    case begin
    /// A message from the server: STUN other than Binding, or channel data.
    case received([UInt8])
    /// Lets a peer in before anything is sent to it.
    case permit(IPAddress)
    /// Wants a channel to a peer, because much will be sent to it.
    case bind(SocketAddress)
    /// Data for a peer.
    case send([UInt8], to: SocketAddress)
    /// Asks the server whether the allocation is still there, because peers are silent.
    case verify
    /// The deadline was reached.
    case deadline
    /// Ends the allocation.
    case close
  }

  /// What a client wants done or tells.
  package enum Output {
    /// A message to the server.
    case send([UInt8])
    /// The allocation is there: its address, and the local address as the server saw it.
    case allocated(relayed: SocketAddress, mapped: SocketAddress?)
    /// Data of a peer.
    case received([UInt8], from: SocketAddress)
    /// The server does not let this peer in.
    case refused(IPAddress)
    /// Another server is to be asked instead, over the same transport; a new client does that.
    case redirected(SocketAddress)
    /// There is no allocation, or none any longer; the code is 0 for silence.
    case failed(code: UInt16, reason: String)
  }
}
