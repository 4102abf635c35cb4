package import Wire

/// The messages on a connection between the two sides: each follows its length in two bytes
/// (RFC 4571 section 2, RFC 6544 section 3).
package enum ICEFraming: MessageFraming {
  package static func first(in bytes: RawSpan) throws(FramingError)
    -> (message: Range<Int>, next: Int)?
  {
    guard bytes.byteCount >= 2 else { return nil }
    let end = 2 + Int(bytes.uint16(at: 0))
    return end <= bytes.byteCount ? (2..<end, end) : nil
  }

  /// A message as it goes onto the stream; empty when it is too long for one.
  package static func framed(_ message: [UInt8]) -> [UInt8] {
    guard let count = UInt16(exactly: message.count) else { return [] }
    return [UInt8(count >> 8), UInt8(truncatingIfNeeded: count)] + message
  }
}
