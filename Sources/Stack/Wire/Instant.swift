/// A point on a take's clock: nanoseconds since the take began.
///
/// The core never reads a clock, because every step is passed its instant.
@frozen
public struct Instant: Hashable, Comparable, Sendable {
  /// Nanoseconds since the take began.
  public var nanoseconds: Int64

  /// Creates the instant `nanoseconds` after the start of the take.
  @inlinable
  public init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

  /// The start of the take.
  public static let zero = Instant(nanoseconds: 0)

  /// Returns whether the left instant is earlier.
  @inlinable
  public static func < (left: Instant, right: Instant) -> Bool {
    left.nanoseconds < right.nanoseconds
  }

  /// Returns the instant an interval later; saturates at both ends.
  @inlinable
  public static func + (instant: Instant, interval: Interval) -> Instant {
    Instant(nanoseconds: instant.nanoseconds +| interval.nanoseconds)
  }

  /// Returns the instant an interval earlier; saturates at both ends.
  @inlinable
  public static func - (instant: Instant, interval: Interval) -> Instant {
    Instant(nanoseconds: instant.nanoseconds -| interval.nanoseconds)
  }

  /// Returns the time from the right instant to the left one, negative when the left is earlier.
  @inlinable
  public static func - (left: Instant, right: Instant) -> Interval {
    Interval(nanoseconds: left.nanoseconds -| right.nanoseconds)
  }

  /// Moves the instant by an interval; saturates at both ends.
  @inlinable
  public static func += (instant: inout Instant, interval: Interval) {
    instant = instant + interval
  }
}

/// A length of time in nanoseconds, possibly negative.
@frozen
public struct Interval: Hashable, Comparable, Sendable {
  /// The length in nanoseconds.
  public var nanoseconds: Int64

  /// Creates an interval from its length in nanoseconds, which may be negative.
  @inlinable
  public init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

  /// The interval of 0 ns.
  public static let zero = Interval(nanoseconds: 0)

  /// Returns an interval of whole seconds; saturates.
  @inlinable
  public static func seconds(_ count: Int64) -> Interval {
    Interval(nanoseconds: count *| 1_000_000_000)
  }

  /// Returns an interval of whole milliseconds; saturates.
  @inlinable
  public static func milliseconds(_ count: Int64) -> Interval {
    Interval(nanoseconds: count *| 1_000_000)
  }

  /// Returns an interval of whole microseconds; saturates.
  @inlinable
  public static func microseconds(_ count: Int64) -> Interval {
    Interval(nanoseconds: count *| 1_000)
  }

  /// The length in seconds, for reports.
  @inlinable
  public var seconds: Double { Double(nanoseconds) / 1e9 }

  /// The length in whole milliseconds, rounded towards zero.
  @inlinable
  public var milliseconds: Int64 { nanoseconds / 1_000_000 }

  /// Returns whether the left interval is shorter.
  @inlinable
  public static func < (left: Interval, right: Interval) -> Bool {
    left.nanoseconds < right.nanoseconds
  }

  /// Adds two intervals; saturates.
  @inlinable
  public static func + (left: Interval, right: Interval) -> Interval {
    Interval(nanoseconds: left.nanoseconds +| right.nanoseconds)
  }

  /// Subtracts the right interval from the left; saturates.
  @inlinable
  public static func - (left: Interval, right: Interval) -> Interval {
    Interval(nanoseconds: left.nanoseconds -| right.nanoseconds)
  }

  /// Multiplies an interval by a whole factor; saturates.
  @inlinable
  public static func * (interval: Interval, factor: Int64) -> Interval {
    Interval(nanoseconds: interval.nanoseconds *| factor)
  }

  /// Divides an interval by a whole divisor other than 0.
  @inlinable
  public static func / (interval: Interval, divisor: Int64) -> Interval {
    Interval(nanoseconds: interval.nanoseconds / divisor)
  }
}

/// The only wall-clock reading that a peer gets: the UTC time at the take's zero instant.
///
/// Every wall-clock value in the stack (NTP times, certificate validity, statistics) is this anchor
/// plus the monotonic time since. A change of the system clock therefore never affects the stack.
public struct WallClock: Hashable, Sendable {
  /// Nanoseconds since 1970-01-01T00:00:00Z at `Instant.zero`.
  public var unixNanosecondsAtZero: Int64

  /// Creates the anchor from a Unix time in nanoseconds.
  public init(unixNanosecondsAtZero: Int64) { self.unixNanosecondsAtZero = unixNanosecondsAtZero }

  /// Returns the Unix time in nanoseconds at an instant.
  public func unixNanoseconds(at instant: Instant) -> Int64 {
    unixNanosecondsAtZero +| instant.nanoseconds
  }

  /// Returns the 64-bit NTP time at an instant: seconds since 1900 and a 32-bit fraction (RFC 5905
  /// section 6).
  public func ntp(at instant: Instant) -> UInt64 {
    let unix = unixNanoseconds(at: instant)
    // The fraction is positive before 1970 as well.
    let (quotient, remainder) = unix.quotientAndRemainder(dividingBy: 1_000_000_000)
    let seconds = remainder < 0 ? quotient - 1 : quotient
    let rest = UInt64(remainder < 0 ? remainder + 1_000_000_000 : remainder)
    return UInt64(truncatingIfNeeded: seconds + 2_208_988_800) << 32 | (rest << 32) / 1_000_000_000
  }

  /// Returns the middle 32 bits of the NTP time, in units of 1/65536 s (RFC 3550 section 4).
  public func compactNTP(at instant: Instant) -> UInt32 {
    UInt32(truncatingIfNeeded: ntp(at: instant) >> 16)
  }
}

/// Parses durations and times as users type them: `1.5`, `1.5s`, `80ms`, `2min`.
package enum TimeText {
  /// The unit that is assumed if the text states none.
  package enum Unit: Sendable {
    case seconds
    case milliseconds
  }

  /// Parses a time and returns it in seconds, finite and possibly negative; nil for other text.
  package static func seconds(_ text: some StringProtocol, in unit: Unit = .seconds) -> Double? {
    for (ending, factor) in [("ms", 1e-3), ("min", 60), ("s", 1)] where text.hasSuffix(ending) {
      return number(text.dropLast(ending.count)).map { $0 * factor }
    }
    return number(text).map { unit == .seconds ? $0 : $0 * 1e-3 }
  }

  /// Parses a finite decimal number; nil for anything else, including `nan`, `inf` and hexadecimal.
  package static func number(_ text: some StringProtocol) -> Double? {
    guard (1...longest).contains(text.utf8.count),
      text.utf8.allSatisfy({
        (0x30...0x39).contains($0) || [0x2b, 0x2d, 0x2e, 0x45, 0x65].contains($0)
      }),
      let value = Double(text), value.isFinite
    else { return nil }
    return value
  }

  /// Parses an instant of a take: not negative and at most 10^9 s (31 years); nil for anything
  /// else.
  package static func instant(_ text: some StringProtocol) -> Instant? {
    guard let seconds = seconds(text), takeSeconds.contains(seconds) else { return nil }
    return Instant(nanoseconds: Int64(saturating: seconds * 1e9))
  }

  /// Valid instants of a take, in seconds.
  package static let takeSeconds = 0.0...1e9

  /// The longest number accepted, in characters.
  private static let longest = 60
}
