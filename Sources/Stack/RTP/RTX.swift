import Wire

/// The retransmission payload format: the original sequence number, then the payload (RFC 4588
/// section 4).
package enum RTX {
  /// The length of the original sequence number.
  package static let overhead = 2

  /// Returns the original sequence number and the range of the payload.
  ///
  /// Nil if there is no payload, as in packets that only probe the path.
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
