import Foundation
import Testing

/// For files that are not takes and for damaged takes, every verb exits with one sentence and
/// status 65.
struct BadFileTests {
  private func expectRefusal(_ path: String, _ words: String) async throws {
    for verb in [
      ["replay", path], ["info", path], ["timeline", path], ["stats", path],
      ["sql", path, "SELECT * FROM packet"], ["export", path, "--pcap", path + ".pcap"],
      ["export", path, "--media", path + ".media"], ["page", path, "--out", path + ".html"],
      ["speakers", path],
    ] {
      let outcome = try await Tool.run(verb)
      #expect(outcome.status == 65, "\(verb): \(outcome.errors)")
      #expect(outcome.errorLines.count == 1, "\(verb): \(outcome.errors)")
      #expect(outcome.errors.contains("\(path): ") && outcome.errors.contains(words))
      #expect(outcome.output.isEmpty)
    }
    #expect(!FileManager.default.fileExists(atPath: path + ".pcap"))
    #expect(!FileManager.default.fileExists(atPath: path + ".media"))
    #expect(!FileManager.default.fileExists(atPath: path + ".html"))
  }

  @Test func aTextIsNoTake() async throws {
    let folder = try Folder()
    try await expectRefusal(try folder.write("a.take", "hello".utf8), "not a SQLite file")
  }

  @Test(arguments: [
    ("call.pcap", [0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0] as [UInt8], "it is a packet capture"),
    ("dump.txt", Array("\n{\"PeerConnections\": {}}".utf8), "it is JSON"),
    ("dump.gz", [0x1f, 0x8b, 8, 0], "it is compressed"),
  ])
  func whatCanBeImportedNamesTheVerb(name: String, bytes: [UInt8], words: String) async throws {
    let folder = try Folder()
    let path = try folder.write(name, bytes)
    try await expectRefusal(path, words)
    try await expectRefusal(path, "retake import makes a take of it")
  }

  @Test func aFolderIsNoTake() async throws {
    let folder = try Folder()
    let path = folder.file("a.take")
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    for verb in ["replay", "timeline", "stats"] {
      let outcome = try await Tool.run(verb, path)
      #expect(outcome.status == 65 && outcome.errors.contains("not a file"), "\(outcome.errors)")
    }
    // These verbs accept a folder of takes under any name.
    for verb in [["info", path], ["speakers", path], ["sql", path, "SELECT * FROM packet"]] {
      let outcome = try await Tool.run(verb)
      #expect(outcome.status == 66 && outcome.errors.contains("there is no take in it"))
      #expect(outcome.errorLines.count == 1 && outcome.output.isEmpty)
    }
  }

  @Test func anEmptyFileIsNoTake() async throws {
    let folder = try Folder()
    try await expectRefusal(try folder.write("a.take", []), "empty")
  }

  @Test func theDatabaseOfAnotherProgramIsNoTake() async throws {
    let made = try await Takes.copy()
    try Takes.alter(made.path, "PRAGMA application_id = 5; PRAGMA wal_checkpoint(TRUNCATE)")
    try await expectRefusal(made.path, "another program")
  }

  @Test func aTakeOfANewerVersionIsReported() async throws {
    let made = try await Takes.copy()
    try Takes.alter(made.path, "PRAGMA user_version = 999; PRAGMA wal_checkpoint(TRUNCATE)")
    try await expectRefusal(made.path, "newer")
  }

  @Test func aTruncatedTakeIsReported() async throws {
    let made = try await Takes.copy()
    let data = try Data(contentsOf: URL(filePath: made.path))
    try data.prefix(data.count * 2 / 3).write(to: URL(filePath: made.path))
    try await expectRefusal(made.path, "cut short")
  }

  @Test func aDamagedPageIsReportedOrNoticed() async throws {
    let made = try await Takes.copy()
    var data = try Data(contentsOf: URL(filePath: made.path))
    // Every seventh page, but never the first, gets an invalid header.
    for page in stride(from: 4, to: data.count / 8192, by: 7) {
      data.replaceSubrange(page * 8192..<page * 8192 + 16, with: repeatElement(0xee, count: 16))
    }
    try data.write(to: URL(filePath: made.path))
    let outcome = try await Tool.run("replay", made.path)
    #expect([1, 65].contains(outcome.status), "\(outcome.output) \(outcome.errors)")
    #expect((outcome.output + outcome.errors).contains(made.path))
  }
}
