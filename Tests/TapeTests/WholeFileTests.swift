import Foundation
import Testing

@testable import Tape

/// Tests files that must be either complete or absent.
struct WholeFileTests {
  private let folder = FileManager.default.temporaryDirectory.path + "/whole-" + UUID().uuidString

  init() throws {
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
  }

  private var names: [String] {
    ((try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []).sorted()
  }

  private func content(_ name: String) -> String? {
    FileManager.default.contents(atPath: "\(folder)/\(name)").map {
      String(decoding: $0, as: UTF8.self)
    }
  }

  @Test func aFileHasItsNameWhenItIsFinishedAndNotBefore() throws {
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let file = try WholeFile("\(folder)/a", .kept)
    try Data("half".utf8).write(to: URL(filePath: file.temporary))
    #expect(!names.contains("a") && names.count == 1)
    try file.finish()
    #expect(names == ["a"] && content("a") == "half")
  }

  @Test func anAbandonedFileLeavesNothing() throws {
    defer { try? FileManager.default.removeItem(atPath: folder) }
    do {
      let file = try WholeFile("\(folder)/a", .kept, isTake: true)
      for ending in ["", "-wal", "-shm"] {
        try Data("half".utf8).write(to: URL(filePath: file.temporary + ending))
      }
    }
    #expect(names.isEmpty)
  }

  @Test func anExistingFileIsKeptOrReplacedAsRequested() throws {
    defer { try? FileManager.default.removeItem(atPath: folder) }
    try WholeFile.write("first".utf8, to: "\(folder)/a", .kept)
    #expect(throws: WholeFile.Failure.self) {
      try WholeFile.write("second".utf8, to: "\(folder)/a", .kept)
    }
    #expect(content("a") == "first")
    try WholeFile.write("second".utf8, to: "\(folder)/a", .replaced)
    #expect(content("a") == "second" && names == ["a"])
    let mode = try FileManager.default.attributesOfItem(atPath: "\(folder)/a")[.posixPermissions]
    #expect(mode as? Int == 0o600)
  }

  @Test func aFileCreatedMeanwhileIsNotReplaced() throws {
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let file = try WholeFile("\(folder)/a", .kept)
    try Data("mine".utf8).write(to: URL(filePath: file.temporary))
    try Data("theirs".utf8).write(to: URL(filePath: "\(folder)/a"))
    #expect(throws: WholeFile.Failure.self) { try file.finish() }
    #expect(content("a") == "theirs")
  }

  @Test func behindALinkTheFileItselfIsReplaced() throws {
    defer { try? FileManager.default.removeItem(atPath: folder) }
    try WholeFile.write("first".utf8, to: "\(folder)/a", .kept)
    try FileManager.default.createSymbolicLink(
      atPath: "\(folder)/link", withDestinationPath: "\(folder)/a")
    try WholeFile.write("second".utf8, to: "\(folder)/link", .replaced)
    #expect(content("a") == "second" && names == ["a", "link"])
  }

  @Test func aDeviceIsWrittenInPlaceAndStays() throws {
    defer { try? FileManager.default.removeItem(atPath: folder) }
    #expect(throws: WholeFile.Failure(path: "/dev/full", code: ENOSPC)) {
      try WholeFile.write("text".utf8, to: "/dev/full", .replaced)
    }
    // SQLite cannot write a take to a device, which a rename would replace.
    for present in [WholeFile.Present.kept, .replaced] {
      #expect(throws: WholeFile.Failure(path: "/dev/full", code: ENODEV)) {
        try WholeFile("/dev/full", present, isTake: true)
      }
    }
    try WholeFile.write("text".utf8, to: "/dev/null", .kept)
    var status = stat()
    #expect(stat("/dev/full", &status) == 0 && status.st_mode & S_IFMT == S_IFCHR)
  }
}
