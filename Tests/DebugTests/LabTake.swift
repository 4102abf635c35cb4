import Foundation
import Lab
import Media
import Peer
import Tape
import Wire

/// A short virtual call on disk; the folder is removed after the test.
final class LabTake: Sendable {
  let folder: String
  let path: String

  init(
    seed: UInt64 = 5, link: LinkSettings = LinkSettings(), seconds: Int64 = 2,
    keepsMedia: Bool = true
  ) throws {
    folder = FileManager.default.temporaryDirectory.path + "/debug-" + UUID().uuidString
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    path = "\(folder)/call.take"
    let recorded = try RecordedVirtualCall(
      path: path, seed: seed, links: [link, link], labels: ["caller", "callee"],
      keepsMedia: keepsMedia)
    recorded.call.addMedia(videoFrames: .pattern(width: 96, height: 64, framesPerSecond: 15))
    _ = recorded.call.negotiate()
    recorded.run(for: .seconds(seconds))
    _ = try recorded.finish()
  }

  deinit { try? FileManager.default.removeItem(atPath: folder) }

  /// One call for all tests that only read it.
  static let shared: Result<LabTake, any Error> = Result {
    atexit { if case .success(let take) = LabTake.shared { take.remove() } }
    return try LabTake()
  }

  /// A call over a bad path, for all tests that only read it.
  static let lossy: Result<LabTake, any Error> = Result {
    atexit { if case .success(let take) = LabTake.lossy { take.remove() } }
    var link = LinkSettings()
    link.delay = .milliseconds(80)
    link.jitter = .milliseconds(20)
    link.lossPerMille = 150
    return try LabTake(seed: 3, link: link, seconds: 5)
  }

  private func remove() { try? FileManager.default.removeItem(atPath: folder) }

  func number(_ sql: String) throws -> Int64? { try TakeFile.open(path).integer(sql) }
}
