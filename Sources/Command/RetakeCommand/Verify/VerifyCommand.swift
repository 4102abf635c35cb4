import ArgumentParser
import FoundationEssentials
import Glibc
import Queries
import Replay
import Synchronization
import Tape
import Wire

/// Takes as regression tests.
struct VerifyCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "verify",
    abstract: "Run takes as tests: every one must replay as it was recorded or pinned.",
    discussion: """
      A folder stands for all takes below it. A take is compared exactly: every packet, state, \
      frame, timer and random draw. With a pin beside it (call.pin.json, made by retake pin) it is \
      compared as the pin says: exactly, or by what comes of the session within the pin's \
      tolerances. Takes run in parallel on all cores. What other libraries made is taken from the \
      recording; such a take passes in part, with the reason. The exit status is 1 when one fails; \
      its report, with the command that shows the failure again, is left in the folder of reports.

      Examples:
        retake verify Captures/
        retake verify call.take --mode meaning
        retake verify Captures/ --junit build/retake.xml --reports build/retake
      """)

  @Argument(
    help: "Takes, and folders of takes.", completion: .file(extensions: ["take"]),
    transform: Taking.path)
  var paths: [String]

  @Option(help: "How to compare, whatever pins say: exact or meaning.")
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
    help: "How many takes run at once. Default: as many as there are cores.",
    transform: Taking.whole(1...1024))
  var jobs: Int?

  @Flag(help: "Let takes fail that can be replayed only in part here; so does RETAKE_STRICT=1.")
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
        // Whole lines in one write, so that those of several threads stay whole.
        if !json { progress.above { pieces.take(Self.painted(latest) + "\n") } }
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
    // Files that are no takes are no differences; each has its line above.
    var status = ExitStatus.difference
    let areAllUnreadable = run.failures.allSatisfy { failure in
      if case .unreadable = failure.outcome { true } else { false }
    }
    if areAllUnreadable, case .unreadable(let error) = first.outcome {
      status = CommandFailure(error).status
    }
    throw CommandFailure(status, "")
  }

  /// The line of a take, its verdict in colour.
  private static func painted(_ result: TakeVerification) -> String {
    let line = result.line
    let verdict = line.prefix { $0 != " " }
    return Terminal.standard.paint(String(verdict), result.isPassed ? .good : .bad)
      + line.dropFirst(verdict.count)
  }

  /// Refuses to replace what is not the report of an earlier run: those are made anew every time.
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
    if !folder.isEmpty, case .failure(let code) = NewFile.makeFolder(folder, mode: 0o777) {
      throw CommandFailure(
        .inputOutput, "\(path): its folder cannot be made: \(code); choose another")
    }
    // Programs of CI read them, whoever they run as.
    try WritingWhole.text(text, to: path, .replaced, mode: 0o644)
  }
}

/// How many takes are through.
private final class FinishedCount: Sendable {
  private let count = Atomic(0)

  var value: Int { count.load(ordering: .relaxed) }

  func set(_ value: Int) { count.store(value, ordering: .relaxed) }
}

/// The modes by their names on the command line.
enum VerifyMode: String, ExpressibleByArgument, CaseIterable {
  case exact, meaning

  var mode: Pin.Mode {
    switch self {
    case .exact: .exact
    case .meaning: .meaning
    }
  }
}
