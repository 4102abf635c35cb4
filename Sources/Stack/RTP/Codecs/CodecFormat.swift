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
    /// The clock in Hz, of events that stand beside audio of any clock (RFC 4733 section 7.1).
    case rate(UInt32)
  }

  /// The encoding name in lower case.
  package var name: String
  package var variant: Variant

  /// Reads the value of an fmtp line; nil when there is no such format.
  ///
  /// - Parameter clockRate: in Hz, as the rtpmap line has it; nil for that of the codec.
  package init?(name: String, parameters: String, clockRate: UInt32? = nil) {
    self.name = name.lowercased()
    guard let codec = Codec.named(self.name) else {
      variant = .none
      return
    }
    guard let variant = codec.rules.variant(parameters) else { return nil }
    self.variant =
      codec.name.carriesMedia ? variant : .rate(clockRate ?? codec.clockRate)
  }

  /// Whether a peer with this format takes units of a frame in parts.
  package var takesFragments: Bool {
    if case .h264(let mode, _) = variant { return mode > 0 }
    return true
  }

  /// A parameter of an fmtp value: `name=value;name=value`.
  package static func value(of name: String, in parameters: String) -> String? {
    let (bytes, wanted) = (Array(parameters.utf8), Array(name.utf8))
    var start = 0
    while start < bytes.count {
      var (end, equals) = (start, bytes.count)
      while end < bytes.count, bytes[end] != semicolon {
        if bytes[end] == equalsSign, equals > end { equals = end }
        end += 1
      }
      if equals + 1 < end, isName(bytes[trimmed(bytes, start..<equals)], wanted) {
        return String(decoding: bytes[trimmed(bytes, equals + 1..<end)], as: UTF8.self)
      }
      start = end + 1
    }
    return nil
  }

  private static let semicolon = UInt8(ascii: ";")
  private static let equalsSign = UInt8(ascii: "=")
  private static let blank = UInt8(ascii: " ")

  /// Whether this is a name, which may be written in capitals too.
  private static func isName(_ text: ArraySlice<UInt8>, _ name: [UInt8]) -> Bool {
    guard text.count == name.count else { return false }
    for (index, wanted) in name.enumerated() {
      let byte = text[text.startIndex + index]
      let isCapital = byte >= 0x41 && byte <= 0x5a
      if (isCapital ? byte | 0x20 : byte) != wanted { return false }
    }
    return true
  }

  /// A range without the blanks at its ends.
  private static func trimmed(_ bytes: [UInt8], _ range: Range<Int>) -> Range<Int> {
    var (start, end) = (range.lowerBound, range.upperBound)
    while start < end, bytes[start] == blank { start += 1 }
    while end > start, bytes[end - 1] == blank { end -= 1 }
    return start..<end
  }
}
