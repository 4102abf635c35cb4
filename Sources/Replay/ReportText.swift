import Foundation

/// A time of the take as seconds with microseconds.
func timeText(_ nanoseconds: Int64) -> String { decimal(Double(nanoseconds) / 1e9, 6) + " s" }

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
