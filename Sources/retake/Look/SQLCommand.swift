import ArgumentParser
import Foundation
import Queries
import Stats
import Tape

/// SQL over a take.
struct SQLCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "sql",
    abstract: "Run one SQL query over a take; plain sqlite3 works as well.",
    discussion: """
      Examples:
        retake sql call.take "SELECT at_ns, machine, from_state, to_state FROM state"
        retake sql call.take "SELECT * FROM bitrate" --csv
        retake sql --schema
      """)

  @Argument(
    help: "The take.", completion: .file(extensions: ["take"]), transform: Taking.path)
  var take: String?

  @Argument(help: "The query.", transform: Taking.query)
  var query: String?

  @Option(help: "How rows are printed: table, csv or json.")
  var format: OutputFormat = .table

  @Flag(help: "Print JSON, like --format json.")
  var json = false

  @Flag(help: "Print comma-separated values, like --format csv.")
  var csv = false

  @Flag(help: "Print every table and column with what it means.")
  var schema = false

  func validate() throws {
    if !schema, take == nil || query == nil {
      throw ValidationError("Give a take and a query, or --schema.")
    }
    if json, csv { throw ValidationError("Give --json or --csv, not both.") }
  }

  func run() throws {
    if schema {
      for migration in TakeSchema.migrations { try Output.line(migration) }
      try Output.line(
        "-- What stat.members has, by stat.type, and what of the standard cannot exist here:\n--")
      for line in StatsMembers.text.split(separator: "\n", omittingEmptySubsequences: false) {
        try Output.line(line.isEmpty ? "--" : "-- \(line)")
      }
      return
    }
    guard let take, let query else { return }
    noteEndings(of: take)
    let chosen: SQLConsole.Format = json ? .json : csv ? .csv : format.format
    let pieces = OutputPieces()
    do throws(TapeError) {
      try SQLConsole.run(
        path: take, sql: query, format: chosen, isWanted: { pieces.areWanted },
        write: { pieces.take($0) })
    } catch {
      guard error.place == SQLConsole.queryPlace else { throw CommandFailure(error) }
      throw CommandFailure(
        .usage, "\(error.description); retake sql --schema prints the tables and columns")
    }
    try pieces.check()
  }
}

/// The formats by their names on the command line.
enum OutputFormat: String, ExpressibleByArgument, CaseIterable {
  case table, csv, json

  var format: SQLConsole.Format {
    switch self {
    case .table: .table
    case .csv: .csv
    case .json: .json
    }
  }
}
