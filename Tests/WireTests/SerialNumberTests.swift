import Testing

@testable import Wire

struct SerialNumberTests {
  /// Compares numbers by RFC 1982 section 3.2; numbers half the range apart have no order.
  @Test(
    arguments: [
      (1, 0, true), (0, 1, false), (5, 5, false), (0, 0xffff, true), (0xffff, 0, false),
      (0x7fff, 0, true), (0x8000, 0, false), (0, 0x8000, false), (0x8001, 0, false),
      (0, 0x8001, true), (10, 0xfff0, true),
    ] as [(UInt16, UInt16, Bool)])
  func aNewerNumberIsLessThanHalfTheRangeAhead(left: UInt16, right: UInt16, isNewer: Bool) {
    #expect(left.isNewer(than: right) == isNewer)
  }

  @Test func numbersOfAllWidthsAreOrderedAlike() {
    #expect(UInt32(3).isNewer(than: 0xffff_fff0))
    #expect(!UInt32(0x8000_0000).isNewer(than: 0) && !UInt32(0).isNewer(than: 0x8000_0000))
    #expect(UInt8(0).isNewer(than: 0x81) && !UInt8(0x80).isNewer(than: 0))
    #expect(UInt64(0).isNewer(than: .max))
  }

  @Test func sequenceNumbersAreUnwrapped() {
    var unwrapper = SequenceUnwrapper()
    let numbers: [(UInt16, Int64)] = [
      (65_534, 65_534), (65_535, 65_535), (0, 65_536), (65_533, 65_533), (2, 65_538),
      (32_769, 98_305), (40_000, 105_536), (1, 131_073), (65_535, 131_071),
    ]
    for (number, extended) in numbers {
      #expect(unwrapper.peek(number) == extended, "looking changes nothing")
      #expect(unwrapper.unwrap(number) == extended)
    }
  }

  @Test func numbersBeforeTheFirstAreNegative() {
    var unwrapper = SequenceUnwrapper()
    #expect(unwrapper.unwrap(1) == 1)
    #expect(unwrapper.unwrap(65_535) == -1)
    var timestamps = TimestampUnwrapper()
    #expect(timestamps.unwrap(0) == 0)
    #expect(timestamps.unwrap(.max) == -1)
    #expect(timestamps.unwrap(5) == 5)
  }

  @Test func timestampsAreUnwrapped() {
    var unwrapper = TimestampUnwrapper()
    let start = Int64(UInt32.max) - 2_999
    for step in Int64(0)..<4 {
      let expected = start + step * 2_000
      #expect(unwrapper.unwrap(UInt32(truncatingIfNeeded: expected)) == expected)
    }
    // An old number does not change the newest one.
    #expect(unwrapper.unwrap(UInt32(truncatingIfNeeded: start)) == start)
    #expect(unwrapper.unwrap(3_005) == start + 6_005)
  }
}
