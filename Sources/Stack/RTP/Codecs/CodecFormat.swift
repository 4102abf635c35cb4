/// What must be equal in two descriptions for a payload format to mean the same (RFC 3264 section
/// 6.1).
package struct CodecFormat: Hashable, Sendable {
  /// What distinguishes formats of one encoding name.
  package enum Variant: Hashable, Sendable {
    case none
    /// A profile, such as the `profile-id` of VP9 (RFC 9628 section 7).
    case profile(String)
    /// The packetization mode and the profile of H.264; its level may differ (RFC 6184 section
    /// 8.2.2).
    case h264(packetizationMode: UInt8, H264Profile)
    /// The clock rate in Hz of telephone events, which must match that of the audio beside them
    /// (RFC 4733 section 7.1).
    case rate(UInt32)
  }

  /// The encoding name in lower case.
  package var name: String
  package var variant: Variant

  /// Parses the value of an fmtp line; nil if the format is not supported.
  /// - Parameter clockRate: in Hz, as in the rtpmap line; nil for the codec's default.
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

  /// Whether a peer with this format accepts fragmented units of a frame.
  package var acceptsFragments: Bool {
    if case .h264(let mode, _) = variant { return mode > 0 }
    return true
  }

  /// Returns one parameter of an fmtp value `name=value;name=value`.
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

  /// Whether the text equals a lower-case name, ignoring case.
  private static func isName(_ text: ArraySlice<UInt8>, _ name: [UInt8]) -> Bool {
    guard text.count == name.count else { return false }
    for (index, wanted) in name.enumerated() {
      let byte = text[text.startIndex + index]
      let isCapital = byte >= 0x41 && byte <= 0x5a
      if (isCapital ? byte | 0x20 : byte) != wanted { return false }
    }
    return true
  }

  /// Returns the range without leading and trailing blanks.
  private static func trimmed(_ bytes: [UInt8], _ range: Range<Int>) -> Range<Int> {
    var (start, end) = (range.lowerBound, range.upperBound)
    while start < end, bytes[start] == blank { start += 1 }
    while end > start, bytes[end - 1] == blank { end -= 1 }
    return start..<end
  }
}
