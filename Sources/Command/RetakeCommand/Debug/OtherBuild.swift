import Debug
import Foundation
import Live
import Tape

/// Another build of this tool, asked what its stack makes of a take.
struct OtherBuild {
  /// What it answers.
  struct Answer: Codable {
    var outcomes: [PeerOutcome]
    var counts: [Int]
  }

  let path: String

  /// Runs `whatif` there with the same changes.
  func run(_ take: String, _ changes: [String]) throws -> (outcomes: [PeerOutcome], counts: [Int]) {
    guard FileManager.default.fileExists(atPath: path) else {
      throw CommandFailure(.noSuchFile, "\(path): there is no such executable")
    }
    var isFolder: ObjCBool = false
    _ = FileManager.default.fileExists(atPath: path, isDirectory: &isFolder)
    guard !isFolder.boolValue, FileManager.default.isExecutableFile(atPath: path) else {
      throw CommandFailure(
        .usage,
        "\(path): it is no executable; give the retake of another build, as in "
          + ".build/release/retake")
    }
    let process = Process()
    process.executableURL = URL(fileURLWithPath: path)
    process.arguments = ["whatif", take, "--outcomes"] + changes
    let output: ChildPipe
    do {
      output = try ChildPipe()
      process.standardOutput = output.writing
      try process.run()
      output.closeWriting()
    } catch {
      throw CommandFailure(
        .noSuchFile, "\(path): it cannot be started: \(error.localizedDescription)")
    }
    let text = output.readAll(atMost: 64 << 20)
    process.end()
    process.waitUntilExit()
    guard process.terminationStatus == 0,
      let answer = CanonicalJSON.value(Answer.self, from: text)
    else {
      throw CommandFailure(
        .inputOutput,
        "\(path): it did not say what becomes of \(take); give the retake of another build that "
          + "knows whatif --outcomes")
    }
    return (answer.outcomes, answer.counts)
  }
}
