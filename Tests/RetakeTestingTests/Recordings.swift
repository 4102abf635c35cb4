import Foundation
import Lab
import Media
import Peer
import Tape
import Wire

/// A folder with a recorded virtual call; it is removed after the test.
final class Recording {
  let folder = FileManager.default.temporaryDirectory.path + "/testing-" + UUID().uuidString
  let path: String

  init(labels: [String] = ["caller", "callee"]) throws {
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    path = folder + "/call.take"
    let link = LinkSettings()
    let recorded = try RecordedVirtualCall(
      path: path, seed: 4, links: [link, link], labels: labels)
    recorded.call.addMedia()
    recorded.call.negotiate()
    recorded.run(for: .milliseconds(1_200))
    _ = try recorded.finish()
  }

  deinit { try? FileManager.default.removeItem(atPath: folder) }

  /// Executes SQL on the take's file, without updating the digest chain.
  func alter(_ sql: String) throws {
    try SQLiteConnection(path: path, mode: .readWrite).execute(sql)
  }
}
