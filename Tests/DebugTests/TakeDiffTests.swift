import Foundation
import Tape
import Testing

@testable import Debug
@testable import Replay

struct TakeDiffTests {
  @Test func aTakeIsEqualToItself() throws {
    let take = try LabTake.shared.get()
    let diff = try TakeDiff(take.path, take.path, alignment: .start)
    #expect(diff.isEmpty, "\(diff.text)")
    #expect(diff.text.contains("the same in every step"))
  }

  @Test func twoSessionsDifferInMeaningOnly() throws {
    let take = try LabTake.shared.get()
    let other = try LabTake.lossy.get()
    let diff = try TakeDiff(take.path, other.path, alignment: .connected)
    #expect(diff.common.steps == 0)
    #expect(diff.offsetNanoseconds < 0)
    // New credentials, fingerprints and SSRCs do not count as description differences.
    #expect(diff.differences.filter { $0.kind == "signaling" } == [])
    #expect(diff.differences.contains { $0.kind == "stats" && $0.what.hasSuffix("packetsLost") })
    #expect(diff.differences.contains { $0.kind == "freeze" })
    let times = diff.differences.map(\.atNanoseconds)
    #expect(times == times.sorted())
    #expect(diff.json.contains("\"kind\":\"freeze\""))
  }

  @Test func onePeerIsComparedWithAnother() throws {
    let take = try LabTake.shared.get()
    let diff = try TakeDiff(take.path, take.path, alignment: .connected, pair: (1, 2))
    // All differences are within the compared pair, in its candidates and tracks, and no peer is
    // missing.
    #expect(Set(diff.differences.map(\.peer)).subtracting([0]) == [1])
    #expect(!diff.differences.contains { $0.right == "is missing" })
  }

  @Test func oneSessionUnderTwoBuildsDiffersFromTheFirstDifferentStepOn() throws {
    let take = try LabTake.shared.get()
    let path = "\(take.folder)/\(UUID().uuidString).take"
    try FileManager.default.copyItem(atPath: take.path, toPath: path)
    // The same seed makes the same session, so there are no differences.
    let same = try LabTake()
    let diff = try TakeDiff(path, same.path, alignment: .start)
    #expect(diff.isEmpty, "\(diff.text)")
    let longer = try LabTake(seconds: 3)
    let cut = try TakeDiff(take.path, longer.path, alignment: .start)
    #expect(cut.common.steps > 100)
    #expect(cut.common.difference != nil)
    #expect(!cut.isEmpty)
  }

  @Test(arguments: [
    ("a=sendrecv", "a=recvonly", ["video 1: - a=sendrecv", "video 1: + a=recvonly"]),
    (
      "a=rtpmap:96 VP8/90000", "a=rtpmap:96 H264/90000",
      ["video 1: - a=rtpmap:96 VP8/90000", "video 1: + a=rtpmap:96 H264/90000"]
    ),
    ("o=- 1 2", "o=- 9 9", []),
    ("a=ssrc:17 cname:x", "a=ssrc:99 cname:y", []),
    ("m=video 9 UDP 96", "m=video 4711 UDP 96", []),
    (
      "m=video 9 UDP 96", "m=video 0 UDP 96",
      ["video 1: - m=video port UDP 96", "video 1: + m=video 0 UDP 96"]
    ),
    ("a=ice-ufrag:abcd", "a=ice-ufrag:efgh", []),
    ("a=fingerprint:sha-256 AA:BB", "a=fingerprint:sha-256 CC:DD", []),
    (
      "a=fingerprint:sha-256 AA:BB", "a=fingerprint:sha-1 CC:DD",
      ["session: - a=fingerprint:sha-256 ...", "session: + a=fingerprint:sha-1 ..."]
    ),
  ])
  func descriptionsAreComparedWithoutRandomValues(
    _ old: String, _ new: String, _ lines: [String]
  ) {
    let sdp = """
      v=0\r\no=- 1 2 IN IP4 0.0.0.0\r\na=fingerprint:sha-256 AA:BB\r\nm=audio 9 UDP 111\r\n\
      a=mid:0\r\na=ice-ufrag:abcd\r\nm=video 9 UDP 96\r\na=mid:1\r\na=sendrecv\r\n\
      a=rtpmap:96 VP8/90000\r\na=ssrc:17 cname:x\r\n
      """
    let changed = sdp.replacingOccurrences(of: old, with: new)
    #expect(sdp != changed)
    #expect(DescriptionDiff(sdp, changed).lines == lines)
    let wrapped = "{\"type\":\"offer\",\"sdp\":\(String(reflecting: changed))}"
    #expect(DescriptionDiff(sdp, wrapped).lines == lines)
  }

  /// Each section is compared by itself, whatever else differs.
  @Test func everySectionInAnotherOrderIsNamed() {
    let first = "v=0\r\na=x\r\nm=audio 9 UDP 0\r\na=b\r\na=c\r\nm=video 9 UDP 96\r\na=d\r\na=e\r\n"
    let second = "v=0\r\nm=audio 9 UDP 0\r\na=c\r\na=b\r\nm=video 9 UDP 96\r\na=e\r\na=d\r\n"
    #expect(
      DescriptionDiff(first, second).lines == [
        "session: - a=x", "audio: the order of its lines", "video: the order of its lines",
      ])
  }
}
