import Foundation
import Media
import Peer
import Testing
import Wire

@testable import Replay
@testable import Tape

/// Any change to a take is noticed, at its step and in its layer.
///
/// Every change is tried in two ways. Without further edits, the change breaks the digest chain,
/// and the file must be reported as altered at exactly that step. With a recomputed chain, the
/// replay has to notice the change: a changed output at exactly that step, and a changed input
/// where the stack's behaviour first differs.
struct MutationTests {
  /// The number of changes: each replays the take up to the change, so `make test` tries few.
  static let mutations =
    ProcessInfo.processInfo.environment["RETAKE_CHANGED_TAKES"].flatMap { Int($0) } ?? 500
  static let perTest = 50

  @Test(arguments: 0..<mutations / perTest)
  func aChangeIsNoticedAtItsStepAndInItsLayer(_ part: Int) throws {
    let folder = try MutationFolder()
    var ignored = 0
    for number in part * Self.perTest..<(part + 1) * Self.perTest {
      let base = try MutableTake.shared.get()
      var take = base
      let mutation = Mutation(number, of: &take)
      let path = folder.file("\(number).take")
      try take.write(to: path)
      if try !isNoticed(mutation, path, number) { ignored += 1 }
      if mutation.kind != .missingStep, mutation.kind != .doubledStep {
        try folder.restoreChecks(of: path, from: base)
        let alteration = try TapeAudit.run(path: path).alteration
        #expect(alteration?.step == mutation.step, "\(number): \(mutation)")
      }
      try FileManager.default.removeItem(atPath: path)
    }
    #expect(ignored < Self.perTest / 4, "the stack takes too little notice of its inputs")
  }

  @Test func nothingIsNoticedWhenNothingWasChanged() throws {
    let folder = try MutationFolder()
    let base = try MutableTake.shared.get()
    let path = folder.file("same.take")
    try base.write(to: path)
    #expect(try TapeAudit.run(path: path).alteration == nil)
    #expect(try firstDifference(path) == nil)
    for skipsCodecs in [false, true] {
      var options = Replayer.Options()
      options.skipsCodecs = skipsCodecs
      let report = try replay(path, options)
      guard case .identical = report.verdict else {
        Issue.record("\(report)")
        return
      }
      #expect(report.steps == base.steps.count)
    }
    // No step was changed, so with the original's checks the audit finds no alteration either.
    try folder.restoreChecks(of: path, from: base)
    #expect(try TapeAudit.run(path: path).alteration == nil)
  }

  /// Returns whether a replay notices a change; false only if the stack behaves the same despite
  /// the change.
  private func isNoticed(_ mutation: Mutation, _ path: String, _ number: Int) throws -> Bool {
    let isOfInput = [.input, .datagramByte, .time, .seed, .setting, .missingStep, .doubledStep]
      .contains(mutation.kind)
    let report: ReplayReport
    do {
      report = try replay(path)
    } catch let error as TapeError {
      // If the change made an input invalid, the error names its step.
      #expect(isOfInput && error.place == "step \(mutation.step)", "\(number): \(error)")
      return true
    }
    let expected = isOfInput ? try firstDifference(path) : mutation.step
    switch report.verdict {
    case .identical:
      #expect(isOfInput && expected == nil, "\(number): \(mutation) was not noticed")
      return false
    case .diverged(let divergence):
      #expect(divergence.step == expected, "\(number): \(mutation), \(divergence)")
      #expect(report.steps == divergence.step - 1)
      #expect(divergence.layer == mutation.layer ?? divergence.layer, "\(number): \(mutation)")
      #expect(!divergence.layer.isEmpty && divergence.recorded != divergence.replayed)
    case .altered(let alteration):
      Issue.record("\(number): \(mutation): \(alteration)")
    }
    return true
  }

