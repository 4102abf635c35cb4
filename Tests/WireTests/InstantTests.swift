import Testing

@testable import Wire

struct InstantTests {
  private static let last = Instant(nanoseconds: .max)
  private static let first = Instant(nanoseconds: .min)
  private static let longest = Interval(nanoseconds: .max)
  private static let shortest = Interval(nanoseconds: .min)

  @Test func instantsMoveByIntervals() {
    let instant = Instant(nanoseconds: 5)
    #expect(instant + .milliseconds(2) == Instant(nanoseconds: 2_000_005))
    #expect(instant - .microseconds(1) == Instant(nanoseconds: -995))
    #expect(instant - Instant(nanoseconds: 8) == Interval(nanoseconds: -3))
    var moved = instant
    moved += .seconds(-1)
    #expect(moved == Instant(nanoseconds: -999_999_995) && moved < instant)
  }

  /// A time from a peer or a file may have any value, so arithmetic stops at
  /// the bounds instead of overflowing.
  @Test func overflowStopsAtTheBounds() {
    let one = Interval(nanoseconds: 1)
    #expect(Self.last + one == Self.last)
    #expect(Self.last - Interval(nanoseconds: -1) == Self.last)
    #expect(Self.first - one == Self.first)
    #expect(Self.first + Interval(nanoseconds: -1) == Self.first)
    #expect(Self.last - Self.first == Self.longest)
    #expect(Self.first - Self.last == Self.shortest)
    #expect(Instant.zero - Self.shortest == Self.last)
    #expect(Self.longest + one == Self.longest)
    #expect(Self.shortest - one == Self.shortest)
    #expect(Self.shortest + Interval(nanoseconds: -1) == Self.shortest)
  }

  @Test func overflowingProductsStopAtTheirBound() {
    #expect(Self.longest * 2 == Self.longest)
    #expect(Self.longest * -2 == Self.shortest)
    #expect(Self.shortest * 2 == Self.shortest)
    #expect(Self.shortest * -1 == Self.longest)
    #expect(Interval.seconds(.max) == Self.longest)
    #expect(Interval.seconds(.min) == Self.shortest)
    #expect(Interval.milliseconds(.max) == Self.longest)
    #expect(Interval.microseconds(.min) == Self.shortest)
  }

  @Test func intervalsAreConvertedToOtherUnits() {
    #expect(Interval.seconds(3) == .milliseconds(3_000))
    #expect(Interval.milliseconds(3) == .microseconds(3_000))
    #expect(Interval.milliseconds(1_500).seconds == 1.5)
    #expect(Interval(nanoseconds: -1_999_999).milliseconds == -1)
    #expect(Interval.seconds(1) / 4 == .milliseconds(250))
  }

  @Test(arguments: [
    // Seconds since 1900 and fractions of the next one (RFC 5905 section 6).
    (0, 2_208_988_800, 0), (1_500_000_000, 2_208_988_801, 0x8000_0000),
    (-250_000_000, 2_208_988_799, 0xc000_0000), (-1_000_000_000, 2_208_988_799, 0),
  ])
  func wallClocksGiveNTPTime(unix: Int64, seconds: UInt64, fraction: UInt64) {
    let clock = WallClock(unixNanosecondsAtZero: unix - 7)
    let instant = Instant(nanoseconds: 7)
    #expect(clock.ntp(at: instant) == seconds << 32 | fraction)
    #expect(
      clock.compactNTP(at: instant)
        == UInt32(truncatingIfNeeded: seconds) << 16 | UInt32(fraction >> 16))
  }

  /// The clock in an altered take may be any number.
  @Test(arguments: [Int64.min, -1, 0, Int64.max], [Int64.min, -1, 0, Int64.max])
  func anyWallClockGivesATime(unix: Int64, instant: Int64) {
    let clock = WallClock(unixNanosecondsAtZero: unix)
    let now = Instant(nanoseconds: instant)
    let (sum, overflow) = unix.addingReportingOverflow(instant)
    let expected = overflow ? (unix < 0 ? .min : .max) : sum
    #expect(clock.unixNanoseconds(at: now) == expected)
    let seconds = UInt32(truncatingIfNeeded: clock.ntp(at: now) >> 32) &- 2_208_988_800
    let rounded = (Double(expected) / 1e9).rounded(.down)
    #expect(seconds == UInt32(truncatingIfNeeded: Int64(rounded)))
  }
}
