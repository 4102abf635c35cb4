import Foundation
import Replay
import Tape
import Testing

/// Every captured session is a regression test: the stack must repeat it, as `retake verify`
/// checks.
struct CapturesTests {
  static let folder = URL(fileURLWithPath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    .appendingPathComponent("Captures")

  static var takes: [String] {
    let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
    return names.filter { $0.hasSuffix(".take") }.sorted()
  }

  @Test func thereAreCaptures() { #expect(CapturesTests.takes.count >= 6) }

  /// Compares every byte if the capture has the stack's current revision.
  ///
  /// Every change to the stack's output raises `stackRevision`, and every change to the observer's
  /// output raises `observerRevision`. Captures of an older revision are compared by meaning.
  ///
  /// If this machine's libraries can replay a capture only in part, the test is shown as cancelled,
  /// with the reason. With RETAKE_STRICT=1, for machines that have the capture's libraries, the
  /// test fails.
  @Test(arguments: takes)
  func aCaptureReplaysIdentically(name: String) throws {
    let path = CapturesTests.folder.appendingPathComponent(name).path
    let reader = try TapeReader(path: path)
    // A take without a revision was made by revision 1, the first numbered revision.
    let isOfThis =
      try (reader.header.revision ?? 1) == stackRevision && reader.otherRevisions() == []
    let result = TakeVerification.run(
      path: path, mode: isOfThis ? .exact : .meaning, isStrict: TakeVerification.isStrictHere)
    #expect(result.isPassed, "\(result.report(meaning: nil))")
    #expect(!result.notes.contains("the recording was cut short"))
    #expect(result.steps > 100)
    if result.isPassed, !result.isWhole {
      try Test.cancel("\(name) in part: \(result.leftOut.joined(separator: "; "))")
    }
  }
}
