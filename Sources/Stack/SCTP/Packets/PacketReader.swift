import Wire

/// What to do with a received packet.
enum PacketAdmission {
  /// The packet belongs to the association, and its chunks are read.
  case chunks
  /// The packet was stored until the start, or dropped.
  case nothing
  /// The packet belongs to another association and is answered with a chunk under that
  /// association's tag.
  case answer(ControlChunk, tag: UInt32)
}

/// Decides which packets are read; stores packets received before the start, and counts received
/// and dropped packets (RFC 9260 sections 8.4 and 8.5).
struct PacketReader {
  /// Packets received before the start.
  private(set) var early: [[UInt8]] = []
  private(set) var received: UInt64 = 0
  /// The number of dropped packets and chunks.
  private(set) var dropped: UInt64 = 0

  /// Counts a dropped packet or chunk.
  mutating func drop() { dropped += 1 }

  /// Removes and returns the packets received before the start.
  mutating func removeEarly() -> [[UInt8]] {
    defer { early = [] }
    return early
  }

  /// Drops the packets received before the start.
  mutating func end() { early = [] }

  /// Decides how to treat a packet, by its header and the association's state.
  mutating func admit(
    _ bytes: [UInt8], _ parameters: SCTPParameters, _ handshake: Handshake
  ) -> PacketAdmission {
    let phase = handshake.phase
    if phase == .idle {
      if early.count < SCTPLimits.earlyPackets { early.append(bytes) } else { drop() }
      return .nothing
    }
    guard let header = PacketHeader(bytes, parameters) else {
      drop()
      return .nothing
    }
    guard phase != .ended,
      header.belongs(localTag: handshake.localTag, remoteTag: handshake.peer.tag)
    else {
      drop()
      return header.answerOutOfTheBlue(phase, bytes).map { .answer($0, tag: header.tag) }
        ?? .nothing
    }
    received += 1
    return .chunks
  }
}

/// Reads the chunks of a packet in order (RFC 9260 section 3.2).
struct ChunkReader: ~Escapable {
  private var reader: ByteReader
  private var isFirst = true
  /// Type of the last chunk read.
  private(set) var type = ChunkType.padding
  private(set) var flags: UInt8 = 0

  /// Creates a reader that starts after a packet's header.
  @_lifetime(copy packet)
  init(_ packet: RawSpan) throws(ReadError) {
    reader = ByteReader(packet)
    try reader.skip(PacketBuilder.header)
  }

  /// Returns the body of the next chunk; nil at the end of the packet.
  ///
  /// A chunk type that is not allowed at its position counts as malformed, as does a truncated
  /// chunk.
  @_lifetime(copy self)
  mutating func next() throws(ReadError) -> RawSpan? {
    guard reader.remaining >= 4 else { return nil }
    type = ChunkType(rawValue: try reader.uint8())
    flags = try reader.uint8()
    let length = Int(try reader.uint16())
    guard length >= 4 else { throw .malformed }
    let body = try reader.span(length - 4)
    try reader.skip(min(-length & 3, reader.remaining))
    guard type.mayStand(isFirst: isFirst, isAlone: isFirst && reader.remaining < 4) else {
      throw .malformed
    }
    isFirst = false
    return body
  }
}

// MARK: - PacketHeader

/// The header of an intact packet, which determines the packet's association (RFC 9260 sections 8.4
/// and 8.5).
struct PacketHeader: Hashable {
  let tag: UInt32
  let first: ChunkType
  /// Whether the first chunk's T bit is set, in which case the tag is the sender's own, copied from
  /// the packet that the sender answers.
  let isReflected: Bool

  /// Parses the header; nil if the packet is too short, is for other ports, or is damaged.
  init?(_ bytes: [UInt8], _ parameters: SCTPParameters) {
    guard bytes.count >= PacketBuilder.header + 4, bytes.count <= 65536 else { return nil }
    var reader = ByteReader(bytes.span.bytes)
    guard let source = try? reader.uint16(), let destination = try? reader.uint16(),
      source == parameters.remotePort, destination == parameters.localPort,
      let tag = try? reader.uint32(), let checksum = try? reader.uint32()
    else { return nil }
    self.tag = tag
    first = ChunkType(rawValue: bytes[PacketBuilder.header])
    isReflected = bytes[PacketBuilder.header + 1] & 1 == 1
    // INIT and COOKIE ECHO always have a checksum (RFC 9653 section 5.2).
    let mayLackChecksum = first != .initiation && first != .cookieEcho
    if checksum == 0, parameters.offersZeroChecksum, mayLackChecksum { return }
    guard CRC32C.checksum(of: bytes.span.bytes).byteSwapped == checksum else { return nil }
  }

  /// Returns whether a packet belongs to the association (RFC 9260 section 8.5).
  func belongs(localTag: UInt32, remoteTag: UInt32) -> Bool {
    switch first {
    case .initiation: return tag == 0
    case .abort: return tag == (isReflected ? remoteTag : localTag) && tag != 0
    case .shutdownComplete where isReflected: return tag == remoteTag && tag != 0
    // After a restart, a COOKIE ECHO carries the new tag from the INIT ACK.
    case .cookieEcho: return tag != 0
    default: return tag == localTag
    }
  }

