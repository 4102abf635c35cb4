import ArgumentParser
import Debug
import Queries
import Tape

/// Tells how two takes differ.
struct DiffCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "diff",
    abstract: "Compare two sessions, or one session under two builds, the first difference first.",
    discussion: """
      Both takes are put on one clock. Compared are the setup, signaling (descriptions section by \
      section, without what every session draws anew), states, tracks, pairs, frames, freezes, \
      refusals and stats. The exit status is 0 when nothing differs, 1 otherwise.

      Examples:
        retake diff before.take after.take
        retake diff good.take bad.take --align connected --json
      """)

  @Argument(
    help: "The first take.", completion: .file(extensions: ["take"]), transform: Taking.path)
  var first: String

  @Argument(
    help: "The second take.", completion: .file(extensions: ["take"]), transform: Taking.path)
  var second: String

  @Option(help: "What sets the clocks: start, connected or wall.")
  var align = TakeDiff.Alignment.start

  @Flag(help: "Print JSON for programs.")
  var json = false

  @OptionGroup var pager: PagerOptions

  func run() throws {
    noteEndings(of: first, second)
    let diff = try Progress("comparing").follow {
      try reading { () throws(TapeError) in try TakeDiff(first, second, alignment: align) }
    }
    try Output.verdict {
      try json
        ? Output.json(diff.json, in: JSONForm()) : pager.show(diff.text(pager.look) + "\n")
    }
    if !diff.isEmpty { throw CommandFailure(.difference, "") }
  }
}

extension TakeDiff.Alignment: ExpressibleByArgument {}
