import ArgumentParser
import Foundation
import Live
import Wire

/// Makes calls to recorders for a given time, and checks the recorders' resources afterwards.
@main
struct Soak: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "soak",
    abstract: "Drives `retake record serve` with many calls and measures what remains of them.",
    subcommands: [SoakRun.self, SoakSeries.self, SoakCrowd.self, SoakSilence.self])
}

/// The options that all subcommands share.
struct SoakOptions: ParsableArguments {
  @Option(help: "The program to drive.")
  var retake = ".build/release/retake"

  @Option(help: "A folder for takes and logs, which is emptied first.")
  var folder = ".build/soak"

  /// Empties the folder and returns its path.
  func prepared() throws -> String {
    try? FileManager.default.removeItem(atPath: folder)
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    return folder
  }

  /// Starts a recorder whose calls time out early if they do not connect.
  func recorder(_ folder: String, _ name: String, usesFolder: Bool, calls: Int = 200) async throws
    -> Recorder
  {
    try await Recorder(
      retake, folder: folder, name: name, usesFolder: usesFolder,
      options: ["--calls", "\(calls)", "--connect-within", "10"])
  }

  /// Makes a session whose peers call over loopback.
  func session() throws -> Session {
    var options = Session.Options()
    options.bind = .addresses([IPAddress(ipv4: 0x7f00_0001)])
    options.statsInterval = nil
    return try Session(options)
  }
}

/// How much a recorder's memory may grow during a run, in bytes.
let growthMaximum = 30 << 20

/// Returns what grew too much between two readings, if anything.
func complaint(_ name: String, _ before: ProcessUsage, _ after: ProcessUsage) -> String? {
  print("\(name): \(before) -> \(after)")
  if after.memory - before.memory > growthMaximum { return "\(name): memory has grown" }
  if after.descriptors > before.descriptors { return "\(name): descriptors remain open" }
  if after.threads > before.threads { return "\(name): threads remain" }
  return nil
}
