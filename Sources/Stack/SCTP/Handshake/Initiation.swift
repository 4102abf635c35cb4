import Wire

/// What an INIT or INIT ACK chunk says about its sender (RFC 9260 section 3.3.2).
struct Initiation: Hashable {
  /// What the sender can do besides the basic protocol.
  struct Features: OptionSet, Hashable {
    var rawValue: UInt8

    /// Partial reliability (RFC 3758).
    static let forward = Features(rawValue: 1)
    /// Resetting streams (RFC 6525).
    static let reconfiguration = Features(rawValue: 2)
    /// Interleaved messages (RFC 8260).
    static let interleaving = Features(rawValue: 4)
    /// Packets without a checksum (RFC 9653).
    static let zeroChecksum = Features(rawValue: 8)
  }

  /// The tag that packets to the sender carry.
  var tag: UInt32 = 0
  /// The receive window in bytes.
  var window: UInt32 = 0
  var outgoingStreams: UInt16 = 0
  var incomingStreams: UInt16 = 0
  /// The number of the sender's first DATA chunk.
  var firstNumber: UInt32 = 0
  var features: Features = []

  /// The way of detecting errors that stands in for the checksum: DTLS (RFC 9653 section 6).
  private static let errorDetectionByDTLS: UInt32 = 1

  /// Whether an association can be made with it: a receive window below 1,500 bytes and streams
  /// that are none are invalid (RFC 9260 section 3.3.2).
  var isAcceptable: Bool { window >= 1500 && outgoingStreams > 0 && incomingStreams > 0 }

  /// Writes the chunk's body, with a cookie and reports in an INIT ACK.
  func body(cookie: [UInt8] = [], unrecognized: [[UInt8]] = []) -> [UInt8] {
    var writer = ByteWriter(capacity: 64 + cookie.count)
    writer.uint32(tag)
    writer.uint32(window)
    writer.uint16(outgoingStreams)
    writer.uint16(incomingStreams)
    writer.uint32(firstNumber)
    if !cookie.isEmpty { writer.parameter(ParameterType.stateCookie.rawValue, cookie) }
    if features.contains(.forward) { writer.parameter(ParameterType.forwardSupported.rawValue) }
    var extensions: [ChunkType] = []
    if features.contains(.reconfiguration) { extensions.append(.reconfiguration) }
    if features.contains(.forward) { extensions.append(.forward) }
    if features.contains(.interleaving) { extensions += [.interleavedData, .interleavedForward] }
    writer.parameter(ParameterType.supportedExtensions.rawValue, extensions.map(\.rawValue))
    if features.contains(.zeroChecksum) {
      var method = ByteWriter()
      method.uint32(Self.errorDetectionByDTLS)
      writer.parameter(ParameterType.zeroChecksumAcceptable.rawValue, method.bytes)
    }
    for parameter in unrecognized {
      writer.parameter(ParameterType.unrecognized.rawValue, parameter)
    }
    return writer.bytes
  }

  init() {}

  /// Reads a chunk's body, its cookie and the parameters that are to be reported.
  init(_ body: RawSpan, cookie: inout [UInt8], unrecognized: inout [[UInt8]]) throws(ReadError) {
    var reader = ByteReader(body)
    tag = try reader.uint32()
    window = try reader.uint32()
    outgoingStreams = try reader.uint16()
    incomingStreams = try reader.uint16()
    firstNumber = try reader.uint32()
    var number: UInt16 = 0
    while let value = reader.parameter(&number) {
      switch ParameterType(rawValue: number) {
      case .stateCookie: cookie = [UInt8](value)
      case .forwardSupported: features.insert(.forward)
      case .supportedExtensions: features.formUnion(Self.extensions(value))
      case .zeroChecksumAcceptable:
        var method = ByteReader(value)
        if (try? method.uint32()) == Self.errorDetectionByDTLS { features.insert(.zeroChecksum) }
      case .ipv4Address, .ipv6Address, .cookiePreservative, .hostName, .supportedAddressTypes,
        .unrecognized, .ecnCapable:
        break
      default:
        if number & 0x4000 != 0, unrecognized.count < 8, value.byteCount <= 64 {
          var copy = ByteWriter()
          copy.parameter(number, [UInt8](value))
          unrecognized.append(copy.bytes)
        }
        if number & 0x8000 == 0 { return }
      }
    }
  }

  private static func extensions(_ value: RawSpan) -> Features {
    var data = false
    var forward = false
    var features: Features = []
    for offset in 0..<value.byteCount {
      switch ChunkType(rawValue: value.byte(at: offset)) {
      case .reconfiguration: features.insert(.reconfiguration)
      case .forward: features.insert(.forward)
      case .interleavedData: data = true
      case .interleavedForward: forward = true
      default: break
      }
    }
    // Without a way to pass over abandoned messages interleaving is of no use to data channels.
    if data, forward { features.insert(.interleaving) }
    return features
  }
}
