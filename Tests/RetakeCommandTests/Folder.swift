import Foundation

/// A folder that is removed after the test.
final class Folder: Sendable {
  let path: String

  init() throws {
    path = FileManager.default.temporaryDirectory.path + "/retake-" + UUID().uuidString
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  func file(_ name: String) -> String { "\(path)/\(name)" }
}
