import Wire

/// The state that the receiver of an INIT needs when the peer returns the cookie (RFC 9260
/// section 5.1.3).
///
/// The peer stores the cookie, so an INIT costs no memory; a keyed digest proves that the cookie
/// was not altered.
struct StateCookie: Hashable {
  /// When the cookie was created.
  var made: Instant
  /// The local tag offered in the INIT ACK.
  var localTag: UInt32
  /// The local and remote tags when the cookie was created; zero if there was no association.
  var localTieTag: UInt32
  var remoteTieTag: UInt32
  /// The parameters in the peer's INIT.
  var peer: Initiation

  /// Returns the cookie's bytes, preceded by their digest.
  func sealed(_ key: CookieKey) -> [UInt8] {
    var writer = ByteWriter(capacity: 48)
    writer.uint64(UInt64(bitPattern: made.nanoseconds))
    writer.uint32(localTag)
    writer.uint32(localTieTag)
    writer.uint32(remoteTieTag)
    writer.uint32(peer.tag)
    writer.uint32(peer.window)
    writer.uint32(peer.firstNumber)
    writer.uint16(peer.outgoingStreams)
    writer.uint16(peer.incomingStreams)
    writer.uint32(UInt32(peer.features.rawValue))
    var sealed = ByteWriter(capacity: 8 + writer.count)
    sealed.uint64(key.digest(of: writer.bytes))
    sealed.append(writer.bytes)
    return sealed.bytes
  }

  init(made: Instant, localTag: UInt32, localTieTag: UInt32, remoteTieTag: UInt32, peer: Initiation)
  {
    self.made = made
    self.localTag = localTag
    self.localTieTag = localTieTag
    self.remoteTieTag = remoteTieTag
    self.peer = peer
  }

  /// Opens a cookie; throws if it was altered or was not sealed with this key.
  init(_ bytes: RawSpan, _ key: CookieKey) throws(ReadError) {
    var reader = ByteReader(bytes)
    let digest = try reader.uint64()
    guard digest == key.digest(of: [UInt8](reader.rest())) else { throw .malformed }
    made = Instant(nanoseconds: Int64(bitPattern: try reader.uint64()))
    localTag = try reader.uint32()
    localTieTag = try reader.uint32()
    remoteTieTag = try reader.uint32()
    peer = Initiation()
    peer.tag = try reader.uint32()
    peer.window = try reader.uint32()
    peer.firstNumber = try reader.uint32()
    peer.outgoingStreams = try reader.uint16()
    peer.incomingStreams = try reader.uint16()
    peer.features = Initiation.Features(rawValue: UInt8(truncatingIfNeeded: try reader.uint32()))
    guard reader.isAtEnd else { throw .malformed }
  }
}

/// A 128-bit key for cookie digests with SipHash-2-4.
///
/// A cookie never leaves the DTLS association, whose peer is authenticated, so a short message
/// authentication code without a library is enough.
struct CookieKey {
  private let first: UInt64
  private let second: UInt64

  init(_ entropy: EntropyStream) {
    first = entropy.integer(UInt64.self)
    second = entropy.integer(UInt64.self)
  }

  init(first: UInt64, second: UInt64) {
    self.first = first
    self.second = second
  }

  func digest(of message: [UInt8]) -> UInt64 {
    var state = SipState(first, second)
    var word: UInt64 = 0
    for (index, byte) in message.enumerated() {
      word |= UInt64(byte) << UInt64(8 * (index & 7))
      if index & 7 == 7 {
        state.absorb(word)
        word = 0
      }
    }
    state.absorb(word | UInt64(message.count & 0xff) << 56)
    return state.finish()
  }
}

/// The four state words of SipHash.
private struct SipState {
  private var a: UInt64
  private var b: UInt64
  private var c: UInt64
  private var d: UInt64

  init(_ first: UInt64, _ second: UInt64) {
    a = first ^ 0x736f_6d65_7073_6575
    b = second ^ 0x646f_7261_6e64_6f6d
    c = first ^ 0x6c79_6765_6e65_7261
    d = second ^ 0x7465_6462_7974_6573
  }

  mutating func absorb(_ word: UInt64) {
    d ^= word
    round()
    round()
    a ^= word
  }

  mutating func finish() -> UInt64 {
    c ^= 0xff
    for _ in 0..<4 { round() }
    return a ^ b ^ c ^ d
  }

  private mutating func round() {
    a &+= b
    b = (b << 13 | b >> 51) ^ a
    a = a << 32 | a >> 32
    c &+= d
    d = (d << 16 | d >> 48) ^ c
    a &+= d
    d = (d << 21 | d >> 43) ^ a
    c &+= b
    b = (b << 17 | b >> 47) ^ c
    c = c << 32 | c >> 32
  }
}

// MARK: - Initiation

/// The parameters in an INIT or INIT ACK chunk (RFC 9260 section 3.3.2).
struct Initiation: Hashable {
  /// The extensions that the sender supports.
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

  /// The verification tag of packets sent to this peer.
  var tag: UInt32 = 0
  /// The receive window in bytes.
  var window: UInt32 = 0
  var outgoingStreams: UInt16 = 0
  var incomingStreams: UInt16 = 0
  /// The number of the sender's first DATA chunk.
  var firstNumber: UInt32 = 0
  var features: Features = []

  /// The error detection that replaces the checksum: DTLS (RFC 9653 section 6).
  private static let errorDetectionByDTLS: UInt32 = 1

  /// Whether an association is possible; a receive window below 1,500 bytes or zero streams are
  /// invalid (RFC 9260 section 3.3.2).
  var isAcceptable: Bool { window >= 1500 && outgoingStreams > 0 && incomingStreams > 0 }

  /// Returns the chunk's body, with cookie and reports for an INIT ACK.
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

  /// Parses a chunk's body, its cookie and the parameters to report.
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
    // Data channels also skip abandoned messages, so I-DATA is useful only with I-FORWARD-TSN.
    if data, forward { features.insert(.interleaving) }
    return features
  }
}
