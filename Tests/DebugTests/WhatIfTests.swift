import Foundation
import Media
import Peer
import Tape
import Testing
import Wire

@testable import Debug
@testable import Replay

struct WhatIfTests {
  private func outcomes(_ take: LabTake, _ change: (inout FreeRun.Changes) throws -> Void)
    throws -> (outcomes: [PeerOutcome], changed: [Int])
  {
    var changes = FreeRun.Changes()
    try change(&changes)
    let run = try FreeRun(path: take.path, changes: changes, codecs: { LibraryCodecs() })
    return (try run.run(), run.changed)
  }

  private func measure(_ outcome: PeerOutcome, _ name: String) -> Double {
    outcome.measures.first { $0.name == name }?.value ?? 0
  }

  @Test func withoutChangesTheRecordedSessionIsReproduced() throws {
    for take in [try LabTake.shared.get(), try LabTake.lossy.get()] {
      let (outcomes, _) = try outcomes(take) { _ in }
      #expect(outcomes.map(\.label) == ["caller", "callee"])
      for outcome in outcomes {
        // Packets in flight at the end count too.
        #expect(
          Int64(
            measure(outcome, "track 2 video frames shown")
              - measure(outcome, "track 2 video frames under way at the end"))
            == (try take.number(
              """
              SELECT count(*) FROM frame WHERE peer = \(outcome.peer) AND kind = 'video'
                AND direction = 'in' AND outcome = 'decoded'
              """)))
        #expect(
          Int64(measure(outcome, "packets sent"))
            == (try take.number(
              "SELECT count(*) FROM packet WHERE peer = \(outcome.peer) AND direction = 'out'")))
        #expect(
          Int64(outcome.freezes.count)
            == (try take.number("SELECT count(*) FROM freeze WHERE peer = \(outcome.peer)")))
        #expect(
          Int64(outcome.states.count)
            == (try take.number("SELECT count(*) FROM state WHERE peer = \(outcome.peer)")))
      }
    }
  }

  @Test func aLargerJitterBufferRemovesTheFreezes() throws {
    let take = try LabTake.lossy.get()
    let before = try outcomes(take) { _ in }.outcomes
    let after = try outcomes(take) { $0.configure = { $0.jitterBufferMinimum = 1000 } }.outcomes
    let frozen = before.reduce(0) { $0 + $1.freezes.count }
    #expect(frozen > 0)
    #expect(after.reduce(0) { $0 + $1.freezes.count } < frozen)
    let report = WhatIfReport(
      path: take.path, changes: ["x"], recorded: before, changed: after)
    #expect(report.text.contains("freeze gone: peer"))
    #expect(report.json.contains("\"freezes_gone\":[{\"track\":2"))
    for (old, new) in zip(before, after) {
      let name = "mid 1 video mean delay in the jitter buffer ms"
      #expect(measure(new, name) > measure(old, name) + 300)
    }
  }

  @Test func aLargerBufferShowsTheSameFrames() throws {
    let take = try LabTake.shared.get()
    let before = try outcomes(take) { _ in }.outcomes
    let after = try outcomes(take) { $0.configure = { $0.jitterBufferMinimum = 600 } }.outcomes
    for (old, new) in zip(before, after) {
      let name = "track 2 video frames shown"
      #expect(measure(new, name) == measure(old, name))
      let late = "track 2 video frames under way at the end"
      #expect(measure(new, late) > measure(old, late) + 3)
      #expect(old.states == new.states)
    }
  }

  /// A what-if run of an observed call feeds each end the packets that it received in the capture.
  @Test(arguments: ["observed-aiortc", "observed-clear-vp8", "observed-firefox"])
  func observedEndsShowTheSameFramesFromLargerBuffers(_ name: String) throws {
    let path = "\(FileManager.default.currentDirectoryPath)/Captures/\(name).take"
    func run(_ buffer: UInt32?) throws -> [PeerOutcome] {
      var changes = FreeRun.Changes()
      changes.watchesCalls = true
      changes.configure = { $0.jitterBufferMinimum = buffer }
      return try FreeRun(path: path, changes: changes, codecs: { LibraryCodecs() }).run()
    }
    func total(_ outcome: PeerOutcome, _ name: String) -> Double {
      outcome.measures.filter { $0.name.hasSuffix(name) }.reduce(0) { $0 + $1.value }
    }
    let (before, after) = (try run(nil), try run(500))
    #expect(before.map(\.peer) == [1, 2] && after.map(\.peer) == [1, 2])
    for (old, new) in zip(before, after) {
      let decoded = try TakeFile.open(path).integer(
        """
        SELECT count(*) FROM frame WHERE peer = \(old.peer) AND kind = 'video'
          AND direction = 'in' AND outcome = 'decoded'
        """)
      let (shown, late) = ("video frames shown", "video frames under way at the end")
      #expect(Int64(total(old, shown) - total(old, late)) == decoded)
      #expect(total(new, shown) == total(old, shown))
      // What observed ends sent is fixed by the capture, so it is not a measure.
      #expect(!old.measures.contains { $0.name.hasPrefix("sent") })
    }
    let delay = "audio mean delay in the jitter buffer ms"
    #expect(total(after[0], delay) > total(before[0], delay) + 200)
  }

  @Test func requestedPacketsThatWereNotSentAreReported() throws {
    let take = try LabTake.lossy.get()
    let name = "packets asked for again that were not sent"
    let before = try outcomes(take) { _ in }.outcomes
    #expect(before.allSatisfy { measure($0, name) == 0 })
    let after = try outcomes(take) {
      $0.configure = {
        $0.videoBitrateStart = 30_000
        $0.videoBitrateMaximum = 30_000
      }
    }.outcomes
    #expect(after.contains { measure($0, name) > 0 })
  }

  @Test(arguments: [
    ("packet rtp payload_type=96 every=2", "packets received", -1.0),
    ("packet rtp payload_type=111 probability=30%", "concealment events", 1.0),
  ])
  func droppedPacketsAreMissed(_ selector: String, _ name: String, _ sign: Double) throws {
    let take = try LabTake.shared.get()
    let before = try outcomes(take) { _ in }.outcomes
    let after = try outcomes(take) { $0.edits = [try PacketEdit(.drop, selector)] }
    #expect(after.changed[0] > 10)
    let kind = selector.contains("96") ? "mid 1 video" : "mid 0 audio"
    for (old, new) in zip(before, after.outcomes) {
      #expect((measure(new, "\(kind) \(name)") - measure(old, "\(kind) \(name)")) * sign > 0)
    }
  }

  @Test func onlyThePeerThatWasChosenChanges() throws {
    let take = try LabTake.shared.get()
    let before = try outcomes(take) { _ in }.outcomes
    let after = try outcomes(take) {
      $0.edits = [try PacketEdit(.drop, "packet rtp from=0.8s to=1.2s")]
      $0.peer = 2
    }.outcomes
    let name = "mid 0 audio packets received"
    #expect(measure(before[0], name) == measure(after[0], name))
    #expect(measure(before[1], name) > measure(after[1], name) + 10)
  }

  @Test func corruptedPacketsAreRefusedAndDuplicatesReported() throws {
    let take = try LabTake.shared.get()
    let corrupted = try outcomes(take) {
      $0.edits = [try PacketEdit(.corrupt, "packet rtp every=5")]
    }.outcomes
    #expect(corrupted[0].refusals.contains("srtp: authentication failed"))
    let doubled = try outcomes(take) {
      $0.edits = [try PacketEdit(.duplicate, "packet rtp every=5")]
    }.outcomes
    #expect(doubled[0].refusals.contains("srtp: replayed packet"))
  }

  /// Packets that arrive in time wait in the jitter buffer for the delayed ones.
  @Test func aDelayShowsAsDelay() throws {
    let take = try LabTake.shared.get()
    let before = try outcomes(take) { _ in }.outcomes
    let after = try outcomes(take) {
      $0.edits = [try PacketEdit(delay: "150ms packet rtp payload_type=111 every=2")]
    }.outcomes
    let name = "mid 0 audio mean delay in the jitter buffer ms"
    #expect(measure(after[0], name) > measure(before[0], name) + 20)
  }

  @Test(arguments: [
    "share=120%", "probability=120%", "probability=-1", "every=0", "from=x", "state failed",
    "step:3", "packet colour=1",
    "packet rtp from=2s to=1s", "packet from=step:9 to=step:3", "packet from=nan", "share=nan",
    "packet to=inf", "packet to=-1", "packet from=1e300",
  ])
  func otherSelectorsAreRefused(_ text: String) {
    #expect(throws: ConditionError.self) { try PacketEdit(.drop, text) }
  }

  @Test(arguments: ["packet rtp", "80 packet", "-3ms packet", "xms", ""])
  func aDelayNeedsItsLength(_ text: String) {
    #expect(throws: ConditionError.self) { try PacketEdit(delay: text) }
  }

  /// The former name of `probability=` is accepted as well.
  @Test func shareIsAnotherWordForProbability() throws {
    let new = try PacketEdit(.drop, "packet rtp probability=2.5%")
    let old = try PacketEdit(.drop, "packet rtp share=2.5%")
    #expect(new.share == 25 && old.share == 25)
    #expect(new.condition == old.condition)
  }
}
