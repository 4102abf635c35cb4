import Wire

/// Reads a packet capture, pcap or pcapng, however its bytes arrive: from a file, or a pipe that
/// somebody still writes to.
///
/// It is an own reader, because libpcap gives neither Decryption Secrets Blocks nor comments, reads
/// no capture whose interfaces differ in their link types, and wants a file rather than bytes.
///
///     parser.append(bytes)
///     while let record = try parser.next() { ... parser.bytes(frame.bytes) ... }
///
/// What a record names stays in place until the next `append`. After an error the parser gives it
/// again. Damage after good records is none: it costs the record in which it is and what that
/// hides, is counted, and the next record that can be found goes on.
package struct CaptureParser: Sendable {
  /// The longest frame or block that is taken, in bytes; a longer one is damage.
  static let lengthMaximum = 16 << 20

  private enum Format: Sendable {
    case pcap(PcapFormat)
    case pcapng(PcapngFormat)
  }

  private var buffer: [UInt8] = []
  /// Where the next record begins in the buffer.
  private var start = 0
  /// How many bytes of the file stand before the buffer.
  private var discarded = 0
  private var format: Format?
  private var failure: CaptureError?
  /// Whether a record is looked for that follows damage.
  private var isLost = false
  /// The time of the last good record of a pcap file.
  private var last: Int64?
  /// How many places are damaged, how many bytes are left out for it, and the first one in words.
  private var damages: UInt64 = 0
  private var lostBytes: UInt64 = 0
  private(set) var firstDamage: CaptureError?

  package init() {}

  /// How many records are damaged, and how many bytes are left out for it.
  var damage: (records: UInt64, bytes: UInt64) {
    guard case .pcapng(let pcapng) = format else { return (damages, lostBytes) }
    return (damages + pcapng.damagedBlocks, lostBytes + pcapng.damagedBytes)
  }

  /// Ends the capture: what waits for the rest of a record may hold others, where the length of the
  /// record is what is damaged.
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

  /// Whether a good record was read.
  private var hasRecords: Bool {
    if case .pcapng(let pcapng) = format { pcapng.hasRecords } else { last != nil }
  }

  /// Adds the next bytes of the capture.
  package mutating func append(_ bytes: RawSpan) {
    if start > 0 {
      buffer.removeFirst(start)
      discarded += start
      start = 0
    }
    unsafe bytes.withUnsafeBytes { unsafe buffer.append(contentsOf: $0) }
  }

  /// The bytes of a record that was just given.
  @_lifetime(borrow self)
  package func bytes(_ range: Range<Int>) -> RawSpan { buffer.span.bytes.extracting(range) }

  /// The text of a record that was just given.
  package func text(_ range: Range<Int>) -> String {
    String(decoding: buffer[range], as: UTF8.self)
  }

  /// How many bytes wait for the rest of their record: at the end of a file, those of a record that
  /// was cut off.
  package var waitingCount: Int { buffer.count - start }

  /// How many records state a time that cannot be theirs; pcap cannot state one.
  var recordsOutsideOfTime: UInt64 {
    if case .pcapng(let pcapng) = format { pcapng.recordsOutsideOfTime } else { 0 }
  }

  /// Whether the capture is one in blocks, pcapng.
  package var isPcapng: Bool {
    if case .pcapng = format { true } else { false }
  }

  /// Whether the first bytes were those of a known format.
  package var isRecognised: Bool { format != nil }

  /// The next record; nil until more bytes are there.
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

  /// Looks for the next record after damage.
  private mutating func find() -> Bool {
    // Held beside the parser, whose place changes while its bytes are read.
    let buffer = buffer
    switch format {
    case .pcap(let pcap):
      return pcap.findRecord(in: buffer.span.bytes, at: &start, after: last ?? 0)
    case .pcapng(let pcapng): return pcapng.findBlock(in: buffer.span.bytes, at: &start)
    case nil: return false
    }
  }

  private mutating func advance() throws(CaptureError) -> CaptureRecord? {
    // Held beside the parser, which changes while its bytes are read.
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
      // Taken out while it changes, so that its lists are not copied.
      format = nil
      defer { format = .pcapng(pcapng) }
      return try pcapng.next(in: bytes, at: &start, offset: discarded)
    case nil: return nil
    }
  }

  /// Finds out the format and where its first record begins; nil until enough bytes are there.
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

