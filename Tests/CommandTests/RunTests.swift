import Foundation
import Testing

/// How the tests run commands.
@Suite struct RunTests {
  @Test func theTimeOfACommandBeginsWhenItsEndIsWaitedFor() async throws {
    let run = try Run(
      "/bin/sh", ["-c", "echo ready >&2; exec sleep 1000"], limit: .milliseconds(300))
    try await run.waitForErrors(with: "ready")
    // As long as a test may wait for its turn among all others.
    let moment = run.begin + .milliseconds(900)
    try await poll("the moment") { ContinuousClock.now >= moment }
    #expect(run.isRunning && run.end == nil)
    run.send(SIGKILL)
    let outcome = try await run.outcome()
    let end = try #require(run.end)
    #expect(outcome.wasKilled && run.begin.duration(to: end) >= .milliseconds(900))
  }
}
