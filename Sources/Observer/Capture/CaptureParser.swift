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
