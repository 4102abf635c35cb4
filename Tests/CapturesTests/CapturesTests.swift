import Foundation
import Tape
import Testing
import Verify

/// Every captured session is a regression test: the stack must do again what it did, as `retake
/// verify` checks it.
@Suite struct CapturesTests {
  static let folder = URL(fileURLWithPath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    .appendingPathComponent("Captures")

  static var takes: [String] {
    let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
    return names.filter { $0.hasSuffix(".take") }.sorted()
  }

  @Test func thereAreCaptures() { #expect(CapturesTests.takes.count >= 6) }

  /// While the revision of the stack is that of a capture, every byte is: who changes an output
  /// raises `stackRevision`, and captures of before are compared by meaning from then on.
  @Test(arguments: takes)
  func aCaptureReplaysIdentically(name: String) throws {
    let path = CapturesTests.folder.appendingPathComponent(name).path
    // Those that say nothing were made by revision 1, the first one that was counted.
    let revision = try TapeReader(path: path).header.revision ?? 1
    let result = TakeVerification.run(
      path: path, mode: revision == stackRevision ? .exact : .meaning)
    // What depends on another toolchain cannot be compared here, and the test says so.
    for note in result.notes { print("\(name): \(note)") }
    #expect(result.isPassed, "\(result.report(meaning: nil))")
    #expect(!result.notes.contains("the recording was cut short"))
    #expect(result.steps > 100)
  }
}
