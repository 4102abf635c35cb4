import SDP
import Testing
import Wire

@testable import JSEP

struct LipSyncTests {
  private func groups(_ description: SessionDescription) throws -> [String] {
    try document(description).groups.filter { $0.semantics == "LS" }.map(\.text)
  }

  @Test func anOfferGroupsTheTracksOfAStream() throws {
    var side = Side("a")
    _ = try side.add(.audio, streams: ["camera", "all"])
    _ = try side.add(.video, streams: ["screen"])
    _ = try side.add(.video, streams: ["camera"])
    _ = try side.add(.audio, streams: [])
    _ = try side.add(.audio, streams: [])
    _ = try side.add(.audio, .recvonly, streams: ["screen"])
    #expect(try groups(side.offer()) == ["LS 0 2"])
  }

  @Test func streamsWithTheSameTracksAreOneGroup() throws {
    var side = Side("a")
    _ = try side.add(.audio, streams: ["one", "two"])
    _ = try side.add(.video, streams: ["two", "one"])
    #expect(try groups(side.offer()) == ["LS 0 1"])
  }

  /// The stream identifiers of the answerer's three tracks, and the resulting groups in its answer.
  static let opinions: [([[String]], [String])] = [
    ([["x"], ["x"], ["x"]], ["LS 0 1 2"]), ([["x"], ["y"], ["x"]], ["LS 0 2"]),
    ([["x"], ["y"], ["z"]], []), ([["x", "y"], ["y"], []], ["LS 0 1"]),
  ]

  @Test(arguments: opinions)
  func anAnswerGroupsWhatBothSidesGroup(streams: [[String]], expected: [String]) throws {
    var offerer = Side("a")
    var answerer = Side("b")
    for _ in 0..<3 {
      _ = try offerer.add(.video, streams: ["s"])
    }
    for each in streams { _ = try answerer.add(.video, byAddTrack: true, streams: each) }
    try answerer.apply(try offerer.offer())
    #expect(try groups(answerer.answer()) == expected)
  }

  @Test func anAnswerGroupsOnlyWhatTheOfferGroups() throws {
    var offerer = Side("a")
    var answerer = Side("b")
    for kind in [MediaKind.audio, .video] {
      _ = try offerer.add(kind, streams: [])
      _ = try answerer.add(kind, byAddTrack: true)
    }
    try answerer.apply(try offerer.offer())
    #expect(try groups(answerer.answer()) == [])
  }
}
