import Wire

/// A forward error correction packet: the XOR of the packets it protects, from which one lost
/// packet can be recovered (RFC 5109, RFC 8627).
///
/// The forms differ only in their headers. Of ULPFEC, only the first level is parsed: browsers send
/// a single level, which protects complete packets. FlexFEC in the draft's format is parsed only if
/// it protects a single source: libwebrtc sends nothing else, and ignores everything else.
package struct ErrorCorrection: Hashable, Sendable {
  /// The layout of an FEC packet's headers.
  package enum Form: Hashable, Sendable {
    /// FEC packets in the protected stream itself, wrapped in RED (RFC 5109).
    case ulpfec
    /// FlexFEC in the format that browsers call `flexfec-03`
    /// (draft-ietf-payload-flexible-fec-scheme-03).
    case flexFEC03
    /// FlexFEC as standardised, `flexfec` (RFC 8627).
    case flexFEC
  }

  /// The protected source, if the packet names it.
  package private(set) var ssrc: UInt32?
  /// The protected sequence numbers, at most 255.
  package private(set) var sequences: [UInt16]
  /// XOR of the protected headers: padding, extension and CSRC count; marker and payload type;
  /// timestamp; length beyond the fixed header.
  private var first: UInt8
  private var second: UInt8
  private var timestamp: UInt32
  private var length: UInt16
  private var payload: [UInt8]

  /// Parses a payload; nil if it is truncated, protects nothing, or has an unsupported layout.
  package init?(_ form: Form, _ bytes: RawSpan) {
    switch form {
    case .ulpfec: self.init(ulpfec: bytes)
    case .flexFEC03: self.init(flexFEC03: bytes)
    case .flexFEC: self.init(flexFEC: bytes)
    }
  }

  private init?(
    _ bytes: RawSpan, protecting base: UInt16, _ offsets: [Int], length: UInt16,
    payload: Range<Int>
  ) {
    guard !offsets.isEmpty, payload.lowerBound <= payload.upperBound,
      payload.upperBound <= bytes.byteCount
    else { return nil }
    first = bytes.byte(at: 0) & 0x3f
    second = bytes.byte(at: 1)
    timestamp = bytes.uint32(at: 4)
    self.length = length
    sequences = offsets.map { base &+ UInt16(truncatingIfNeeded: $0) }
    self.payload = payload.map { bytes.byte(at: $0) }
  }

  // MARK: ULPFEC

  /// The number of bytes before the first level's header, which adds 4 or 8.
  private static let levelsLength = 10

  private init?(ulpfec bytes: RawSpan) {
    let levels = Self.levelsLength
    guard bytes.byteCount >= levels + 4 else { return nil }
    let isLong = bytes.byte(at: 0) & 0x40 != 0
    let start = levels + (isLong ? 8 : 4)
    let protected = Int(bytes.uint16(at: levels))
    guard bytes.byteCount >= start, protected <= bytes.byteCount - start else { return nil }
    var offsets = Self.ones(UInt64(bytes.uint16(at: levels + 2)), width: 16)
    if isLong { offsets += Self.ones(UInt64(bytes.uint32(at: levels + 4)), width: 32, from: 16) }
    self.init(
      bytes, protecting: bytes.uint16(at: 2), offsets, length: bytes.uint16(at: 8),
      payload: start..<start + protected)
  }

  // MARK: FlexFEC

  private init?(flexFEC03 bytes: RawSpan) {
    // Retransmissions, masks given as rows and columns, and packets for several sources are not
    // supported.
    guard bytes.byteCount >= 20, bytes.byte(at: 0) & 0xc0 == 0, bytes.byte(at: 8) == 1,
      let mask = Self.mask(bytes, at: 18, endMark: true, tailWidth: 63)
    else { return nil }
    self.init(
      bytes, protecting: bytes.uint16(at: 16), mask.offsets, length: bytes.uint16(at: 2),
      payload: mask.end..<bytes.byteCount)
    ssrc = bytes.uint32(at: 12)
  }

  private init?(flexFEC bytes: RawSpan) {
    guard bytes.byteCount >= 12 else { return nil }
    let flags = bytes.byte(at: 0) >> 6
    switch flags {
    case 0:  // a mask of any form (section 4.2.2.1)
      guard let mask = Self.mask(bytes, at: 10, endMark: false, tailWidth: 64) else { return nil }
      self.init(
        bytes, protecting: bytes.uint16(at: 8), mask.offsets, length: bytes.uint16(at: 2),
        payload: mask.end..<bytes.byteCount)
    case 1:  // rows and columns (section 4.2.2.2)
      let (columns, rows) = (Int(bytes.byte(at: 10)), Int(bytes.byte(at: 11)))
      let offsets = rows > 1 ? (0..<rows).map { $0 * columns } : Array(0..<columns)
      guard columns > 0 else { return nil }
      self.init(
        bytes, protecting: bytes.uint16(at: 8), offsets, length: bytes.uint16(at: 2),
        payload: 12..<bytes.byteCount)
    case 2:  // a packet repeated unchanged (section 4.2.2.3)
      self.init(
        bytes, protecting: bytes.uint16(at: 2), [0],
        length: UInt16(truncatingIfNeeded: bytes.byteCount - RTPHeader.fixedLength),
        payload: RTPHeader.fixedLength..<bytes.byteCount)
      ssrc = bytes.uint32(at: 8)
    default: return nil
    }
  }

  /// Parses a mask in parts of 15, 31 and up to 64 bits; a bit before each of the first two parts
  /// says whether another part follows.
  ///
  /// - Parameters:
  ///   - endMark: the value of the bit if no other part follows: 1 in the draft, 0 in the RFC.
  ///   - tailWidth: 63 in the draft, where a bit precedes the last part too; otherwise 64.
  private static func mask(_ bytes: RawSpan, at start: Int, endMark: Bool, tailWidth: Int)
    -> (offsets: [Int], end: Int)?
  {
    guard bytes.byteCount >= start + 2 else { return nil }
    let head = bytes.uint16(at: start)
    var offsets = ones(UInt64(head & 0x7fff), width: 15)
    if (head >> 15 == 1) == endMark { return (offsets, start + 2) }
    guard bytes.byteCount >= start + 6 else { return nil }
    let middle = bytes.uint32(at: start + 2)
    offsets += ones(UInt64(middle & 0x7fff_ffff), width: 31, from: 15)
    if (middle >> 31 == 1) == endMark { return (offsets, start + 6) }
    guard bytes.byteCount >= start + 14 else { return nil }
    let tail = UInt64(bytes.uint32(at: start + 6)) << 32 | UInt64(bytes.uint32(at: start + 10))
    if tailWidth < 64, tail >> 63 != 1 { return nil }
    return (offsets + ones(tail, width: tailWidth, from: 46), start + 14)
  }

  /// Returns the positions of set bits, counted from the highest of `width` bits.
  private static func ones(_ mask: UInt64, width: Int, from: Int = 0) -> [Int] {
    (0..<width).filter { mask >> UInt64(width - 1 - $0) & 1 != 0 }.map { from + $0 }
  }

  // MARK: Recovery

  /// Recovers a lost packet from the other protected packets.
  ///
  /// - Parameter others: all other protected packets, with late values cleared
  ///   (`HeaderExtensionMap.clearLateValues`).
  /// - Returns: nil if the recovered length exceeds the protected bytes, or if one of the others is
  ///   shorter than an RTP header.
  package func packet(_ sequence: UInt16, ssrc: UInt32, from others: [[UInt8]]) -> [UInt8]? {
    var (first, second, timestamp, length) = (first, second, timestamp, length)
    var rest = payload
    for other in others {
      guard other.count >= RTPHeader.fixedLength else { return nil }
      first ^= other[0] & 0x3f
      second ^= other[1]
      timestamp ^= other.span.bytes.uint32(at: 4)
      length ^= UInt16(truncatingIfNeeded: other.count - RTPHeader.fixedLength)
      let shared = min(rest.count, other.count - RTPHeader.fixedLength)
      for index in 0..<shared { rest[index] ^= other[RTPHeader.fixedLength + index] }
    }
    guard Int(length) <= rest.count else { return nil }
    var writer = ByteWriter()
    writer.uint8(0x80 | first)
    writer.uint8(second)
    writer.uint16(sequence)
    writer.uint32(timestamp)
    writer.uint32(ssrc)
    writer.append(Array(rest[..<Int(length)]))
    return writer.bytes
  }
}

