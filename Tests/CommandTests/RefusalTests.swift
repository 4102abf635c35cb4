import Foundation
import Testing

/// Commands that fail leave nothing behind, not even folders that they made for their files.
struct RefusalTests {
  /// A take of another stack's report, which has neither packets nor media.
  private func reported(_ folder: Folder) async throws -> String {
    let path = try folder.write(
      "stats.json", #"[{"id":"A","type":"inbound-rtp","timestamp":1700000000000,"ssrc":5}]"#.utf8)
    let take = folder.file("reported.take")
    let outcome = try await Tool.run("import", path, "--out", take)
    try #require(outcome.status == 0, "\(outcome.errors)")
    return take
  }

  private func expectNothing(_ arguments: [String], in folder: Folder) async throws {
    let before = try FileManager.default.subpathsOfDirectory(atPath: folder.path).sorted()
    let outcome = try await Tool.run(arguments)
    #expect(outcome.status != 0 && !outcome.wasKilled, "\(arguments) \(outcome.output)")
    #expect(outcome.errorLines.count == 1, "\(outcome.errors)")
    let after = try FileManager.default.subpathsOfDirectory(atPath: folder.path).sorted()
    #expect(after == before, "\(arguments)")
  }

  @Test(arguments: ["webm", "ogg", "ivf", "wav", "y4m", "mjr"])
  func anExportWithoutTracksLeavesNoFolder(format: String) async throws {
    let folder = try Folder()
    let take = try await reported(folder)
    try await expectNothing(
      ["export", take, "--format", format, "--out", folder.file("deep/media")], in: folder)
  }

  @Test func anExportOfMediaLeavesNoFolder() async throws {
    let folder = try Folder()
    let take = try await reported(folder)
    try await expectNothing(
      ["export", take, "--media", folder.file("deep/media")], in: folder)
  }

  @Test func anImportLeavesNoFolder() async throws {
    let folder = try Folder()
    let dump = try folder.write("dump.json", #"{"PeerConnections":{}}"#.utf8)
    try await expectNothing(["import", dump, "--out", folder.file("deep/takes/")], in: folder)
    let recording = try folder.write("call.mjr", Array("MJR00002\0\u{2}{}".utf8))
    try await expectNothing(["import", recording, "--out", folder.file("deep/takes/")], in: folder)
    let capture = try folder.write("call.pcap", Array("neither of them".utf8))
    try await expectNothing(["import", capture, "--out", folder.file("deep/takes/")], in: folder)
  }

  @Test func aRecordingThatCannotBeginLeavesNoFolder() async throws {
    let folder = try Folder()
    for words in [
      ["record", "pcap", "--interface", "no-such-interface"],
      ["record", "whip", "http://127.0.0.1:1/whip", "--seconds", "5"],
    ] {
      try await expectNothing(words + ["--out", folder.file("deep/takes/")], in: folder)
    }
  }
}
