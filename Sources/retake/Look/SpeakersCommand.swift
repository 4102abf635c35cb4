import ArgumentParser
import Queries
import Tape

/// Who spoke when in a take.
struct SpeakersCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "speakers",
    abstract: "List who spoke when, who dominated, and how loud everybody was.",
    discussion: """
      A participant is an audio track of a peer: label/out/track for what the peer sends, \
      label/in/track for what it hears. Speech is sound of -47 dBov or more with pauses of up to \
      half a second; steady sound never dominates, only what stands out from its own background.

      Examples:
        retake speakers call.take
        retake sql call.take "SELECT * FROM speaker"
      """)

  @OptionGroup var options: TakeOptions

  func run() throws {
    noteEndings(of: options.take)
    let timeline = try reading { () throws(TapeError) in try SpeakerTimeline(path: options.take) }
    try Output.line(options.json ? timeline.json : timeline.text)
  }
}
