/// Replaces secrets in text.
///
/// Takes contain the passwords of TURN servers and the tokens of rooms. What is printed ends up in
/// reports and on shared screens; only a query shows everything.
package enum SecretText {
  /// The replacement for a secret.
  package static let hidden = "(hidden)"

  /// The names of secret fields: W3C's `credential`, and those of signaling protocols.
  private static let names: [[UInt8]] = [
    "credential", "password", "apisecret", "secret", "token", "pin",
  ].map { Array($0.utf8) }

  /// Whether a field is secret, by the last part of its name.
  package static func isSecret(field name: String) -> Bool {
    guard let last = name.split(separator: ".").last else { return false }
    return names.contains(Array(last.lowercased().utf8))
  }

  private static let bearer = Array("bearer ".utf8)

  /// Hides the values of secrets: members of JSON, also of JSON inside a string; parameters such as
  /// `credential="..."` (RFC 8288); and bearer tokens (RFC 6750).
  package static func hidden(in text: String) -> String {
    let bytes = Array(text.utf8)
    var output: [UInt8] = []
    var copied = 0
    var index = 0
    while index < bytes.count {
      guard index == 0 || !isLetter(bytes[index - 1]),
        let value = secret(in: bytes, at: index), !value.isEmpty
      else {
        index += 1
        continue
      }
      output += bytes[copied..<value.lowerBound] + hidden.utf8
      copied = value.upperBound
      index = value.upperBound
    }
    guard copied > 0 else { return text }
    return String(decoding: output + bytes[copied...], as: UTF8.self)
  }

  /// The range of a secret's value if its name starts here.
  private static func secret(in bytes: [UInt8], at start: Int) -> Range<Int>? {
    if begins(bearer, in: bytes, at: start) {
      let value = start + bearer.count
      return value..<(bytes[value...].firstIndex { !isOfToken($0) } ?? bytes.count)
    }
    guard let name = names.first(where: { begins($0, in: bytes, at: start) }) else { return nil }
    var place = start + name.count
    func skip(_ which: (UInt8) -> Bool) {
      while place < bytes.count, which(bytes[place]) { place += 1 }
    }
    skip { $0 == backslash }
    if place < bytes.count, bytes[place] == quote { place += 1 }
    skip { $0 == space }
    guard place < bytes.count, bytes[place] == colon || bytes[place] == equals else { return nil }
    place += 1
    skip { $0 == space }
    let slashes = place
    skip { $0 == backslash }
    let depth = place - slashes
    guard place < bytes.count, bytes[place] == quote else { return nil }
    let value = place + 1
    // The closing quote has as many backslashes as the opening one; escaped backslashes at the end
    // of the value do not count.
    let escaped = 2 * (depth + 1)
    var run = 0
    for index in value..<bytes.count {
      switch bytes[index] {
      case backslash: run += 1
      case quote where run >= depth && (run - depth) % escaped == 0:
        return value..<(index - depth)
      case lineFeed: return value..<index
      default: run = 0
      }
    }
    return value..<bytes.count
  }

  private static func begins(_ name: [UInt8], in bytes: [UInt8], at start: Int) -> Bool {
    guard bytes.count - start >= name.count else { return false }
    for offset in name.indices where bytes[start + offset] | 0x20 != name[offset] { return false }
    return true
  }

  private static let (quote, backslash, space): (UInt8, UInt8, UInt8) = (0x22, 0x5c, 0x20)
  private static let (colon, equals, lineFeed): (UInt8, UInt8, UInt8) = (0x3a, 0x3d, 0x0a)

  private static func isLetter(_ byte: UInt8) -> Bool { (0x61...0x7a).contains(byte | 0x20) }

  /// Whether a byte is allowed in a bearer token (RFC 6750 section 2.1).
  private static func isOfToken(_ byte: UInt8) -> Bool {
    isLetter(byte) || (0x30...0x39).contains(byte) || Array("-._~+/=".utf8).contains(byte)
  }
}
