import ArgumentParser

/// Measurements on this machine.
struct BenchCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "bench",
    abstract: "Measure replaying, recording, takes, pages, folders and data channels here.",
    discussion: """
      Examples:
        retake bench takes --seconds 60
        retake bench page --seconds 600
        retake bench folder --takes 1000 --seconds 1
        retake bench data --seconds 5
        retake bench wire --packets 100000 --seconds 5
      """,
    subcommands: [
      BenchTakesCommand.self, BenchPageCommand.self, BenchFolderCommand.self, BenchDataCommand.self,
      BenchWireCommand.self,
    ],
    defaultSubcommand: BenchTakesCommand.self)
}
