import ArgumentParser

/// Names the developers' program that has the table of the client SDKs.
struct SDKCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "sdk",
    abstract: "Say where the capabilities of five client SDKs are listed, with their tests.",
    discussion: """
      Example:
        retake sdk
      """)

  func run() throws {
    try Output.write(
      "The table is printed by swift run sdk-table in a checkout of Retake, and stands in the"
        + " article Client SDKs of the documentation.\n")
  }
}
