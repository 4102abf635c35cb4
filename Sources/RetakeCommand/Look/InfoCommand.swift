import ArgumentParser
import Queries
import Tape

/// What a take holds, at a glance.
struct InfoCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "info",
    abstract: "Say what a take holds: peers, states, tracks, sizes, toolchain.",
    discussion: "Example:\n  retake info call.take")

  @OptionGroup var options: TakeOptions
  @OptionGroup var pager: PagerOptions

  func run() throws {
    let info = try reading { () throws(TapeError) in try TakeInfo(path: options.take) }
    if options.json { return try Output.json(info.json) }
    try pager.show(info.description + "\n")
  }
}