  /// Returns the answer to a packet of another association; nil if it is not answered.
  ///
  /// A new association answers an older one with SHUTDOWN COMPLETE (section 9.2); an association
  /// that has ended answers with ABORT (section 8.4).
  func answerOutOfTheBlue(_ phase: AssociationPhase, _ bytes: [UInt8]) -> ControlChunk? {
    guard phase == .ended || phase.isHandshake, tag != 0, !Self.hasAbort(bytes) else { return nil }
    switch first {
    case .shutdownAcknowledgement: return ControlChunk(type: .shutdownComplete, flags: 1)
    // A valid INIT has tag 0 and was excluded above; an INIT with another tag is discarded. The
    // other three types are never answered (section 8.4).
    case .initiation, .shutdownComplete, .cookieAcknowledgement, .error: return nil
    default: return phase == .ended ? ControlChunk(type: .abort, flags: 1) : nil
    }
  }

  /// Returns whether a packet contains an ABORT or an incomplete chunk.
  private static func hasAbort(_ bytes: [UInt8]) -> Bool {
    var reader = ByteReader(bytes.span.bytes)
    guard (try? reader.skip(PacketBuilder.header)) != nil else { return true }
    while reader.remaining >= 4 {
      guard let type = try? reader.uint8(), (try? reader.uint8()) != nil,
        let length = try? reader.uint16(), length >= 4,
        (try? reader.skip(Int(length) - 4)) != nil
      else { return true }
      if type == ChunkType.abort.rawValue { return true }
      try? reader.skip(min(-Int(length) & 3, reader.remaining))
    }
    return false
  }
}

// MARK: - CRC32C

/// The checksum of SCTP packets: CRC32c, computed eight bytes at a time (RFC 9260 appendix A).
enum CRC32C {
  /// The position of the checksum in the common header.
  private static let field = 8..<12

  /// Eight tables of 256 words: table `k` has the CRC of each byte value followed by `k` zero
  /// bytes.
  private static let tables: [UInt32] = {
    var tables = [UInt32](repeating: 0, count: 8 * 256)
    for byte in 0..<256 {
      var word = UInt32(byte)
      for _ in 0..<8 { word = word & 1 == 1 ? word >> 1 ^ 0x82f6_3b78 : word >> 1 }
      tables[byte] = word
    }
    for index in 256..<tables.count {
      let before = tables[index - 256]
      tables[index] = before >> 8 ^ tables[Int(before & 0xff)]
    }
    return tables
  }()

  /// Returns a packet's checksum, counting the checksum field as zero; the field is little-endian.
  static func checksum(of packet: RawSpan) -> UInt32 {
    guard packet.byteCount >= field.upperBound else { return 0 }
    var remainder: UInt32 = .max
    remainder = advance(remainder, over: packet.extracting(0..<field.lowerBound))
    for _ in field { remainder = remainder >> 8 ^ tables[Int(remainder & 0xff)] }
    remainder = advance(remainder, over: packet.extracting(field.upperBound..<packet.byteCount))
    return ~remainder
  }

  static func value(of bytes: RawSpan) -> UInt32 { ~advance(.max, over: bytes) }

  private static func advance(_ start: UInt32, over bytes: RawSpan) -> UInt32 {
    let table = tables.span
    var remainder = start
    var offset = 0
    // Each table index is a byte plus a multiple of 256, and is always below 2048.
    while offset + 8 <= bytes.byteCount {
      let eight = UInt64(
        littleEndian: unsafe bytes.unsafeLoadUnaligned(
          fromUncheckedByteOffset: offset, as: UInt64.self))
      let word = eight ^ UInt64(remainder)
      var next: UInt32 = 0
      next = unsafe table[unchecked: 1792 + Int(word & 0xff)]
      next ^= unsafe table[unchecked: 1536 + Int(word >> 8 & 0xff)]
      next ^= unsafe table[unchecked: 1280 + Int(word >> 16 & 0xff)]
      next ^= unsafe table[unchecked: 1024 + Int(word >> 24 & 0xff)]
      next ^= unsafe table[unchecked: 768 + Int(word >> 32 & 0xff)]
      next ^= unsafe table[unchecked: 512 + Int(word >> 40 & 0xff)]
      next ^= unsafe table[unchecked: 256 + Int(word >> 48 & 0xff)]
      next ^= unsafe table[unchecked: Int(word >> 56)]
      remainder = next
      offset += 8
    }
    while offset < bytes.byteCount {
      let byte = unsafe bytes.unsafeLoad(fromUncheckedByteOffset: offset, as: UInt8.self)
      let entry = unsafe table[unchecked: Int((remainder ^ UInt32(byte)) & 0xff)]
      remainder = remainder >> 8 ^ entry
      offset += 1
    }
    return remainder
  }
}
