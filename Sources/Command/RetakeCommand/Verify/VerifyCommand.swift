import ArgumentParser
import FoundationEssentials
import Glibc
import Media
import Queries
import Replay
import Synchronization
import Tape
import Wire

/// Runs takes as regression tests.
struct VerifyCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "verify",
    abstract: "Run takes as tests: every one must replay as it was recorded or pinned.",
    discussion: """
      A folder stands for all takes below it. A take is compared exactly: every packet, state, \
      frame, timer and random draw. With a pin beside it (call.pin.json, made by retake pin) it is \
      compared as the pin says: exactly, or by the results of the session within the pin's \
      tolerances. Takes run in parallel on all cores. For other library versions, the recorded \
      output is used; such a take passes in part, with the reason. The exit status is 1 if one \
      fails; its report, with the command that reproduces the failure, is written into the folder \
      of reports.

      Examples:
        retake verify Captures/
        retake verify call.take --mode meaning
        retake verify Captures/ --junit build/retake.xml --reports build/retake
      """)

  @Argument(
    help: "Takes, and folders of takes.", completion: .file(extensions: ["take"]),
    transform: Taking.path)
  var paths: [String]

  @Option(help: "How to compare, overriding pins: exact or meaning.")
  var mode: VerifyMode?

  @Option(
    help: "Write the results as JUnit XML to this file.", completion: .file(extensions: ["xml"]),
    transform: Taking.path)
  var junit: String?

  @Option(
    help: "The folder for the reports of takes that fail. Default: \(Self.usualReports).",
    completion: .directory, transform: Taking.path)
  var reports = Self.usualReports

  private static let usualReports = "retake-reports"

  @Option(
    help: "The number of parallel takes. Default: the number of cores.",
    transform: Taking.whole(1...1024))
  var jobs: Int?

  @Flag(help: "Fail takes that can only be replayed in part here; also with RETAKE_STRICT=1.")
  var strict = false

  @OptionGroup var overwrite: OverwriteOption

  @Flag(help: "Print JSON for programs.")
  var json = false

  func validate() throws {
    if paths.isEmpty { throw ValidationError("Give a take or a folder of takes.") }
  }

  func run() throws {
    try checkReport()
    let takes = try reading { () throws(TapeError) in try VerificationRun.takes(in: paths) }
    let progress = Progress("verifying")
    let (json, pieces, count) = (json, OutputPieces(), FinishedCount())
    let jobs = jobs ?? ProcessInfo.processInfo.activeProcessorCount
    let run = progress.follow(telling: { "\(count.value) of \(counted(takes.count, "take"))" }) {
      VerificationRun(
        takes: takes, mode: mode?.mode, isStrict: strict || TakeVerification.isStrictHere,
        jobs: jobs
      ) { done, latest in
        count.set(done)
        // Write complete lines at once, so that lines from several threads do not mix.
        if !json { progress.above { pieces.add(Self.painted(latest) + "\n") } }
      }
    }
    try Output.verdict { try pieces.check() }
    let written = try writeReports(run)
    if let junit { try write(run.junit, to: junit) }
    try Output.verdict {
      if json { return try Output.json(run.json, in: .verify) }
      try Output.line(run.totals)
      for report in written { try Output.line("report: \(report)") }
    }
    guard let first = run.failures.first else { return }
    // Unreadable files are not divergences; each was reported above.
    var status = ExitStatus.difference
    let areAllUnreadable = run.failures.allSatisfy { failure in
      if case .unreadable = failure.outcome { true } else { false }
    }
    if areAllUnreadable, case .unreadable(let error) = first.outcome {
      status = CommandFailure(error).status
    }
    throw CommandFailure(status, "")
  }

  /// Returns a take's line with its verdict coloured.
  private static func painted(_ result: TakeVerification) -> String {
    let line = result.line
    let verdict = line.prefix { $0 != " " }
    return Terminal.standard.paint(String(verdict), result.isPassed ? .good : .bad)
      + line.dropFirst(verdict.count)
  }

  /// Refuses, without `--force`, to replace a file that is not an earlier report; reports
  /// themselves are always replaced.
  private func checkReport() throws {
    guard let junit, !overwrite.force, FileBytes.kind(of: junit) == .file else { return }
    let head = (try? FileBytes.read(junit, atMost: 5).get()) ?? []
    guard !head.isEmpty, head != Array("<?xml".utf8) else { return }
    throw CommandFailure(WholeFile.Failure(path: junit, code: EEXIST))
  }

  private func writeReports(_ run: VerificationRun) throws -> [String] {
    var names: [String: Int] = [:]
    return try run.failures.map { failure in
      let name = FileBytes.stem(of: failure.path)
      let count = names[name, default: 0] + 1
      names[name] = count
      let path = "\(reports)/\(name)\(count == 1 ? "" : "-\(count)").txt"
      var meaning: String?
      if case .diverged = failure.outcome { meaning = try? failure.meaning() }
      try write(failure.report(meaning: meaning), to: path)
      return path
    }
  }

  private func write(_ text: String, to path: String) throws {
    let folder = FileBytes.folder(of: path)
    if !folder.isEmpty, case .failure(let code) = WholeFile.makeFolder(folder, mode: 0o777) {
      throw CommandFailure(
        .inputOutput, "\(path): its folder cannot be created: \(code); choose another")
    }
    // CI programs read the report, perhaps as another user.
    try WritingWhole.text(text, to: path, .replaced, mode: 0o644)
  }
}

