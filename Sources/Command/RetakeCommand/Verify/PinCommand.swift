import ArgumentParser
import FoundationEssentials
import Replay
import Tape
import Wire

/// Writes down what a session has to come to.
struct PinCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "pin",
    abstract: "Write down what a take came to, as checks for retake verify.",
    discussion: """
      Makes call.pin.json beside call.take: states, the time to connect, frames, freezes, bit \
      rates, loss, requests, levels, each with a tolerance. Read it, change the tolerances, and \
      take out the lines that do not matter. Only a take that replays as it was recorded, or that \
      comes to the same by meaning, can be pinned.

      Examples:
        retake pin call.take
        retake pin call.take --mode exact --note "the freeze of June"
      """)

  @OptionGroup var options: TakeOptions

  @Option(help: "How retake verify compares the take from now on: exact or meaning.")
  var mode: VerifyMode = .meaning

  @Option(help: "Free text in the pin: what the take is kept for.", transform: Taking.text())
  var note = ""

  @OptionGroup var overwrite: OverwriteOption

  func run() throws {
    noteEndings(of: options.take)
    let take = options.take
    let path = Pin.path(ofTake: take)
    if !overwrite.force, FileBytes.kind(of: path) != nil {
      throw CommandFailure(
        .inputOutput, "\(path) exists already: edit this pin, or replace it with --force")
    }
    let good = Progress("verifying").follow {
      let exact = TakeVerification.run(path: take, mode: .exact)
      // A take of another stack need not be the same to the byte to be worth keeping.
      guard case .diverged = exact.outcome, mode.mode == .meaning else { return exact }
      return TakeVerification.run(path: take, mode: .meaning)
    }
    if case .unreadable(let error) = good.outcome { throw CommandFailure(error) }
    guard good.isPassed else {
      throw CommandFailure(
        .difference, "\(take): only a good run can be pinned, and this one differs: \(good.summary)"
      )
    }
    WritingWhole.cleanUpOnSignals()
    let pin = try reading { () throws(TapeError) in
      let pin = Pin(mode: mode.mode, note: note, measures: try Measures(path: take, isForPin: true))
      try pin.write(forTake: take)
      return pin
    }
    if options.json {
      try Output.write(pin.text, as: .json)
    } else {
      try Output.line(
        "\(path): \(counted(pin.checks.count, "check")), compared \(described(pin.mode))")
    }
  }

  private func described(_ mode: Pin.Mode) -> String {
    mode == .exact ? "exactly" : "by meaning"
  }
}
