import Seeded
import Testing

@testable import SDP

struct MutationTests {
  /// Expects text to parse as a description that stays the same when printed and parsed again, or
  /// to fail with an error about one of its lines.
  ///
  /// For speed, only about every eighth description is printed and parsed again.
  private func check(_ text: String, lineCount: Int) {
    do {
      let document = try SDPDocument(parsing: text)
      guard text.utf8.count % 8 == 0 else { return }
      let again = try SDPDocument(parsing: document.text)
      #expect(again == document)
    } catch {
      #expect((0...lineCount).contains(error.line) && !error.reason.isEmpty)
    }
  }

  @Test(arguments: Samples.names)
  func anyLineMayBeRemovedDoubledOrCut(name: String) throws {
    let lines = try Samples.lines(name)
    for index in lines.indices {
      var removed = lines
      removed.remove(at: index)
      check(joined(removed), lineCount: lines.count)
      var doubled = lines
      doubled.insert(lines[index], at: index)
      check(joined(doubled), lineCount: lines.count + 1)
      var cut = lines
      cut[index] = String(lines[index].prefix(index * 7 % lines[index].utf8.count))
      check(joined(cut), lineCount: lines.count)
    }
  }

  @Test(arguments: Samples.names)
  func aTextMayEndAnywhere(name: String) throws {
    let text = try Samples.text(name)
    let lineCount = try Samples.lines(name).count
    for length in stride(from: 0, to: text.utf8.count, by: 61) {
      check(String(decoding: text.utf8.prefix(length), as: UTF8.self), lineCount: lineCount)
    }
  }

  @Test(arguments: 0..<4)
  func randomDamageDoesNoHarm(seed: Int) throws {
    var random = SeededGenerator(seed: UInt64(seed))
    let heads = try Samples.names.map { Array(try Samples.text($0).utf8.prefix(800)) }
    let tokens = ["\r\n", "\n", "=", ":", " ", "/", "a=", "m=", "65536", "-1", "\u{0}", "é", "*"]
    for _ in 0..<2500 {
      let head = heads[Int.random(in: heads.indices, using: &random)]
      let bytes = random.mutated(head, tokens: tokens, most: 6)
      check(String(decoding: bytes, as: UTF8.self), lineCount: bytes.count)
    }
  }
}
