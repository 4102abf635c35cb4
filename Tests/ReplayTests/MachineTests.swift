import Foundation
import Lab
import Media
import Peer
import Queries
import Tape
import Testing
import Wire

@testable import Replay

/// Recording, replay, walk, redrive and comparison work even on a machine of a kind that they do
/// not know.
struct MachineTests {
  private typealias Folder = MachineFolder

  private func recorded(_ folder: Folder, _ name: String = "a.take") throws -> String {
    try folder.recordCounter(name)
  }

  private func replay(_ path: String, kinds: MachineKinds = Counter.kinds()) throws
    -> ReplayReport
  {
    let replayer = try Replayer(
      path: path, kinds: kinds, codecs: { LibraryCodecs() }, peer: { PeerMachine(codecs: $0) })
    return try replayer.run()
  }

  private func isIdentical(_ report: ReplayReport) -> Bool {
    if case .identical = report.verdict { return true }
    return false
  }

  @Test func aMachineIsRecordedAndReplayed() throws {
    let folder = try Folder()
    let path = try recorded(folder)
    let report = try replay(path)
    #expect(isIdentical(report), "\(report)")
    #expect(report.steps == 7 && report.peers == ["sum"])
    let take = try TakeFile.openForQueries(path)
    let actor = try take.prepare("SELECT actor, kind, label, configuration FROM actor")
    #expect(try actor.step())
    #expect(actor.integer(0) == 1 && actor.text(1) == "kind 200")
    #expect(actor.text(2) == "sum" && actor.text(3) == "10")
    #expect(try take.integer("SELECT count(*) FROM peer") == 0)
    #expect(try take.integer("SELECT count(*) FROM event WHERE type = 'total'") == 5)
    let covered = "SELECT to_ns FROM coverage WHERE actor = 1 AND what = 'numbers' AND peer IS NULL"
    #expect(try take.integer(covered) == 1_050_000_000)
  }

  @Test func theTakeOfAKilledRecorderReplays() async throws {
    let folder = try Folder()
    let driver = CounterDriver(try folder.writer("a.take"))
    let counter = driver.add("sum", limit: 10)
    for number in 0..<100 { driver.step(counter, .add(number)) }
    let copy = folder.file("killed.take")
    // A killed process leaves the file and its log as they were at some moment.
    var report: ReplayReport?
    for _ in 0..<200 where report?.steps ?? 0 < 100 {
      for suffix in ["", "-wal"] {
        try? FileManager.default.removeItem(atPath: copy + suffix)
        try? FileManager.default.copyItem(
          atPath: folder.file("a.take") + suffix, toPath: copy + suffix)
      }
      report = try? replay(copy)
      await Task.yield()
    }
    _ = try driver.writer.finish()
    let found = try #require(report)
    #expect(isIdentical(found) && !found.isComplete && found.steps == 101)
  }

  @Test func anotherMachineIsFoundAtItsFirstDifference() throws {
    let folder = try Folder()
    let report = try replay(try recorded(folder), kinds: Counter.kinds(error: 1))
    guard case .diverged(let divergence) = report.verdict else {
      Issue.record("\(report)")
      return
    }
    #expect(divergence.step == 2 && divergence.peerLabel == "sum")
    #expect(divergence.input.contains("add(1)"))
    #expect(divergence.recorded.contains("1") && divergence.replayed.contains("2"))
  }

  @Test(arguments: [
    ("event", "UPDATE event SET detail = '{\"total\":4}' WHERE detail = '{\"total\":3}'", 3),
    ("actor", "UPDATE actor_store SET label = 'other'", 1),
    ("coverage", "UPDATE coverage SET reason = reason || '!'", 5),
    ("coverage", "DELETE FROM coverage", 5),
    ("call_request", "UPDATE call_request SET arguments = '9' WHERE arguments = '2'", 3),
  ])
  func alterationsAreFoundAtTheirStep(table: String, sql: String, step: Int) throws {
    let folder = try Folder()
    let path = try recorded(folder)
    try SQLiteConnection(path: path, mode: .readWrite).execute(sql)
    let report = try replay(path)
    guard case .altered(let alteration) = report.verdict else {
      Issue.record("\(report)")
      return
    }
    #expect(alteration.step == step)
  }

  @Test func aTakeIsSteppedThrough() throws {
    let folder = try Folder()
    let walk = try TapeWalk(
      path: try recorded(folder), skipsCodecs: false, kinds: Counter.kinds(),
      codecs: { LibraryCodecs() })
    let condition = try StepCondition("event total")
    var totals = 0
    while let step = try walk.advance() {
      if walk.meets(condition) { totals += 1 }
      #expect(!step.lines.isEmpty && step.json.contains("\"step\":\(walk.number)"))
    }
    #expect(totals == 5 && walk.divergence == nil && walk.number == 7)
    let state = try #require(walk.states.first)
    #expect(state.name == "actor 1" && state.label == "sum")
    #expect((state.snapshot as? Counter.Snapshot)?.total == 15)
  }

