import Wire

/// Reads a packet capture (pcap or pcapng) incrementally, from a file or a pipe that is still being
/// written.
///
/// It replaces libpcap, which skips Decryption Secrets Blocks and comments, refuses captures whose
/// interfaces have different link types, and needs a file instead of bytes.
///
///     parser.append(bytes)
///     while let record = try parser.next() { ... parser.bytes(frame.bytes) ... }
///
/// Ranges in a record are valid until the next `append`. After an error, each call throws the same
/// error again. Damage after good records is not an error: reading continues with the next
/// recognizable record, and the damage and the bytes skipped because of it are counted.
package struct CaptureParser: Sendable {
  /// The maximum length of a frame or block in bytes; longer ones count as damage.
  static let lengthMaximum = 16 << 20

  private enum Format: Sendable {
    case pcap(PcapFormat)
    case pcapng(PcapngFormat)
  }

  private var buffer: [UInt8] = []
  /// The offset of the next record in the buffer.
  private var start = 0
  /// The number of file bytes before the buffer.
  private var discarded = 0
  private var format: Format?
  private var failure: CaptureError?
  /// Whether the parser is searching for a record after damage.
  private var isLost = false
  /// The time of a pcap file's last good record.
  private var last: Int64?
  /// The number of damaged places, the bytes skipped there, and the first damage as an error.
  private var damages: UInt64 = 0
  private var lostBytes: UInt64 = 0
  private(set) var firstDamage: CaptureError?

  package init() {}

  /// The number of damaged records, and the bytes skipped because of them.
  var damage: (records: UInt64, bytes: UInt64) {
    guard case .pcapng(let pcapng) = format else { return (damages, lostBytes) }
    return (damages + pcapng.damagedBlocks, lostBytes + pcapng.damagedBytes)
  }

  /// Ends the capture; the length of an incomplete last record may be damaged, so its bytes are
  /// searched for further records.
  mutating func finish() {
    guard failure == nil, !isLost, waitingCount > 0, hasRecords else { return }
    let place = start
    start += 1
    isLost = true
    if find() {
      damages += 1
      lostBytes += UInt64(start - place)
    } else {
      start = place
    }
    isLost = false
  }

  /// Whether at least one undamaged record was read.
  private var hasRecords: Bool {
    if case .pcapng(let pcapng) = format { pcapng.hasRecords } else { last != nil }
  }

  /// Adds the next bytes of the capture, which invalidates the ranges in records.
  package mutating func append(_ bytes: RawSpan) {
    if start > 0 {
      buffer.removeFirst(start)
      discarded += start
      start = 0
    }
    unsafe bytes.withUnsafeBytes { unsafe buffer.append(contentsOf: $0) }
  }

  /// Returns the bytes in a range of the last record.
  @_lifetime(borrow self)
  package func bytes(_ range: Range<Int>) -> RawSpan { buffer.span.bytes.extracting(range) }

  /// Returns a range of the last record as text; invalid UTF-8 is replaced.
  package func text(_ range: Range<Int>) -> String {
    String(decoding: buffer[range], as: UTF8.self)
  }

  /// The number of bytes in an incomplete record; a file that ends with it was cut off.
  package var waitingCount: Int { buffer.count - start }

  /// The number of records with times outside of 1823 to 2116; always 0 in pcap.
  var recordsOutsideOfTime: UInt64 {
    if case .pcapng(let pcapng) = format { pcapng.recordsOutsideOfTime } else { 0 }
  }

  package var isPcapng: Bool {
    if case .pcapng = format { true } else { false }
  }

  package var isRecognised: Bool { format != nil }

  /// Returns the next record; nil if more bytes are needed.
  package mutating func next() throws(CaptureError) -> CaptureRecord? {
    if let failure { throw failure }
    while true {
      if isLost {
        let place = start
        let isFound = find()
        lostBytes += UInt64(start - place)
        guard isFound else { return nil }
        isLost = false
      }
      do throws(CaptureError) {
        let record = try advance()
        if case .frame(let frame)? = record { last = frame.unixNanoseconds }
        return record
      } catch {
        guard hasRecords else {
          failure = error
          throw error
        }
        firstDamage = firstDamage ?? error
        damages += 1
        lostBytes += 1
        start += 1
        isLost = true
      }
    }
  }

  /// Searches for the next record after damage; returns whether one was found.
  private mutating func find() -> Bool {
    // A local copy, because the parser's position changes while its bytes are read.
    let buffer = buffer
    switch format {
    case .pcap(let pcap):
      return pcap.findRecord(in: buffer.span.bytes, at: &start, after: last ?? 0)
    case .pcapng(let pcapng): return pcapng.findBlock(in: buffer.span.bytes, at: &start)
    case nil: return false
    }
  }

  private mutating func advance() throws(CaptureError) -> CaptureRecord? {
    // A local copy, because the parser changes while its bytes are read.
    let buffer = buffer
    let bytes = buffer.span.bytes
    if format == nil {
      guard let (found, headerLength) = try Self.recognise(bytes) else { return nil }
      format = found
      start = headerLength
    }
    switch format {
    case .pcap(let pcap): return try pcap.next(in: bytes, at: &start, offset: discarded)
    case .pcapng(var pcapng):
      // The format is moved out while it changes, so that its arrays are not copied.
      format = nil
      defer { format = .pcapng(pcapng) }
      return try pcapng.next(in: bytes, at: &start, offset: discarded)
    case nil: return nil
    }
  }

  /// Returns whether a file that begins with these bytes can be a capture.
  package static func canBegin(with head: [UInt8]) -> Bool {
    guard head.count >= 4 else { return false }
    let magic = head[..<4].reversed().reduce(0 as UInt32) { $0 << 8 | UInt32($1) }
    return magic == PcapngFormat.sectionHeader || PcapFormat.isMagic(magic)
  }

  /// Determines the format and the offset of its first record; nil if more bytes are needed.
  private static func recognise(_ bytes: RawSpan) throws(CaptureError) -> (Format, start: Int)? {
    guard bytes.byteCount >= 4 else { return nil }
    if bytes.uint32(at: 0) == PcapngFormat.sectionHeader { return (.pcapng(PcapngFormat()), 0) }
    guard PcapFormat.isMagic(bytes.uint32(at: 0)) else { throw .notACapture }
    guard bytes.byteCount >= PcapFormat.headerLength else { return nil }
    return (.pcap(try PcapFormat(header: bytes)), PcapFormat.headerLength)
  }
}

