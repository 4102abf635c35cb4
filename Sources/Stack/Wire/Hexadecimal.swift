/// Formats bytes in hexadecimal; after `limit` bytes only their count follows.
package func hexadecimal(_ bytes: some Collection<UInt8>, limit: Int = .max) -> String {
  let digits = Array("0123456789abcdef".utf8)
  var text: [UInt8] = []
  for byte in bytes.prefix(limit) {
    text.append(digits[Int(byte >> 4)])
    text.append(digits[Int(byte & 15)])
  }
  let hex = String(decoding: text, as: UTF8.self)
  return bytes.count > limit ? "\(hex)... (\(bytes.count) bytes)" : hex
}

extension [UInt8] {
  /// Parses pairs of hexadecimal digits; nil if there is anything else.
  package init?(hexadecimal digits: some Collection<UInt8>) {
    guard digits.count.isMultiple(of: 2) else { return nil }
    self = []
    reserveCapacity(digits.count / 2)
    var high: UInt8?
    for digit in digits {
      let value: UInt8
      switch digit {
      case UInt8(ascii: "0")...UInt8(ascii: "9"): value = digit - UInt8(ascii: "0")
      case UInt8(ascii: "a")...UInt8(ascii: "f"): value = digit - UInt8(ascii: "a") + 10
      case UInt8(ascii: "A")...UInt8(ascii: "F"): value = digit - UInt8(ascii: "A") + 10
      default: return nil
      }
      if let first = high {
        append(first << 4 | value)
        high = nil
      } else {
        high = value
      }
    }
  }

  /// Parses pairs of hexadecimal digits of a text.
  package init?(hexadecimal text: some StringProtocol) {
    self.init(hexadecimal: text.utf8)
  }
}
