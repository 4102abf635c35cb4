import Wire

/// The pcapng format (draft-ietf-opsawg-pcapng): sections of blocks, whose packets refer to
/// previously described interfaces.
struct PcapngFormat: Sendable {
  static let sectionHeader: UInt32 = 0x0a0d_0d0a

  private static let byteOrderMagic: UInt32 = 0x1a2b_3c4d
  /// The maximum number of interfaces per section; a file with more is damaged.
  private static let interfacesMaximum = 65_536
  /// The maximum number of comments kept per block.
  private static let commentsMaximum = 64
  /// The name of the interface that Retake's export adds.
  private static let derivedName = Array("retake-clear".utf8)

  private struct Interface: Sendable {
    var linkType: LinkType
    var snapLength: Int
    var clock = CaptureClock()
    var checksumLength = 0
    /// Whether the interface's packets are decrypted copies of another interface's packets.
    var isDerived = false
    /// The number of lost frames in the interface's latest statistics.
    var dropped: UInt64 = 0
  }

  private enum BlockType {
    static let interface: UInt32 = 1
    static let packet: UInt32 = 2
    static let simplePacket: UInt32 = 3
    static let statistics: UInt32 = 5
    static let enhancedPacket: UInt32 = 6
    static let secrets: UInt32 = 10
  }

  private enum OptionCode {
    static let comment: UInt16 = 1
    static let interfaceName: UInt16 = 2
    static let resolution: UInt16 = 9
    static let checksumLength: UInt16 = 13
    static let timeOffset: UInt16 = 14
    /// The options of packet and statistics blocks that count lost frames.
    static let packetDrops: UInt16 = 4
    static let interfaceDrops: UInt16 = 5
    static let systemDrops: UInt16 = 7
  }

  private var order = FieldOrder()
  private var interfaces: [Interface] = []
  private var times = RecordTimes()
  /// The comments of the last block that is not a packet, and the number of lost frames not
  /// reported yet.
  private var comments: [String] = []
  private var dropped: UInt64 = 0
  /// The number of skipped blocks of unknown types.
  private(set) var unknownBlocks = 0
  /// Whether a record other than a description of the capture was read; from then on, an error
  /// discards only the damaged part.
  private(set) var hasRecords = false
  /// The number of blocks skipped because of errors in them, and their bytes.
  private(set) var damagedBlocks: UInt64 = 0
  private(set) var damagedBytes: UInt64 = 0
  /// The number of lost frames reported so far, which fits into an Int64.
  private var reported: UInt64 = 0
  private static let reportedMaximum = UInt64(Int64.max)

  var recordsOutsideOfTime: UInt64 { times.outside }

  /// Returns the next record at or after an offset; nil if its block is incomplete.
  mutating func next(in bytes: RawSpan, at start: inout Int, offset: Int) throws(CaptureError)
    -> CaptureRecord?
  {
    while true {
      if !comments.isEmpty { return .comment(comments.removeFirst()) }
      if let lost = nextDropReport() { return .dropped(lost) }
      guard bytes.byteCount - start >= 12 else { return nil }
      if bytes.uint32(at: start) == Self.sectionHeader {
        try readByteOrder(bytes, at: start, offset)
      }
      let length = Int(order.uint32(bytes, at: start + 4))
      guard length >= 12, length % 4 == 0, length <= CaptureParser.lengthMaximum else {
        throw .badLength(length, offset: offset + start)
      }
      guard bytes.byteCount - start >= length else { return nil }
      let again = Int(order.uint32(bytes, at: start + length - 4))
      guard again == length else { throw .badLength(again, offset: offset + start) }
      let type = order.uint32(bytes, at: start)
      let body = start + 8..<start + length - 4
      let place = offset + start
      let begin = start
      // An error within a block loses only that block.
      start += length
      do throws(CaptureError) {
        let record = try read(type, body, in: bytes, place)
        if type != Self.sectionHeader, type != BlockType.interface { hasRecords = true }
        if let record { return record }
      } catch {
        guard hasRecords else {
          start = begin
          throw error
        }
        damagedBlocks += 1
        damagedBytes += UInt64(length)
      }
    }
  }

  // MARK: Damage

  /// The maximum block length that the search after damage accepts, in bytes.
  private static let soughtMaximum = 1 << 20

  /// Advances to the next plausible block, which may be incomplete, or to the end of the bytes;
  /// returns whether it found a complete block.
  ///
  /// A plausible block has a known type and equal lengths at both ends.
  func findBlock(in bytes: RawSpan, at start: inout Int) -> Bool {
    while bytes.byteCount - start >= 12 {
      if mayBegin(in: bytes, at: start) {
        let length = Int(order.uint32(bytes, at: start + 4))
        guard bytes.byteCount - start >= length else { return false }
        if Int(order.uint32(bytes, at: start + length - 4)) == length { return true }
      }
      start += 1
    }
    return false
  }