/// The byte order of the machine that wrote a capture.
struct FieldOrder: Sendable {
  var isSwapped = false

  @inline(__always)
  func uint16(_ bytes: RawSpan, at offset: Int) -> UInt16 {
    let value = bytes.uint16(at: offset)
    return isSwapped ? value.byteSwapped : value
  }

  @inline(__always)
  func uint32(_ bytes: RawSpan, at offset: Int) -> UInt32 {
    let value = bytes.uint32(at: offset)
    return isSwapped ? value.byteSwapped : value
  }

  func uint64(_ bytes: RawSpan, at offset: Int) -> UInt64 {
    let value = bytes.uint64(at: offset)
    return isSwapped ? value.byteSwapped : value
  }
}

// MARK: - CaptureRecord

/// The type of a frame's first header, numbered as on tcpdump.org/linktypes.html.
package struct LinkType: RawRepresentable, Hashable, Sendable {
  package var rawValue: UInt16
  package init(rawValue: UInt16) { self.rawValue = rawValue }

  /// A header with only the protocol family, in the byte order of the capturing machine.
  package static let null = LinkType(rawValue: 0)
  package static let ethernet = LinkType(rawValue: 1)
  /// IPv4 or IPv6 without a link header; BSD/OS and OpenBSD use the two numbers below.
  package static let raw = LinkType(rawValue: 101)
  package static let rawBSD = LinkType(rawValue: 12)
  package static let rawOpenBSD = LinkType(rawValue: 14)
  /// Like `null`, but in network byte order.
  package static let loop = LinkType(rawValue: 108)
  /// The "cooked" format of `-i any` on Linux.
  package static let linuxCooked = LinkType(rawValue: 113)
  package static let ipv4 = LinkType(rawValue: 228)
  package static let ipv6 = LinkType(rawValue: 229)
  /// Version 2 of the cooked format, which adds the interface.
  package static let linuxCooked2 = LinkType(rawValue: 276)
  /// PPP, in this order: with or without an address; on a serial line; a PPPoE session without
  /// Ethernet; as Linux's pppd writes it; and with the direction in front.
  package static let ppp = LinkType(rawValue: 9)
  package static let pppInHDLC = LinkType(rawValue: 50)
  package static let pppoe = LinkType(rawValue: 51)
  package static let pppOfDaemon = LinkType(rawValue: 166)
  package static let pppWithDirection = LinkType(rawValue: 204)
  package static let ciscoHDLC = LinkType(rawValue: 104)
  /// 802.2 over ATM (RFC 2684).
  package static let llcATM = LinkType(rawValue: 100)
  /// The contents of an IPsec tunnel, and the log of a packet filter, on BSD.
  package static let enc = LinkType(rawValue: 109)
  package static let packetFilterLog = LinkType(rawValue: 117)
  package static let mpls = LinkType(rawValue: 219)
  /// 802.11, with or without a radio header.
  package static let wireless = LinkType(rawValue: 105)
  package static let wirelessPrism = LinkType(rawValue: 119)
  package static let wirelessRadiotap = LinkType(rawValue: 127)
  package static let wirelessAVS = LinkType(rawValue: 163)
  package static let perPacketInformation = LinkType(rawValue: 192)
  /// Frames of any link type with the process that sent or received them, from macOS; older files
  /// use 149.
  package static let packetTap = LinkType(rawValue: 258)
  package static let packetTapOfUser = LinkType(rawValue: 149)
  /// Packets logged by a Linux netfilter rule (NFLOG).
  package static let netfilterLog = LinkType(rawValue: 239)
}

