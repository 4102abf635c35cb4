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

  /// As long as the stack's revision is the capture's, every byte is compared.
  ///
  /// A change to an output raises `stackRevision`, or `observerRevision` for the observer's output;
  /// older captures are then compared by meaning.
  ///
  /// A capture that other libraries only partly replay is shown as cancelled, with the reason; with
  /// RETAKE_STRICT=1, for machines that have the capture's libraries, it fails.
  @Test(arguments: takes)
  func aCaptureReplaysIdentically(name: String) throws {
    let path = CapturesTests.folder.appendingPathComponent(name).path
    let reader = try TapeReader(path: path)
    // Takes without a revision were made by revision 1, the first one counted.
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