  private func mayBegin(in bytes: RawSpan, at start: Int) -> Bool {
    let type = order.uint32(bytes, at: start)
    let known = [
      BlockType.interface, BlockType.packet, BlockType.simplePacket, BlockType.statistics,
      BlockType.enhancedPacket, BlockType.secrets,
    ]
    guard known.contains(type) || type == Self.sectionHeader else { return false }
    let length = Int(order.uint32(bytes, at: start + 4))
    return length >= 16 && length % 4 == 0 && length <= Self.soughtMaximum
  }

  /// Returns the number of frames lost since the last report, or nil if there are none; the sum of
  /// all reports fits into an Int64.
  private mutating func nextDropReport() -> UInt64? {
    let lost = min(dropped, Self.reportedMaximum - reported)
    dropped = 0
    reported += lost
    return lost > 0 ? lost : nil
  }

  /// Reads the byte order of a section (section 4.1), which may differ from the previous section's.
  private mutating func readByteOrder(_ bytes: RawSpan, at start: Int, _ offset: Int)
    throws(CaptureError)
  {
    switch bytes.uint32(at: start + 8) {
    case Self.byteOrderMagic: order.isSwapped = false
    case Self.byteOrderMagic.byteSwapped: order.isSwapped = true
    default: throw .badLength(Int(bytes.uint32(at: start + 8)), offset: offset + start)
    }
  }

  private mutating func read(
    _ type: UInt32, _ body: Range<Int>, in bytes: RawSpan, _ offset: Int
  ) throws(CaptureError) -> CaptureRecord? {
    switch type {
    case Self.sectionHeader:
      guard body.count >= 16 else { throw .badLength(body.count + 12, offset: offset) }
      let major = order.uint16(bytes, at: body.lowerBound + 4)
      guard major == 1 else {
        throw .version(major: major, minor: order.uint16(bytes, at: body.lowerBound + 6))
      }
      interfaces = []
      var options = OptionReader(body.dropFirst(16), order)
      while let option = options.next(in: bytes) { storeComment(option, in: bytes) }
    case BlockType.interface: try addInterface(body, in: bytes, offset)
    case BlockType.enhancedPacket: return try enhancedPacket(body, in: bytes, offset)
    case BlockType.packet: return try packet(body, in: bytes, offset)
    case BlockType.simplePacket: return try simplePacket(body, in: bytes, offset)
    case BlockType.statistics: readStatistics(body, in: bytes)
    case BlockType.secrets: return try secrets(body, in: bytes, offset)
    default: unknownBlocks += 1
    }
    return nil
  }

  /// Parses an Interface Description Block (section 4.2).
  private mutating func addInterface(_ body: Range<Int>, in bytes: RawSpan, _ offset: Int)
    throws(CaptureError)
  {
    guard body.count >= 8, interfaces.count < Self.interfacesMaximum else {
      throw .badLength(body.count + 12, offset: offset)
    }
    var interface = Interface(
      linkType: LinkType(rawValue: order.uint16(bytes, at: body.lowerBound)),
      snapLength: Int(order.uint32(bytes, at: body.lowerBound + 4)))
    var resolution: UInt8 = 6
    var seconds: Int64 = 0
    var options = OptionReader(body.dropFirst(8), order)
    while let (code, value) = options.next(in: bytes) {
      switch code {
      case OptionCode.resolution where !value.isEmpty:
        resolution = bytes.byte(at: value.lowerBound)
      case OptionCode.interfaceName:
        interface.isDerived = bytes.extracting(value).isEqual(to: Self.derivedName)
      case OptionCode.timeOffset where value.count == 8:
        seconds = Int64(bitPattern: order.uint64(bytes, at: value.lowerBound))
      case OptionCode.checksumLength where !value.isEmpty:
        interface.checksumLength = Int(bytes.byte(at: value.lowerBound))
      default: storeComment((code, value), in: bytes)
      }
    }
    interface.clock = CaptureClock(resolution: resolution, offsetSeconds: seconds)
    interfaces.append(interface)
  }

  /// Parses an Enhanced Packet Block (section 4.3); nil if the interface's packets are decrypted
  /// copies.
  private mutating func enhancedPacket(_ body: Range<Int>, in bytes: RawSpan, _ offset: Int)
    throws(CaptureError) -> CaptureRecord?
  {
    guard body.count >= 20 else { throw .badLength(body.count + 12, offset: offset) }
    let number = Int(order.uint32(bytes, at: body.lowerBound))
    if number < interfaces.count, interfaces[number].isDerived { return nil }
    return try packet(
      number, timeAt: body.lowerBound + 4, body, in: bytes, offset)
  }

