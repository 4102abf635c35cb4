import ArgumentParser
import Queries
import Tape
import Wire

/// Signaling and state changes of all peers in one listing.
struct TimelineCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "timeline",
    abstract: "List the signaling, states, candidates and tracks of all peers in order of time.",
    discussion: """
      The lanes are \(Timeline.lanes.joined(separator: ", ")).

      Examples:
        retake timeline call.take
        retake timeline call.take --peer caller --lane state --lane pair
        retake timeline call.take --from 2s --to 3.5s
      """)

  @OptionGroup var options: TakeOptions
  @OptionGroup var part: SelectionOptions

  @Option(
    help: ArgumentHelp("Only this lane; may be given several times.", valueName: "lane"),
    completion: .list(Timeline.lanes),
    transform: LaneName.read)
  var lane: [String] = []

  @OptionGroup var pager: PagerOptions

  func run() throws {
    noteEndings(of: options.take)
    let selection = try part.selection(in: options.take)
    let timeline = try Progress("reading").follow {
      try reading { () throws(TapeError) in
        try Timeline(path: options.take, selection: selection, lanes: lane)
      }
    }
    if options.json { return try Output.json(SecretText.hidden(in: timeline.json)) }
    try pager.show(SecretText.hidden(in: timeline.text(pager.look)))
  }
}
