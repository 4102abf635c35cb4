import Testing

@testable import Debug

@Suite struct LineBufferTests {
  private func typed(_ keys: String, into buffer: inout LineBuffer) -> [LineBuffer.Outcome] {
    keys.utf8.map { buffer.take($0) }
  }

  @Test(arguments: [
    ("abc", "abc", 3), ("abc\u{7f}", "ab", 2), ("abc\u{1b}[D\u{1b}[DX", "aXbc", 2),
    ("abc\u{1}X", "Xabc", 1), ("abc\u{1}\u{5}X", "abcX", 4), ("abc\u{1b}[D\u{b}", "ab", 2),
    ("one two\u{17}x", "one x", 5), ("abc\u{1b}[D\u{15}", "c", 0), ("äö\u{7f}", "ä", 1),
    ("ab\u{1b}[H\u{1b}[3~", "b", 0), ("ab\u{1b}[9~c", "abc", 3), ("a\u{0}b", "ab", 2),
    ("ab\u{1b}OFc", "abc", 3), ("\u{7f}\u{1b}[D\u{1b}[C\u{1b}[3~", "", 0),
  ])
  func keysEditTheLine(_ keys: String, _ text: String, _ cursor: Int) {
    var buffer = LineBuffer()
    _ = typed(keys, into: &buffer)
    #expect(buffer.text == text)
    #expect(buffer.cursor == cursor)
  }

  @Test func enterGivesTheLineAndBeginsANewOne() {
    var buffer = LineBuffer()
    #expect(typed("next\r", into: &buffer).last == .entered("next"))
    #expect(buffer.text.isEmpty)
  }

  @Test func earlierLinesComeBackAndTheDraftIsKept() {
    var buffer = LineBuffer()
    _ = typed("one\rtwo\rtwo\rdraft", into: &buffer)
    let up = "\u{1b}[A"
    let down = "\u{1b}[B"
    for (keys, text) in [
      (up, "two"), (up, "one"), (up, "one"), (down, "two"), (down, "draft"), (down, "draft"),
    ] {
      _ = typed(keys, into: &buffer)
      #expect(buffer.text == text)
    }
  }

  @Test func controlKeysAreTold() {
    var buffer = LineBuffer()
    #expect(typed("\u{4}", into: &buffer) == [.ended])
    #expect(typed("ab\t", into: &buffer).last == .completion)
    #expect(typed("\u{1}\u{4}", into: &buffer).last == .edited)
    #expect(buffer.text == "b")
    #expect(typed("\u{3}", into: &buffer) == [.cancelled])
    #expect(buffer.text.isEmpty)
  }

  @Test func anyBytesLeaveACursorInTheLine() {
    var buffer = LineBuffer()
    var state: UInt32 = 7
    for _ in 0..<20_000 {
      state = state &* 1_664_525 &+ 1_013_904_223
      _ = buffer.take(UInt8(truncatingIfNeeded: state >> 24))
      #expect((0...buffer.characters.count).contains(buffer.cursor))
    }
  }

  @Test(arguments: [
    ([], ""), (["next"], "next"), (["seek", "show", "steps"], "s"), (["stats", "steps"], "st"),
    (["a", "b"], ""),
  ])
  func whatAllChoicesBeginWithIsFound(_ texts: [String], _ prefix: String) {
    #expect(commonPrefix(texts) == prefix)
  }

  @Test(arguments: [
    ("next", DebugCommandName.next), ("n", .next), ("b", .back), ("back", .back),
    ("cont", .continue),
    ("sho", .show), ("q", .quit), ("?", .help),
  ])
  func commandsHaveShortForms(_ word: String, _ command: DebugCommandName) {
    #expect(DebugCommandName.find(word) == command)
  }

  @Test(arguments: ["", "x", "st", "nexts"])
  func otherWordsAreNoCommands(_ word: String) {
    #expect(DebugCommandName.find(word) == nil)
  }
}
