import Wire

/// A chunk's type (RFC 9260 section 3.2 and its extensions).
struct ChunkType: RawRepresentable, Hashable, Sendable {
  var rawValue: UInt8

  static let data = ChunkType(rawValue: 0)
  static let initiation = ChunkType(rawValue: 1)
  static let initiationAcknowledgement = ChunkType(rawValue: 2)
  static let selectiveAcknowledgement = ChunkType(rawValue: 3)
  static let heartbeat = ChunkType(rawValue: 4)
  static let heartbeatAcknowledgement = ChunkType(rawValue: 5)
  static let abort = ChunkType(rawValue: 6)
  static let shutdown = ChunkType(rawValue: 7)
  static let shutdownAcknowledgement = ChunkType(rawValue: 8)
  static let error = ChunkType(rawValue: 9)
  static let cookieEcho = ChunkType(rawValue: 10)
  static let cookieAcknowledgement = ChunkType(rawValue: 11)
  static let shutdownComplete = ChunkType(rawValue: 14)
  /// Data that may interleave with other messages (RFC 8260 section 2.1).
  static let interleavedData = ChunkType(rawValue: 64)
  /// Requests to reset streams, and responses (RFC 6525 section 3.1).
  static let reconfiguration = ChunkType(rawValue: 130)
  /// Padding (RFC 4820 section 3).
  static let padding = ChunkType(rawValue: 132)
  /// Makes the receiver skip abandoned data (RFC 3758 section 3.2).
  static let forward = ChunkType(rawValue: 192)
  /// Makes the receiver skip abandoned interleaved data (RFC 8260 section 2.3).
  static let interleavedForward = ChunkType(rawValue: 194)

  /// Returns whether the chunk may be at this position in a packet; some chunks must be alone in
  /// their packet, and a cookie must be first (RFC 9260 sections 5.1 and 6.10).
  func mayStand(isFirst: Bool, isAlone: Bool) -> Bool {
    switch self {
    case .initiation, .initiationAcknowledgement, .shutdownComplete: isAlone
    case .cookieEcho: isFirst
    default: true
    }
  }

  /// Whether an unknown chunk of this type is skipped rather than ending the packet.
  var isSkippedWhenUnknown: Bool { rawValue & 0x80 != 0 }
  /// Whether an unknown chunk of this type is reported to the peer.
  var isReportedWhenUnknown: Bool { rawValue & 0x40 != 0 }
}

/// A parameter type within a chunk (RFC 9260 section 3.2.1 and its extensions).
struct ParameterType: RawRepresentable, Hashable, Sendable {
  var rawValue: UInt16

  static let heartbeatInformation = ParameterType(rawValue: 1)
  static let ipv4Address = ParameterType(rawValue: 5)
  static let ipv6Address = ParameterType(rawValue: 6)
  static let stateCookie = ParameterType(rawValue: 7)
  static let unrecognized = ParameterType(rawValue: 8)
  static let cookiePreservative = ParameterType(rawValue: 9)
  static let hostName = ParameterType(rawValue: 11)
  static let supportedAddressTypes = ParameterType(rawValue: 12)
  static let outgoingResetRequest = ParameterType(rawValue: 13)
  static let incomingResetRequest = ParameterType(rawValue: 14)
  static let associationResetRequest = ParameterType(rawValue: 15)
  static let reconfigurationResponse = ParameterType(rawValue: 16)
  static let addOutgoingStreamsRequest = ParameterType(rawValue: 17)
  static let addIncomingStreamsRequest = ParameterType(rawValue: 18)
  static let ecnCapable = ParameterType(rawValue: 0x8000)
  /// States that packets sent to the sender of this parameter may omit the checksum (RFC 9653
  /// section 4).
  static let zeroChecksumAcceptable = ParameterType(rawValue: 0x8001)
  /// Lists chunk types that the sender supports besides the basic ones (RFC 5061 section 4.2.7).
  static let supportedExtensions = ParameterType(rawValue: 0x8008)
  static let forwardSupported = ParameterType(rawValue: 0xc000)
}

/// The cause of an ERROR or ABORT chunk (RFC 9260 section 3.3.10).
struct ErrorCause: RawRepresentable, Hashable, Sendable {
  var rawValue: UInt16

