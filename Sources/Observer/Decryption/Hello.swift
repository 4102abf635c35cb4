import Secure
import Wire

/// What ClientHello and ServerHello say that matters to somebody who looks on (RFC 8446 section
/// 4.1, RFC 5246 section 7.4.1).
struct Hello: Sendable {
  private enum Extension {
    static let useSRTP: UInt16 = 14
    static let extendedMasterSecret: UInt16 = 23
    static let supportedVersions: UInt16 = 43
    static let connectionID: UInt16 = 54
  }

  var random: [UInt8] = []
  /// The version of a server, or the versions that a client offers, as on the wire.
  var versions: [UInt16] = []
  /// The suite of a server; of a client, the first.
  var cipherSuite = CipherSuite(rawValue: 0)
  var profiles: [SRTPProfile] = []
  var usesExtendedMasterSecret = false
  var usesConnectionID = false

  /// The random value by which a server asks for another ClientHello (RFC 8446 section 4.1.3).
  private static let retryRandom: [UInt8] = [
    0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91,
    0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c,
  ]

  var asksForAnother: Bool { random == Self.retryRandom }

  /// Reads a ClientHello, which has a cookie and lists where a ServerHello has one of each.
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

  /// Reads EncryptedExtensions, where DTLS 1.3 has the choices of the server.
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
        // A list of profiles, then a key identifier that WebRTC leaves empty (RFC 5764 4.1.1).
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

/// The certificate of an end in a Certificate message, in DER; the first of its list.
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
