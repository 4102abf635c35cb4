import Wire

/// What is to be done with a packet.
enum PacketAdmission {
  /// It belongs to the association: its chunks are to be read.
  case chunks
  /// It came before the start and is kept, or is of no use.
  case nothing
  /// It is of another time and answered with a chunk and the tag that it came with.
  case answer(ControlChunk, tag: UInt32)
}

/// Packets before their chunks are read: those that came before the start, and how many came or
/// were of no use (RFC 9260 sections 8.4 and 8.5).
struct PacketReader {
  /// Packets received before the start.
  private(set) var early: [[UInt8]] = []
  private(set) var received: UInt64 = 0
  /// How many packets and chunks were of no use.
  private(set) var dropped: UInt64 = 0

  /// Counts what is of no use.
  mutating func drop() { dropped += 1 }

  /// The packets that came before the start, which are handled now.
  mutating func removeEarly() -> [[UInt8]] {
    defer { early = [] }
    return early
  }

  /// Forgets the packets that came before the start.
  mutating func end() { early = [] }

  /// Sorts a packet by its header and by where the association is.
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

/// Reads the chunks of a packet one after the other (RFC 9260 section 3.2).
struct ChunkReader: ~Escapable {
  private var reader: ByteReader
  private var isFirst = true
  /// The type of the chunk that was read last.
  private(set) var type = ChunkType.padding
  private(set) var flags: UInt8 = 0

  /// Begins behind the header of a packet.
  @_lifetime(copy packet)
  init(_ packet: RawSpan) throws(ReadError) {
    reader = ByteReader(packet)
    try reader.skip(PacketBuilder.header)
  }

  /// The body of the next chunk; nil at the end of the packet.
  ///
  /// A chunk where its type may not stand is malformed, like one that is cut off.
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
