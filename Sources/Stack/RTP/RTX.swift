import Wire

/// The retransmission payload format: the sequence number of the lost packet, then its payload
/// (RFC 4588 section 4).
package enum RTX {
  /// How many bytes stand before the original payload.
  package static let overhead = 2

  /// The sequence number that the retransmitted packet had and where its payload lies.
  ///
  /// Nil when nothing is retransmitted, as in packets that only probe the path.
  package static func unwrap(
    _ bytes: RawSpan, header: RTPHeader
  ) -> (sequence: UInt16, payload: Range<Int>)? {
    let payload = header.payload
    guard payload.count >= overhead, payload.upperBound <= bytes.byteCount else { return nil }
    let high = UInt16(bytes.byte(at: payload.lowerBound))
    let low = UInt16(bytes.byte(at: payload.lowerBound + 1))
    return (high << 8 | low, payload.lowerBound + overhead..<payload.upperBound)
  }
}
