/// The type of a chunk (RFC 9260 section 3.2 and its extensions).
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
  /// Requests to reset streams and their answers (RFC 6525 section 3.1).
  static let reconfiguration = ChunkType(rawValue: 130)
  /// Padding (RFC 4820 section 3).
  static let padding = ChunkType(rawValue: 132)
  /// Tells the receiver to pass over abandoned data (RFC 3758 section 3.2).
  static let forward = ChunkType(rawValue: 192)
  /// The same for interleaved data (RFC 8260 section 2.3).
  static let interleavedForward = ChunkType(rawValue: 194)

  /// Whether a packet may have the chunk there: some come alone, a cookie comes first (RFC 9260
  /// sections 5.1 and 6.10).
  func mayStand(isFirst: Bool, isAlone: Bool) -> Bool {
    switch self {
    case .initiation, .initiationAcknowledgement, .shutdownComplete: isAlone
    case .cookieEcho: isFirst
    default: true
    }
  }

  /// Whether an unknown chunk of this type is passed over; else it ends the packet.
  var isSkippedWhenUnknown: Bool { rawValue & 0x80 != 0 }
  /// Whether an unknown chunk of this type is reported to the peer.
  var isReportedWhenUnknown: Bool { rawValue & 0x40 != 0 }
}

/// The type of a parameter inside a chunk (RFC 9260 section 3.2.1 and its extensions).
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
  /// The packets of the sender of this need no checksum (RFC 9653 section 4).
  static let zeroChecksumAcceptable = ParameterType(rawValue: 0x8001)
  /// Which chunk types the sender knows besides the basic ones (RFC 5061 section 4.2.7).
  static let supportedExtensions = ParameterType(rawValue: 0x8008)
  static let forwardSupported = ParameterType(rawValue: 0xc000)
}

/// Why an ERROR or ABORT chunk was sent (RFC 9260 section 3.3.10).
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

  /// Whether the cause may say why in words.
  var hasText: Bool { self == .userInitiated || self == .protocolViolation }
}

/// What a message is (RFC 8831 section 8).
struct PayloadProtocol: RawRepresentable, Hashable, Sendable {
  var rawValue: UInt32

  static let control = PayloadProtocol(rawValue: 50)
  static let string = PayloadProtocol(rawValue: 51)
  /// A part of a binary message that ends with a `binary` one; nobody sends these any more.
  static let binaryPart = PayloadProtocol(rawValue: 52)
  static let binary = PayloadProtocol(rawValue: 53)
  /// A part of a text that ends with a `string` one; nobody sends these any more.
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
  /// The receiver should acknowledge at once.
  static let immediate = DataFlags(rawValue: 8)
}

/// How a request to reset streams went (RFC 6525 section 4.4).
struct ResetResult: RawRepresentable, Hashable, Sendable {
  var rawValue: UInt32

  static let nothingToDo = ResetResult(rawValue: 0)
  static let performed = ResetResult(rawValue: 1)
  static let denied = ResetResult(rawValue: 2)
  static let badSequenceNumber = ResetResult(rawValue: 5)
  static let inProgress = ResetResult(rawValue: 6)
}
