import ArgumentParser
import FoundationEssentials
import Glibc
import Page
import Queries
import RetakeCommand
import Tape

/// Measures the page of a long call.
struct BenchPageCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "page",
    abstract: "Measure how long the page of a long call takes to make, and how large it is.",
    discussion: """
      Holds a call of 640x360 video at 30 frames per second and audio both ways in virtual time, \
      and draws it. With --take the call is kept, and drawn from there the next time.

      Example:
        retake-bench page --take long.take
      """)

  @Option(
    help: "How long the call is, in whole virtual seconds. Default: \(Self.usualSeconds).",
    transform: Taking.wholeSeconds(2...7200))
  var seconds = Self.usualSeconds

  private static let usualSeconds = 600

  @Option(
    help: "The take to draw; it is made when it is not there.",
    completion: .file(extensions: ["take"]), transform: Taking.path)
  var take: String?

  @Flag(help: "Print JSON for programs.")
  var json = false

  /// In seconds and megabytes, of a call of ten minutes.
  private static let makingGoal = 2.0
  private static let sizeGoal = 3.0
  private static let readingGoal = 2.0
  private static let rounds = 3

  func run() throws {
    let temporary = try BenchFolder()
    defer { temporary.remove() }
    let path = take ?? temporary.url.appendingPathComponent("call.take").path
    var table = try BenchTable(
      seconds: seconds, show: json ? nil : { try Output.line($0) })
    do {
      if !FileManager.default.fileExists(atPath: path) {
        say("a call of \(seconds) s, both ways")
        try BenchCall(senders: [0, 1], seconds: seconds).run([BenchCall.Recording(path: path)])
      }
      try measure(path, &table)
    } catch let error as TapeError {
      throw CommandFailure(error)
    }
    try table.end()
  }

  private func measure(_ path: String, _ table: inout BenchTable) throws {
    var options = TakePage.Options()
    options.keepsMedia = false
    var making = Double.infinity
    var reading = Double.infinity
    var size = 0
    var packets = 0
    for round in 1...Self.rounds {
      say("its page, \(round) of \(Self.rounds)")
      let watch = Stopwatch()
      size = try TakePage(path: path, options: options).html.utf8.count
      making = min(making, watch.elapsed.wall)
      var content = PageContent(path: path)
      let second = Stopwatch()
      _ = try content.read()
      reading = min(reading, second.elapsed.wall)
      packets = content.packetCount
    }
    try table.add(
      "making the page of \(packets) packets", making, floor: Self.makingGoal, "s", .atMost, 1)
    try table.add(
      "its file without media", Double(size) / 1e6, floor: Self.sizeGoal, "MB", .atMost, 1)
    try table.add(
      "reading them for an open page", reading, floor: Self.readingGoal, "s", .atMost, 1)
  }

  private func say(_ text: String) {
    if isatty(STDERR_FILENO) != 0 { printError("bench: \(text)") }
  }
}
