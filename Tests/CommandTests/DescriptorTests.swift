import Foundation
import Testing

/// Under a low limit on open files, commands fail with one sentence and without a trap.
struct DescriptorTests {
  @Test(arguments: [4, 8, 16, 32])
  func fewDescriptorsAreReported(limit: Int) async throws {
    let made = try await Takes.lossyCall()
    let folder = try Folder()
    for command in [
      "info \(made.path)", "sql \(made.path) 'SELECT 1'", "replay \(made.path)",
      "open \(made.path)", "page \(made.path) --out \(folder.file("a.html"))",
      "record demo --seconds 1 --out \(folder.file("a.take"))",
      "record serve --listen 127.0.0.1:0 --seconds 1 --out \(folder.file("b.take"))",
      "record call http://127.0.0.1:1/offer --out \(folder.file("c.take"))",
      "verify \(made.path)",
    ] {
      let outcome = try await Tool.shell("ulimit -c 0; ulimit -n \(limit); \"$RETAKE\" \(command)")
      #expect(outcome.status == 74 && !outcome.wasKilled, "\(command): \(outcome.errors)")
      #expect(outcome.errors.contains("as in `ulimit -n 1024`"), "\(command): \(outcome.errors)")
      #expect(outcome.errorLines.count == 1)
    }
  }

  /// A command raises its soft limit on open files as far as the system allows.
  @Test func aSoftLimitIsRaised() async throws {
    let made = try await Takes.lossyCall()
    let outcome = try await Tool.shell("ulimit -S -n 16; \"$RETAKE\" info \(made.path)")
    #expect(outcome.status == 0, "\(outcome.errors)")
  }
}
