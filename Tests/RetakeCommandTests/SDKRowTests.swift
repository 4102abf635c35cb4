import Foundation
import Testing

@testable import RetakeCommand

/// The rows about client SDKs are true: each is there once, and names tests that exist.
struct SDKRowTests {
  private static let root = URL(fileURLWithPath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

  /// The sources of all tests, in the form that is searched fastest.
  private static func tests() -> [NSString] {
    let folder = root.appendingPathComponent("Tests").path
    let paths = FileManager.default.enumerator(atPath: folder)?.compactMap { $0 as? String } ?? []
    return paths.filter { $0.hasSuffix(".swift") && !$0.contains(".build/") }
      .compactMap { try? NSString(contentsOfFile: "\(folder)/\($0)", encoding: 4) }
  }

  /// Whether a file has a suite, or a part of it, with this test.
  private static func exists(_ name: String, in files: [NSString]) -> Bool {
    let parts = name.split(separator: "/")
    guard parts.count == 2 else { return false }
    let suites = ["struct", "class", "extension"].map { "\($0) \(parts[0]) " }
    return files.contains { text in
      func has(_ word: String) -> Bool { text.range(of: word, options: .literal).length > 0 }
      return has("func \(parts[1])(") && suites.contains(where: has) && has("@Test")
    }
  }

  @Test func everyNumberIsThereOnce() {
    let wanted = SDKRow.documents.flatMap { document, count in
      (1...count).map { "\(document)\($0)" }
    }
    #expect(SDKRow.all.map(\.id) == wanted)
    #expect(wanted.count == 121)
    #expect(SDKRow.all.allSatisfy { !$0.text.isEmpty && !$0.text.contains("|") })
  }

  @Test func whatWorksHasATestThatExists() {
    let tests = Self.tests()
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

  @Test func theTestsAtTheProductsExistAndTheArticleHasThem() throws {
    let tests = Self.tests()
    let ids = Set(SDKRow.all.map(\.id))
    for (test, rows) in SDKRow.productTests {
      #expect(Self.exists(test, in: tests), "there is no test \(test)")
      #expect(!rows.isEmpty && ids.isSuperset(of: rows), "\(test) shows no row that is there")
    }
    let article = Self.root.appendingPathComponent("Sources/Retake/Retake.docc/ClientSDKs.md")
    let lines = try String(contentsOf: article, encoding: .utf8).split(separator: "\n")
    let rows = lines.map(String.init).filter {
      $0.hasPrefix("| `AudioOperationsTests/") || $0.hasPrefix("| `ConnectLiveTests/")
    }
    #expect(rows == SDKRow.productMarkdown)
  }

  @Test func aTestThatIsNotThereIsFound() {
    let file: NSString = "@Suite struct ATests { @Test func b() {} }"
    #expect(Self.exists("ATests/b", in: [file]))
    for name in ["ATests/c", "BTests/b", "ATests", "A/b"] {
      #expect(!Self.exists(name, in: [file]), "\(name)")
    }
  }

  @Test func theArticleHasTheRows() throws {
    let article = Self.root.appendingPathComponent("Sources/Retake/Retake.docc/ClientSDKs.md")
    let lines = try String(contentsOf: article, encoding: .utf8).split(separator: "\n")
    let rows = lines.filter { line in
      SDKRow.documents.contains { line.hasPrefix("| \($0.0)") }
    }.map(String.init)
    #expect(rows == SDKRow.all.map(\.markdown), "retake sdk --markdown prints what belongs there")
  }
}
