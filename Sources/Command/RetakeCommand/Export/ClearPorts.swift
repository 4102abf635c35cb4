import Wire

/// The ports of what a capture has in the clear: others than on the wire, and a pair of them for
/// each stream.
///
/// tshark extends the times of all sources between two ports as if they were those of one, and then
/// has no jitter for them. So only the first stream of a path, and RTCP, have that path's own ports
/// with the highest bit turned; each further one has the next even distance to them.
struct ClearPorts {
  private struct Stream: Hashable {
    var source: SocketAddress
    var destination: SocketAddress
    /// Nil for RTCP.
    var ssrc: UInt32?
  }

  private var places: [Stream: Int] = [:]
  /// How many streams the path between two addresses has.
  private var counts: [Set<SocketAddress>: Int] = [:]

  /// The lowest bits of a port, which distances are added to.
  private static let mask: UInt16 = 0x7fff

  /// The ends of a packet in the clear.
  ///
  /// - Parameter ssrc: the source of an RTP packet; nil for RTCP.
  mutating func ends(from source: SocketAddress, to destination: SocketAddress, ssrc: UInt32?)
    -> (source: SocketAddress, destination: SocketAddress)
  {
    let stream = Stream(source: source, destination: destination, ssrc: ssrc)
    let place = places[stream] ?? next(stream)
    places[stream] = place
    return (Self.shifted(source, by: place), Self.shifted(destination, by: place))
  }

  private mutating func next(_ stream: Stream) -> Int {
    guard stream.ssrc != nil else { return 0 }
    let path: Set = [stream.source, stream.destination]
    defer { counts[path, default: 0] += 1 }
    return counts[path, default: 0]
  }

  /// Turns the highest bit of a port; adds to the others.
  private static func shifted(_ address: SocketAddress, by place: Int) -> SocketAddress {
    let distance = UInt16(truncatingIfNeeded: 2 * place)
    let port = (address.port ^ 0x8000) & ~mask | (address.port & mask &+ distance) & mask
    return SocketAddress(address.ip, port: port)
  }
}
