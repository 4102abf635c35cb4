import Foundation
import RetakeTesting
import Testing

struct ReplayExpectationTests {
  @Test(arguments: [ReplayComparison.asPinned, .exact, .meaning])
  func aGoodTakeIsSilent(_ comparison: ReplayComparison) async throws {
    let recording = try Recording()
    try await expectReplay(recording.path, comparison)
  }

  @Test func aChangedTakeIsAFailureWithItsStep() async throws {
    let recording = try Recording()
    try recording.alter("UPDATE state SET to_state = 'x' WHERE row >> 16 = 5")
    try recording.alter("UPDATE event SET detail = '{}' WHERE row = (SELECT max(row) FROM event)")
    let failure = await #expect(throws: ReplayFailure.self) {
      try await expectReplay(recording.path)
    }
    #expect(failure?.kind == "altered")
    #expect((failure?.step ?? 0) > 0)
    let again = "To see it again: retake replay \(recording.path)"
    #expect(failure?.description.contains(again) == true)
  }

  @Test func aMissedCheckIsAFailureThatNamesIt() async throws {
    let recording = try Recording()
    let pin = """
      {"mode": "meaning", "note": "", "checks": [
        {"name": "peer 1 track 1 audio in: frames", "value": 5000, "tolerance": 10}
      ]}
      """
    try Data(pin.utf8).write(to: URL(fileURLWithPath: recording.folder + "/call.pin.json"))
    let failure = await #expect(throws: ReplayFailure.self) {
      try await expectReplay(recording.path)
    }
    #expect(failure?.kind == "meaning")
    #expect(failure?.details.contains("5000 ± 10 was pinned") == true)
  }

  @Test func aFileThatIsNoTakeIsAFailureInOneSentence() async throws {
    let failure = await #expect(throws: ReplayFailure.self) {
      try await expectReplay("/nowhere/call.take")
    }
    #expect(failure?.kind == "unreadable")
    #expect(failure?.details == "/nowhere/call.take: there is no such file")
  }
}