  static let invalidStream = ErrorCause(rawValue: 1)
  static let missingParameter = ErrorCause(rawValue: 2)
  static let staleCookie = ErrorCause(rawValue: 3)
  static let outOfResource = ErrorCause(rawValue: 4)
  static let unrecognizedChunk = ErrorCause(rawValue: 6)
  static let invalidParameter = ErrorCause(rawValue: 7)
  static let unrecognizedParameters = ErrorCause(rawValue: 8)
  static let noUserData = ErrorCause(rawValue: 9)
  static let cookieWhileShuttingDown = ErrorCause(rawValue: 10)
  static let userInitiated = ErrorCause(rawValue: 12)
  static let protocolViolation = ErrorCause(rawValue: 13)

  /// Whether the cause may include a reason as text.
  var hasText: Bool { self == .userInitiated || self == .protocolViolation }
}

/// The payload protocol identifier of a message (RFC 8831 section 8).
struct PayloadProtocol: RawRepresentable, Hashable, Sendable {
  var rawValue: UInt32

  static let control = PayloadProtocol(rawValue: 50)
  static let string = PayloadProtocol(rawValue: 51)
  /// A part of a binary message; the last part uses `binary` instead; obsolete.
  static let binaryPart = PayloadProtocol(rawValue: 52)
  static let binary = PayloadProtocol(rawValue: 53)
  /// A part of a text message; the last part uses `string` instead; obsolete.
  static let stringPart = PayloadProtocol(rawValue: 54)
  static let emptyString = PayloadProtocol(rawValue: 56)
  static let emptyBinary = PayloadProtocol(rawValue: 57)
}

/// The flags of DATA and I-DATA chunks (RFC 9260 section 3.3.1).
struct DataFlags: OptionSet, Hashable, Sendable {
  var rawValue: UInt8

  static let end = DataFlags(rawValue: 1)
  static let beginning = DataFlags(rawValue: 2)
  static let unordered = DataFlags(rawValue: 4)
  /// Asks the receiver to acknowledge immediately.
  static let immediate = DataFlags(rawValue: 8)
}

/// The result of a request to reset streams (RFC 6525 section 4.4).
struct ResetResult: RawRepresentable, Hashable, Sendable {
  var rawValue: UInt32

  static let nothingToDo = ResetResult(rawValue: 0)
  static let performed = ResetResult(rawValue: 1)
  static let denied = ResetResult(rawValue: 2)
  static let badSequenceNumber = ResetResult(rawValue: 5)
  static let inProgress = ResetResult(rawValue: 6)
}

// MARK: - SCTPText

