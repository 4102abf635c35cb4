package import Peer
package import Tape
package import Wire

/// What a driver can do to the outside world on behalf of its peer.
package protocol DatagramPort: AnyObject {
  /// Opens a UDP socket on an address and a free port.
  func bind(_ ip: IPAddress) throws(SystemError) -> SocketAddress
  /// Starts to connect; the outcome comes as an input with this number.
  func openStream(_ target: StreamTarget, id: UInt32) throws(SystemError)
  /// Listens for connections on an address and a free port.
  func listen(_ ip: IPAddress) throws(SystemError) -> SocketAddress
  /// Closes one connection of those that share an end point.
  func closeStream(_ local: SocketAddress, _ remote: SocketAddress)
  /// Closes the socket or connection that is bound to an end point.
  func close(_ local: SocketAddress)
  /// Takes a datagram over, which goes out at once or with the next `flush`.
  func send(_ datagram: Datagram)
  /// Sends what was taken over, and gives the refusals since the last time, oldest first.
  func flush() -> [SendFailure]
  /// Looks a name up; the answer comes as an input.
  func resolve(_ name: String, id: UInt32)
  /// Answers multicast questions for a name with an address, as long as the peer lasts.
  func publish(_ name: String, _ ip: IPAddress)
}
