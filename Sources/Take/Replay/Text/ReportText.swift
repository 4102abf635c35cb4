import Glibc
import Wire

/// A time of the take as seconds with microseconds.
func timeText(_ nanoseconds: Int64) -> String { decimal(Double(nanoseconds) / 1e9, 6) + " s" }

/// A time of the take to the nanosecond, where two may differ by so little.
func exactTimeText(_ nanoseconds: Int64) -> String {
  let (seconds, rest) = nanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
  let digits = String(rest.magnitude)
  return (nanoseconds < 0 ? "-" : "") + "\(seconds.magnitude)."
    + String(repeating: "0", count: 9 - digits.count) + digits + " s"
}

/// A number with so many digits after the point, whatever the language of the machine.
package func decimal(_ value: Double, _ digits: Int) -> String {
  // The longest finite number has 309 digits before the point.
  var text = [CChar](repeating: 0, count: 330 + digits)
  let length = withVaList([Int32(digits), value]) { vsnprintf(&text, text.count, "%.*f", $0) }
  return String(decoding: text.prefix(Int(length)).map { UInt8(bitPattern: $0) }, as: UTF8.self)
}

/// Some bytes before and after an offset, and the length of all.
func excerpt(_ bytes: [UInt8], around offset: Int) -> String {
  let start = max(0, min(offset, bytes.count) - 4)
  let part = bytes[start..<min(bytes.count, offset + 12)]
  return (start > 0 ? "..." : "") + hexadecimal(part)
    + (start + part.count < bytes.count ? "..." : "") + " (\(bytes.count) bytes)"
}

/// Where two lists of bytes begin to differ.
func firstDifference(_ left: [UInt8], _ right: [UInt8]) -> Int {
  zip(left, right).enumerated().first { $0.element.0 != $0.element.1 }?.offset
    ?? min(left.count, right.count)
}

/// A number of things in words.
func counted(_ count: Int, _ name: String) -> String {
  "\(count) \(name)\(count == 1 ? "" : "s")"
}
