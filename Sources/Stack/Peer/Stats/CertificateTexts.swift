import Wire

/// Cached texts of certificates for stats: each report has the same few, and hashing and encoding
/// one costs more than most of the report.
final class CertificateTexts {
  /// A certificate in stats.
  struct Texts {
    let fingerprint: CertificateFingerprint
    let base64: String
  }

  private var known: [(certificate: [UInt8], texts: Texts)] = []

  /// The most certificates remembered.
  private static let limit = 8

  /// Returns the texts of a certificate in DER.
  func texts(of certificate: [UInt8]) -> Texts {
    for index in known.indices where known[index].certificate == certificate {
      return known[index].texts
    }
    let texts = Texts(
      fingerprint: certificateFingerprint(certificate), base64: base64(certificate))
    if known.count == CertificateTexts.limit { known.removeFirst() }
    known.append((certificate, texts))
    return texts
  }
}

/// Encodes bytes as base64 (RFC 4648 section 4).
private func base64(_ bytes: [UInt8]) -> String {
  let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
  var text: [UInt8] = []
  text.reserveCapacity((bytes.count + 2) / 3 * 4)
  for start in stride(from: 0, to: bytes.count, by: 3) {
    let group = bytes[start..<min(start + 3, bytes.count)]
    var bits = group.reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
    bits <<= UInt32(8 * (3 - group.count))
    for index in 0..<4 {
      let isFilled = index <= group.count
      text.append(isFilled ? alphabet[Int(bits >> UInt32(18 - 6 * index) & 63)] : 0x3d)
    }
  }
  return String(decoding: text, as: UTF8.self)
}
