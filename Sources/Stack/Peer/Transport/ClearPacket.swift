package import Wire

/// A packet before a transport protects it, or after decryption.
package struct ClearPacket: Sendable {
  /// The protocol of the packet.
  package enum Kind: Sendable {
    case rtp, rtcp, sctp
  }

  package var kind: Kind
  package var isInbound: Bool
  package var local: SocketAddress
  package var remote: SocketAddress
  package var bytes: [UInt8]
  /// When it was created, or when the kernel received it.
  package var at: Instant
}
