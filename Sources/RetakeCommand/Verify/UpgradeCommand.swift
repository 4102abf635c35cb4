import ArgumentParser
import Tape
import Verify

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

      Example:
        retake upgrade old.take --out new.take
      """)

  @OptionGroup var options: TakeOptions

  @Option(help: "The new take.", completion: .file(extensions: ["take"]), transform: Taking.path)
  var out: String

  func run() throws {
    noteEndings(of: options.take)
    var upgrade = try WritingWhole.take(out) { temporary in
      try Progress("upgrading").follow {
        try reading { () throws(TapeError) in try Upgrade(path: options.take, output: temporary) }
      }
    }
    upgrade.output = out
    try Output.line(options.json ? upgrade.json : upgrade.text)
    if !upgrade.misses.isEmpty { throw CommandFailure(.difference, "") }
  }
}