/// Describes SCTP packets in text for people who examine a take; accepts any bytes.
package enum SCTPText {
  /// The maximum number of chunks described.
  private static let chunksMaximum = 16

  /// Returns a packet's chunks on one line: `SCTP SACK up to 7, DATA 12 ...`.
  package static func title(_ packet: RawSpan) -> String {
    var chunks: [String] = []
    var reader = ByteReader(packet)
    try? reader.skip(PacketBuilder.header)
    while chunks.count < chunksMaximum, reader.remaining >= 4 {
      guard let type = try? reader.uint8(), let flags = try? reader.uint8(),
        let length = try? reader.uint16(), length >= 4,
        let body = try? reader.span(Int(length) - 4)
      else {
        chunks.append("a chunk that is cut off")
        break
      }
      try? reader.skip(min(-Int(length) & 3, reader.remaining))
      chunks.append(chunk(ChunkType(rawValue: type), flags, body))
    }
    return "SCTP " + (chunks.isEmpty ? "\(packet.byteCount) bytes" : chunks.joined(separator: "; "))
  }

  private static func chunk(_ type: ChunkType, _ flags: UInt8, _ body: RawSpan) -> String {
    var reader = ByteReader(body)
    switch type {
    case .data, .interleavedData:
      return (try? data(type == .interleavedData, DataFlags(rawValue: flags), &reader))
        ?? "DATA that is cut off"
    case .selectiveAcknowledgement:
      return (try? acknowledgement(&reader)) ?? "SACK that is cut off"
    case .forward, .interleavedForward:
      let number = try? reader.uint32()
      return "FORWARD-TSN up to \(number.map { String($0) } ?? "?")"
    case .reconfiguration: return "RE-CONFIG " + reconfiguration(&reader)
    case .abort, .error:
      var cause: UInt16 = 0
      _ = reader.parameter(&cause)
      return (type == .abort ? "ABORT" : "ERROR") + (cause == 0 ? "" : " cause \(cause)")
    default:
      return names.first { $0.0 == type }?.1 ?? "chunk of type \(type.rawValue)"
    }
  }

  private static func data(
    _ interleaved: Bool, _ flags: DataFlags, _ reader: inout ByteReader
  ) throws(ReadError) -> String {
    let number = try reader.uint32()
    let stream = try reader.uint16()
    let sequence = UInt32(try reader.uint16())
    let message = interleaved ? try reader.uint32() : sequence
    let word = try reader.uint32()
    let isFirst = flags.contains(.beginning)
    var words = ["\(interleaved ? "I-DATA" : "DATA") \(number) on stream \(stream)"]
    words.append(flags.contains(.unordered) ? "unordered" : "message \(message)")
    if !interleaved || isFirst { words.append(kind(PayloadProtocol(rawValue: word), reader)) }
    switch (isFirst, flags.contains(.end)) {
    case (true, true): break
    case (true, false): words.append("first part")
    case (false, true): words.append("last part")
    case (false, false): words.append("part")
    }
    words.append("\(reader.remaining) bytes")
    return words.joined(separator: ", ")
  }

  private static func kind(_ kind: PayloadProtocol, _ reader: borrowing ByteReader) -> String {
    switch kind {
    case .control:
      let rest = copy reader
      switch try? ChannelMessage(rest.rest()) {
      case .open(let options): return "OPEN \"\(options.label)\""
      case .acknowledgement: return "OPEN acknowledged"
      case nil: return "control"
      }
    case .string, .stringPart: return "text"
    case .emptyString: return "empty text"
    case .binary, .binaryPart: return "binary"
    case .emptyBinary: return "empty binary"
    default: return "protocol \(kind.rawValue)"
    }
  }

  private static func acknowledgement(_ reader: inout ByteReader) throws(ReadError) -> String {
    let cumulative = try reader.uint32()
    let window = try reader.uint32()
    let gaps = try reader.uint16()
    let duplicates = try reader.uint16()
    var words = ["SACK up to \(cumulative)", "window \(window)"]
    if gaps > 0 { words.append("\(gaps) ranges above") }
    if duplicates > 0 { words.append("\(duplicates) came twice") }
    return words.joined(separator: ", ")
  }

  private static func reconfiguration(_ reader: inout ByteReader) -> String {
    var words: [String] = []
    var type: UInt16 = 0
    while words.count < 4, let value = reader.parameter(&type) {
      var inner = ByteReader(value)
      switch ParameterType(rawValue: type) {
      case .outgoingResetRequest:
        try? inner.skip(min(12, inner.remaining))
        var streams: [String] = []
        while let stream = try? inner.uint16(), streams.count < 16 { streams.append("\(stream)") }
        words.append("resets " + (streams.isEmpty ? "all" : streams.joined(separator: " ")))
      case .reconfigurationResponse:
        try? inner.skip(min(4, inner.remaining))
        let result = (try? inner.uint32()).map { ResetResult(rawValue: $0) }
        words.append(result == .performed ? "performed" : "answered \(result?.rawValue ?? 0)")
      default: words.append("request of type \(type)")
      }
    }
    return words.joined(separator: ", ")
  }

  private static let names: [(ChunkType, String)] = [
    (.initiation, "INIT"), (.initiationAcknowledgement, "INIT ACK"), (.heartbeat, "HEARTBEAT"),
    (.heartbeatAcknowledgement, "HEARTBEAT ACK"), (.shutdown, "SHUTDOWN"),
    (.shutdownAcknowledgement, "SHUTDOWN ACK"), (.cookieEcho, "COOKIE ECHO"),
    (.cookieAcknowledgement, "COOKIE ACK"), (.shutdownComplete, "SHUTDOWN COMPLETE"),
    (.padding, "PAD"),
  ]
}