extension HeaderExtensionMap {
  /// Zeroes the header extensions that are filled in on sending or forwarding, because the FEC
  /// packet was computed without their values.
  ///
  /// Packets of a stream have extensions of different lengths, so a value in one packet may be at
  /// an offset where another packet has its payload.
  package func clearLateValues(in packet: inout [UInt8], _ header: RTPHeader) {
    guard header.extensionProfile != 0 else { return }
    var elements = HeaderExtensionElements(header)
    while let (id, value) = elements.next(in: packet.span.bytes) {
      switch id {
      case absoluteSendTime, transportSequence, transmissionOffset, laterTransportSequence:
        for index in value { packet[index] = 0 }
      case videoTiming:
        for index in value.dropFirst(Self.videoTimingKept) { packet[index] = 0 }
      default: break
      }
    }
  }

  /// The number of leading bytes of the video timing extension that are not cleared: the flags, and
  /// the times of encoding and packetization.
  private static let videoTimingKept = 7
}

// MARK: - RED and RTX

/// Redundant payloads (RFC 2198 section 3).
///
/// Older payloads precede the primary one. Video with ULPFEC uses RED with one block per packet.
package enum RED {
  /// A packet's primary block and the number of redundant blocks before it.
  package struct Primary: Hashable, Sendable {
    package var payloadType: UInt8
    /// The block's payload range in the packet.
    package var payload: Range<Int>
    package var redundantBlocks: Int
  }

  /// Returns the primary block; nil if the lengths exceed the payload.
  package static func primary(_ bytes: RawSpan, in payload: Range<Int>) -> Primary? {
    guard payload.upperBound <= bytes.byteCount else { return nil }
    var offset = payload.lowerBound
    var redundantLength = 0
    var blocks = 0
    while offset < payload.upperBound, bytes.byte(at: offset) & 0x80 != 0 {
      guard payload.upperBound - offset > 4 else { return nil }
      // A redundant block's header ends with a 10-bit length.
      redundantLength += Int(bytes.uint16(at: offset + 2) & 0x3ff)
      offset += 4
      blocks += 1
    }
    guard offset < payload.upperBound, payload.upperBound - offset > redundantLength else {
      return nil
    }
    return Primary(
      payloadType: bytes.byte(at: offset) & 0x7f,
      payload: offset + 1 + redundantLength..<payload.upperBound, redundantBlocks: blocks)
  }
}

/// The retransmission payload format: the original sequence number, then the payload (RFC 4588
/// section 4).
package enum RTX {
  /// The length of the original sequence number, in bytes.
  package static let overhead = 2

  /// Returns the original sequence number and the range of the payload.
  ///
  /// Nil if there is no complete sequence number, as in packets that only probe the path.
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
