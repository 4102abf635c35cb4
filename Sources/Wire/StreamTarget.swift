/// Where a connection to a TURN server goes.
package struct StreamTarget: Hashable, Sendable {
  /// The own address.
  package var local: IPAddress
  package var remote: SocketAddress
  /// Whether TLS protects the connection; the messages of the take are the plain ones.
  package var isSecure: Bool
  /// The name or address that the server's certificate has to state.
  package var name: String

  package init(local: IPAddress, remote: SocketAddress, isSecure: Bool, name: String) {
    self.local = local
    self.remote = remote
    self.isSecure = isSecure
    self.name = name
  }
}
