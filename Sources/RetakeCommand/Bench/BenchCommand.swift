import ArgumentParser

/// Measurements on this machine.
struct BenchCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "bench",
    abstract: "Measure replaying, recording, takes, captures and data channels on this machine.",
    subcommands: [BenchTakesCommand.self, BenchDataCommand.self, BenchWireCommand.self],
    defaultSubcommand: BenchTakesCommand.self)
}
