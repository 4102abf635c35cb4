import Wire

/// The frame of TURN channel data: a channel number and a length before the data (RFC 8656 section
/// 12.4).
package enum ChannelData {
  /// How many bytes stand before the data.
  package static let headerLength = 4
  /// The numbers that a client may bind (RFC 8656 section 12).
  package static let numbers: ClosedRange<UInt16> = 0x4000...0x4fff

  /// Whether bytes look like channel data rather than any other protocol (RFC 7983 section 7).
  package static func matches(_ bytes: RawSpan) -> Bool {
    bytes.byteCount >= headerLength && (0x40...0x4f).contains(bytes.byte(at: 0))
  }

  /// The channel and where its data stands; nil when there are fewer bytes than the frame says.
  ///
  /// What follows the data is padding.
  package static func read(_ bytes: RawSpan) -> (channel: UInt16, data: Range<Int>)? {
    guard matches(bytes) else { return nil }
    let end = headerLength + Int(bytes.uint16(at: 2))
    guard end <= bytes.byteCount else { return nil }
    return (bytes.uint16(at: 0), headerLength..<end)
  }

  /// The same for the channels of RFC 5766 section 11 as well, up to 0x7FFF, and only where the
  /// frame has no more bytes than it says, padded to fours at most.
  ///
  /// - Parameter isTruncated: whether only the beginning of the frame is there.
  package static func readAny(_ bytes: RawSpan, isTruncated: Bool = false)
    -> (channel: UInt16, data: Range<Int>)?
  {
    guard bytes.byteCount >= headerLength, (0x40...0x7f).contains(bytes.byte(at: 0)) else {
      return nil
    }
    let end = headerLength + Int(bytes.uint16(at: 2))
    guard end <= bytes.byteCount ? bytes.byteCount - end < 4 : isTruncated else { return nil }
    return (bytes.uint16(at: 0), headerLength..<min(end, bytes.byteCount))
  }

  /// The frame of some data, without padding.
  package static func frame(_ data: [UInt8], channel: UInt16) -> [UInt8] {
    var frame: [UInt8] = []
    frame.reserveCapacity(headerLength + data.count)
    let count = UInt16(truncatingIfNeeded: data.count)
    frame.append(UInt8(channel >> 8))
    frame.append(UInt8(truncatingIfNeeded: channel))
    frame.append(UInt8(count >> 8))
    frame.append(UInt8(truncatingIfNeeded: count))
    frame.append(contentsOf: data)
    return frame
  }
}
