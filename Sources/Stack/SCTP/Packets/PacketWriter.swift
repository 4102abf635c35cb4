import Wire

/// The space left in the packet being built.
struct PacketSpace {
  /// Bytes of chunks that still fit.
  var room: Int
  var isEmpty: Bool
  var hasData: Bool
}

/// The peer's tag, and whether packets to the peer need a checksum.
struct PacketDestination {
  /// The peer's verification tag.
  var tag: UInt32
  /// Whether packets need a checksum (RFC 9653).
  var needsChecksum: Bool
}

/// Bundles chunks into packets between two ports (RFC 9260 sections 3 and 6.10).
struct PacketWriter {
  private var builder = PacketBuilder(limit: 1160)
  private var localPort: UInt16 = 5000
  private var remotePort: UInt16 = 5000
  /// The largest packet in bytes.
  private(set) var limit = 1160
  /// The number of packets finished.
  private(set) var sent: UInt64 = 0

  /// Bytes of chunks that fit into a packet.
  var capacity: Int { limit - PacketBuilder.header }

  /// The space left in the packet being built.
  var space: PacketSpace {
    PacketSpace(room: builder.room, isEmpty: builder.isEmpty, hasData: builder.hasData)
  }

  /// Applies the ports and the packet size.
  mutating func start(_ parameters: SCTPParameters) {
    localPort = parameters.localPort
    remotePort = parameters.remotePort
    limit = parameters.maximumPacketSize
    builder = PacketBuilder(limit: limit)
  }

  /// Appends a control chunk to the packet being built, or to a new one if it does not fit.
  mutating func append(
    _ chunk: ControlChunk, to peer: PacketDestination,
    into outbox: inout Outbox<SCTPAssociation.Output>
  ) {
    makeRoom(for: chunk.body.count + 4, to: peer, into: &outbox)
    builder.chunk(chunk.type, flags: chunk.flags, chunk.body)
  }

  /// Appends a DATA or I-DATA chunk (RFC 9260 section 3.3.1, RFC 8260 section 2.1).
  mutating func append(
    _ chunk: SentChunk, number: UInt32, interleaved: Bool, to peer: PacketDestination,
    into outbox: inout Outbox<SCTPAssociation.Output>
  ) {
    makeRoom(for: chunk.size, to: peer, into: &outbox)
    let kind = chunk.payloadProtocol.rawValue
    var fields: [6 of UInt32] = .init(repeating: 0)
    fields[0] = number
    fields[1] = UInt32(chunk.stream) << 16
    if interleaved {
      fields[2] = chunk.order
      fields[3] = chunk.flags.contains(.beginning) ? kind : chunk.part
    } else {
      fields[1] |= chunk.order & 0xffff
      fields[2] = kind
    }
    builder.chunk(
      interleaved ? .interleavedData : .data, flags: chunk.flags.rawValue, fields: fields,
      count: interleaved ? 4 : 3,
      chunk.bytes.span.bytes.extracting(chunk.offset..<chunk.offset + chunk.count))
  }

  private mutating func makeRoom(
    for size: Int, to peer: PacketDestination,
    into outbox: inout Outbox<SCTPAssociation.Output>
  ) {
    if builder.isBegun, builder.room < size { emit(to: peer, into: &outbox) }
    if !builder.isBegun { builder.begin(from: localPort, to: remotePort, tag: peer.tag) }
  }

  /// Sends the packet being built if it has a chunk.
  mutating func emit(
    to peer: PacketDestination, into outbox: inout Outbox<SCTPAssociation.Output>
  ) {
    guard !builder.isEmpty else { return }
    sent += 1
    outbox.append(.packet(builder.finish(checksum: peer.needsChecksum)))
  }

  /// Sends chunks in a separate packet with a checksum; the packet being built must already have
  /// been sent.
  mutating func emit(
    _ chunks: [ControlChunk], tag: UInt32, into outbox: inout Outbox<SCTPAssociation.Output>
  ) {
    builder.begin(from: localPort, to: remotePort, tag: tag)
    for chunk in chunks { builder.chunk(chunk.type, flags: chunk.flags, chunk.body) }
    sent += 1
    outbox.append(.packet(builder.finish(checksum: true)))
  }
}

// MARK: - PacketBuilder

/// Builds one SCTP packet, chunk by chunk (RFC 9260 section 3).
struct PacketBuilder {
  /// The common header's length in bytes.
  static let header = 12

  private var writer = ByteWriter()
  private let limit: Int

  private(set) var hasData = false

  /// Creates a builder for packets of up to `limit` bytes.
  init(limit: Int) { self.limit = limit }

  var isEmpty: Bool { writer.count <= Self.header }

  /// Bytes of chunks that still fit.
  var room: Int { limit - max(writer.count, Self.header) }

  /// Starts a packet; the previous one must have been finished.
  mutating func begin(from localPort: UInt16, to remotePort: UInt16, tag: UInt32) {
    writer = ByteWriter(capacity: limit)
    hasData = false
    writer.uint16(localPort)
    writer.uint16(remotePort)
    writer.uint32(tag)
    writer.uint32(0)
  }

  var isBegun: Bool { writer.count > 0 }

  /// Appends a complete control chunk with padding.
  mutating func chunk(_ type: ChunkType, flags: UInt8 = 0, _ body: [UInt8] = []) {
    header(type, flags: flags, length: body.count)
    writer.append(body)
    pad(body.count)
  }

  /// Appends a data chunk from two parts: fields and borrowed bytes.
  mutating func chunk(
    _ type: ChunkType, flags: UInt8, fields: [6 of UInt32], count: Int, _ rest: RawSpan
  ) {
    let length = 4 * count + rest.byteCount
    header(type, flags: flags, length: length)
    for index in 0..<count { writer.uint32(fields[index]) }
    hasData = true
    writer.append(rest)
    pad(length)
  }

  /// Finishes the packet, with its checksum if requested, and returns it.
  mutating func finish(checksum: Bool) -> [UInt8] {
    if checksum {
      let sum = CRC32C.checksum(of: writer.bytes.span.bytes).byteSwapped
      writer.patch(uint16: UInt16(truncatingIfNeeded: sum >> 16), at: 8)
      writer.patch(uint16: UInt16(truncatingIfNeeded: sum), at: 10)
    }
    let packet = writer.bytes
    writer = ByteWriter()
    hasData = false
    return packet
  }

  private mutating func header(_ type: ChunkType, flags: UInt8, length: Int) {
    writer.uint8(type.rawValue)
    writer.uint8(flags)
    writer.uint16(UInt16(truncatingIfNeeded: length + 4))
  }

  private mutating func pad(_ length: Int) { writer.zeros(-length & 3) }
}

extension ByteWriter {
  /// Appends a parameter or error cause with padding (RFC 9260 section 3.2.1).
  mutating func parameter(_ type: UInt16, _ value: [UInt8] = []) {
    uint16(type)
    uint16(UInt16(truncatingIfNeeded: value.count + 4))
    append(value)
    zeros(-value.count & 3)
  }
}

extension ByteReader {
  /// Returns the next parameter or error cause and skips its padding; nil at the end or if
  /// incomplete.
  @_lifetime(copy self)
  mutating func parameter(_ type: inout UInt16) -> RawSpan? {
    guard remaining >= 4, let number = try? uint16(), let length = try? uint16(), length >= 4,
      let value = try? span(Int(length) - 4)
    else { return nil }
    type = number
    try? skip(min(-value.byteCount & 3, remaining))
    return value
  }
}