  /// Parses an obsolete Packet Block (appendix A).
  private mutating func packet(_ body: Range<Int>, in bytes: RawSpan, _ offset: Int)
    throws(CaptureError) -> CaptureRecord
  {
    guard body.count >= 20 else { throw .badLength(body.count + 12, offset: offset) }
    let lost = order.uint16(bytes, at: body.lowerBound + 2)
    if lost != 0xffff { dropped +|= UInt64(lost) }
    return try packet(
      Int(order.uint16(bytes, at: body.lowerBound)), timeAt: body.lowerBound + 4, body, in: bytes,
      offset)
  }

  private mutating func packet(
    _ number: Int, timeAt place: Int, _ body: Range<Int>, in bytes: RawSpan, _ offset: Int
  ) throws(CaptureError) -> CaptureRecord {
    guard number < interfaces.count else { throw .unknownInterface(number, offset: offset) }
    let captured = Int(order.uint32(bytes, at: place + 8))
    let begin = place + 16
    guard captured <= body.upperBound - begin else {
      throw .badLength(captured, offset: offset)
    }
    let ticks = UInt64(order.uint32(bytes, at: place)) << 32
    let time = times.place(
      interfaces[number].clock.unixNanoseconds(
        ticks | UInt64(order.uint32(bytes, at: place + 4))))
    var frame = CapturedFrame(
      unixNanoseconds: time, linkType: interfaces[number].linkType, interface: number,
      bytes: begin..<begin + captured,
      originalLength: max(captured, Int(order.uint32(bytes, at: place + 12))),
      checksumLength: interfaces[number].checksumLength)
    let end = begin + (captured + 3) & ~3
    guard end < body.upperBound else { return .frame(frame) }
    var options = OptionReader(end..<body.upperBound, order)
    while let (code, value) = options.next(in: bytes) {
      switch code {
      case OptionCode.comment where frame.comments.count < Self.commentsMaximum:
        frame.comments.append(value)
      case OptionCode.packetDrops where value.count == 8:
        dropped +|= order.uint64(bytes, at: value.lowerBound)
      default: break
      }
    }
    return .frame(frame)
  }

  /// Parses a Simple Packet Block (section 4.4): a frame without a time, from the first interface.
  private func simplePacket(_ body: Range<Int>, in bytes: RawSpan, _ offset: Int)
    throws(CaptureError) -> CaptureRecord
  {
    guard body.count >= 4 else { throw .badLength(body.count + 12, offset: offset) }
    guard let interface = interfaces.first else { throw .unknownInterface(0, offset: offset) }
    let original = Int(order.uint32(bytes, at: body.lowerBound))
    let begin = body.lowerBound + 4
    let limit = interface.snapLength == 0 ? original : min(original, interface.snapLength)
    let captured = min(limit, body.upperBound - begin)
    return .frame(
      CapturedFrame(
        unixNanoseconds: times.last, linkType: interface.linkType, interface: 0,
        bytes: begin..<begin + captured, originalLength: max(captured, original),
        checksumLength: interface.checksumLength))
  }

  /// Parses an Interface Statistics Block (section 4.6), whose counters are cumulative.
  private mutating func readStatistics(_ body: Range<Int>, in bytes: RawSpan) {
    guard body.count >= 12 else { return }
    let number = Int(order.uint32(bytes, at: body.lowerBound))
    guard number < interfaces.count else { return }
    var lost: UInt64 = 0
    var options = OptionReader(body.dropFirst(12), order)
    while let (code, value) = options.next(in: bytes) {
      switch code {
      case OptionCode.interfaceDrops where value.count == 8,
        OptionCode.systemDrops where value.count == 8:
        lost +|= order.uint64(bytes, at: value.lowerBound)
      default: storeComment((code, value), in: bytes)
      }
    }
    guard lost > interfaces[number].dropped else { return }
    dropped +|= lost -| interfaces[number].dropped
    interfaces[number].dropped = lost
  }

  /// Parses a Decryption Secrets Block (section 4.7).
  private func secrets(_ body: Range<Int>, in bytes: RawSpan, _ offset: Int)
    throws(CaptureError) -> CaptureRecord
  {
    guard body.count >= 8 else { throw .badLength(body.count + 12, offset: offset) }
    let length = Int(order.uint32(bytes, at: body.lowerBound + 4))
    guard length <= body.count - 8 else { throw .badLength(length, offset: offset) }
    let begin = body.lowerBound + 8
    return .secrets(
      SecretsType(rawValue: order.uint32(bytes, at: body.lowerBound)), begin..<begin + length)
  }

