import ArgumentParser
import Media
import Replay
import Tape

/// Takes that outlive the libraries they were made with.
struct UpgradeCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "upgrade",
    abstract: "Make a take anew with this build's stack, libraries and schema; tell what changed.",
    discussion: """
      The inputs of the take are driven through the stack of this build on its own terms, and what \
      it does is written into a new take, which replays here bit for bit. The old one is left as \
      it is. The exit status is 1 when the session no longer comes to the same: states, frames, \
      bit rates and the like, within the tolerances of retake pin.

      With --decode, what was only carried through is decoded: the audio and video frames of calls \
      between others that were recorded without, and video frames of H.264 and AV1.

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
    noteEndings(of: options.take)
    try overwrite.check(out, reading: options.take)
    var upgrade = try WritingWhole.take(out, overwrite.present) { temporary in
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
