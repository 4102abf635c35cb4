package import Peer
package import Wire

/// What a driver can do to the outside world on behalf of its peer.
package protocol DatagramPort: AnyObject {
  /// Opens a UDP socket on an address and a free port.
  func bind(_ ip: IPAddress) throws(SystemError) -> SocketAddress
  /// Begins to connect; the outcome comes as an input with this number.
  func openStream(_ target: StreamTarget, id: UInt32) throws(SystemError)
  /// Closes the socket or connection that is bound to an end point.
  func close(_ local: SocketAddress)
  /// Takes a datagram over, which goes out at once or with the next `flush`.
  func send(_ datagram: Datagram)
  /// Sends what was taken over, and gives the refusals since the last time, oldest first.
  func flush() -> [PathRefusal]
  /// Looks a name up; the answer comes as an input.
  func resolve(_ name: String, id: UInt32)
}

/// A path on which the system refused to send.
package struct PathRefusal: Hashable, Sendable {
  package var local: SocketAddress
  package var remote: SocketAddress
  /// The positive errno.
  package var code: Int32

  package init(local: SocketAddress, remote: SocketAddress, code: Int32) {
    self.local = local
    self.remote = remote
    self.code = code
  }
}
