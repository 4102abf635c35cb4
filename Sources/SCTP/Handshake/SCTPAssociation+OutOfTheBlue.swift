import Wire

/// Packets of another time: those of an association that has ended (RFC 9260 section 8.4).
extension SCTPAssociation {
  /// Tells a peer that still sends that the association is over.
  mutating func answerOutOfTheBlue(_ bytes: [UInt8], into outbox: inout Outbox<Output>) {
    drop()
    guard let (tag, first) = blue(bytes) else { return }
    switch first {
    case .shutdownAcknowledgement: reflect(.shutdownComplete, tag: tag, into: &outbox)
    // A packet without a tag begins another association, for which there is no place here.
    case .initiation, .shutdownComplete, .cookieAcknowledgement, .error: break
    default: reflect(.abort, tag: tag, into: &outbox)
    }
  }

  /// Answers the end of an older association while a new one begins (RFC 9260 section 9.2).
  mutating func answerOldShutdown(_ bytes: [UInt8], into outbox: inout Outbox<Output>) {
    guard let (tag, first) = blue(bytes), first == .shutdownAcknowledgement else { return }
    reflect(.shutdownComplete, tag: tag, into: &outbox)
  }

  /// Sends a chunk with the tag of the packet that it answers, and says so.
  mutating func reflect(_ type: ChunkType, tag: UInt32, into outbox: inout Outbox<Output>) {
    sendChecked(type, flags: 1, tag: tag, into: &outbox)
  }

  /// The tag of a whole packet between the two ports and the type of its first chunk; nil when it
  /// is none or ends the association itself.
  private func blue(_ bytes: [UInt8]) -> (tag: UInt32, first: ChunkType)? {
    guard isWhole(bytes) else { return nil }
    var reader = ByteReader(bytes.span.bytes)
    guard (try? reader.skip(4)) != nil, let tag = try? reader.uint32(), tag != 0,
      (try? reader.skip(4)) != nil
    else { return nil }
    let first = ChunkType(rawValue: bytes[PacketBuilder.header])
    while reader.remaining >= 4 {
      guard let type = try? reader.uint8(), (try? reader.uint8()) != nil,
        let length = try? reader.uint16(), length >= 4,
        (try? reader.skip(Int(length) - 4)) != nil
      else { return nil }
      if type == ChunkType.abort.rawValue { return nil }
      try? reader.skip(min(-Int(length) & 3, reader.remaining))
    }
    return (tag, first)
  }
}
