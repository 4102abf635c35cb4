import ArgumentParser
import Queries
import Tape

/// Signaling and state changes of all peers in one listing.
struct TimelineCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "timeline",
    abstract: "List the signaling, states, candidates and tracks of all peers in order of time.",
    discussion: "Example:\n  retake timeline call.take")

  @OptionGroup var options: TakeOptions

  func run() throws {
    noteEndings(of: options.take)
    let timeline = try reading { () throws(TapeError) in try Timeline(path: options.take) }
    try Output.line(options.json ? timeline.json : timeline.text)
  }
}
