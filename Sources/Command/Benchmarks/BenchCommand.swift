import ArgumentParser
import FoundationEssentials
import Glibc
import Replay
import RetakeCommand
import Tape

/// Runs measurements on this machine, in a separate program for developers.
struct BenchCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "retake-bench",
    abstract:
      "Measure replaying, recording, takes, pages, folders, captures, rings, relays, channels.",
    discussion: """
      Examples:
        retake-bench takes --seconds 60
        retake-bench page --seconds 600
        retake-bench folder --takes 1000 --seconds 1
        retake-bench data --seconds 5
        retake-bench wire --packets 100000 --seconds 5
        retake-bench ring --seconds 120
        retake-bench relay --runs 1
      """,
    subcommands: [
      BenchTakesCommand.self, BenchPageCommand.self, BenchFolderCommand.self, BenchDataCommand.self,
      BenchWireCommand.self, BenchRingCommand.self, BenchRelayCommand.self,
    ],
    defaultSubcommand: BenchTakesCommand.self)

  /// The path of `retake`, which is next to this program.
  static let retake = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
    .deletingLastPathComponent().appendingPathComponent("retake").path
}

@main
enum Main {
  @MainActor static func main() async { await RetakeProgram.run(BenchCommand.self) }
}

// MARK: - BenchTable

/// A measurement with its goal.
struct BenchRow: Encodable {
  /// Whether the ratio must not exceed the goal, or must reach it.
  enum Sense: String, Encodable {
    case atMost = "at most"
    case atLeast = "at least"
  }

  var what: String
  /// The measured value, and the value that it is compared with, both in `unit`.
  var measured: Double
  var floor: Double
  var unit: String
  var ratio: Double
  var sense: Sense
  var goal: Double

  var isMet: Bool { sense == .atMost ? ratio <= goal : ratio >= goal }

  private enum CodingKeys: String, CodingKey {
    case what, measured, floor, unit, ratio, sense, goal, met
  }

  func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(what, forKey: .what)
    try container.encode(measured, forKey: .measured)
    try container.encode(floor, forKey: .floor)
    try container.encode(unit, forKey: .unit)
    try container.encode(ratio, forKey: .ratio)
    try container.encode(sense, forKey: .sense)
    try container.encode(goal, forKey: .goal)
    try container.encode(isMet, forKey: .met)
  }
}

/// Collects measurements, and prints them as a table line by line, or as JSON at the end.
struct BenchTable: Encodable {
  private let seconds: Int
  private var rows: [BenchRow] = []
  /// The seconds that the C libraries need for the call, by task, such as `VP8 encoding`.
  var floor: [String: Double] = [:]
  /// Prints a table line; nil for JSON.
  private let show: ((String) throws -> Void)?

  private enum CodingKeys: String, CodingKey {
    case seconds, rows, floor
  }

  /// Starts the table for calls of this length.
  ///
  /// - Parameter show: prints a table line; nil for JSON.
  init(seconds: Int, show: ((String) throws -> Void)?) throws {
    self.seconds = seconds
    self.show = show
    try show?(BenchTable.line(["what", "measured", "floor", "ratio", "goal", ""]))
  }

  /// Adds a row, and prints it unless the output is JSON.
  mutating func add(
    _ what: String, _ measured: Double, floor: Double, _ unit: String, ratio: Double? = nil,
    _ sense: BenchRow.Sense, _ goal: Double
  ) throws {
    let row = BenchRow(
      what: what, measured: measured, floor: floor, unit: unit,
      ratio: ratio ?? (floor > 0 ? measured / floor : 0), sense: sense, goal: goal)
    rows.append(row)
    try show?(
      BenchTable.line([
        row.what, "\(number(row.measured)) \(row.unit)", "\(number(row.floor)) \(row.unit)",
        number(row.ratio), "\(row.sense == .atMost ? "<=" : ">=") \(number(row.goal))",
        row.isMet ? "met" : "not met",
      ]))
  }

  /// Ends the table by printing the C libraries' times; with JSON, prints the complete table.
  func end() throws {
    guard let show else { return try Output.json(json, in: .bench) }
    let parts = floor.sorted { $0.value > $1.value }.map { "\($0.key) \(number($0.value)) s" }
    guard !parts.isEmpty else { return }
    try show("")
    try show("floor of the call: " + parts.joined(separator: ", "))
  }

  private var json: String { CanonicalJSON.text(self) }

  /// Column widths, fixed because lines are printed one by one.
  private static let widths = [46, 9, 9, 6, 8, 7]

  private static func line(_ cells: [String]) -> String {
    var text = ""
    for (column, (cell, width)) in zip(cells, widths).enumerated() {
      let space = String(repeating: " ", count: max(0, width - cell.count))
      text += column == 0 ? cell + space : column == 5 ? "  " + cell : "  " + space + cell
    }
    return text
  }

  private func number(_ value: Double) -> String {
    decimal(value, value.magnitude >= 100 ? 0 : value.magnitude >= 10 ? 1 : 3)
  }
}

/// Elapsed wall-clock and processor time.
struct Elapsed {
  /// Wall-clock time in seconds.
  var wall: Double
  /// Processor time in seconds, over all threads of the process.
  var processor: Double
}

/// Measures wall-clock and processor time from its creation.
struct Stopwatch {
  private let begin = ContinuousClock.now
  private let used = Stopwatch.processorSeconds

  /// The time since the stopwatch's creation.
  var elapsed: Elapsed {
    Elapsed(
      wall: begin.duration(to: .now).seconds, processor: Stopwatch.processorSeconds - used)
  }

  /// The processor time of all the process's threads, in user and system mode.
  static var processorSeconds: Double {
    var usage = rusage()
    guard getrusage(Int32(truncatingIfNeeded: RUSAGE_SELF.rawValue), &usage) == 0 else { return 0 }
    func seconds(_ time: timeval) -> Double { Double(time.tv_sec) + Double(time.tv_usec) / 1e6 }
    return seconds(usage.ru_utime) + seconds(usage.ru_stime)
  }
}

/// A temporary folder for a measurement's takes.
struct BenchFolder {
  let url: URL

  init() throws(CommandFailure) {
    url = FileManager.default.temporaryDirectory
      .appendingPathComponent("retake-bench-\(ProcessInfo.processInfo.processIdentifier)")
    do {
      try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    } catch {
      throw CommandFailure(.inputOutput, "\(url.path): it cannot be made: \(error)")
    }
  }

  func remove() { try? FileManager.default.removeItem(at: url) }
}
