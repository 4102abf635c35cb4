import Glibc
import ICE
import Wire

/// Describes a datagram on one line, in the words that an engineer would search for.
///
/// Any bytes are accepted. The encrypted parts of SRTP and DTLS are not decoded.
struct PacketText {
  /// The layer: `ice`, `dtls`, `rtp`, `rtcp`, or `transport` for other datagrams.
  let layer: String
  /// A description on one line.
  let title: String

  init(_ bytes: [UInt8]) {
    switch DatagramClass(bytes.span.bytes) {
    case .stun: (layer, title) = ("ice", STUNText.title(bytes))
    case .dtls: (layer, title) = ("dtls", DTLSText.title(bytes))
    case .rtp: (layer, title) = ("rtp", RTPText.title(bytes))
    case .rtcp: (layer, title) = ("rtcp", RTPText.compoundTitle(bytes))
    case .channelData where PacketText.isChannelData(bytes):
      let inner = PacketText(Array(bytes.dropFirst(4)))
      (layer, title) = (inner.layer, "TURN channel \(text(number(bytes, 0, 2))): \(inner.title)")
    case .channelData, .other: (layer, title) = ("transport", "\(bytes.count) bytes")
    }
  }

  /// Returns a STUN attribute's name for lists of fields.
  static func name(_ type: STUNAttributeType) -> String { "STUN \(STUNText.name(type))" }

  /// Returns the name of the protocol field that contains the byte at an offset.
  static func field(of bytes: [UInt8], at offset: Int) -> String {
    switch DatagramClass(bytes.span.bytes) {
    case .stun: STUNText.field(bytes, offset)
    case .dtls: DTLSText.field(bytes, offset)
    case .rtp: RTPText.field(bytes, offset)
    case .rtcp: RTPText.compoundField(offset)
    case .channelData where PacketText.isChannelData(bytes):
      offset < 4
        ? "TURN channel header" : PacketText.field(of: Array(bytes.dropFirst(4)), at: offset - 4)
    case .channelData, .other: "bytes"
    }
  }

  /// Returns whether a datagram may be TURN channel data, which never contains channel data itself.
  private static func isChannelData(_ bytes: [UInt8]) -> Bool {
    bytes.count > 4 && !(64..<80).contains(bytes[4])
  }
}

/// Returns a big-endian number of up to 8 bytes; nil if there are too few bytes.
private func number(_ bytes: [UInt8], _ offset: Int, _ width: Int) -> UInt64? {
  guard offset >= 0, offset <= bytes.count - width else { return nil }
  return bytes[offset..<offset + width].reduce(0) { $0 << 8 | UInt64($1) }
}

private func text(_ value: UInt64?) -> String { value.map { String($0) } ?? "?" }

// MARK: STUN

private enum STUNText {
  static func title(_ bytes: [UInt8]) -> String {
    guard let raw = number(bytes, 0, 2) else { return "STUN" }
    let type = STUNType(rawValue: UInt16(truncatingIfNeeded: raw))
    let name = type.method.name ?? "method \(type.method.rawValue)"
    let kind = ["request", "indication", "response", "error"][Int(type.messageClass.rawValue & 3)]
    return "STUN \(name) \(kind)"
  }

  static func field(_ bytes: [UInt8], _ offset: Int) -> String {
    switch offset {
    case 0..<2: return "STUN message type"
    case 2..<4: return "STUN message length"
    case 4..<8: return "STUN magic cookie"
    case 8..<20: return "STUN transaction ID"
    default: break
    }
    for attribute in STUNAttributes(found: bytes) {
      let range = attribute.range
      guard offset < range.lowerBound + STUNMessage.padded(range.count) else { continue }
      return "STUN \(name(attribute.type))" + (offset < range.lowerBound ? " header" : "")
    }
    return "STUN attributes"
  }

  static func name(_ type: STUNAttributeType) -> String {
    type.name ?? "attribute 0x\(String(type.rawValue, radix: 16))"
  }
}

// MARK: DTLS

private enum DTLSText {
  /// Describes the first records in a datagram, as in `DTLS ServerHello, Certificate, ...`.
  static func title(_ bytes: [UInt8]) -> String {
    var names: [String] = []
    var start = 0
    while names.count < 8, let length = number(bytes, start + 11, 2) {
      names.append(recordName(bytes, start))
      start += 13 + Int(length)
    }
    return "DTLS " + (names.isEmpty ? "\(bytes.count) bytes" : names.joined(separator: ", "))
  }

  private static func recordName(_ bytes: [UInt8], _ start: Int) -> String {
    let isEncrypted = number(bytes, start + 3, 2) != 0
    switch bytes[start] {
    case 20: return "ChangeCipherSpec"
    case 21: return isEncrypted ? "encrypted Alert" : "Alert"
    case 22:
      if isEncrypted { return "encrypted Handshake" }
      let type = number(bytes, start + 13, 1)
      return handshakes.first { $0.0 == type }?.1 ?? "Handshake \(text(type))"
    case 23: return "ApplicationData"
    case let other: return "record \(other)"
    }
  }

