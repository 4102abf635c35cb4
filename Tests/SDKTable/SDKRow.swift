import Wire

/// A capability of one of the five client SDKs and guides that the client stack is compared with.
///
/// The rows are defined only here: `sdk-table` prints them, the catalogue's article must match
/// them, and a test ensures that each supported row has an existing test and a switch that disables
/// it. If words in the sources that a switch names are changed, the switch must be changed too.
package struct SDKRow: Hashable, Sendable {
  /// How far a capability is supported.
  package enum State: String, Hashable, Sendable, CaseIterable {
    /// Fully supported: its test fails when the capability is disabled.
    case works
    /// Partly supported.
    case inPart = "in-part"
    /// Not supported.
    case missing
    /// Not applicable on this system.
    case impossible

    /// The state as displayed.
    package var words: String {
      switch self {
      case .works: "works"
      case .inPart: "in part"
      case .missing: "missing"
      case .impossible: "cannot be here"
      }
    }
  }

  /// The document and the row's number in it: `GU12`.
  package var id: String
  /// The capability, in a few words.
  package var text: String
  /// How far the capability is supported.
  package var state: State
  /// The missing parts of the capability, or why it cannot be supported.
  package var remark = ""
  /// The test that demonstrates the capability: `Suite/test`.
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

  /// The documents, with each one's number of rows.
  package static let documents = [("PX", 10), ("SO", 18), ("TW", 25), ("GU", 25), ("KA", 43)]

  package static let all = pixiv + sora + twilio + guide + connectLive

  /// Returns how many rows of a document are in each state; by default, the rows of all documents.
  package static func counts(of document: String = "") -> [Int] {
    State.allCases.map { state in
      all.count { $0.state == state && $0.id.hasPrefix(document) }
    }
  }

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

  /// The row as a Markdown table row.
  package var markdown: String {
    let test = test.map { "`\($0)`" } ?? ""
    return "| \(id) | \(text) | \(state.words) | \(remark) | \(test) |"
  }
}
