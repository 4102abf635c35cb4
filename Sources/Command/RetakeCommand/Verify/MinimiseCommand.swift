import ArgumentParser
import FoundationEssentials
import Replay
import Tape
import Wire

/// Shortens a failing take.
struct MinimiseCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "minimise",
    abstract: "Shorten a take that fails to the shortest one that still fails in the same way.",
    discussion: """
      Leaves out everything after the step that differs and all peers but the one that differs. \
      The short take is replayed to see that it shows the same difference. The exit status is 1 \
      when the take does not fail, because then there is nothing to shorten.

      Example:
        retake minimise call.take --out short.take
      """,
    aliases: ["minimize"])

  @OptionGroup var options: TakeOptions

  @Option(
    help: "The short take. Default: call.short.take for call.take.",
    completion: .file(extensions: ["take"]), transform: Taking.path)
  var out: String?

  @OptionGroup var overwrite: OverwriteOption

  func run() throws {
    noteEndings(of: options.take)
    let take = options.take
    let stem = take.hasSuffix(".take") ? String(take.dropLast(5)) : take
    let out = out ?? stem + ".short.take"
    try overwrite.check(out, reading: take)
    var summary = try WritingWhole.take(out, overwrite.present) { output in
      try Progress("shortening").follow { try shortened(output) }
    }
    summary.output = out
    if options.json {
      return try Output.json(CanonicalJSON.text(summary), in: .upgrade)
    }
    try Output.line(
      "\(summary.output): \(summary.steps) of \(counted(summary.recordedSteps, "step")), "
        + "\(summary.bytes) of \(counted(summary.recordedBytes, "byte")), differs in the same way:")
    try Output.line(summary.divergence.description)
  }

  private func shortened(_ output: String) throws -> Minimiser.Summary {
    let take = options.take
    do throws(Minimiser.Refusal) {
      return try Minimiser.run(path: take, output: output)
    } catch {
      switch error {
      case .unreadable(let reason): throw CommandFailure(reason)
      case .identical:
        throw CommandFailure(
          .difference, "\(take): it replays as it was recorded; there is nothing to shorten")
      case .altered(let alteration):
        throw CommandFailure(
          .difference, "\(take): \(alteration); restore the file, or record the call again")
      case .different(let reason):
        throw CommandFailure(.difference, "\(take): it cannot be shortened: \(reason)")
      }
    }
  }
}
