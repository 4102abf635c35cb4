import Testing
import Wire

@testable import Debug

struct SnapshotTreeTests {
  private enum Mood: String { case calm }

  private struct Inner {
    var count: UInt64 = 3
    var at = Instant(nanoseconds: 1_500_000_000)
    var missing: [Int64] = [7, 9]
  }

  private struct Outer {
    var name = "a \"b\""
    var isOpen = true
    var share = 0.25
    var delay: Interval? = .milliseconds(-40)
    var nothing: Int?
    var mood = Mood.calm
    var inner = [Inner(), Inner(count: 4)]
  }

  private let tree = SnapshotTree("outer", of: Outer())

  @Test(arguments: [
    ("name", "a \"b\""), ("isOpen", "true"), ("share", "0.25"), ("delay", "-0.040000 s"),
    ("nothing", "-"), ("mood", "calm"), ("inner[0].at", "1.500000 s"), ("inner[1].count", "4"),
    ("inner[1].missing[1]", "9"), ("inner", "2 entries"),
  ])
  func aPathLeadsToAValue(_ path: String, _ value: String) {
    #expect(tree[path]?.text == value)
  }

  @Test(arguments: ["outer", "inner[2]", "inner[0].count.x", "nam"])
  func aWrongPathLeadsNowhere(_ path: String) {
    #expect(tree[path] == nil)
  }

  @Test func theTextShowsEveryValueInItsOrder() {
    #expect(
      tree.lines == [
        "outer:", "  name: a \"b\"", "  isOpen: true", "  share: 0.25", "  delay: -0.040000 s",
        "  nothing: -", "  mood: calm", "  inner:", "    0:", "      count: 3",
        "      at: 1.500000 s", "      missing: 7, 9", "    1:", "      count: 4",
        "      at: 1.500000 s", "      missing: 7, 9",
      ])
  }

  @Test func theJSONKeepsNumbersAsNumbers() {
    #expect(
      tree.json
        == "{\"name\":\"a \\\"b\\\"\",\"isOpen\":true,\"share\":0.25,\"delay\":-0.040000,"
        + "\"nothing\":null,\"mood\":\"calm\",\"inner\":[{\"count\":3,\"at\":1.500000,"
        + "\"missing\":[7,9]},{\"count\":4,\"at\":1.500000,\"missing\":[7,9]}]}")
  }

  @Test func onlyWhatDiffersIsAChange() {
    var other = Outer()
    other.share = 0.5
    other.inner[1].missing = [7]
    other.inner.append(Inner())
    let changes = tree.changes(to: SnapshotTree("outer", of: other))
    #expect(
      changes.map(\.path) == [
        "share", "inner[1].missing[1]", "inner[2].count", "inner[2].at", "inner[2].missing[0]",
        "inner[2].missing[1]",
      ])
    #expect(changes.first?.before == "0.25")
    #expect(changes.first?.after == "0.5")
    #expect(changes[1].after == "-")
    #expect(changes[2].before == "-")
    #expect(tree.changes(to: tree).isEmpty)
  }

  @Test func completionKnowsEveryPath() {
    #expect(
      tree.paths(below: "inner[1].m") == [
        "inner[1].missing", "inner[1].missing[0]",
        "inner[1].missing[1]",
      ])
  }
}