  private mutating func storeComment(_ option: (code: UInt16, value: Range<Int>), in bytes: RawSpan)
  {
    guard option.code == OptionCode.comment, comments.count < Self.commentsMaximum else { return }
    comments.append(
      String(decoding: [UInt8](bytes.extracting(option.value)), as: UTF8.self))
  }
}

/// Iterates over the options of a block (section 3.5); ends at the first malformed one.
private struct OptionReader {
  private var rest: Range<Int>
  private let order: FieldOrder

  init(_ range: Range<Int>, _ order: FieldOrder) {
    rest = range
    self.order = order
  }

  mutating func next(in bytes: RawSpan) -> (code: UInt16, value: Range<Int>)? {
    guard rest.count >= 4 else { return nil }
    let code = order.uint16(bytes, at: rest.lowerBound)
    let length = Int(order.uint16(bytes, at: rest.lowerBound + 2))
    let begin = rest.lowerBound + 4
    guard code != 0, length <= rest.upperBound - begin else { return nil }
    rest = min(rest.upperBound, begin + (length + 3) & ~3)..<rest.upperBound
    return (code, begin..<begin + length)
  }
}

/// The resolution and offset of an interface's times.
struct CaptureClock: Sendable {
  private var ticksPerSecond: UInt64 = 1_000_000
  private var offsetSeconds: Int64 = 0

  init() {}

  /// Creates a clock from the options if_tsresol and if_tsoffset (section 4.2): a power of 10, or
  /// of 2 if the highest bit is set; a resolution beyond 64 bits counts as nanoseconds.
  init(resolution: UInt8, offsetSeconds: Int64) {
    self.offsetSeconds = offsetSeconds
    let exponent = resolution & 0x7f
    if resolution & 0x80 != 0 {
      ticksPerSecond = exponent < 64 ? 1 << UInt64(exponent) : 1_000_000_000
    } else {
      ticksPerSecond =
        exponent < 20 ? (0..<exponent).reduce(1) { value, _ in value * 10 } : 1_000_000_000
    }
  }

  /// Converts ticks, which may have any value, to nanoseconds since 1970.
  func unixNanoseconds(_ ticks: UInt64) -> Int128 {
    let (seconds, rest) = ticks.quotientAndRemainder(dividingBy: ticksPerSecond)
    let scaled = rest.multipliedFullWidth(by: 1_000_000_000)
    let fraction = ticksPerSecond.dividingFullWidth(scaled).quotient
    return (Int128(seconds) + Int128(offsetSeconds)) * 1_000_000_000 + Int128(fraction)
  }
}

extension RawSpan {
  fileprivate func isEqual(to bytes: [UInt8]) -> Bool {
    byteCount == bytes.count && bytes.indices.allSatisfy { byte(at: $0) == bytes[$0] }
  }
}

/// Maps the times of records to a range in which any two are less than 2^63 nanoseconds apart, so
/// that differences never overflow.
///
/// All capture times pass through here. pcapng allows any date (even years of twelve digits),
/// damaged files contain random ones, and takes use 64-bit nanoseconds since 1970. A record outside
/// of `range` gets the previous record's time, plus the interval since the last record outside of
/// `range` if there was one. A capture from the year 2500 thus keeps its order and intervals, but
/// its take begins in 1970; such records are counted.
struct RecordTimes: Sendable {
  /// From 1823 to 2116, in nanoseconds since 1970.
  static let range = -(Int64(1) << 62)...(Int64(1) << 62) - 1
  /// The maximum credible time between two records outside of the range: a day, in nanoseconds.
  private static let stepMaximum: Int128 = 86_400_000_000_000

  /// The last record's time, which a record without a time reuses.
  private(set) var last: Int64 = 0
  /// The original time of the last record outside of the range.
  private var lastOutside: Int128?
  /// The number of records outside of the range.
  private(set) var outside: UInt64 = 0

  /// Maps a record's time, in nanoseconds since 1970, into the range of supported times.
  mutating func place(_ stated: Int128) -> Int64 {
    if let time = Int64(exactly: stated), RecordTimes.range.contains(time) {
      last = time
      return time
    }
    outside += 1
    let step = stated - (lastOutside ?? stated)
    lastOutside = stated
    if (0...RecordTimes.stepMaximum).contains(step) {
      last = min(last + Int64(step), RecordTimes.range.upperBound)
    }
    return last
  }
}
