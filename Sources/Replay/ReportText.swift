import Foundation

/// A time of the take as seconds with microseconds.
func timeText(_ nanoseconds: Int64) -> String { decimal(Double(nanoseconds) / 1e9, 6) + " s" }

/// A time of the take to the nanosecond, where two may differ by so little.
func exactTimeText(_ nanoseconds: Int64) -> String {
  let (seconds, rest) = nanoseconds.quotientAndRemainder(dividingBy: 1_000_000_000)
  let digits = String(rest.magnitude)
  return (nanoseconds < 0 ? "-" : "") + "\(seconds.magnitude)."
    + String(repeating: "0", count: 9 - digits.count) + digits + " s"
}

/// A number with so many digits after the point.
func decimal(_ value: Double, _ digits: Int) -> String {
  String(format: "%.\(digits)f", locale: Locale(identifier: "en_US_POSIX"), value)
}

/// A value as indented JSON with sorted keys.
func prettyJSON(_ value: some Encodable) -> String {
  let encoder = JSONEncoder()
  encoder.outputFormatting = [.sortedKeys, .prettyPrinted, .withoutEscapingSlashes]
  guard let data = try? encoder.encode(value) else { return "{}" }
  return String(decoding: data, as: UTF8.self)
}
