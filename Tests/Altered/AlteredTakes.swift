import CProcess
import Foundation
import RetakeCommand
import Tape

/// Runs every verb that reads takes on altered takes.
///
/// Each verb has to answer or refuse within 20 seconds of processor time and a gigabyte of memory,
/// without a trap. A replay must fail if a value covered by the digest was changed.
///
///     altered --folder FOLDER --from 0 --count 1000 TAKE...
///
/// With `--verbs 6`, each take runs through six of the verbs in turn, so that more takes are
/// tested.
///
/// With `--only findings,summary`, no other verbs run, and no failure is required.
///
/// With `--write`, the takes stay in the folder and no verb runs, for `Tests/Altered/serve.py`.
@main
struct AlteredTakes {
  private var folder = ".build/altered"
  private var from: UInt64 = 0
  private var count: UInt64 = 1_000
  private var steps = 400
  private var verbs = Int.max
  private var only: Set<String> = []
  private var onlyWrites = false
  private var sources: [String] = []

  static func main() throws {
    var takes = AlteredTakes()
    var words = CommandLine.arguments.dropFirst()
    while let word = words.popFirst() {
      switch word {
      case "--folder": takes.folder = words.popFirst() ?? ""
      case "--from": takes.from = words.popFirst().flatMap { UInt64($0) } ?? 0
      case "--count": takes.count = words.popFirst().flatMap { UInt64($0) } ?? 0
      case "--steps": takes.steps = words.popFirst().flatMap { Int($0) } ?? 0
      case "--verbs": takes.verbs = words.popFirst().flatMap { Int($0) } ?? 0
      case "--only":
        takes.only = Set((words.popFirst() ?? "").split(separator: ",").map(String.init))
      case "--write": takes.onlyWrites = true
      default: takes.sources.append(word)
      }
    }
    exit(try takes.run() ? 0 : 1)
  }

  /// Alters and checks all takes; returns whether none failed.
  private func run() throws -> Bool {
    try? FileManager.default.removeItem(atPath: folder)
    try FileManager.default.createDirectory(
      atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    let bases = try sources.enumerated().map { index, source in
      let base = "\(folder)/base-\(index).take"
      try shorten(source, to: base)
      return base
    }
    let alterations = Alterations(bases: bases)
    let take = "\(folder)/altered.take"
    var findings = 0
    var refused = 0
    var verbsRun = 0
    for number in from..<from + count {
      if onlyWrites {
        _ = try alterations.write(number, to: "\(folder)/\(number).take")
        continue
      }
      let altered = try alterations.write(number, to: take)
      let run = VerbRun(
        take: take, other: bases[0], folder: folder, number: number, count: verbs,
        replays: altered.mustBeNoticed, only: only)
      let outcome = try run.outcome()
      verbsRun += outcome.statuses.count
      refused += outcome.statuses.count { $0.status != 0 }
      var faults = outcome.faults
      let replay = outcome.statuses.first { $0.verb == "replay" }
      if altered.mustBeNoticed, replay?.status == 0 {
        faults.append("replay: a wrong success")
      }
      if !faults.isEmpty {
        findings += faults.count
        say("\(number): \(altered.what.prefix(300))")
        for fault in faults { say("  \(fault)") }
        try? FileManager.default.copyItem(atPath: take, toPath: "\(folder)/found-\(number).take")
      }
      if (number - from) % 500 == 499 { say("at \(number), \(findings) findings so far") }
    }
    say(
      "\(count) altered takes, \(verbsRun) runs of verbs, \(refused) of them refused, "
        + "\(findings) findings")
    return findings == 0
  }

  /// Prints a line immediately, so that a long run can be watched.
  private func say(_ line: String) {
    FileHandle.standardOutput.write(Data((line + "\n").utf8))
  }

  /// Writes a take's first steps as a separate take.
  private func shorten(_ source: String, to path: String) throws {
    let reader = try TapeReader(path: source)
    let copy = try TakeCopy(path: path, header: reader.header)
    while copy.steps < steps, let chunk = try reader.next(steps: 64) {
      for step in chunk.steps where copy.steps < steps {
        try copy.append(step.head, chunk.rows, step.rows)
      }
    }
    try copy.finish()
  }
}
