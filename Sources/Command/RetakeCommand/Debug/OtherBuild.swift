import Debug
import FoundationEssentials
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
    guard FileBytes.kind(of: path) != .folder, FileManager.default.isExecutableFile(atPath: path)
    else {
      throw CommandFailure(
        .usage,
        "\(path): it is no executable; give the retake of another build, as in "
          + ".build/release/retake")
    }
    let output: ChildPipe
    let process: ChildProcess
    do throws(SystemError) {
      output = try ChildPipe()
      process = try ChildProcess(
        path, ["whatif", take, "--outcomes"] + changes, input: .inherited,
        output: .pipe(output.writing))
      output.closeWriting()
    } catch {
      throw CommandFailure(.noSuchFile, "\(path): it cannot be started: \(error.description)")
    }
    let text = output.readAll(atMost: 64 << 20)
    process.end()
    guard process.waitUntilExit().status == 0,
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
