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
  /// Sends a datagram; gives 0, or the positive errno of the refusal.
  func send(_ datagram: Datagram) -> Int32
  /// Looks a name up; the answer comes as an input.
  func resolve(_ name: String, id: UInt32)
}
