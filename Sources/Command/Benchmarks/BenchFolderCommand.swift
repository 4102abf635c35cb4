import ArgumentParser
import FoundationEssentials
import Glibc
import RetakeCommand
import Tape
import Wire

/// Measures questions to a folder of takes.
struct BenchFolderCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "folder",
    abstract: "Measure how long a folder of takes needs to be asked, the first time and later.",
    discussion: """
      Holds calls of 640x360 video at 30 frames per second and audio both ways in virtual time, \
      some of them over a lossy path, and copies them to as many takes as are wanted. Each \
      question is asked by a process of its own. The goals are those of 1,000 takes of a second \
      (queries) and of 100 takes of a minute (findings) on two cores.

      Examples:
        retake-bench folder --takes 1000 --seconds 1
        retake-bench folder --takes 100 --seconds 60
      """)

  @Option(
    help: "How many takes the folder has. Default: \(Self.usualTakes).",
    transform: Taking.whole(4...100_000))
  var takes = Self.usualTakes

  @Option(
    help: "How long the calls are, in whole virtual seconds. Default: \(Self.usualSeconds).",
    transform: Taking.wholeSeconds(1...3600))
  var seconds = Self.usualSeconds

  private static let usualTakes = 1_000
  private static let usualSeconds = 1

  @Flag(help: "Print JSON for programs.")
  var json = false

  /// How many calls are held; the other takes are copies of theirs.
  private static let calls = 8
  /// Takes that are longer, in seconds, are links to one file.
  private static let longestCopied = 5
  /// In seconds.
  private static let (firstGoal, laterGoal, findingsGoal) = (10.0, 1.0, 60.0)
  /// How much more memory a folder of four times as many takes may need.
  private static let memoryGoal = 1.25

  func run() throws {
    let temporary = try BenchFolder()
    defer { temporary.remove() }
    var table = try BenchTable(seconds: seconds, show: json ? nil : { try Output.line($0) })
    let part = try fill(temporary.url.appendingPathComponent("part"), takes / 4)
    let whole = try fill(temporary.url.appendingPathComponent("whole"), takes)
    try measure(part, whole, &table)
    try table.end()
  }

  /// Makes a folder with so many takes.
  private func fill(_ folder: URL, _ count: Int) throws -> String {
    let files = FileManager.default
    try files.createDirectory(at: folder, withIntermediateDirectories: true)
    for number in 0..<count {
      let path = folder.appendingPathComponent("call-\(number).take").path
      let source = folder.appendingPathComponent("call-\(number % Self.calls).take").path
      if number < Self.calls {
        say("a call of \(seconds) s, \(number + 1) of \(Self.calls)")
        try reading { () throws(TapeError) in
          try BenchCall(
            senders: [0, 1], seconds: seconds, lossPerMille: UInt64(number % 4) * 20
          ).run([BenchCall.Recording(path: path)])
        }
      } else if seconds <= Self.longestCopied {
        try files.copyItem(atPath: source, toPath: path)
      } else {
        try files.linkItem(atPath: source, toPath: path)
      }
    }
    return folder.path
  }

  private func measure(_ part: String, _ whole: String, _ table: inout BenchTable) throws {
    let program = BenchCommand.retake
    let count = "\(takes) takes"
    let catalogued = "SELECT id, count(DISTINCT take) FROM finding GROUP BY id"
    func forget() { FileBytes.remove(whole + "/.retake.catalogue") }
    say("findings of \(takes / 4) takes")
    _ = try Child.seconds(program, ["findings", part])
    let memory = Child.largestMemory
    say("findings of \(count)")
    let findings = try Child.seconds(program, ["findings", whole])
    try table.add(
      "findings of \(count)", findings, floor: Self.findingsGoal, "s", .atMost, 1)
    try table.add(
      "memory of that, of a quarter of the takes", Child.largestMemory, floor: memory, "MB",
      .atMost, Self.memoryGoal)
    forget()
    say("a query over \(count)")
    let first = try Child.seconds(program, ["sql", whole, catalogued])
    try table.add("a query, the first time", first, floor: Self.firstGoal, "s", .atMost, 1)
    let later = try Child.seconds(program, ["sql", whole, catalogued])
    try table.add("a query from the catalogue", later, floor: Self.laterGoal, "s", .atMost, 1)
    let packets = [
      "sql", whole, "SELECT protocol, count(*) FROM packet GROUP BY protocol", "--csv",
    ]
    let each = try Child.seconds(program, packets)
    try table.add("a query on each take", each, floor: Self.firstGoal, "s", .atMost, 1)
    let summary = try Child.seconds(program, ["summary", whole, "--json"])
    try table.add("summaries from the catalogue", summary, floor: Self.laterGoal, "s", .atMost, 1)
  }

  private func say(_ text: String) {
    if isatty(STDERR_FILENO) != 0 { printError("bench: \(text)") }
  }
}