/// What the first bytes of a frame are, by the numbers of tcpdump.org/linktypes.html.
package struct LinkType: RawRepresentable, Hashable, Sendable {
  package var rawValue: UInt16
  package init(rawValue: UInt16) { self.rawValue = rawValue }

  /// A protocol family in the byte order of the machine that captured.
  package static let null = LinkType(rawValue: 0)
  package static let ethernet = LinkType(rawValue: 1)
  /// IPv4 or IPv6 at once; two systems wrote other numbers into files.
  package static let raw = LinkType(rawValue: 101)
  package static let rawBSD = LinkType(rawValue: 12)
  package static let rawOpenBSD = LinkType(rawValue: 14)
  /// As `null`, in network order.
  package static let loop = LinkType(rawValue: 108)
  /// What `-i any` gives on Linux ("cooked").
  package static let linuxCooked = LinkType(rawValue: 113)
  package static let ipv4 = LinkType(rawValue: 228)
  package static let ipv6 = LinkType(rawValue: 229)
  /// The same of newer versions, with the interface.
  package static let linuxCooked2 = LinkType(rawValue: 276)
  /// PPP, with its address or without; on a serial line; with the direction in front; as pppd of
  /// Linux has it; and a session of PPPoE without Ethernet.
  package static let ppp = LinkType(rawValue: 9)
  package static let pppInHDLC = LinkType(rawValue: 50)
  package static let pppoe = LinkType(rawValue: 51)
  package static let pppOfDaemon = LinkType(rawValue: 166)
  package static let pppWithDirection = LinkType(rawValue: 204)
  package static let ciscoHDLC = LinkType(rawValue: 104)
  /// 802.2 in ATM (RFC 2684).
  package static let llcATM = LinkType(rawValue: 100)
  /// What a tunnel of IPsec holds, and what a packet filter logs, on BSD.
  package static let enc = LinkType(rawValue: 109)
  package static let packetFilterLog = LinkType(rawValue: 117)
  package static let mpls = LinkType(rawValue: 219)
  /// 802.11, alone and behind what the radio says of the frame.
  package static let wireless = LinkType(rawValue: 105)
  package static let wirelessPrism = LinkType(rawValue: 119)
  package static let wirelessRadiotap = LinkType(rawValue: 127)
  package static let wirelessAVS = LinkType(rawValue: 163)
  package static let perPacketInformation = LinkType(rawValue: 192)
  /// Frames of any kind with their process, of macOS; the second is what older files have.
  package static let packetTap = LinkType(rawValue: 258)
  package static let packetTapOfUser = LinkType(rawValue: 149)
  /// What a rule of netfilter logs.
  package static let netfilterLog = LinkType(rawValue: 239)
}

/// A frame of a capture: its head, and where its bytes stand in the parser that gave it.
package struct CapturedFrame: Sendable {
  /// When it was captured; that of the frame before for one that has no time of its own.
  package var unixNanoseconds: Int64
  package var linkType: LinkType
  /// The number of the interface in its section; 0 in pcap.
  package var interface: Int
  /// Where the captured bytes stand; ask the parser for them before it goes on.
  package var bytes: Range<Int>
  /// How many bytes the frame had on the wire.
  package var originalLength: Int
  /// How many bytes at the end of the frame are its checksum.
  package var checksumLength: Int = 0
  /// Where the texts stand that somebody wrote on this frame.
  package var comments: [Range<Int>] = []
}

/// What a capture holds, in the order of the file.
package enum CaptureRecord: Sendable {
  case frame(CapturedFrame)
  /// Secrets to decrypt with, and where they stand (pcapng Decryption Secrets Block).
  case secrets(SecretsType, Range<Int>)
  /// A text on the whole capture, or on an interface.
  case comment(String)
  /// How many frames the system lost that captured, as far as it told since the last such record.
  case dropped(UInt64)
}

/// What a Decryption Secrets Block holds.
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

/// Why bytes are no packet capture, or where one goes bad.
package enum CaptureError: Error, Hashable, Sendable {
  /// The first bytes are those of no format that is read here.
  case notACapture
  /// A version of the format that nobody defined.
  case version(major: UInt16, minor: UInt16)
  /// A length that cannot be right, with the offset of its record or block in the file.
  case badLength(Int, offset: Int)
  /// A packet of an interface that was not described, with the offset of its block.
  case unknownInterface(Int, offset: Int)
}

extension CaptureError: CustomStringConvertible {
  /// One sentence without the name of the file.
  package var description: String {
    switch self {
    case .notACapture: "it is neither a pcap nor a pcapng file"
    case .version(let major, let minor):
      "it is of version \(major).\(minor), which is not known"
    case .badLength(let length, let offset):
      "it is damaged at byte \(offset): a length of \(length) cannot be right"
    case .unknownInterface(let number, let offset):
      "it is damaged at byte \(offset): interface \(number) was not described"
    }
  }
}
