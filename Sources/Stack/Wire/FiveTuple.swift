/// What carries the bytes between two ends.
package enum TransportProtocol: UInt8, Hashable, Sendable {
  case tcp = 6
  case udp = 17
}

/// Between which ends something goes, and which way.
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

  /// The other way.
  package var reversed: FiveTuple { FiveTuple(transport, from: destination, to: source) }

  /// `udp 192.0.2.1:5000 > 192.0.2.2:6000`.
  package var description: String { "\(transport) \(source) > \(destination)" }
}
