/// Durations and times as users write them: `1.5`, `1.5s`, `80ms`, `2min`.
package enum TimeText {
  /// The unit of a number without one.
  package enum Unit: Sendable {
    case seconds
    case milliseconds
  }

  /// Parses a time in seconds, finite and possibly negative; nil if the text is not a time.
  package static func seconds(_ text: some StringProtocol, in unit: Unit = .seconds) -> Double? {
    for (ending, factor) in [("ms", 1e-3), ("min", 60), ("s", 1)] where text.hasSuffix(ending) {
      return number(text.dropLast(ending.count)).map { $0 * factor }
    }
    return number(text).map { unit == .seconds ? $0 : $0 * 1e-3 }
  }

  /// Parses a decimal number; not `nan`, `inf` or hexadecimal.
  package static func number(_ text: some StringProtocol) -> Double? {
    guard (1...longest).contains(text.utf8.count),
      text.utf8.allSatisfy({
        (0x30...0x39).contains($0) || [0x2b, 0x2d, 0x2e, 0x45, 0x65].contains($0)
      }),
      let value = Double(text), value.isFinite
    else { return nil }
    return value
  }

  /// Parses an instant of a take: not negative and within 31 years.
  package static func instant(_ text: some StringProtocol) -> Instant? {
    guard let seconds = seconds(text), takeSeconds.contains(seconds) else { return nil }
    return Instant(nanoseconds: Int64(saturating: seconds * 1e9))
  }

  /// The times that a take can have, in seconds.
  package static let takeSeconds = 0.0...1e9

  /// The most digits of a number.
  private static let longest = 60
}
