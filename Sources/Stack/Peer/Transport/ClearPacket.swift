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
