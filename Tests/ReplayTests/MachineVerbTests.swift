import Debug
import Foundation
import Media
import Page
import Peer
import Queries
import Replay
import Tape
import Testing
import Verify
import Wire

/// A machine that none of the verbs knows, through every one of them.
@Suite struct MachineVerbTests {
  private func counted(_ name: String = "a.take") throws -> (folder: MachineFolder, path: String) {
    let folder = try MachineFolder()
    return (folder, try folder.recordCounter(name))
  }

  @Test func verifyPassesAndFindsAnotherMachine() throws {
    let (folder, path) = try counted()
    let result = TakeVerification.run(path: path, kinds: Counter.kinds())
    #expect(result.isPassed && result.steps == 7, "\(result)")
    let other = TakeVerification.run(path: path, kinds: Counter.kinds(error: 1))
    guard case .diverged(let divergence) = other.outcome else {
      Issue.record("\(other)")
      return
    }
    #expect(divergence.actor == 1 && divergence.peer == nil)
    #expect(divergence.description.contains("actor 1 (sum)"))
    withExtendedLifetime(folder) {}
  }

  @Test func verifyComparesByMeaningWhatAPinHolds() throws {
    let (folder, path) = try counted()
    let pin = Pin(mode: .meaning, measures: try Measures(path: path))
    try pin.write(forTake: path)
    let result = TakeVerification.run(path: path, kinds: Counter.kinds())
    #expect(result.isPassed && result.mode == .meaning, "\(result)")
    withExtendedLifetime(folder) {}
  }

  @Test func upgradeMakesTheTakeAnew() throws {
    let (folder, path) = try counted()
    let upgrade = try Upgrade(path: path, output: folder.file("b.take"), kinds: Counter.kinds())
    #expect(upgrade.steps == 7 && upgrade.firstDifference == nil && upgrade.misses.isEmpty)
  }

  @Test func infoAndTimelineAndPageShowIt() throws {
    let (folder, path) = try counted()
    let info = try TakeInfo(path: path)
    #expect(info.peers.isEmpty && info.actors.map(\.label) == ["sum"])
    #expect(info.description.contains("actor 1 sum, kind 200"))
    #expect(info.description.contains("numbers, 0.000 to 1.050 s: nobody said any"))
    #expect(info.json.contains("\"reason\":\"nobody said any\""))
    #expect(try Timeline(path: path).json.contains("total"))
    let page = try TakePage(path: path).html
    #expect(page.contains("sum") && page.contains("nobody said any"))
    withExtendedLifetime(folder) {}
  }

  @Test func diffTellsTwoTakesApart() throws {
    let (folder, path) = try counted()
    let same = try TakeDiff(path, path, alignment: .start)
    #expect(same.differences.isEmpty && same.common.steps == 7)
    let other = try folder.recordCounter("b.take", label: "other")
    let different = try TakeDiff(path, other, alignment: .start)
    #expect(different.common.steps == 0 && different.common.difference != nil)
  }

  /// Only endpoints have packets that could have come otherwise, and that is said.
  @Test func whatIfSaysThatItLeavesItOut() throws {
    let (folder, path) = try counted()
    let run = try FreeRun(path: path, changes: FreeRun.Changes(), codecs: { LibraryCodecs() })
    #expect(try run.run().isEmpty)
    #expect(run.others == ["actor 1"])
    let report = WhatIfReport(
      path: path, changes: [], recorded: [], changed: [], others: run.others)
    #expect(report.text.contains("only endpoints can be changed: actor 1."))
    #expect(report.json.contains("\"left_out\":[\"actor 1\"]"))
    withExtendedLifetime(folder) {}
  }

  @Test func conditionsFindItsSteps() throws {
    let (folder, path) = try counted()
    let finder = try StepFinder(path: path)
    #expect(try finder.first(try StepCondition("event total"), after: 0) == 2)
    #expect(try finder.first(try StepCondition("coverage what=numbers"), after: 0) == 5)
    #expect(try finder.first(try StepCondition("event total peer=1"), after: 0) == nil)
    withExtendedLifetime(folder) {}
  }
}
