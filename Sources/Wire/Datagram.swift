/// A UDP datagram on a path, or a message on a connection.
package struct Datagram: Hashable, Sendable {
  package var local: SocketAddress
  package var remote: SocketAddress
  package var bytes: [UInt8]

  package init(local: SocketAddress, remote: SocketAddress, bytes: [UInt8]) {
    self.local = local
    self.remote = remote
    self.bytes = bytes
  }
}
