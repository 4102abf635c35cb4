import FoundationEssentials
import RetakeCommand

/// A folder for the takes of one measurement.
struct BenchFolder {
  let url: URL

  init() throws(CommandFailure) {
    url = FileManager.default.temporaryDirectory
      .appendingPathComponent("retake-bench-\(ProcessInfo.processInfo.processIdentifier)")
    do {
      try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    } catch {
      throw CommandFailure(.inputOutput, "\(url.path): it cannot be made: \(error)")
    }
  }

  /// Removes the folder and all that is in it.
  func remove() { try? FileManager.default.removeItem(at: url) }
}
