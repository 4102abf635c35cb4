import Testing
import Wire

@testable import Observer

/// Tests dates in the forms that browsers, servers and log collectors write.
struct ReportedDateTests {
  /// 3 June 2026, 09:09:02 UTC.
  private static let second = 1_780_477_742.0

  /// Dates as written by JavaScript, by loggers and for locales; those marked `true` state no zone.
  @Test(arguments: [
    ("2026-06-03T09:09:02.822Z", 0.822, false), ("2026-06-03T11:09:02+02:00", 0, false),
    ("2026-06-03T04:09:02.5-0500", 0.5, false),
    ("2026-06-03 09:09:02.123456 +0000 UTC", 0.123456, false),
    ("Wed Jun 03 2026 11:09:02 GMT+0200 (Central European Summer Time)", 0, false),
    ("Wed, 03 Jun 2026 09:09:02 GMT", 0, false), ("2026-06-03 09:09:02,250", 0.25, true),
    ("6/3/2026, 9:09:02 AM", 0, true), ("03/06/2026, 09:09:02", 0, true),
    ("3.6.2026, 09:09:02", 0, true), ("3.6.2026 klo 9.09.02", 0, true),
    ("3.6.2026 09.09.02", 0, true), ("3-6-2026, 09:09:02", 0, true),
    ("2026/6/3 上午9:09:02", 0, true), ("2026. 6. 3. 오전 9:09:02", 0, true),
    ("2026/6/3 9:09:02", 0, true), ("09:09:02 3/6/2026", 0, true),
    ("3/6/2026, 9:09:02 a.\u{a0}m.", 0, true), ("٣\u{200f}/٦\u{200f}/٢٠٢٦، ٩:٠٩:٠٢ ص", 0, true),
    ("6/3/2026, 9:09:02\u{202f}AM", 0, true), ("13/6/26, 9:09:02 AM", 864_000, true),
  ])
  func formsOfDates(text: String, more: Double, isLocal: Bool) throws {
    let date = try #require(ReportedDate(text), "\(text)")
    let wanted = (Self.second + more) * 1000
    #expect((date.unixMilliseconds - wanted).magnitude < 0.2, "\(text) \(date)")
    #expect(date.isLocal == isLocal && date.hasDay, "\(text)")
  }

  @Test(arguments: [
    ("10:00:00.123", 36_000_123.0), ("10:00:00 PM", 79_200_000), ("12:00:01 AM", 1000),
    ("下午5:09:02", 61_742_000),
  ])
  func aTimeOfDayHasNoDay(text: String, milliseconds: Double) throws {
    let date = try #require(ReportedDate(text))
    #expect(date.unixMilliseconds == milliseconds && !date.hasDay)
  }

  @Test(arguments: [
    "", "Invalid Date", "connected", "10:00", "2026-06-03", "99/99/9999, 99:99:99 PM",
    "2026-13-41T09:00:00Z", "10.20.30.40", "1.2.3 4.5.6 7", "2026-06-03T09:09:02Z 7",
    "0000-99-99T99:99:99Z", "fe80::1:02:03", "12345678901234567890:00:00",
    String(repeating: "1:", count: 60),
  ])
  func otherTextsAreNoDates(text: String) {
    #expect(ReportedDate(text) == nil, "\(text)")
  }
}
