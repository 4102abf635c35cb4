/// Lengths and points of time as people write them: `1.5`, `1.5s`, `80ms`, `2min`.
package enum TimeText {
  /// The unit of a number that names none.
  package enum Unit: Sendable {
    case seconds
    case milliseconds
  }

  /// The seconds that a text tells, which are finite and may be negative; nil when it is no time.
  package static func seconds(_ text: some StringProtocol, in unit: Unit = .seconds) -> Double? {
    for (ending, factor) in [("ms", 1e-3), ("min", 60), ("s", 1)] where text.hasSuffix(ending) {
      return number(text.dropLast(ending.count)).map { $0 * factor }
    }
    return number(text).map { unit == .seconds ? $0 : $0 * 1e-3 }
  }

  /// A decimal number, which neither `nan` nor `inf` nor a number with other digits is.
  package static func number(_ text: some StringProtocol) -> Double? {
    guard (1...longest).contains(text.utf8.count),
      text.utf8.allSatisfy({
        (0x30...0x39).contains($0) || [0x2b, 0x2d, 0x2e, 0x45, 0x65].contains($0)
      }),
      let value = Double(text), value.isFinite
    else { return nil }
    return value
  }

  /// The instant of a take that a text tells: not before its beginning and within 31 years.
  package static func instant(_ text: some StringProtocol) -> Instant? {
    guard let seconds = seconds(text), takeSeconds.contains(seconds) else { return nil }
    return Instant(nanoseconds: Int64(saturating: seconds * 1e9))
  }

  /// The times that a take can have, in seconds.
  package static let takeSeconds = 0.0...1e9

  /// How long the digits of a number may be.
  private static let longest = 60
}
