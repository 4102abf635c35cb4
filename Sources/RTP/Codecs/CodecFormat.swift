/// What two descriptions must have in common for a payload format to be the same on both sides
/// (RFC 3264 section 6.1).
package struct CodecFormat: Hashable, Sendable {
  /// What tells formats of one encoding name apart.
  package enum Variant: Hashable, Sendable {
    case none
    /// A profile, like the `profile-id` of VP9 (RFC 9628 section 7).
    case profile(String)
    /// The packetization mode and the profile of H.264; its level may differ (RFC 6184 section
    /// 8.2.2).
    case h264(packetizationMode: UInt8, H264Profile)
  }

  /// The encoding name in lower case.
  package var name: String
  package var variant: Variant

  /// Reads the value of an fmtp line; nil when there is no such format.
  package init?(name: String, parameters: String) {
    self.name = name.lowercased()
    guard let codec = Codec.named(self.name) else {
      variant = .none
      return
    }
    guard let variant = codec.rules.variant(parameters) else { return nil }
    self.variant = variant
  }

  /// Whether a peer with this format takes units of a frame in parts.
  package var takesFragments: Bool {
    if case .h264(let mode, _) = variant { return mode > 0 }
    return true
  }

  /// A parameter of an fmtp value: `name=value;name=value`.
  package static func value(of name: String, in parameters: String) -> String? {
    var rest = parameters.utf8[...]
    while !rest.isEmpty {
      let part = rest.prefix { $0 != UInt8(ascii: ";") }
      rest = rest[part.endIndex...].dropFirst()
      guard let equals = part.firstIndex(of: UInt8(ascii: "=")),
        equals < part.index(before: part.endIndex), isName(trimmed(part[..<equals]), name)
      else { continue }
      return String(Substring(trimmed(part[part.index(after: equals)...])))
    }
    return nil
  }

  /// Whether this is a name, which may be written in capitals too.
  private static func isName(_ text: Substring.UTF8View, _ name: String) -> Bool {
    guard text.count == name.utf8.count else { return false }
    return zip(text, name.utf8).allSatisfy { byte, wanted in
      let isCapital = (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte)
      return (isCapital ? byte | 0x20 : byte) == wanted
    }
  }

  private static func trimmed(_ text: Substring.UTF8View) -> Substring.UTF8View {
    var text = text
    while text.first == UInt8(ascii: " ") { text.removeFirst() }
    while text.last == UInt8(ascii: " ") { text.removeLast() }
    return text
  }
}