/// A captured frame's header, and where its bytes are in the parser.
package struct CapturedFrame: Sendable {
  /// The capture time; the previous frame's if this frame has none.
  package var unixNanoseconds: Int64
  package var linkType: LinkType
  /// The interface's index in its section; 0 in pcap.
  package var interface: Int
  /// The range of the captured bytes in the parser's buffer; valid until the parser reads on.
  package var bytes: Range<Int>
  /// The frame's length on the wire.
  package var originalLength: Int
  /// The length in bytes of the checksum at the end of the frame.
  package var checksumLength: Int = 0
  package var comments: [Range<Int>] = []
}

/// The contents of one record of a pcap file, or of one block of a pcapng file.
package enum CaptureRecord: Sendable {
  case frame(CapturedFrame)
  /// Decryption secrets, with their range (pcapng Decryption Secrets Block).
  case secrets(SecretsType, Range<Int>)
  /// A comment on the entire capture, or on an interface.
  case comment(String)
  /// The number of frames that the capturing system reported as lost since the last such record.
  case dropped(UInt64)
}

/// The type of a Decryption Secrets Block.
package struct SecretsType: RawRepresentable, Hashable, Sendable {
  package var rawValue: UInt32
  package init(rawValue: UInt32) { self.rawValue = rawValue }

  /// Lines of an NSS key log.
  package static let tlsKeyLog = SecretsType(rawValue: 0x544c_534b)
}

// MARK: - PcapFormat

/// The format of libpcap (draft-ietf-opsawg-pcap): a header, then frames with their times and
/// lengths.
struct PcapFormat: Sendable {
  static let headerLength = 24

  private static let microseconds: UInt32 = 0xa1b2_c3d4
  private static let nanoseconds: UInt32 = 0xa1b2_3c4d
  /// A format of old Linux systems with records that are eight bytes longer.
  private static let patched: UInt32 = 0xa1b2_cd34

  private let order: FieldOrder
  private let linkType: LinkType
  private let checksumLength: Int
  /// The number of nanoseconds per unit of the fraction of a second in a record's time.
  private let unit: Int64
  private let recordLength: Int
  /// The maximum frame length in bytes: the header's snap length or `usualMaximum`, whichever is
  /// larger, but at most `CaptureParser.lengthMaximum`.
  private let lengthMaximum: Int
  private static let usualMaximum = 262_144

  /// Returns whether this is a capture's magic number, in either byte order.
  static func isMagic(_ value: UInt32) -> Bool {
    let known = [microseconds, nanoseconds, patched]
    return known.contains(value) || known.contains(value.byteSwapped)
  }

  /// Parses the header, which must be complete.
  init(header: RawSpan) throws(CaptureError) {
    let magic = header.uint32(at: 0)
    let isSwapped = magic & 0xff00_0000 != 0xa100_0000
    order = FieldOrder(isSwapped: isSwapped)
    let kind = isSwapped ? magic.byteSwapped : magic
    unit = kind == Self.nanoseconds ? 1 : 1000
    recordLength = kind == Self.patched ? 24 : 16
    let major = order.uint16(header, at: 4)
    guard major == 2 else { throw .version(major: major, minor: order.uint16(header, at: 6)) }
    // If bit 26 is set, bits 28 to 31 contain the length of the frame checksum in 16-bit words.
    let network = order.uint32(header, at: 20)
    linkType = LinkType(rawValue: UInt16(truncatingIfNeeded: network))
    checksumLength = network & 0x0400_0000 != 0 ? Int(network >> 28) * 2 : 0
    let snapLength = Int(order.uint32(header, at: 16))
    lengthMaximum = min(max(snapLength, Self.usualMaximum), CaptureParser.lengthMaximum)
  }

  /// Parses the frame at an offset; nil if it is incomplete.
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

  /// The plausible range, in seconds from the last good record, for a record after damage.
  private static let secondsAround = -10...3600

  /// Advances to the next plausible record, or to the end of the bytes; returns whether it found
  /// one.
  ///
  /// A record header has a time near the last record's, a valid fraction of a second and two
  /// consistent frame lengths: random bytes look like that once in 10^15 offsets.
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

/// The reason that a capture, or the rest of one, cannot be read.
package enum CaptureError: Error, Hashable, Sendable {
  /// The first bytes match no supported format.
  case notACapture
  /// An undefined version of the format.
  case version(major: UInt16, minor: UInt16)
  /// An impossible length, with the file offset of its record or block.
  case badLength(Int, offset: Int)
  /// A packet from an undescribed interface, with the file offset of its block.
  case unknownInterface(Int, offset: Int)
}

extension CaptureError: CustomStringConvertible {
  /// The error in one sentence, without the file's name.
  package var description: String {
    switch self {
    case .notACapture: "it is neither a pcap nor a pcapng file"
    case .version(let major, let minor):
      "its version \(major).\(minor) is not supported"
    case .badLength(let length, let offset):
      "it is damaged at byte \(offset): a length of \(length) is impossible"
    case .unknownInterface(let number, let offset):
      "it is damaged at byte \(offset): interface \(number) was not described"
    }
  }
}
