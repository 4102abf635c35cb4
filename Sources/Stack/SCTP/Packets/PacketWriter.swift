import Wire

/// What the packet under way has room for.
struct PacketSpace {
  /// How many bytes of chunks still fit.
  var room: Int
  /// Whether it has no chunk.
  var isEmpty: Bool
  /// Whether it has a chunk of data.
  var hasData: Bool
}

/// Where packets go.
struct PacketDestination {
  /// The tag of the peer.
  var tag: UInt32
  /// Whether packets have their checksum (RFC 9653).
  var needsChecksum: Bool
}

/// Bundles chunks into packets between two ports (RFC 9260 sections 3 and 6.10).
struct PacketWriter {
  private var builder = PacketBuilder(limit: 1160)
  private var localPort: UInt16 = 5000
  private var remotePort: UInt16 = 5000
  /// The largest packet in bytes.
  private(set) var limit = 1160
  /// How many packets were finished.
  private(set) var sent: UInt64 = 0

  /// How many bytes of chunks a packet has room for.
  var capacity: Int { limit - PacketBuilder.header }

  /// What the packet under way has room for.
  var space: PacketSpace {
    PacketSpace(room: builder.room, isEmpty: builder.isEmpty, hasData: builder.hasData)
  }

  /// Applies the ports and the size of packets.
  mutating func start(_ parameters: SCTPParameters) {
    localPort = parameters.localPort
    remotePort = parameters.remotePort
    limit = parameters.maximumPacketSize
    builder = PacketBuilder(limit: limit)
  }

  /// Appends a control chunk to the packet under way, or to a new one when it does not fit.
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

  /// Sends the packet under way, if it has a chunk.
  mutating func emit(
    to peer: PacketDestination, into outbox: inout Outbox<SCTPAssociation.Output>
  ) {
    guard !builder.isEmpty else { return }
    sent += 1
    outbox.append(.packet(builder.finish(checksum: peer.needsChecksum)))
  }

  /// Sends a packet of its own with its checksum; the packet under way must have been sent.
  mutating func emit(
    _ chunks: [ControlChunk], tag: UInt32, into outbox: inout Outbox<SCTPAssociation.Output>
  ) {
    builder.begin(from: localPort, to: remotePort, tag: tag)
    for chunk in chunks { builder.chunk(chunk.type, flags: chunk.flags, chunk.body) }
    sent += 1
    outbox.append(.packet(builder.finish(checksum: true)))
  }
}
