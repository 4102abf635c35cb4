import ArgumentParser
import Foundation
import Replay
import Tape
import Verify

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
      """)

  @OptionGroup var options: TakeOptions

  @Option(help: "The short take; call.short.take for call.take by default.")
  var out: String?

  func run() throws {
    let take = options.take
    let stem = take.hasSuffix(".take") ? String(take.dropLast(5)) : take
    let summary: Minimiser.Summary
    do throws(Minimiser.Refusal) {
      summary = try Minimiser.run(path: take, output: out ?? stem + ".short.take")
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
    if options.json {
      print(CanonicalJSON.text(summary))
      return
    }
    print(
      "\(summary.output): \(summary.steps) of \(summary.recordedSteps) steps, "
        + "\(summary.bytes) of \(summary.recordedBytes) bytes, differs in the same way:")
    print(summary.divergence.description)
  }
}
