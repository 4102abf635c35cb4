package import Wire

/// A packet as it is before a transport protects it, or after the protection was taken off.
package struct ClearPacket: Sendable {
  /// Which protocol the packet is of.
  package enum Kind: Sendable {
    case rtp, rtcp, sctp
  }

  package var kind: Kind
  package var isInbound: Bool
  package var local: SocketAddress
  package var remote: SocketAddress
  package var bytes: [UInt8]
  /// When it was made, or when the kernel received what it came in.
  package var at: Instant
}

extension PeerTransport {
  /// Shows a packet that goes out to whoever looks on.
  func show(_ kind: ClearPacket.Kind, sent bytes: borrowing [UInt8]) {
    guard let onlooker, let path else { return }
    onlooker(
      ClearPacket(
        kind: kind, isInbound: false, local: path.local, remote: path.remote, bytes: copy bytes,
        at: now))
  }

  /// Shows a packet that came in.
  func show(_ kind: ClearPacket.Kind, received bytes: [UInt8]) {
    guard let onlooker, let path = receivingPath else { return }
    onlooker(
      ClearPacket(
        kind: kind, isInbound: true, local: path.local, remote: path.remote, bytes: bytes,
        at: arrival))
  }
}
