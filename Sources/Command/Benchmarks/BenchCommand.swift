import ArgumentParser
import FoundationEssentials
import RetakeCommand

/// Measurements on this machine: a program of its own, for developers.
struct BenchCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "retake-bench",
    abstract: "Measure replaying, recording, takes, pages, folders, captures and data channels here.",
    discussion: """
      Examples:
        retake-bench takes --seconds 60
        retake-bench page --seconds 600
        retake-bench folder --takes 1000 --seconds 1
        retake-bench data --seconds 5
        retake-bench wire --packets 100000 --seconds 5
      """,
    subcommands: [
      BenchTakesCommand.self, BenchPageCommand.self, BenchFolderCommand.self, BenchDataCommand.self,
      BenchWireCommand.self,
    ],
    defaultSubcommand: BenchTakesCommand.self)

  /// The program `retake`, which stands beside this one.
  static let retake = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
    .deletingLastPathComponent().appendingPathComponent("retake").path
}

@main
enum Main {
  @MainActor static func main() async { await RetakeProgram.run(BenchCommand.self) }
}