/// Counts finished takes across threads.
private final class FinishedCount: Sendable {
  private let count = Atomic(0)

  var value: Int { count.load(ordering: .relaxed) }

  func set(_ value: Int) { count.store(value, ordering: .relaxed) }
}

/// Verification modes by their names on the command line.
enum VerifyMode: String, ExpressibleByArgument, CaseIterable {
  case exact, meaning

  var mode: Pin.Mode {
    switch self {
    case .exact: .exact
    case .meaning: .meaning
    }
  }
}

// MARK: - PinCommand

/// Stores a session's expected outcome.
struct PinCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "pin",
    abstract: "Write the results of a take into a file, as checks for retake verify.",
    discussion: """
      Makes call.pin.json beside call.take: states, the time to connect, frames, freezes, bit \
      rates, loss, requests, levels, each with a tolerance. Read it, change the tolerances, and \
      remove the lines that do not matter. Only a take that replays as it was recorded, or with \
      the same meaning, can be pinned.

      Examples:
        retake pin call.take
        retake pin call.take --mode exact --note "the freeze of June"
      """)

  @OptionGroup var options: TakeOptions

  @Option(help: "How retake verify compares the take from now on: exact or meaning.")
  var mode: VerifyMode = .meaning

  @Option(help: "Free text in the pin, such as the purpose of the take.", transform: Taking.text())
  var note = ""

  @OptionGroup var overwrite: OverwriteOption

  func run() throws {
    reportEndings(of: options.take)
    let take = options.take
    let path = Pin.path(ofTake: take)
    if !overwrite.force, FileBytes.kind(of: path) != nil {
      throw CommandFailure(
        .inputOutput, "\(path) exists already: edit this pin, or replace it with --force")
    }
    let good = Progress("verifying").follow {
      let exact = TakeVerification.run(path: take, mode: .exact)
      // A take from another stack may replay with the same meaning although its bytes differ.
      guard case .diverged = exact.outcome, mode.mode == .meaning else { return exact }
      return TakeVerification.run(path: take, mode: .meaning)
    }
    if case .unreadable(let error) = good.outcome { throw CommandFailure(error) }
    guard good.isPassed else {
      throw CommandFailure(
        .difference, "\(take): only a good run can be pinned, and this one differs: \(good.summary)"
      )
    }
    WritingWhole.cleanUpOnSignals()
    let pin = try reading { () throws(TapeError) in
      let pin = Pin(mode: mode.mode, note: note, measures: try Measures(path: take, isForPin: true))
      try pin.write(forTake: take)
      return pin
    }
    if options.json {
      try Output.write(pin.text, as: .json)
    } else {
      try Output.line(
        "\(path): \(counted(pin.checks.count, "check")), compared \(described(pin.mode))")
    }
  }

  private func described(_ mode: Pin.Mode) -> String {
    mode == .exact ? "exactly" : "by meaning"
  }
}

