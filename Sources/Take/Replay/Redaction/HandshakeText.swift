import Secure
import Tape
import Wire

/// Redacts the bytes of DTLS handshakes (RFC 6347 section 4.2).
///
/// Everything that identifies an association is replaced. What peers offer and choose, such as
/// cipher suites, is kept.
enum HandshakeText {
  /// A handshake message, or the fragment of it that is in this record.
  private struct Part {
    var type: UInt8
    var isFirst: Bool
    var body: Range<Int>
  }

  private static let head = 12

  private static func parts(_ bytes: [UInt8]) -> [Part] {
    var found: [Part] = []
    var offset = 0
    while offset + head <= bytes.count {
      let at = offset + 6
      let start = Int(bytes[at]) << 16 | Int(bytes[at + 1]) << 8 | Int(bytes[at + 2])
      let length = Int(bytes[at + 3]) << 16 | Int(bytes[at + 4]) << 8 | Int(bytes[at + 5])
      let body = offset + head..<min(bytes.count, offset + head + length)
      found.append(Part(type: bytes[offset], isFirst: start == 0, body: body))
      offset = body.upperBound
    }
    return found
  }

  /// Returns a record's fragment with its random values, certificates, keys and signatures
  /// replaced.
  ///
  /// - Parameter isVersion13: whether the fragment comes from an encrypted DTLS 1.3 record.
  static func replaced(
    _ bytes: [UInt8], _ standIns: StandIns, isVersion13: Bool = false
  ) -> [UInt8] {
    var made = bytes
    for part in parts(bytes) {
      let body = Array(bytes[part.body])
      switch part.type {
      case 1 where part.isFirst, 2 where part.isFirst:
        made.replaceSubrange(part.body, with: hello(body, standIns))
      case 3, 4, 11, 12, 15, 16:
        // The lengths before a certificate or a cookie are kept. In DTLS 1.3, a context also
        // precedes the certificates (RFC 8446 section 4.4.2).
        let certificate = isVersion13 ? 7 + Int(body.first ?? 0) : 6
        let kept = part.isFirst ? (part.type == 11 ? certificate : part.type == 3 ? 3 : 0) : 0
        guard body.count > kept else { continue }
        made.replaceSubrange(
          part.body,
          with: body.prefix(kept)
            + standIns.noise("handshake", body, count: body.count - kept))
      default: break
      }
    }
    return made
  }

  /// Returns a ClientHello or ServerHello with its random value, session id and key shares replaced
  /// (RFC 5246 section 7.4.1).
  private static func hello(_ body: [UInt8], _ standIns: StandIns) -> [UInt8] {
    guard body.count > 34 else { return body }
    var made = body
    let random = standIns.word(hexadecimal(body[2..<34]), .keys)
    if let new = [UInt8](hexadecimal: random), new.count == 32 {
      made.replaceSubrange(2..<34, with: new)
    }
    let session = 35..<min(body.count, 35 + Int(body[34]))
    if !session.isEmpty {
      made.replaceSubrange(
        session, with: standIns.noise("session", Array(body[session]), count: session.count))
    }
    for share in keyShares(body) {
      made.replaceSubrange(
        share, with: standIns.noise("share", Array(body[share]), count: share.count))
    }
    return made
  }

  /// Returns the ranges of the public keys in a hello of DTLS 1.3 (RFC 8446 section 4.2.8).
  private static func keyShares(_ body: [UInt8]) -> [Range<Int>] {
    func number(_ place: Int) -> Int { Int(body[place]) << 8 | Int(body[place + 1]) }
    // The extensions come last, so their length matches the rest of the message.
    guard
      var offset = (36..<max(36, body.count - 2)).first(where: {
        $0 + 2 + number($0) == body.count && isExtensions(body, $0 + 2)
      }).map({ $0 + 2 })
    else { return [] }
    var found: [Range<Int>] = []
    while offset + 4 <= body.count {
      let end = min(body.count, offset + 4 + number(offset + 2))
      if number(offset) == 51 {
        // In a ClientHello, the keys follow the list's length. Each key follows its group and
        // length.
        var place = offset + 4
        if place + 2 <= end, number(place) == end - place - 2 { place += 2 }
        while place + 4 <= end {
          let key = place + 4..<min(end, place + 4 + number(place + 2))
          found.append(key)
          place = key.upperBound
        }
      }
      offset = end
    }
    return found
  }

  /// Returns whether the bytes from an offset to the end are a sequence of extensions.
  private static func isExtensions(_ body: [UInt8], _ start: Int) -> Bool {
    var offset = start
    while offset + 4 <= body.count {
      offset += 4 + (Int(body[offset + 2]) << 8 | Int(body[offset + 3]))
    }
    return offset == body.count && start < body.count
  }

  // MARK: Hello messages

  /// The values read from an association's hello messages.
  struct Hellos {
    var clientRandom: [UInt8]?
    var serverRandom: [UInt8]?
    var suite: UInt16?
    var profile: UInt16?

    /// The name of a cipher suite that derives keys in the same way; empty for unsupported suites.
    var suiteName: String {
      switch suite {
      case 0xc02b, 0xc02f: "TLS_ECDHE_WITH_AES_128_GCM_SHA256"
      case 0xc02c, 0xc030: "TLS_ECDHE_WITH_AES_256_GCM_SHA384"
      case 0xcca8, 0xcca9: "TLS_ECDHE_WITH_CHACHA20_POLY1305_SHA256"
      default: ""
      }
    }

    var profileName: String {
      let known = SRTPProtection.allCases.first { $0.profile.rawValue == profile }
      return known?.rawValue ?? ""
    }

    /// Reads the hello messages in a datagram; returns whether the datagram contains a ServerHello
    /// that answers a known ClientHello.
    mutating func learn(_ datagram: [UInt8]) -> Bool {
      var isNew = false
      for record in DTLSRecord.all(in: datagram) where record.epoch == 0 && record.type == 22 {
        for part in HandshakeText.parts(record.fragment) where part.isFirst {
          let body = Array(record.fragment[part.body])
          guard body.count > 34 else { continue }
          if part.type == 1 {
            // A new random value means a new association.
            if clientRandom != Array(body[2..<34]) { self = Hellos() }
            clientRandom = Array(body[2..<34])
          } else if part.type == 2, clientRandom != nil {
            learn(server: body)
            isNew = true
          }
        }
      }
      return isNew
    }

    private mutating func learn(server body: [UInt8]) {
      serverRandom = Array(body[2..<34])
      var offset = 35 + Int(body[34])
      guard offset + 5 <= body.count else { return }
      suite = body.span.bytes.uint16(at: offset)
      offset += 5
      while offset + 4 <= body.count {
        let length = Int(body.span.bytes.uint16(at: offset + 2))
        // A ServerHello's use_srtp has one profile, after the length of its list (RFC 5764 section
        // 4.1.1).
        if body.span.bytes.uint16(at: offset) == 14, offset + 8 <= body.count {
          profile = body.span.bytes.uint16(at: offset + 6)
        }
        offset += 4 + length
      }
    }
  }
}
