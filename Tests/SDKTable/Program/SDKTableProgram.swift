import ArgumentParser
import Foundation
import SDKTable

/// Prints which features of the client SDKs are supported.
@main struct SDKTableProgram: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "sdk-table",
    abstract: "List which capabilities of five client SDKs are there, with their tests.",
    discussion: """
      Without options, the counts of each SDK; make rows takes each of them out and sees its test \
      fail. Examples:
        swift run sdk-table
        swift run sdk-table --rows --state in-part
      """)

  @Flag(
    help: "List the rows instead of their counts, as the article of the documentation has them.")
  var rows = false

  @Option(help: "Only rows in this state: works, in-part, missing or impossible; implies --rows.")
  var state: SDKRow.State?

  @Flag(help: "Print the rows as JSON, with what takes them out.")
  var json = false

  func run() throws {
    let chosen = SDKRow.all.filter { state == nil || $0.state == state }
    if json {
      print("[\(chosen.map(\.json).joined(separator: ",\n"))]")
    } else if rows || state != nil {
      print(chosen.map(\.markdown).joined(separator: "\n"))
    } else {
      printCounts()
    }
  }

  private func printCounts() {
    let names = ["document"] + SDKRow.State.allCases.map(\.words) + ["rows"]
    print(names.joined(separator: "  "))
    for document in SDKRow.documents.map(\.0) + [""] {
      let counts = SDKRow.counts(of: document)
      let cells = (counts + [counts.reduce(0, +)]).map(String.init)
      let padded = zip(names.dropFirst(), cells).map { name, cell in
        String(repeating: " ", count: max(0, name.count - cell.count)) + cell
      }
      let name = document.isEmpty ? "all" : document
      print(
        ([name.padding(toLength: names[0].count, withPad: " ", startingAt: 0)] + padded)
          .joined(separator: "  "))
    }
  }
}

extension SDKRow.State: ExpressibleByArgument {}
