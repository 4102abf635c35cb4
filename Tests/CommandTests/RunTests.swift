import Foundation
import Testing

/// Tests how the tests themselves run commands.
struct RunTests {
  @Test func theTimeOfACommandBeginsWhenItsEndIsWaitedFor() async throws {
    let run = try Run(
      "/bin/sh", ["-c", "echo ready >&2; exec sleep 1000"], limit: .milliseconds(300))
    try await run.waitForErrors(with: "ready")
    // Waits longer than the limit, as a test may have to while all others run.
    let moment = run.begin + .milliseconds(900)
    try await poll("the moment") { ContinuousClock.now >= moment }
    #expect(run.isRunning && run.end == nil)
    run.send(SIGKILL)
    let outcome = try await run.outcome()
    let end = try #require(run.end)
    #expect(outcome.wasKilled && run.begin.duration(to: end) >= .milliseconds(900))
  }
}
