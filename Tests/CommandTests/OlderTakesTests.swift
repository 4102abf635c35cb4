import Foundation
import Tape
import Testing

/// Takes recorded by earlier versions can be exported in every way that new ones can.
struct OlderTakesTests {
  private static let folder = URL(filePath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent().appending(path: "Captures/formats")

  private func path(_ format: Int64) -> String {
    Self.folder.appending(path: "format-\(format).take").path
  }

  /// Exports of wire data are complete; exports that need a replay end, with a message, where this
  /// stack differs from the revision that made the take.
  @Test(arguments: TakeHeader.oldestFormat...TakeHeader.currentFormat)
  func aTakeOfEachFormatIsExported(format: Int64) async throws {
    let folder = try Folder()
    let packets = try await Tool.run("export", path(format), "--pcap", folder.file("call.pcap"))
    #expect(packets.status == 0, "\(packets.errors)")
    for (option, file) in [("--pcapng", "call.pcapng"), ("--media", "media")] {
      let outcome = try await Tool.run("export", path(format), option, folder.file(file))
      #expect(
        outcome.status == 0
          || outcome.status == 1 && outcome.errors.contains("the replay reached only step"),
        "\(option): \(outcome.errors)")
      #expect(FileManager.default.fileExists(atPath: folder.file(file)), "\(option)")
    }
  }

  /// `merge` compares both ends of a call, and names the missing end if a take has only one.
  @Test(arguments: TakeHeader.oldestFormat...TakeHeader.currentFormat)
  func theEndsInATakeOfEachFormatAreCompared(format: Int64) async throws {
    let hasBothEnds = [2, 4, 5, 7].contains(format)
    let outcome = try await Tool.run(
      "merge", path(format), path(format), "--first-peer", "1", "--second-peer",
      hasBothEnds ? "2" : "1")
    #expect(outcome.status == (hasBothEnds ? 0 : 1), "\(outcome.errors)")
    let words = ["of the other end", "the two ends of one call?"]
    #expect(hasBothEnds || words.contains { outcome.errors.contains($0) }, "\(outcome.errors)")
  }
}