  @Test func aTakeIsUpgradedAndComparedWithItself() throws {
    let folder = try Folder()
    let path = try recorded(folder)
    let redrive = try Redrive(
      path: path, output: folder.file("b.take"), kinds: Counter.kinds(),
      codecs: { LibraryCodecs() }, peer: { PeerMachine(codecs: $0) })
    let summary = try redrive.run()
    #expect(summary.firstDifference == nil && summary.steps == 7)
    let common = try CommonRun(path, folder.file("b.take"))
    #expect(common.steps == 7 && common.difference == nil)
    let other = try Redrive(
      path: path, output: folder.file("c.take"), kinds: Counter.kinds(error: 1),
      codecs: { LibraryCodecs() }, peer: { PeerMachine(codecs: $0) })
    #expect(try other.run().firstDifference == 2)
    let different = try CommonRun(path, folder.file("c.take"))
    #expect(different.steps == 1 && different.difference != nil)
  }

  @Test func anUnknownKindIsReportedInOneSentence() throws {
    let folder = try Folder()
    let path = try recorded(folder)
    let error = #expect(throws: TapeError.self) { try replay(path, kinds: MachineKinds()) }
    #expect(error?.description.contains("actor 1") == true)
    #expect(error?.description.contains("kind 200") == true)
    // The machine's rows are still readable.
    #expect(try TakeInfo(path: path).steps == 7)
    #expect(try TapeAudit.run(path: path).alteration == nil)
  }

  // MARK: Several machines

  /// Records two counters; the first one's output is the second one's input.
  private func pair(_ folder: Folder) throws -> String {
    let driver = CounterDriver(try folder.writer("pair.take"))
    let (first, second) = (driver.add("first", limit: 5), driver.add("second", limit: 100))
    for number in 1...5 {
      for total in driver.step(first, .add(number)) { driver.step(second, .add(total)) }
    }
    driver.wait()
    _ = try driver.writer.finish()
    return folder.file("pair.take")
  }

  @Test func machinesThatDriveEachOtherReplay() throws {
    let folder = try Folder()
    let path = try pair(folder)
    #expect(isIdentical(try replay(path)))
    let walk = try TapeWalk(
      path: path, skipsCodecs: false, kinds: Counter.kinds(), codecs: { LibraryCodecs() })
    while try walk.advance() != nil {}
    let totals = walk.states.map { ($0.snapshot as? Counter.Snapshot)?.total }
    #expect(totals == [15, 35])
  }

  @Test(arguments: [1, 2]) func eachMachineReplaysAlone(actor: UInt32) throws {
    let folder = try Folder()
    let reader = try TapeReader(path: try pair(folder))
    let copy = try TakeCopy(path: folder.file("alone.take"), header: reader.header)
    var numbers = RowNumbering()
    var count = 0
    while let chunk = try reader.next() {
      for step in chunk.steps where step.head.actor == actor {
        let rows = numbers.renumbered(chunk.rows, step.rows)
        try copy.append(step.head, rows, 0..<rows.count)
        count += 1
      }
    }
    try copy.finish()
    let report = try replay(folder.file("alone.take"))
    #expect(isIdentical(report) && report.steps == count && count >= 6)
  }

  /// Peers have their own numbering beside other machines.
  @Test func endpointsAndOtherMachinesShareATake() throws {
    let folder = try Folder()
    let driver = CounterDriver(try folder.writer("mixed.take"))
    let counter = driver.add("sum", limit: 10)
    let numbers = ["caller", "callee"].map { driver.writer.addPeer(label: $0, role: $0) }
    #expect(numbers.map(\.actor) == [2, 3] && numbers.map(\.peer) == [1, 2])
    let writer = driver.writer
    let call = VirtualCall(seed: 3, peerNumbers: numbers.map(\.actor)) { writer.record($0) }
    call.call(
      0, .addTrack(kind: .audio, streamIDs: ["s"], source: .tone(hertz: 440, pauseSeconds: 0)))
    _ = call.negotiate()
    call.run(for: .milliseconds(500))
    driver.step(counter, .add(3))
    call.call(0, .close)
    _ = try writer.finish()
    let path = folder.file("mixed.take")
    let report = try replay(path)
    #expect(isIdentical(report), "\(report)")
    #expect(report.peers == ["sum", "caller", "callee"])
    let take = try TakeFile.openForQueries(path)
    #expect(try take.integer("SELECT count(*) FROM actor") == 3)
    #expect(try take.integer("SELECT actor FROM peer WHERE peer = 1 AND label = 'caller'") == 2)
    #expect(try take.integer("SELECT count(DISTINCT peer) FROM packet") == 2)
    #expect(try take.integer("SELECT max(peer) FROM packet") == 2)
  }
}
