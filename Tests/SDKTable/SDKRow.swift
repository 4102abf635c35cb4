import Wire

/// A capability of one of the five client SDKs and guides that the client stack is measured
/// against.
///
/// The rows stand here alone: `sdk-table` prints them, the article of the catalogue is held against
/// them, and a test sees to it that what works has a test that exists and a switch that takes it
/// out. Words of the stack that change, which the switches name, are changed there too.
package struct SDKRow: Hashable, Sendable {
  /// How far a capability is there.
  package enum State: String, Hashable, Sendable, CaseIterable {
    /// It is there: its test fails where it is taken out.
    case works
    /// Some of it is there.
    case inPart = "in-part"
    /// Nothing of it is there.
    case missing
    /// It has no meaning on this system.
    case impossible

    /// The state for people.
    package var words: String {
      switch self {
      case .works: "works"
      case .inPart: "in part"
      case .missing: "missing"
      case .impossible: "cannot be here"
      }
    }
  }

  /// The document and the number in it: `GU12`.
  package var id: String
  /// What it is.
  package var text: String
  /// How far it is there.
  package var state: State
  /// What is missing, or why it cannot be here.
  package var remark = ""
  /// The test that shows it: `Suite/test`.
  package var test: String?

  static func works(_ id: String, _ text: String, by test: String) -> SDKRow {
    SDKRow(id: id, text: text, state: .works, test: test)
  }

  static func inPart(
    _ id: String, _ text: String, without remark: String, by test: String
  ) -> SDKRow {
    SDKRow(id: id, text: text, state: .inPart, remark: remark, test: test)
  }

  static func missing(_ id: String, _ text: String) -> SDKRow {
    SDKRow(id: id, text: text, state: .missing)
  }

  static func impossible(_ id: String, _ text: String, because reason: String) -> SDKRow {
    SDKRow(id: id, text: text, state: .impossible, remark: reason)
  }

  /// The documents with how many rows each has.
  package static let documents = [("PX", 10), ("SO", 18), ("TW", 25), ("GU", 25), ("KA", 43)]

  /// All rows, document by document.
  package static let all = pixiv + sora + twilio + guide + connectLive

  /// How many rows of a document, or of all, are in each state.
  package static func counts(of document: String = "") -> [Int] {
    State.allCases.map { state in
      all.count { $0.state == state && $0.id.hasPrefix(document) }
    }
  }

  /// The row as JSON.
  package var json: String {
    JSONText.object([
      ("id", .text(id)), ("text", .text(text)), ("state", .text(state.rawValue)),
      ("remark", remark.isEmpty ? nil : .text(remark)), ("test", test.map { .text($0) }),
      (
        "product_tests",
        productTests.isEmpty ? nil : .text(productTests.joined(separator: " "))
      ),
      (
        "switches",
        switches.isEmpty ? nil : .list(switches.map(\.json))
      ),
    ]).text
  }

  /// The row of a table in Markdown.
  package var markdown: String {
    let test = test.map { "`\($0)`" } ?? ""
    return "| \(id) | \(text) | \(state.words) | \(remark) | \(test) |"
  }
}
