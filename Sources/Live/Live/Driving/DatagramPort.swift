package import Peer
package import Tape
package import Wire

/// A driver's access to the outside world for its peer.
package protocol DatagramPort: AnyObject {
  /// Opens a UDP socket on an address and a free port.
  func bind(_ ip: IPAddress) throws(SystemError) -> SocketAddress
  /// Starts connecting; the outcome is an input with this number.
  func openStream(_ target: StreamTarget, id: UInt32) throws(SystemError)
  /// Listens for connections on an address and a free port.
  func listen(_ ip: IPAddress) throws(SystemError) -> SocketAddress
  /// Closes one of the connections that share a local end point.
  func closeStream(_ local: SocketAddress, _ remote: SocketAddress)
  /// Closes the socket or connection bound to an end point.
  func close(_ local: SocketAddress)
  /// Queues a datagram, which is sent immediately or with the next `flush`.
  func send(_ datagram: Datagram)
  /// Sends queued datagrams, and returns the failures since the last time, oldest first.
  func flush() -> [SendFailure]
  /// Resolves a name; the answer is an input.
  func resolve(_ name: String, id: UInt32)
  /// Answers mDNS queries for a name with an address for the life of the peer.
  func publish(_ name: String, _ ip: IPAddress)
}
