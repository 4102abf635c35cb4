import Testing

@testable import Wire

struct HexadecimalTests {
  @Test func bytesHaveTwoDigitsEach() {
    #expect(hexadecimal([0x00, 0x0f, 0xa0, 0xff]) == "000fa0ff")
    #expect(hexadecimal([UInt8]()).isEmpty)
    #expect(hexadecimal([1, 2, 3], limit: 2) == "0102... (3 bytes)")
    #expect(hexadecimal([1, 2], limit: 2) == "0102")
  }

  @Test func digitsOfEitherCaseAreRead() {
    #expect([UInt8](hexadecimal: "000fA0fF") == [0x00, 0x0f, 0xa0, 0xff])
    #expect([UInt8](hexadecimal: "") == [])
    let all = (0...UInt8.max).map { $0 }
    #expect([UInt8](hexadecimal: hexadecimal(all)) == all)
  }

  @Test(arguments: ["0", "123", "0x12", "g0", "0G", " 12", "-1", "\u{663}\u{664}", "1\u{301}2"])
  func invalidDigitsAreRefused(text: String) {
    #expect([UInt8](hexadecimal: text) == nil)
  }
}
