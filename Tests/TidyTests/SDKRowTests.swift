import Foundation
import SDKTable
import Testing

/// The rows about client SDKs are consistent: each exists once and names a test, and each supported
/// row has a switch that fits the sources.
struct SDKRowTests {
  /// The sources of all tests.
  private static var tests: [String] {
    SourceTree.tests.filter { $0.ending == "swift" }.map(\.text)
  }

  /// Returns whether a file has a suite, or a part of it, with this test.
  private static func exists(_ name: String, in files: [String]) -> Bool {
    let parts = name.split(separator: "/")
    guard parts.count == 2 else { return false }
    let suites = ["struct", "class", "extension"].map { "\($0) \(parts[0]) " }
    return files.contains { text in
      text.contains("func \(parts[1])(") && suites.contains(where: text.contains)
        && text.contains("@Test")
    }
  }

  @Test func everyNumberExistsOnce() {
    let wanted = SDKRow.documents.flatMap { document, count in
      (1...count).map { "\(document)\($0)" }
    }
    #expect(SDKRow.all.map(\.id) == wanted)
    #expect(wanted.count == 121)
    #expect(SDKRow.all.allSatisfy { !$0.text.isEmpty && !$0.text.contains("|") })
  }

  @Test func supportedRowsHaveATestThatExists() {
    let tests = Self.tests
    #expect(tests.count > 100)
    for row in SDKRow.all {
      switch row.state {
      case .works: #expect(row.test != nil, "\(row.id) works and names no test")
      case .inPart: #expect(!row.remark.isEmpty, "\(row.id) does not say what is missing")
      case .missing: #expect(row.test == nil, "\(row.id) is missing and has a test")
      case .impossible: #expect(!row.remark.isEmpty, "\(row.id) gives no reason")
      }
      guard let test = row.test else { continue }
      #expect(Self.exists(test, in: tests), "\(row.id): there is no test \(test)")
    }
  }

  /// Each switch disables a row's behaviour by replacing some text in a source file; the text must
  /// occur exactly once.
  ///
  /// `make rows` checks that the row's test fails while the switch is set.
  @Test func supportedRowsHaveASwitchThatFits() {
    let files = Dictionary(
      grouping: SourceTree.sources + [SourceTree.manifest],
      by: { $0.path.split(separator: "/").last.map(String.init) ?? "" })
    let tests = Self.tests
    for row in SDKRow.all where row.state == .works {
      #expect(!row.switches.isEmpty, "\(row.id) works, and nothing takes it out")
    }
    for change in RowSwitch.all {
      #expect(SDKRow.all.contains { $0.id == change.row }, "there is no row \(change.name)")
      let count = (files[change.file] ?? []).reduce(0) { sum, file in
        sum + file.text.components(separatedBy: change.words).count - 1
      }
      #expect(count == 1, "\(change.name): \(change.file) has \(count) times: \(change.words)")
      #expect(change.form == .statement || !change.others.isEmpty, "\(change.name)")
      if let test = change.test {
        #expect(Self.exists(test, in: tests), "\(change.name): there is no test \(test)")
      }
    }
  }

  @Test func theTestsAtTheProductsExistAndTheArticleHasThem() {
    let tests = Self.tests
    let ids = Set(SDKRow.all.map(\.id))
    for (test, rows) in SDKRow.productTests {
      #expect(Self.exists(test, in: tests), "there is no test \(test)")
      #expect(!rows.isEmpty && ids.isSuperset(of: rows), "\(test) shows no row that is there")
    }
    let article = SourceTree.file("Sources/Products/Retake/Retake.docc/ClientSDKs.md")
    let rows = article.lines.filter {
      $0.hasPrefix("| `AudioOperationsTests/") || $0.hasPrefix("| `ConnectLiveTests/")
    }.map(String.init)
    #expect(rows == SDKRow.productMarkdown)
  }

  @Test func aTestThatIsNotThereIsFound() {
    let file = "@Suite struct ATests { @Test func b() {} }"
    #expect(Self.exists("ATests/b", in: [file]))
    for name in ["ATests/c", "BTests/b", "ATests", "A/b"] {
      #expect(!Self.exists(name, in: [file]), "\(name)")
    }
  }

  @Test func theArticleHasTheRows() {
    let article = SourceTree.file("Sources/Products/Retake/Retake.docc/ClientSDKs.md")
    let rows = article.lines.filter { line in
      SDKRow.documents.contains { line.hasPrefix("| \($0.0)") }
    }.map(String.init)
    #expect(rows == SDKRow.all.map(\.markdown), "sdk-table --rows prints what belongs there")
  }
}
