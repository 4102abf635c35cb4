import Wire

/// A chunk that carries no data: its type, its flags and what follows its header.
struct ControlChunk: Hashable {
  var type: ChunkType
  var flags: UInt8 = 0
  var body: [UInt8] = []

  /// An ERROR chunk with one cause (RFC 9260 section 3.3.10).
  static func error(_ cause: ErrorCause, _ details: [UInt8]) -> ControlChunk {
    causes(.error, cause, details)
  }

  /// An ABORT chunk with one cause (RFC 9260 section 3.3.7).
  static func abort(_ cause: ErrorCause, _ details: [UInt8] = []) -> ControlChunk {
    causes(.abort, cause, details)
  }

  /// An ERROR chunk that reports an unknown chunk, complete if it fits (RFC 9260 section 3.3.10.6).
  static func unrecognized(
    _ type: ChunkType, _ flags: UInt8, _ body: RawSpan, capacity: Int
  ) -> ControlChunk {
    var chunk = ByteWriter()
    chunk.uint8(type.rawValue)
    chunk.uint8(flags)
    chunk.uint16(UInt16(truncatingIfNeeded: body.byteCount + 4))
    chunk.append(body.extracting(0..<min(body.byteCount, (capacity - 12) & ~3)))
    return error(.unrecognizedChunk, chunk.bytes)
  }

  private static func causes(
    _ type: ChunkType, _ cause: ErrorCause, _ details: [UInt8]
  ) -> ControlChunk {
    var body = ByteWriter()
    body.parameter(cause.rawValue, details)
    return ControlChunk(type: type, body: body.bytes)
  }
}

/// Why this side ends an association with an ABORT.
struct SCTPFailure: Hashable {
  var cause: ErrorCause
  /// In words, for the application and, where the cause takes words, for the peer.
  var reason: String
  /// What the cause has to say beside words.
  var details: [UInt8] = []
}

/// What a part of an association asks of the others; a list of these is done in its order.
enum SCTPAction: Hashable {
  /// A chunk for the packet under way.
  case append(ControlChunk)
  /// A packet of its own, which always has its checksum (RFC 9653 section 5.2).
  case packet([ControlChunk], tag: UInt32)
  /// The packet under way goes out before what follows.
  case emit
  /// The timer passes after the retransmission timeout.
  case arm(SCTPTimer)
  case cancel(SCTPTimer)
  /// The retransmission timeout doubles (RFC 9260 section 6.3.3, rule E2).
  case backOff
  /// The message cannot be used.
  case drop
  /// Data can flow.
  case establish
  case fail(SCTPFailure)
  case end(String?)
}
