import Foundation
import Testing

struct XCTestTests {
  /// Expects no XCTest tests, because `XCTMain.swift` would not run them.
  @Test func noTestIsWrittenForXCTest() throws {
    let tests = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent()
    let modules = try FileManager.default.contentsOfDirectory(atPath: tests.path())
      .filter { $0.hasSuffix("Tests") }
    #expect(modules.contains("PeerTests"))
    for module in modules {
      let files = FileManager.default.enumerator(atPath: tests.appending(path: module).path())
      for case let file as String in try #require(files) where file.hasSuffix(".swift") {
        let place = tests.appending(path: "\(module)/\(file)")
        let text = try String(contentsOf: place, encoding: .utf8)
        #expect(!text.contains("import XCTest"), "\(module)/\(file)")
      }
    }
  }
}
