import Secure
import Wire

/// A reassembled handshake message (RFC 6347 section 4.2.2, RFC 9147 section 5.2).
struct HandshakeMessage: Hashable, Sendable {
  var type: UInt8
  var sequence: UInt16
  var body: [UInt8]
}

/// Reassembles the handshake messages of one side from fragments in any order, with duplicates.
struct HandshakeAssembler: Sendable {
  /// The maximum number of messages, and their maximum length.
  private static let messagesMaximum = 64
  private static let lengthMaximum = 65_535
  private static let heldMaximum = 262_144

  /// The assumed memory overhead per fragment, in bytes.
  private static let fragmentOverhead = 64
  /// The maximum number of fragments per message.
  private static let fragmentsMaximum = 1024

  private struct Partial: Sendable {
    var type: UInt8
    var sequence: UInt16
    /// The length in the message header; memory is only allocated for received bytes.
    var length: Int
    /// The fragments in order of arrival.
    var fragments: [(begin: Int, bytes: [UInt8])] = []
    /// The received ranges, disjoint.
    var parts: [Range<Int>] = []
    var held = 0

    var body: [UInt8] {
      var body = [UInt8](repeating: 0, count: length)
      for (begin, bytes) in fragments {
        body.replaceSubrange(begin..<begin + bytes.count, with: bytes)
      }
      return body
    }
  }

  private var partials: [Partial] = []
  private var done: [UInt16] = []
  private var held = 0

  /// The approximate memory of fragments waiting for others, in bytes.
  var heldBytes: Int { held }

  /// Adds a handshake record; returns the messages that it completes.
  mutating func add(_ bytes: RawSpan) -> [HandshakeMessage] {
    var messages: [HandshakeMessage] = []
    var reader = ByteReader(bytes)
    do throws(ReadError) {
      while !reader.isAtEnd {
        let type = try reader.uint8()
        let length = Int(try reader.uint24())
        let sequence = try reader.uint16()
        let begin = Int(try reader.uint24())
        let count = Int(try reader.uint24())
        let fragment = try reader.span(count)
        guard length <= Self.lengthMaximum, begin + count <= length else { return messages }
        if let message = add(type, sequence, length, begin, fragment) { messages.append(message) }
      }
    } catch {
      // The messages before the truncated one are still returned.
    }
    return messages
  }

  private mutating func add(
    _ type: UInt8, _ sequence: UInt16, _ length: Int, _ begin: Int, _ fragment: RawSpan
  ) -> HandshakeMessage? {
    guard !done.contains(sequence) else { return nil }
    if fragment.byteCount == length {
      return finish(HandshakeMessage(type: type, sequence: sequence, body: [UInt8](fragment)))
    }
    var index = partials.firstIndex {
      $0.sequence == sequence && $0.type == type && $0.length == length
    }
    let size = fragment.byteCount + Self.fragmentOverhead
    guard held + size <= Self.heldMaximum,
      index.map({ partials[$0].fragments.count < Self.fragmentsMaximum }) ?? true
    else { return nil }
    if index == nil {
      guard partials.count < Self.messagesMaximum else { return nil }
      partials.append(Partial(type: type, sequence: sequence, length: length))
      index = partials.count - 1
    }
    guard let index else { return nil }
    held += size
    partials[index].held += size
    partials[index].fragments.append((begin, [UInt8](fragment)))
    var added = begin..<begin + fragment.byteCount
    var parts: [Range<Int>] = []
    for part in partials[index].parts {
      if part.upperBound >= added.lowerBound, part.lowerBound <= added.upperBound {
        added =
          min(part.lowerBound, added.lowerBound)..<max(part.upperBound, added.upperBound)
      } else {
        parts.append(part)
      }
    }
    partials[index].parts = parts + [added]
    guard added.count == length else { return nil }
    return finish(
      HandshakeMessage(type: type, sequence: sequence, body: partials[index].body))
  }

  private mutating func finish(_ message: HandshakeMessage) -> HandshakeMessage? {
    for partial in partials where partial.sequence == message.sequence {
      held -= partial.held
    }
    partials.removeAll { $0.sequence == message.sequence }
    guard done.count < Self.messagesMaximum else { return nil }
    done.append(message.sequence)
    return message
  }
}

