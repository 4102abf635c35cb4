import Wire

@testable import SCTP

/// Hand-made packets, and a side's responses to them.
struct Crafted {
  struct Chunk: Equatable {
    var type: ChunkType
    var flags: UInt8 = 0
    var body: [UInt8] = []
  }

  /// Makes a packet between ports 5000 with a verification tag, chunks and a valid checksum.
  static func packet(tag: UInt32, _ chunks: [Chunk]) -> [UInt8] {
    var builder = PacketBuilder(limit: 1400)
    builder.begin(from: 5000, to: 5000, tag: tag)
    for chunk in chunks { builder.chunk(chunk.type, flags: chunk.flags, chunk.body) }
    return builder.finish(checksum: true)
  }

  /// Returns a packet with its checksum, which must be zero, filled in.
  static func sealed(_ packet: [UInt8]) -> [UInt8] {
    var packet = packet
    let sum = CRC32C.checksum(of: packet.span.bytes)
    for offset in 0..<4 { packet[8 + offset] = UInt8(truncatingIfNeeded: sum >> (8 * offset)) }
    return packet
  }

  /// Parses a packet's tag and chunks as far as possible, ignoring ports and checksum.
  static func read(_ packet: [UInt8]) -> (tag: UInt32, chunks: [Chunk]) {
    var reader = ByteReader(packet.span.bytes)
    var chunks: [Chunk] = []
    guard (try? reader.skip(4)) != nil, let tag = try? reader.uint32(),
      (try? reader.skip(4)) != nil
    else { return (0, []) }
    while let type = try? reader.uint8(), let flags = try? reader.uint8(),
      let length = try? reader.uint16(), let body = try? reader.array(Int(length) - 4)
    {
      chunks.append(Chunk(type: ChunkType(rawValue: type), flags: flags, body: body))
      try? reader.skip(min(-Int(length) & 3, reader.remaining))
    }
    return (tag, chunks)
  }

  /// Delivers a packet to a side and returns the chunks that it sends immediately.
  static func answer(
    _ association: inout SCTPAssociation, to packet: [UInt8], at now: Instant
  ) -> [(tag: UInt32, chunk: Chunk)] {
    var outbox = Outbox<SCTPAssociation.Output>()
    association.step(.packet(packet), at: now, into: &outbox)
    var answers: [(tag: UInt32, chunk: Chunk)] = []
    while let output = outbox.next() {
      guard case .packet(let bytes) = output else { continue }
      let (tag, chunks) = read(bytes)
      answers += chunks.map { (tag, $0) }
    }
    return answers
  }

  /// Delivers chunks in a packet with the side's local tag.
  static func answer(
    _ association: inout SCTPAssociation, to chunks: [Chunk], at now: Instant
  ) -> [Chunk] {
    answer(&association, to: packet(tag: association.handshake.localTag, chunks), at: now).map(
      \.chunk)
  }

  /// Encodes 16-bit words in network byte order.
  static func words(_ words: UInt16...) -> [UInt8] {
    words.flatMap { [UInt8($0 >> 8), UInt8($0 & 0xff)] }
  }

  /// Encodes 32-bit words in network byte order.
  static func words(long words: UInt32...) -> [UInt8] {
    words.flatMap { word in (0..<4).map { UInt8(truncatingIfNeeded: word >> (24 - 8 * $0)) } }
  }

  /// Makes a DATA chunk with a complete ordered message.
  static func data(
    _ number: UInt32, stream: UInt16, sequence: UInt16 = 0, kind: UInt32 = 51, _ bytes: [UInt8]
  ) -> Chunk {
    Chunk(
      type: .data, flags: 3,
      body: words(long: number) + words(stream, sequence) + words(long: kind) + bytes)
  }
}
