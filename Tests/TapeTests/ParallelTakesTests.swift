import Foundation
import Synchronization
import Testing
import Wire

@testable import Queries
@testable import Tape

@Suite struct ParallelTakesTests {
  private struct Enough: Error {}

  @Test(arguments: [1, 2, 7])
  func resultsAreInTheOrderOfTheTakes(jobs: Int) {
    var seen: [Int] = []
    ParallelTakes.run(100, jobs: jobs) { (index: Int, post: (Int) -> Void) in
      post(index * index)
    } deliver: { index, value in
      #expect(value == index * index)
      seen.append(index)
    }
    #expect(seen == Array(0..<100))
  }

  @Test func nothingIsDoneAfterAFailure() {
    let begun = Mutex(0)
    #expect(throws: Enough.self) {
      try ParallelTakes.run(1_000_000, jobs: 2) { (index: Int, post: (Int) -> Void) in
        begun.withLock { $0 += 1 }
        post(index)
      } deliver: { (index, _) throws(Enough) in
        if index == 10 { throw Enough() }
      }
    }
    // Only two threads work, and only a few results may wait, so few takes are begun.
    #expect(begun.withLock { $0 } < 100)
  }

  /// A thread that fills a channel does not wait for a reader that has stopped.
  @Test func unreadChannelsBlockNoThread() {
    let rows = [[[Value]]](repeating: [[.integer(1)]], count: 100)
    #expect(throws: Enough.self) {
      try ParallelTakes.run(20, jobs: 3, discard: { $0.cancel() }) {
        (_: Int, post: (RowChannel) -> Void) in
        let channel = RowChannel()
        post(channel)
        for piece in rows where !channel.put(.rows(piece)) { return }
        _ = channel.put(.end(nil))
      } deliver: { (_, channel) throws(Enough) in
        guard case .rows = channel.next() else { return }
        channel.cancel()
        throw Enough()
      }
    }
  }

  @Test func takesAreListedOnceAndByTheirFolders() throws {
    let folder = FileManager.default.temporaryDirectory.path + "/retake-\(UUID().uuidString)"
    defer { try? FileManager.default.removeItem(atPath: folder) }
    try FileManager.default.createDirectory(
      atPath: folder + "/below", withIntermediateDirectories: true)
    for name in ["b.take", "below/a.take", "notes.txt", ".retake.catalogue"] {
      try Data([1]).write(to: URL(filePath: "\(folder)/\(name)"))
    }
    let list = try TakeList([folder + "/", "\(folder)/b.take"])
    #expect(list.entries.map(\.path) == ["\(folder)/b.take", "\(folder)/below/a.take"])
    #expect(list.entries.map(\.name) == ["b.take", "below/a.take"])
    #expect(list.groups.count == 1 && list.wholeFolders == [folder])
    #expect(TakeList(present: [folder], limit: 1).wholeFolders.isEmpty)
    #expect(throws: TapeError.self) { _ = try TakeList(["\(folder)/nowhere"]) }
  }

  @Test func quantilesLieBetweenValues() {
    let many = FolderDiff.distribution((0...10).map { Double($0) }.reversed())
    #expect(many.low == 1 && many.median == 5 && many.high == 9 && many.count == 11)
    let two = FolderDiff.distribution([1, 2])
    #expect(two.median == 1.5)
    #expect(FolderDiff.distribution([]).count == 0)
  }

  /// A take's path is escaped for JSON in a result, and for a shell in a command.
  @Test func aResultGetsThePathOfItsTake() throws {
    let command = ShellText.word(CatalogueEntry.placeholder)
    let json = JSONText.object([
      ("take", .text(CatalogueEntry.placeholder)), ("command", .text("retake info \(command)")),
    ]).text
    let path = "a \"b\" it's.take"
    let value = try JSONSerialization.jsonObject(
      with: Data(TakeCatalogue.document(json, take: path).utf8))
    let object = try #require(value as? [String: String])
    #expect(object["take"] == path)
    #expect(object["command"] == "retake info \(ShellText.word(path))")
  }
}