// MARK: - Hello

/// The fields of ClientHello and ServerHello that a passive observer needs (RFC 8446 section 4.1,
/// RFC 5246 section 7.4.1).
struct Hello: Sendable {
  private enum Extension {
    static let useSRTP: UInt16 = 14
    static let extendedMasterSecret: UInt16 = 23
    static let supportedVersions: UInt16 = 43
    static let connectionID: UInt16 = 54
  }

  var random: [UInt8] = []
  /// A server's version, or the versions that a client offers, as on the wire.
  var versions: [UInt16] = []
  /// A server's cipher suite, or the first suite that a client offers.
  var cipherSuite = CipherSuite(rawValue: 0)
  var profiles: [SRTPProfile] = []
  var usesExtendedMasterSecret = false
  var usesConnectionID = false

  /// The random that marks a HelloRetryRequest (RFC 8446 section 4.1.3).
  private static let retryRandom: [UInt8] = [
    0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91,
    0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
  ]

  var asksForAnother: Bool { random == Self.retryRandom }

  /// Parses a ClientHello, which has a cookie and offers lists instead of single choices.
  init(client body: RawSpan) throws(ReadError) {
    var reader = ByteReader(body)
    versions = [try reader.uint16()]
    random = try reader.array(32)
    try reader.skip(Int(try reader.uint8()))
    try reader.skip(Int(try reader.uint8()))
    var suites = ByteReader(try reader.span(Int(try reader.uint16())))
    if suites.remaining >= 2 { cipherSuite = CipherSuite(rawValue: try suites.uint16()) }
    try reader.skip(Int(try reader.uint8()))
    try readExtensions(&reader, isClient: true)
  }

  init(server body: RawSpan) throws(ReadError) {
    var reader = ByteReader(body)
    versions = [try reader.uint16()]
    random = try reader.array(32)
    try reader.skip(Int(try reader.uint8()))
    cipherSuite = CipherSuite(rawValue: try reader.uint16())
    try reader.skip(1)
    try readExtensions(&reader, isClient: false)
  }

  /// Parses EncryptedExtensions, which carries the server's choices in DTLS 1.3.
  init(encryptedExtensions body: RawSpan) throws(ReadError) {
    var reader = ByteReader(body)
    try readExtensions(&reader, isClient: false)
  }

  private mutating func readExtensions(_ reader: inout ByteReader, isClient: Bool)
    throws(ReadError)
  {
    guard !reader.isAtEnd else { return }
    var list = ByteReader(try reader.span(Int(try reader.uint16())))
    while !list.isAtEnd {
      let type = try list.uint16()
      var value = ByteReader(try list.span(Int(try list.uint16())))
      switch type {
      case Extension.useSRTP:
        // The value is a list of profiles and an MKI, which WebRTC leaves empty (RFC 5764 section
        // 4.1.1).
        var profiles = ByteReader(try value.span(Int(try value.uint16())))
        while profiles.remaining >= 2 {
          self.profiles.append(SRTPProfile(rawValue: try profiles.uint16()))
        }
      case Extension.supportedVersions:
        if isClient { try value.skip(1) }
        versions = []
        while value.remaining >= 2 { versions.append(try value.uint16()) }
      case Extension.extendedMasterSecret: usesExtendedMasterSecret = true
      case Extension.connectionID: usesConnectionID = true
      default: break
      }
    }
  }
}

/// The end-entity certificate in a Certificate message, in DER.
enum CertificateMessage {
  static func first(in body: RawSpan, isVersion13: Bool) -> [UInt8]? {
    var reader = ByteReader(body)
    do throws(ReadError) {
      // TLS 1.3 has a context before the list (RFC 8446 section 4.4.2).
      if isVersion13 { try reader.skip(Int(try reader.uint8())) }
      guard try reader.uint24() > 0 else { return nil }
      return try reader.array(Int(try reader.uint24()))
    } catch {
      return nil
    }
  }
}
