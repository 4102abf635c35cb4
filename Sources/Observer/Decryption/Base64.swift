extension [UInt8] {
  /// Decodes base64 (RFC 4648 section 4), with or without its padding.
  ///
  /// nil if any other character is in it.
  init?(base64 text: some Collection<UInt8>) {
    var digits = Array(text)
    while digits.last == UInt8(ascii: "=") { digits.removeLast() }
    guard digits.count % 4 != 1 else { return nil }
    var bytes: [UInt8] = []
    var value: UInt32 = 0
    var bits = 0
    for digit in digits {
      let six: UInt8
      switch digit {
      case UInt8(ascii: "A")...UInt8(ascii: "Z"): six = digit - UInt8(ascii: "A")
      case UInt8(ascii: "a")...UInt8(ascii: "z"): six = digit - UInt8(ascii: "a") + 26
      case UInt8(ascii: "0")...UInt8(ascii: "9"): six = digit - UInt8(ascii: "0") + 52
      case UInt8(ascii: "+"): six = 62
      case UInt8(ascii: "/"): six = 63
      default: return nil
      }
      value = value << 6 | UInt32(six)
      bits += 6
      if bits >= 8 {
        bits -= 8
        bytes.append(UInt8(truncatingIfNeeded: value >> UInt32(bits)))
      }
    }
    self = bytes
  }
}
