package import Wire

/// The messages on a connection to a TURN server: STUN, and channel data with padding (RFC 8656
/// section 12.5).
package enum TURNFraming: MessageFraming {
  package static func first(in bytes: RawSpan) throws(FramingError)
    -> (message: Range<Int>, next: Int)?
  {
    guard bytes.byteCount >= 4 else { return nil }
    let length = Int(bytes.uint16(at: 2))
    let count: Int
    switch bytes.byte(at: 0) {
    case 0...3:
      // STUN says so in four further bytes, and counts in fours.
      guard length % 4 == 0 else { throw FramingError() }
      count = STUNMessage.headerLength + length
    case 0x40...0x4f: count = ChannelData.headerLength + length
    default: throw FramingError()
    }
    let padded = STUNMessage.padded(count)
    return padded <= bytes.byteCount ? (0..<count, padded) : nil
  }

  package static func framed(_ message: [UInt8]) -> [UInt8] {
    let missing = STUNMessage.padded(message.count) - message.count
    return missing == 0 ? message : message + [UInt8](repeating: 0, count: missing)
  }
}