  static func field(_ bytes: [UInt8], _ offset: Int) -> String {
    var start = 0
    while let length = number(bytes, start + 11, 2) {
      let end = start + 13 + Int(length)
      guard offset >= end else {
        return "DTLS \(recordName(bytes, start)) \(recordField(offset - start))"
      }
      start = end
    }
    return "DTLS record"
  }

  private static func recordField(_ offset: Int) -> String {
    switch offset {
    case 0: "content type"
    case 1..<3: "version"
    case 3..<5: "epoch"
    case 5..<11: "record sequence number"
    case 11..<13: "record length"
    default: "body at \(offset - 13)"
    }
  }

  private static let handshakes: [(UInt64, String)] = [
    (1, "ClientHello"), (2, "ServerHello"), (3, "HelloVerifyRequest"), (4, "NewSessionTicket"),
    (11, "Certificate"), (12, "ServerKeyExchange"), (13, "CertificateRequest"),
    (14, "ServerHelloDone"), (15, "CertificateVerify"), (16, "ClientKeyExchange"),
    (20, "Finished"),
  ]
}

// MARK: RTP and RTCP

private enum RTPText {
  static func title(_ bytes: [UInt8]) -> String {
    let type = bytes[1] & 0x7f
    return "RTP payload type \(type), ssrc \(text(number(bytes, 8, 4))), "
      + "sequence \(text(number(bytes, 2, 2)))"
  }

  static func field(_ bytes: [UInt8], _ offset: Int) -> String {
    switch offset {
    case 0: return "RTP version, padding, extension and CSRC count"
    case 1: return "RTP marker and payload type"
    case 2..<4: return "RTP sequence number"
    case 4..<8: return "RTP timestamp"
    case 8..<12: return "RTP ssrc"
    default: break
    }
    var start = 12 + 4 * Int(bytes[0] & 0x0f)
    if offset < start { return "RTP CSRC list" }
    if bytes[0] & 0x10 != 0, let words = number(bytes, start + 2, 2) {
      start += 4 + 4 * Int(words)
      if offset < start { return "RTP header extensions" }
    }
    return "SRTP payload or authentication tag"
  }

  /// Describes an RTCP packet by its first header, because SRTCP encrypts the rest (RFC 3711
  /// section 3.4).
  static func compoundTitle(_ bytes: [UInt8]) -> String {
    let name = types.first { $0.0 == bytes[1] }?.1 ?? "type \(bytes[1])"
    return "RTCP \(name), ssrc \(text(number(bytes, 4, 4))), \(bytes.count) bytes"
  }

  static func compoundField(_ offset: Int) -> String {
    switch offset {
    case 0: "RTCP version, padding and count"
    case 1: "RTCP packet type"
    case 2..<4: "RTCP length"
    case 4..<8: "RTCP sender ssrc"
    default: "SRTCP body, index or authentication tag"
    }
  }

  private static let types: [(UInt8, String)] = [
    (200, "SR"), (201, "RR"), (202, "SDES"), (203, "BYE"), (204, "APP"), (205, "RTPFB"),
    (206, "PSFB"), (207, "XR"),
  ]
}

/// Formats nanoseconds as seconds with six decimals.
func timeText(_ nanoseconds: Int64) -> String { decimal(Double(nanoseconds) / 1e9, 6) + " s" }

/// Formats nanoseconds as seconds with nine decimals, for times that differ only slightly.
func exactTimeText(_ nanoseconds: Int64) -> String {
  let (seconds, rest) = nanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
  let digits = String(rest.magnitude)
  return (nanoseconds < 0 ? "-" : "") + "\(seconds.magnitude)."
    + String(repeating: "0", count: 9 - digits.count) + digits + " s"
}

/// Formats a number with a fixed number of decimals, independently of the locale.
package func decimal(_ value: Double, _ digits: Int) -> String {
  // The largest finite number has 309 digits before the decimal point.
  var text = [CChar](repeating: 0, count: 330 + digits)
  let length = withVaList([Int32(digits), value]) { vsnprintf(&text, text.count, "%.*f", $0) }
  return String(decoding: text.prefix(Int(length)).map { UInt8(bitPattern: $0) }, as: UTF8.self)
}

/// Formats a few bytes around an offset, and the total number of bytes.
func excerpt(_ bytes: [UInt8], around offset: Int) -> String {
  let start = max(0, min(offset, bytes.count) - 4)
  let part = bytes[start..<min(bytes.count, offset + 12)]
  return (start > 0 ? "..." : "") + hexadecimal(part)
    + (start + part.count < bytes.count ? "..." : "") + " (\(bytes.count) bytes)"
}

/// Returns the first index at which two arrays differ, which may be the end of the shorter one.
func firstDifference(_ left: [UInt8], _ right: [UInt8]) -> Int {
  zip(left, right).enumerated().first { $0.element.0 != $0.element.1 }?.offset
    ?? min(left.count, right.count)
}

/// Formats a count with its noun, which is in the plural unless the count is 1.
func counted(_ count: Int, _ name: String) -> String {
  "\(count) \(name)\(count == 1 ? "" : "s")"
}
