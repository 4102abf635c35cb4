/// The transport protocol between two ends.
package enum TransportProtocol: UInt8, Hashable, Sendable {
  case tcp = 6
  case udp = 17
}

/// The two ends of a flow and its transport protocol, in one direction.
package struct FiveTuple: Hashable, Sendable, CustomStringConvertible {
  package var transport: TransportProtocol
  package var source: SocketAddress
  package var destination: SocketAddress

  package init(
    _ transport: TransportProtocol = .udp, from source: SocketAddress, to destination: SocketAddress
  ) {
    self.transport = transport
    self.source = source
    self.destination = destination
  }

  /// The opposite direction.
  package var reversed: FiveTuple { FiveTuple(transport, from: destination, to: source) }

  /// `udp 192.0.2.1:5000 > 192.0.2.2:6000`.
  package var description: String { "\(transport) \(source) > \(destination)" }
}
