import ArgumentParser

/// Measurements on this machine.
struct BenchCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "bench",
    abstract: "Measure replaying, recording, takes, pages, captures and data channels here.",
    subcommands: [
      BenchTakesCommand.self, BenchPageCommand.self, BenchDataCommand.self, BenchWireCommand.self,
    ],
    defaultSubcommand: BenchTakesCommand.self)
}
