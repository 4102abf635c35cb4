import ArgumentParser
import Queries
import Tape

/// Who spoke when in a take.
struct SpeakersCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "speakers",
    abstract: "Show who spoke when and how much, who dominated, and how loud everybody was.",
    discussion: """
      A participant is an audio track of a peer: label/out/track for what the peer sends, \
      label/in/track for what it hears. Speech is audio of -47 dBov or more with pauses of up to \
      half a second; steady audio never dominates, only what stands out from its own background. \
      With --from and --to, speech is cut at those times and the totals are those between them. Of \
      several takes, or of a folder, it is how much each participant of each take spoke.

      The bars are of people: somebody on several tracks or connections is one. A cell is full \
      where somebody speaks for half of its time or more. Somebody interrupts who begins while \
      another has been speaking for half a second, who goes on for a quarter of a second to three \
      seconds and then falls silent, and who speaks for at least a second after that.

      Examples:
        retake speakers call.take
        retake speakers takes/
        retake speakers call.take --peer caller --from 10s --to 1min
        retake sql call.take "SELECT * FROM talk_share"
        retake sql call.take "SELECT * FROM interruption"
      """)

  @OptionGroup var options: TakesOptions
  @OptionGroup var part: SelectionOptions
  @OptionGroup var pager: PagerOptions

  func run() throws {
    if options.areMany {
      let look = try FolderLook(
        options.takes, CatalogueReading(selection: part.ofEachTake))
      return try look.show("speakers", options, pager) { (look) throws(TapeError) in
        try look.catalogue.speakersText(pager.look)
      }
    }
    noteEndings(of: options.take)
    let selection = try part.selection(in: options.take)
    let timeline = try Progress("reading").follow {
      try reading { () throws(TapeError) in
        try SpeakerTimeline(path: options.take, selection: selection)
      }
    }
    if options.json { return try Output.json(timeline.json) }
    try pager.show(timeline.text(pager.look))
  }
}
