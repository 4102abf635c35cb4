import Wire

/// What a whole and unaltered packet says before its chunks are read: whose it is (RFC 9260
/// sections 8.4 and 8.5).
struct PacketHeader: Hashable {
  /// The verification tag.
  let tag: UInt32
  /// The type of the first chunk.
  let first: ChunkType
  /// Whether the first chunk says that the tag is the sender's, of a packet that it answers.
  let isReflected: Bool

  /// Reads the header; nil unless the packet is long enough, between the two ports, and unaltered.
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
    // INIT and COOKIE ECHO always have their checksum (RFC 9653 section 5.2).
    let mayLackChecksum = first != .initiation && first != .cookieEcho
    if checksum == 0, parameters.offersZeroChecksum, mayLackChecksum { return }
    guard CRC32C.checksum(of: bytes.span.bytes).byteSwapped == checksum else { return nil }
  }

  /// Whether a packet belongs to the association (RFC 9260 section 8.5).
  func belongs(localTag: UInt32, remoteTag: UInt32) -> Bool {
    switch first {
    case .initiation: return tag == 0
    case .abort: return tag == (isReflected ? remoteTag : localTag) && tag != 0
    case .shutdownComplete where isReflected: return tag == remoteTag && tag != 0
    // The cookie of a restarted peer comes with the tag that the answer offered.
    case .cookieEcho: return tag != 0
    default: return tag == localTag
    }
  }

  /// The answer to a packet of another time, with its tag: the end of an older association while a
  /// new one begins (section 9.2), and anything once the association is over (section 8.4).
  func answerOutOfTheBlue(_ phase: AssociationPhase, _ bytes: [UInt8]) -> ControlChunk? {
    guard phase == .ended || phase.isHandshake, tag != 0, !Self.hasAbort(bytes) else { return nil }
    switch first {
    case .shutdownAcknowledgement: return ControlChunk(type: .shutdownComplete, flags: 1)
    // A packet without a tag begins another association, for which there is no place here.
    case .initiation, .shutdownComplete, .cookieAcknowledgement, .error: return nil
    default: return phase == .ended ? ControlChunk(type: .abort, flags: 1) : nil
    }
  }

  /// Whether a packet ends an association itself, or its chunks are not whole.
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
