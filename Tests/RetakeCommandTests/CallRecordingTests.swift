import ArgumentParser
import Foundation
import Live
import Tape
import Testing

@testable import CallRecording
@testable import RetakeCommand

/// Tests each part of a call recorder separately.
struct CallRecordingTests {
  // MARK: Takes

  private func takes(_ out: String) throws -> CallTakes {
    try CallTakes(RecordOptions.parse(["--out", out, "--bind", "127.0.0.1"]).recording())
  }

  @Test func aFileIsTheTakeOfAllCalls() async throws {
    let folder = try Folder()
    var takes = try takes(folder.file("all.take"))
    #expect(!takes.isOpen && takes.shared == nil && takes.name == "all.take")
    // The file is not created before `open()`.
    #expect(!FileManager.default.fileExists(atPath: folder.file("all.take")))
    try takes.open()
    let shared = try #require(takes.shared)
    #expect(takes.isOpen && takes.loops == nil && shared.path == folder.file("all.take"))
    let call = try takes.callTake()
    let rooms = try takes.roomTake()
    #expect(call.session === shared.session && rooms.session === shared.session)
    #expect(call.path == shared.path && rooms.path == shared.path)
    takes.close()
    #expect(!takes.isOpen && takes.shared != nil)
    _ = try await shared.session.finish()
  }

  @Test func inAFolderEachCallHasASeparateTake() async throws {
    let folder = try Folder()
    var takes = try takes(folder.path)
    try takes.open()
    #expect(takes.shared == nil && takes.loops != nil)
    #expect(takes.name == URL(fileURLWithPath: folder.path).lastPathComponent)
    let made = [try takes.callTake(), try takes.callTake(), try takes.roomTake()]
    #expect(Set(made.map(\.path)).count == 3 && made[0].session !== made[1].session)
    let names = made.map { URL(fileURLWithPath: $0.path).lastPathComponent }
    #expect(names[0].hasPrefix("call-") && names[2].hasPrefix("rooms-"))
    for take in made { _ = try await take.session.finish() }
    await takes.loops?.stop()
  }

  @Test func anExistingFileIsRefused() throws {
    let folder = try Folder()
    try Data().write(to: URL(fileURLWithPath: folder.file("a.take")))
    #expect(throws: TapeError.self) { try takes(folder.file("a.take")) }
  }

  // MARK: Takes of ended calls

  @Test func theLastTakeOfANameIsFoundAndTheOldestAreForgotten() {
    var takes = EndedTakes()
    #expect(takes.path(of: "a") == nil)
    takes.append("1.take", of: "a")
    takes.append("2.take", of: "b")
    takes.append("3.take", of: "a")
    #expect(takes.path(of: "a") == "3.take" && takes.path(of: "b") == "2.take")
    for number in 0..<EndedTakes.most - 3 { takes.append("x", of: "\(number)") }
    takes.append("x", of: "more")
    #expect(takes.path(of: "b") == "2.take")
    takes.append("x", of: "more")
    #expect(takes.path(of: "b") == nil && takes.path(of: "a") == "3.take")
    takes.append("x", of: "more")
    #expect(takes.path(of: "a") == nil && takes.path(of: "0") == "x")
  }

  // MARK: Results of calls

  private func peer(_ label: String) -> RecordingReport.Peer {
    RecordingReport.Peer(label: label, videoReceived: 0)
  }

  @Test func theContentsOfTheSharedTakeAreReportedInWords() {
    var tally = CallTally()
    #expect(tally.shared.media == "there was no call")
    tally.record(guests: 1)
    #expect(tally.shared.media == "1 participant in rooms")
    tally.record(guests: 2)
    #expect(tally.shared.media == "2 participants in rooms")
    tally.record(peer("a"), media: "3 frames")
    tally.countEnd()
    tally.record(guests: 2)
    #expect(tally.shared.media == "3 frames")
    tally.record(peer("b"), media: "5 frames")
    tally.countEnd()
    #expect(tally.shared.media == "2 calls")
    #expect(tally.shared.peers.map(\.label) == ["a", "b"])
  }

  @Test func theFirstPeersOfManyAreListed() {
    var tally = CallTally()
    for number in 0...RecordingReport.takesMaximum { tally.record(peer("\(number)"), media: "") }
    #expect(tally.shared.peers.count == RecordingReport.takesMaximum)
    #expect(tally.shared.peers.first?.label == "0")
  }

  @Test func memoryIsReturnedToTheSystemOncePerHundredCalls() {
    var tally = CallTally()
    let due = (1...200).filter { _ in
      tally.countEnd()
      return tally.isTrimDue
    }
    #expect(due == [100, 200])
  }

  @Test func aTakeThatCouldNotBeCompletedIsTheOutcome() throws {
    var tally = CallTally()
    #expect(try tally.conclude().takes.isEmpty)
    tally.fail(CommandFailure(.inputOutput, "the disk is full"))
    let failure = #expect(throws: TapeError.self) { try tally.conclude() }
    #expect(failure.map { "\($0)".contains("the disk is full") } == true)
  }
}
