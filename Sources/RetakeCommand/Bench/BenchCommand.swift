import ArgumentParser

/// Measurements on this machine.
struct BenchCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "bench",
    abstract: "Measure replaying, recording, takes, pages and data channels on this machine.",
    subcommands: [BenchTakesCommand.self, BenchPageCommand.self, BenchDataCommand.self],
    defaultSubcommand: BenchTakesCommand.self)
}
