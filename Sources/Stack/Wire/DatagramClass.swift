/// Which protocol a datagram on a shared transport belongs to, by its first bytes (RFC 7983).
///
/// This is the one rule: the stack sorts by it, texts and rows name packets by it, and so does
/// whoever sees the packets of others.
package enum DatagramClass: Hashable, Sendable {
  case stun
  case dtls
  case rtp
  case rtcp
  /// What a TURN server relays (RFC 8656 section 12.4).
  case channelData
  /// ZRTP, or nothing known.
  case other

  /// Classifies a datagram; one of fewer than two bytes is of no protocol.
  @inlinable
  package init(_ bytes: RawSpan) {
    guard bytes.byteCount >= 2 else {
      self = .other
      return
    }
    self.init(first: bytes.byte(at: 0), second: bytes.byte(at: 1))
  }

  /// Classifies what begins with two bytes; RTP and RTCP are told apart by the payload type
  /// (RFC 5761 section 4).
  @inlinable
  package init(first: UInt8, second: UInt8) {
    switch first {
    case 0...3: self = .stun
    case 20...63: self = .dtls
    case 64...79: self = .channelData
    case 128...191: self = (64...95).contains(second & 0x7f) ? .rtcp : .rtp
    default: self = .other
    }
  }
}
