import Foundation
import Testing

/// Tests `retake debug` in a terminal.
struct DebugTerminalTests {
  /// Starts a session whose history is kept in the test's folder.
  private func session(_ path: String, _ folder: Folder) async throws -> TerminalRun {
    let run = try TerminalRun(
      ["debug", path], columns: 200, environment: ["XDG_STATE_HOME": folder.file("state")])
    try await run.wait(for: "(before step 1) ")
    return run
  }

  private func leave(_ run: TerminalRun) async throws {
    run.type("quit\r")
    #expect(try await run.end() == 0, "\(run.screen.suffix(500))")
  }

  @Test func enterRepeatsAndCtrlCReturnsToThePrompt() async throws {
    let (made, folder) = (try await Takes.lossyCall(), try Folder())
    let run = try await session(made.path, folder)
    try await run.type("next\r", until: "after step 1) ")
    try await run.type("\r", until: "after step 2) ")
    try await run.type("seek step:50\r", until: "after step 49) ")
    // An empty line repeats any command, not only a move.
    try await run.type("steps 1\r", until: "after step 49) ")
    try await run.type("\r", until: "after step 49) ")
    #expect(run.screen.components(separatedBy: "steps 1").count == 2, "\(run.screen)")
    // Ctrl-C discards the line without executing it.
    try await run.type("seek step:70\u{03}", until: "after step 49) ")
    #expect(!run.screen.contains("after step 69)"))
    // Ctrl-D ends the session.
    run.type("\u{04}")
    #expect(try await run.end() == 0)
  }

  @Test func ctrlCLeavesALongCommandWhereItBegan() async throws {
    let (made, folder) = (try await Takes.lossyCall(), try Folder())
    let run = try await session(made.path, folder)
    try await run.type("seek step:20\r", until: "after step 19) ")
    // No step meets this command's condition, so the command walks the complete take. Retry until
    // it is interrupted.
    for _ in 0..<20 where !run.screen.contains("interrupted; still at") {
      // Once the line is entered, Ctrl-C is a signal again.
      let before = run.type(
        "next stat jitterBufferDelay<0\r", whenShown: "jitterBufferDelay<0\r\n",
        press: "\u{03}")
      try await run.wait(for: "after step 19) ", after: before)
    }
    #expect(run.screen.contains("interrupted; still at"), "\(run.screen.suffix(500))")
    // The session still works.
    try await run.type("next\r", until: "after step 20) ")
    try await run.type("back\r", until: "after step 19) ")
    try await leave(run)
  }

  @Test func historyIsKeptBetweenSessionsForItsOwnerAlone() async throws {
    let (made, folder) = (try await Takes.lossyCall(), try Folder())
    let file = folder.file("state/retake/debug_history")
    let first = try await session(made.path, folder)
    try await first.type("seek step:33\r", until: "after step 32) ")
    try await first.type("seek step:44\r", until: "after step 43) ")
    try await leave(first)
    let attributes = try FileManager.default.attributesOfItem(atPath: file)
    #expect(attributes[.posixPermissions] as? Int == 0o600)
    let parent = try FileManager.default.attributesOfItem(atPath: folder.file("state/retake"))
    #expect(parent[.posixPermissions] as? Int == 0o700)
    let second = try await session(made.path, folder)
    // Pressing Up three times shows `quit`, the later `seek`, then the earlier `seek`.
    try await second.type("\u{1b}[A\u{1b}[A\u{1b}[A\r", until: "after step 32) ")
    // Ctrl-R searches the history.
    try await second.type("\u{12}p:44\r", until: "after step 43) ")
    try await leave(second)
  }

  @Test func aHomeThatCannotBeWrittenHasNoHistory() async throws {
    let made = try await Takes.lossyCall()
    let run = try TerminalRun(
      ["debug", made.path], environment: ["XDG_STATE_HOME": "/dev/null", "HOME": "/dev/null"])
    try await run.wait(for: "(before step 1) ")
    try await run.type("next\r", until: "after step 1) ")
    try await leave(run)
  }

  @Test func theTabKeyOffersCompletions() async throws {
    let (made, folder) = (try await Takes.lossyCall(), try Folder())
    let run = try await session(made.path, folder)
    // A single completion is inserted; several are listed.
    try await run.type(
      "see\tstate ice-c\tche\t\r", until: "ice-connection state new to checking")
    try await run.type("seek state ice-connection \t", until: "disconnected  failed")
    // Ctrl-U deletes the line.
    try await run.type("\u{15}next packet in rtp s\t", until: "sequence=")
    try await run.type("\u{15}frame x.png \t", until: "peer=   track=")
    run.type("\u{15}")
    try await leave(run)
  }

  /// Nothing is left after a session: no process, no changed terminal settings.
  @Test func aHangUpEndsTheSession() async throws {
    let (made, folder) = (try await Takes.lossyCall(), try Folder())
    let run = try await session(made.path, folder)
    run.type("next\r")
    try await run.wait(for: "after step 1) ")
    run.send(SIGHUP)
    #expect(try await run.end() == -SIGHUP)
  }
}
