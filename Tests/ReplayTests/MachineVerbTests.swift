import Debug
import Foundation
import Media
import Page
import Peer
import Queries
import Replay
import Tape
import Testing
import Wire

private func counted(_ name: String = "a.take") throws -> (folder: MachineFolder, path: String) {
  let folder = try MachineFolder()
  return (folder, try folder.recordCounter(name))
}

/// Runs every verb on a take with a machine of an unknown kind.
struct MachineVerbTests {
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

  @Test func upgradeRecreatesTheTake() throws {
    let (folder, path) = try counted()
    let upgrade = try Upgrade(path: path, output: folder.file("b.take"), kinds: Counter.kinds())
    #expect(upgrade.steps == 7 && upgrade.firstDifference == nil && upgrade.misses.isEmpty)
  }

  @Test func infoAndTimelineAndPageShowIt() throws {
    let (folder, path) = try counted()
    let info = try TakeInfo(path: path)
    #expect(info.peers.isEmpty && info.actors.map(\.label) == ["sum"])
    #expect(info.description.contains("actor 1 sum, kind 200"))
    #expect(info.description.contains("numbers: nobody said any (numbers, 0.000 to 1.050 s)"))
    #expect(info.json.contains("\"reason\":\"nobody said any\""))
    #expect(try Timeline(path: path).json.contains("total"))
    let page = try TakePage(path: path).html
    #expect(page.contains("sum") && page.contains("nobody said any"))
    withExtendedLifetime(folder) {}
  }

  @Test func diffDistinguishesTwoTakes() throws {
    let (folder, path) = try counted()
    let same = try TakeDiff(path, path, alignment: .start)
    #expect(same.differences.isEmpty && same.common.steps == 7)
    let other = try folder.recordCounter("b.take", label: "other")
    let different = try TakeDiff(path, other, alignment: .start)
    #expect(different.common.steps == 0 && different.common.difference != nil)
  }

  /// Only endpoints have packets that can be changed; `whatif` says that it omits other machines.
  @Test func whatIfReportsThatTheMachineIsOmitted() throws {
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

struct MachineVerbExitTests {
  /// A debug session forks its process, which must have one thread.
  ///
  /// The test therefore runs in another process, which forks again without the test runner's
  /// threads.
  @Test func debugWalksThroughItForwardAndBack() async throws {
    let (folder, path) = try counted()
    await #expect(processExitsWith: .success) { [path = path as String] in
      exit(DebugWalk.inOneThread { DebugWalk.faults(path) })
    }
    withExtendedLifetime(folder) {}
  }
}

/// A debugging session of a machine that the debugger does not know.
private enum DebugWalk {
  /// Runs a closure in a forked copy of this process with one thread; returns 0 if it found no
  /// fault.
  static func inOneThread(_ faults: () -> [String]) -> Int32 {
    guard let symbol = dlsym(nil, "fork") else { return 1 }
    let fork = unsafeBitCast(symbol, to: (@convention(c) () -> pid_t).self)
    let copy = fork()
    if copy == 0 {
      let faults = faults()
      FileHandle.standardError.write(Data(faults.map { "\($0)\n" }.joined().utf8))
      exit(faults.isEmpty ? 0 : 1)
    }
    var status: Int32 = 1
    return waitpid(copy, &status, 0) == copy ? (status == 0 ? 0 : 1) : 1
  }

  static func faults(_ path: String) -> [String] {
    var faults: [String] = []
    func check(_ isGood: Bool, _ fault: @autoclosure () -> String) {
      if !isGood { faults.append(fault()) }
    }
    do {
      let console = DebugConsole(try DebugSession(path: path, kinds: Counter.kinds()))
      let found = try console.execute("seek event total")
      check(!found.isUnmet && console.place.hasSuffix("after step 2"), console.place)
      let steps = try console.execute("next 4").text
      check(steps.contains("add(4)"), steps)
      let ten = try console.execute("show").text
      check(ten.contains("10"), ten)
      _ = try console.execute("back")
      let six = try console.execute("show").text
      check(six.contains("6") && !six.contains("10"), six)
      check(try console.execute("seek frame").isUnmet, "a frame was found")
      let other = try DebugSession(path: path, kinds: Counter.kinds(error: 1))
      try other.run(steps: 7)
      check(other.divergence?.contains("actor 1 (sum)") == true, other.divergence ?? "none")
    } catch {
      faults.append("\(error)")
    }
    return faults
  }
}
