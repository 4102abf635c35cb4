import Foundation
import Testing

/// Tests verbs that name a room's participants, and the reasons why some takes cannot be merged.
struct RoomTakeTests {
  private static let captures = URL(filePath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent().appending(path: "Captures")

  private static func capture(_ name: String) -> String { captures.appending(path: name).path }

  private let room = capture("janus-room.take")

  @Test func theParticipantsOfARoomAreNamed() async throws {
    let info = try await Tool.run("info", room)
    #expect(
      info.output.contains("participant 2 ben, 0.039 to 2.502 s: audio in on peer 2, track 1"))
    #expect(info.output.contains("participant 1 retake (the recorded side)"), "\(info.output)")
    let object = try JSONSerialization.jsonObject(
      with: Data(try await Tool.run("info", room, "--json").output.utf8))
    let people = (object as? [String: Any])?["people"] as? [[String: Any]]
    #expect(people?.map { $0["name"] as? String } == ["retake", "ben"])
    let speakers = try await Tool.run("speakers", room)
    #expect(speakers.output.contains("ben (janus down 2/in/1)"), "\(speakers.output)")
    #expect(speakers.output.contains("retake (janus up 1/out/2)"))
    let json = try await Tool.run("speakers", room, "--json")
    #expect(json.output.contains("\"person\":\"ben\""))
    // A call without a room has no names.
    let call = try await Tool.run("speakers", Self.capture("virtual-loss.take"), "--json")
    #expect(!call.output.contains("\"person\""))
  }

  @Test func theReasonWhyTakesCannotBeMergedIsReported() async throws {
    let formats = Self.captures.appending(path: "formats")
    let old = formats.appending(path: "format-2.take").path
    let one = formats.appending(path: "format-3.take").path
    let folder = try Folder()
    let joint = folder.file("joint.take")
    let ends = ["--first-peer", "1", "--second-peer", "2"]
    let cases: [([String], Int32, String)] = [
      ([room, room], 1, "is given twice, and is the take of one participant of a room"),
      (
        [room, Self.capture("live-loopback.take"), "--second-peer", "1"], 1, "without stored media"
      ),
      ([one, one], 1, "is given twice and contains one end; give the take of the other end"),
      ([old, old] + ends + ["--out", joint], 65, "it has format 2, which has only one clock"),
    ]
    for (arguments, status, words) in cases {
      let outcome = try await Tool.run(["merge"] + arguments)
      #expect(outcome.status == status && outcome.errors.contains(words), "\(outcome.errors)")
      #expect(outcome.errorLines.count == 1 && outcome.output.isEmpty)
    }
    #expect(!FileManager.default.fileExists(atPath: joint))
  }
}
