/// A UDP datagram on a path, or a message on a connection.
package struct Datagram: Hashable, Sendable {
  package var local: SocketAddress
  package var remote: SocketAddress
  package var bytes: [UInt8]
  /// The DSCP value (RFC 2474), 0 to 63; 0 for best effort.
  ///
  /// Not stored in takes: it follows from the configuration and the calls.
  package var codePoint: UInt8

  package init(
    local: SocketAddress, remote: SocketAddress, bytes: [UInt8], codePoint: UInt8 = 0
  ) {
    self.local = local
    self.remote = remote
    self.bytes = bytes
    self.codePoint = codePoint
  }
}
