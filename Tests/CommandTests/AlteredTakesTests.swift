import Foundation
import Testing

/// Runs every verb on altered takes: a few here, any number with `make altered`.
struct AlteredTakesTests {
  @Test(arguments: [0, 1_000])
  func everyVerbAnswersOrRefuses(_ first: Int) async throws {
    let folder = try Folder()
    let program = URL(fileURLWithPath: Tool.path).deletingLastPathComponent().path + "/altered"
    let captures = ["virtual-loss", "observed-aiortc", "janus-room"].map { "Captures/\($0).take" }
    let outcome = try await Tool.shell(
      "\(program) --folder \(folder.file("altered")) --from \(first) --count 7 --steps 120 "
        + captures.joined(separator: " "))
    #expect(outcome.status == 0, "\(outcome.output)\(outcome.errors)")
    #expect(outcome.output.contains("7 altered takes"))
  }
}
