import Wire

/// Builds one SCTP packet, chunk by chunk (RFC 9260 section 3).
struct PacketBuilder {
  /// The length of the common header.
  static let header = 12

  private var writer = ByteWriter()
  private let limit: Int

  /// Whether the packet has a chunk of data.
  private(set) var hasData = false

  /// Creates a builder of packets of at most so many bytes.
  init(limit: Int) { self.limit = limit }

  /// Whether the packet has no chunk.
  var isEmpty: Bool { writer.count <= Self.header }

  /// How many bytes of chunks still fit.
  var room: Int { limit - max(writer.count, Self.header) }

  /// Begins a packet; the last one must have been finished.
  mutating func begin(from localPort: UInt16, to remotePort: UInt16, tag: UInt32) {
    writer = ByteWriter(capacity: limit)
    hasData = false
    writer.uint16(localPort)
    writer.uint16(remotePort)
    writer.uint32(tag)
    writer.uint32(0)
  }

  /// Whether a packet was begun.
  var isBegun: Bool { writer.count > 0 }

  /// Appends a whole control chunk and its padding.
  mutating func chunk(_ type: ChunkType, flags: UInt8 = 0, _ body: [UInt8] = []) {
    header(type, flags: flags, length: body.count)
    writer.append(body)
    pad(body.count)
  }

  /// Appends a chunk of data that two parts make up: fields, and bytes that are borrowed.
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

  /// Ends the packet, computes its checksum if asked, and gives it away.
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
  /// Appends a parameter or an error cause with its padding (RFC 9260 section 3.2.1).
  mutating func parameter(_ type: UInt16, _ value: [UInt8] = []) {
    uint16(type)
    uint16(UInt16(truncatingIfNeeded: value.count + 4))
    append(value)
    zeros(-value.count & 3)
  }
}

extension ByteReader {
  /// The next parameter or error cause with its padding; nil at the end or where none is whole.
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
