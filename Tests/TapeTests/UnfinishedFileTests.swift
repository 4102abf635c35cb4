import Foundation
import Testing
import Wire

@testable import Tape

/// Unfinished files are private to their owner, never created through a link, and removed once
/// their process is gone.
struct UnfinishedFileTests {
  private let folder = FileManager.default.temporaryDirectory.path + "/new-" + UUID().uuidString

  init() throws {
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
  }

  private var names: [String] {
    ((try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []).sorted()
  }

  private func mode(_ path: String) -> Int? {
    try? FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
  }

  @Test func aFileIsCreatedAndNeverWrittenThroughAnExistingOne() throws {
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let victim = folder + "/victim"
    try Data("keep".utf8).write(to: URL(filePath: victim))
    try FileManager.default.createSymbolicLink(
      atPath: folder + "/link", withDestinationPath: victim)
    try FileManager.default.createSymbolicLink(
      atPath: folder + "/dangling", withDestinationPath: folder + "/made")
    for name in ["victim", "link", "dangling"] {
      #expect(NewFile.create("\(folder)/\(name)") == .failure(SystemCode(EEXIST)))
    }
    #expect(try String(contentsOfFile: victim, encoding: .utf8) == "keep")
    #expect(!names.contains("made"))
    let descriptor = try NewFile.create(folder + "/new").get()
    close(descriptor)
    #expect(mode(folder + "/new") == 0o600)
  }

  @Test func foldersThatAreMadeAreForTheirOwnerAlone() throws {
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let deep = folder + "/a/b/c"
    #expect(NewFile.makeFolder(deep + "/") == .success(true))
    #expect(NewFile.makeFolder(deep) == .success(false))
    // Another process may create the folder as soon as the one above it exists.
    let other = folder + "/above/shared"
    #expect(NewFile.makeFolder(other) { _ in mkdir(other, 0o700) } == .success(false))
    for path in [deep, folder + "/a/b", folder + "/a"] { #expect(mode(path) == 0o700) }
    try Data().write(to: URL(filePath: folder + "/file"))
    #expect(NewFile.makeFolder(folder + "/file") == .failure(SystemCode(ENOTDIR)))
    #expect(NewFile.makeFolder(folder + "/file/below") == .failure(SystemCode(ENOTDIR)))
  }

  @Test func namesCannotBeForeseenAndTheFileIsNotShared() throws {
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let (first, second) = (
      try WholeFile(folder + "/a", .kept), try WholeFile(folder + "/a", .kept)
    )
    #expect(first.temporary != second.temporary)
    let name = try #require(first.temporary.split(separator: "/").last)
    #expect(name.count == ".retake-".count + 32 + ".part".count)
    let descriptor = try first.open(mode: 0o644)
    defer { close(descriptor) }
    #expect(mode(first.temporary) == 0o644)
    // Another user put a link in the temporary file's place.
    try FileManager.default.createSymbolicLink(
      atPath: second.temporary, withDestinationPath: folder + "/elsewhere")
    #expect(throws: WholeFile.Failure(path: folder + "/a", code: EEXIST)) { try second.open() }
  }

  /// Files of killed processes are removed; a running process's file stays, as do other files.
  @Test func unlockedFilesAreRemoved() throws {
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let abandoned = ".retake-\(String(repeating: "0a", count: 16)).part"
    let running = ".retake-\(String(repeating: "1b", count: 16)).part"
    let others = [".retake-1.part", ".retake-xyz.part", "a.part", ".retake-\(getpid())-1.part"]
    for name in [abandoned, abandoned + "-wal", running] + others {
      try Data("keys".utf8).write(to: URL(filePath: "\(folder)/\(name)"))
    }
    let target = folder + "/linked"
    try Data("keys".utf8).write(to: URL(filePath: target))
    let link = ".retake-\(String(repeating: "2c", count: 16)).part"
    try FileManager.default.createSymbolicLink(
      atPath: "\(folder)/\(link)", withDestinationPath: target)
    // flock belongs to the open file, so a second open in the same process conflicts with the
    // first.
    let held = open("\(folder)/\(running)", O_RDWR | O_CLOEXEC)
    defer { close(held) }
    try #require(flock(held, LOCK_EX | LOCK_NB) == 0)
    try WholeFile.write("text".utf8, to: folder + "/a", .kept)
    #expect(names == ([running, link, "a", "linked"] + others).sorted())
  }

  @Test func aTakeHoldsItsLockWhileItIsWritten() throws {
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let file = try WholeFile(folder + "/a.take", .kept, isTake: true)
    let writer = try TapeWriter(path: file.temporary, options: TapeWriter.Options())
    let other = open(file.temporary, O_RDONLY | O_CLOEXEC)
    defer { close(other) }
    #expect(flock(other, LOCK_EX | LOCK_NB) != 0)
    _ = try writer.finish()
    try file.finish()
    #expect(names == ["a.take"])
    #expect(flock(other, LOCK_EX | LOCK_NB) == 0)
  }
}
