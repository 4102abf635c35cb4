/// The protocol of a datagram on a shared transport, by its first bytes (RFC 7983).
///
/// There is only this one rule: the stack demultiplexes by it, rows and texts name packets by it,
/// and so does the observer.
package enum DatagramClass: Hashable, Sendable {
  case stun
  case dtls
  case rtp
  case rtcp
  /// A TURN channel message (RFC 8656 section 12.4).
  case channelData
  /// ZRTP or unknown.
  case other

  /// Classifies a datagram; one of fewer than two bytes is `other`.
  @inlinable
  package init(_ bytes: RawSpan) {
    guard bytes.byteCount >= 2 else {
      self = .other
      return
    }
    self.init(first: bytes.byte(at: 0), second: bytes.byte(at: 1))
  }

  /// Classifies by the first two bytes; the payload type separates RTP from RTCP (RFC 5761 section
  /// 4).
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