  /// Returns the number of the first step for which a fresh stack produces different rows, another
  /// deadline or another count of random bytes; nil if there is none.
  private func firstDifference(_ path: String) throws -> Int? {
    let reader = try TapeReader(path: path)
    var peers: [UInt32: PeerMachine] = [:]
    var transcript = Transcript(keepsMedia: true)
    while let chunk = try reader.next() {
      for step in chunk.steps {
        let peer = peers[step.head.actor] ?? PeerMachine(codecs: LibraryCodecs())
        peers[step.head.actor] = peer
        if step.head.kind == .genesis {
          transcript.adopt(ActorWords(step, chunk.rows), of: step.head.actor)
        }
        var outbox = Outbox<PeerOutput>()
        let input = try #require(step.input as? PeerInput)
        peer.step(input, at: step.head.at, into: &outbox)
        transcript.begin(actor: step.head.actor, at: step.head.at)
        step.input.write(to: &transcript)
        for output in outbox.drain() { transcript.append(output) }
        let made = (0..<transcript.rows.count).map { Array(transcript.rows.row($0)) }
        guard made == step.rows.map({ Array(chunk.rows.row($0)) }),
          (0..<made.count).map({ transcript.rows.table($0) })
            == step.rows.map({ chunk.rows.table($0) }),
          step.head.deadline == peer.deadline, step.head.entropyDrawn == peer.entropyDrawn
        else { return step.head.number }
      }
    }
    return nil
  }
}

private final class MutationFolder {
  /// A row of `tape`: its first step, the steps' heads with their checks, and the digest.
  private struct TapeRow {
    var start: Int64
    var heads: [StepHead]
    var digest: [UInt8]
  }

  private struct Checks {
    var rows: [TapeRow]
    var digest: [UInt8]
  }

  let path = FileManager.default.temporaryDirectory.path + "/mutations-" + UUID().uuidString
  /// The original take's checks, read once.
  private var original: Checks?

  init() throws {
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  func file(_ name: String) -> String { "\(path)/\(name)" }

  /// Writes the original's checks and digests into a changed take, as if only its rows had been
  /// edited.
  func restoreChecks(of path: String, from base: MutableTake) throws {
    let original = try original(base)
    let connection = try SQLiteConnection(path: path, mode: .readWrite)
    // The file is only for this test, so durability is not needed.
    try connection.execute("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; BEGIN")
    let changed = try checks(connection)
    for (row, before) in zip(changed.rows, original.rows) {
      var body = TapeBody(start: row.start)
      for (head, old) in zip(row.heads, before.heads) {
        var head = head
        head.check = old.check
        head.rowCount = old.rowCount
        body.append(head)
      }
      try connection.execute(
        """
        UPDATE tape SET
          body = x'\(hexadecimal(body.bytes))', digest = x'\(hexadecimal(before.digest))'
        WHERE first_step = \(before.heads[0].number)
        """)
    }
    try connection.execute(
      "UPDATE ending SET digest = x'\(hexadecimal(original.digest))'; COMMIT")
  }

  private func original(_ base: MutableTake) throws -> Checks {
    if let original { return original }
    let path = file("original.take")
    try base.write(to: path)
    let checks = try checks(TakeFile.open(path))
    original = checks
    return checks
  }

  private func checks(_ connection: borrowing SQLiteConnection) throws -> Checks {
    var found: [TapeRow] = []
    let rows = try connection.prepare(
      "SELECT first_step, steps, at_ns, body, digest FROM tape ORDER BY first_step")
    while try rows.step() {
      let body = rows.bytes(3)
      let heads = try TapeBody.heads(
        body.span.bytes, first: Int(rows.integer(0)), count: Int(rows.integer(1)),
        start: rows.integer(2))
      found.append(TapeRow(start: rows.integer(2), heads: heads, digest: rows.bytes(4)))
    }
    let ending = try connection.prepare("SELECT digest FROM ending")
    _ = try ending.step()
    return Checks(rows: found, digest: ending.bytes(0))
  }
}