// MARK: - MinimiseCommand

/// Shortens a diverging take.
struct MinimiseCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "minimise",
    abstract: "Shorten a take that fails to the shortest one that still fails in the same way.",
    discussion: """
      Removes everything after the step that differs and all peers but the one that differs. The \
      short take is replayed to check that it shows the same difference. The exit status is 1 when \
      the take does not fail, because then there is nothing to shorten.

      Example:
        retake minimise call.take --out short.take
      """,
    aliases: ["minimize"])

  @OptionGroup var options: TakeOptions

  @Option(
    help: "The short take. Default: call.short.take for call.take.",
    completion: .file(extensions: ["take"]), transform: Taking.path)
  var out: String?

  @OptionGroup var overwrite: OverwriteOption

  func run() throws {
    reportEndings(of: options.take)
    let take = options.take
    let stem = take.hasSuffix(".take") ? String(take.dropLast(5)) : take
    let out = out ?? stem + ".short.take"
    try overwrite.check(out, reading: take)
    var summary = try WritingWhole.writeTake(out, overwrite.present) { output in
      try Progress("shortening").follow { try shortened(output) }
    }
    summary.output = out
    if options.json {
      return try Output.json(CanonicalJSON.text(summary), in: .upgrade)
    }
    try Output.line(
      "\(summary.output): \(summary.steps) of \(counted(summary.recordedSteps, "step")), "
        + "\(summary.bytes) of \(counted(summary.recordedBytes, "byte")), differs in the same way:")
    try Output.line(summary.divergence.description)
  }

  private func shortened(_ output: String) throws -> Minimiser.Summary {
    let take = options.take
    do throws(Minimiser.Refusal) {
      return try Minimiser.run(path: take, output: output)
    } catch {
      switch error {
      case .unreadable(let reason): throw CommandFailure(reason)
      case .identical:
        throw CommandFailure(
          .difference, "\(take): it replays as it was recorded; there is nothing to shorten")
      case .altered(let alteration):
        throw CommandFailure(
          .difference, "\(take): \(alteration); restore the file, or record the call again")
      case .different(let reason):
        throw CommandFailure(.difference, "\(take): it cannot be shortened: \(reason)")
      }
    }
  }
}

// MARK: - UpgradeCommand

/// Recreates a take with this build's stack, libraries and schema.
struct UpgradeCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "upgrade",
    abstract: "Recreate a take with this build's stack, libraries and schema; report the changes.",
    discussion: """
      The inputs of the take are executed by the stack of this build, and its outputs are written \
      into a new take, which replays here bit for bit. The old one is not changed. The exit status \
      is 1 if the results of the session (states, frames, bit rates and so on) changed beyond the \
      tolerances of retake pin.

      With --decode, frames that were only passed through are decoded: audio and video frames of \
      calls between others that were recorded without decoding, and H.264 and AV1 video frames.

      Examples:
        retake upgrade old.take --out new.take
        retake upgrade seen.take --decode --out decoded.take
      """)

  @OptionGroup var options: TakeOptions

  @Option(help: "The new take.", completion: .file(extensions: ["take"]), transform: Taking.path)
  var out: String

  @Flag(help: "Decode whatever this build can decode.")
  var decode = false

  @OptionGroup var overwrite: OverwriteOption

  func run() throws {
    if decode { LibraryCodecs.missingDecoders.forEach { printError("retake: \($0)") } }
    reportEndings(of: options.take)
    try overwrite.check(out, reading: options.take)
    var upgrade = try WritingWhole.writeTake(out, overwrite.present) { temporary in
      try Progress("upgrading").follow {
        try reading { () throws(TapeError) in
          try Upgrade(path: options.take, output: temporary, decodes: decode)
        }
      }
    }
    upgrade.output = out
    try Output.verdict {
      try options.json ? Output.json(upgrade.json, in: .upgrade) : Output.line(upgrade.text)
    }
    if !upgrade.misses.isEmpty { throw CommandFailure(.difference, "") }
  }
}
