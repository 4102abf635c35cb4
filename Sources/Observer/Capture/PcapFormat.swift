import Wire

/// The format of libpcap (draft-ietf-opsawg-pcap): a header, then frames with their times and
/// lengths.
struct PcapFormat: Sendable {
  static let headerLength = 24

  private static let microseconds: UInt32 = 0xa1b2_c3d4
  private static let nanoseconds: UInt32 = 0xa1b2_3c4d
  /// A format of old Linux systems whose records have eight bytes more.
  private static let patched: UInt32 = 0xa1b2_cd34

  private let order: FieldOrder
  private let linkType: LinkType
  private let checksumLength: Int
  /// How many nanoseconds a fraction counts.
  private let unit: Int64
  private let recordLength: Int
  /// The longest frame that a record may hold, in bytes: of what a network carries, and what the
  /// header says was captured at most.
  private let lengthMaximum: Int
  private static let usualMaximum = 262_144

  /// Whether a capture begins with this number, in either byte order.
  static func isMagic(_ value: UInt32) -> Bool {
    let known = [microseconds, nanoseconds, patched]
    return known.contains(value) || known.contains(value.byteSwapped)
  }

  /// Reads the header, whose bytes must be there.
  init(header: RawSpan) throws(CaptureError) {
    let magic = header.uint32(at: 0)
    let isSwapped = magic & 0xff00_0000 != 0xa100_0000
    order = FieldOrder(isSwapped: isSwapped)
    let kind = isSwapped ? magic.byteSwapped : magic
    unit = kind == Self.nanoseconds ? 1 : 1000
    recordLength = kind == Self.patched ? 24 : 16
    let major = order.uint16(header, at: 4)
    guard major == 2 else { throw .version(major: major, minor: order.uint16(header, at: 6)) }
    // Bits 28 to 31 say with how many words of a checksum frames end, when bit 26 is set.
    let network = order.uint32(header, at: 20)
    linkType = LinkType(rawValue: UInt16(truncatingIfNeeded: network))
    checksumLength = network & 0x0400_0000 != 0 ? Int(network >> 28) * 2 : 0
    let snapLength = Int(order.uint32(header, at: 16))
    lengthMaximum = min(max(snapLength, Self.usualMaximum), CaptureParser.lengthMaximum)
  }

  /// The frame at a place; nil until all of it is there.
  func next(in bytes: RawSpan, at start: inout Int, offset: Int) throws(CaptureError)
    -> CaptureRecord?
  {
    guard bytes.byteCount - start >= recordLength else { return nil }
    let captured = Int(order.uint32(bytes, at: start + 8))
    guard captured <= lengthMaximum else {
      throw .badLength(captured, offset: offset + start)
    }
    let begin = start + recordLength
    guard bytes.byteCount - begin >= captured else { return nil }
    let seconds = Int64(order.uint32(bytes, at: start))
    let fraction = Int64(order.uint32(bytes, at: start + 4)) * unit
    let frame = CapturedFrame(
      unixNanoseconds: seconds * 1_000_000_000 + fraction, linkType: linkType, interface: 0,
      bytes: begin..<begin + captured,
      originalLength: max(captured, Int(order.uint32(bytes, at: start + 12))),
      checksumLength: checksumLength)
    start = begin + captured
    return .frame(frame)
  }

  // MARK: Damage

  /// How far the time of a record that follows damage may lie before and after the last good one,
  /// in seconds.
  private static let secondsAround = -10...3600

  /// Moves on to the next place where a record may begin, or as far as the bytes reach; true when
  /// one does.
  ///
  /// A head has a time near to the last one, a fraction of a second and two lengths of frames:
  /// other bytes have that once in 10^15 places.
  func findRecord(in bytes: RawSpan, at start: inout Int, after last: Int64) -> Bool {
    let near = last / 1_000_000_000
    while bytes.byteCount - start >= recordLength {
      let seconds = Int64(order.uint32(bytes, at: start)) - near
      if Self.secondsAround.contains(Int(seconds)) {
        let fraction = Int64(order.uint32(bytes, at: start + 4)) * unit
        let captured = Int(order.uint32(bytes, at: start + 8))
        let original = Int(order.uint32(bytes, at: start + 12))
        if fraction < 1_000_000_000, captured >= 14, captured <= original,
          original <= Self.usualMaximum
        {
          return true
        }
      }
      start += 1
    }
    return false
  }
}
