import ArgumentParser
import Queries
import Wire

/// What of the client SDKs is there.
struct SDKCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "sdk",
    abstract: "List which capabilities of five client SDKs are there, with their tests.",
    discussion: """
      Without options, the counts of each SDK. Examples:
        retake sdk
        retake sdk --rows --state missing
        retake sdk --rows --json
      """)

  @Flag(help: "List the rows instead of their counts.")
  var rows = false

  @Option(help: "Only rows in this state: works, in-part, missing or impossible; implies --rows.")
  var state: SDKRow.State?

  @Flag(help: "Print JSON: an array of rows, or of counts.")
  var json = false

  @Flag(help: "Print the rows as the article of the documentation has them.")
  var markdown = false

  @OptionGroup var pager: PagerOptions

  func validate() throws {
    guard json, markdown else { return }
    throw ValidationError("--json and --markdown are two forms of the same: give one of them")
  }

  func run() throws {
    let chosen = SDKRow.all.filter { state == nil || $0.state == state }
    if markdown {
      try Output.write(chosen.map { $0.markdown + "\n" }.joined())
    } else if !rows, state == nil {
      try json
        ? Output.json(
          "[\(Self.counts.map(\.json).joined(separator: ","))]", in: JSONForm())
        : counts()
    } else if json {
      try Output.json("[\(chosen.map(\.json).joined(separator: ","))]", in: JSONForm())
    } else {
      try table(chosen)
    }
  }

  private func table(_ rows: [SDKRow]) throws {
    let cells = rows.map { [$0.id, $0.state.words, $0.text, $0.remark, $0.test ?? ""] }
    let names = ["row", "state", "capability", "without, or because", "test"]
    try pager.show(TextTable(columns: names, rows: cells, wraps: true).text(pager.look))
  }

  private func counts() throws {
    let names = ["document"] + SDKRow.State.allCases.map(\.words) + ["rows"]
    let cells = Self.counts.map { [$0.document] + ($0.counts + [$0.rows]).map(String.init) }
    let alignsRight = [false] + Array(repeating: true, count: names.count - 1)
    try pager.show(
      TextTable(columns: names, rows: cells, alignsRight: alignsRight).text(pager.look))
  }

  /// The counts of a document, or of all together.
  private struct Counts {
    var document: String
    var counts: [Int]

    var rows: Int { counts.reduce(0, +) }

    var json: String {
      let states = zip(SDKRow.State.allCases, counts).map { ($0.rawValue, JSONText.integer($1)) }
      return JSONText.object(
        [("document", .text(document))] + states + [("rows", .integer(rows))]
      ).text
    }
  }

  private static var counts: [Counts] {
    SDKRow.documents.map { Counts(document: $0.0, counts: SDKRow.counts(of: $0.0)) }
      + [Counts(document: "all", counts: SDKRow.counts())]
  }
}

extension SDKRow.State: ExpressibleByArgument {}
