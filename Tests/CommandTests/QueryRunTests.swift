import Foundation
import Testing

/// Tests `retake sql` while it runs: streamed rows, a limit, and Ctrl-C.
struct QueryRunTests {
  /// A query that returns three rows immediately, and then runs forever without another row.
  private static let endless = """
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)
    SELECT i, 'row ' || i AS name FROM n WHERE i <= 3 OR i < 0
    """

  @Test(arguments: ["table", "csv", "json"])
  func rowsArePrintedImmediatelyAndCtrlCEndsTheQuery(format: String) async throws {
    let made = try await Takes.lossyCall()
    let run = try Run(Tool.path, ["sql", made.path, Self.endless, "--format", format])
    let out = run.folder.file("out")
    try await poll("rows; \(run.errors)") {
      ((try? String(contentsOfFile: out, encoding: .utf8)) ?? "").contains("row 3")
    }
    #expect(run.isRunning)
    run.send(SIGINT)
    let outcome = try await run.outcome()
    // The status that a shell expects from an interrupted process.
    #expect(outcome.wasKilled && outcome.status == SIGINT)
    #expect(outcome.errorLines.count == 1)
    #expect(outcome.errors.contains("\(made.path): the query was interrupted; it gave 3 rows"))
    // An incomplete list is not closed.
    if format == "json" { #expect(!outcome.output.contains("]")) }
  }

  /// Ctrl-C interrupts a query even if the parent process blocks SIGINT, which its children
  /// inherit.
  @Test func ctrlCReachesAProcessThatWasStartedWithoutIt() async throws {
    let made = try await Takes.lossyCall()
    let script = """
      import signal, subprocess, sys
      signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
      run = subprocess.Popen(sys.argv[1:], stdout=subprocess.PIPE)
      while b"row 3" not in run.stdout.readline():
        pass
      run.send_signal(signal.SIGINT)
      try:
        print(run.wait(timeout=60))
      except subprocess.TimeoutExpired:
        run.kill()
        print("never ended")
      """
    let run = try Run(
      "/usr/bin/python3", ["-c", script, Tool.path, "sql", made.path, Self.endless])
    let outcome = try await run.outcome()
    #expect(outcome.output == "\(-SIGINT)\n", "\(outcome)")
  }

  /// The query is one long function call, which SQLite cannot interrupt.
  @Test func aTimeLimitEndsAFunctionThatWouldRunForHours() async throws {
    let made = try await Takes.lossyCall()
    let outcome = try await Tool.run(
      "sql", made.path, "SELECT instr(zeroblob(200000000), zeroblob(90000000) || x'01')",
      "--time-limit", "1")
    #expect(outcome.status == 1 && !outcome.wasKilled)
    #expect(outcome.errors.contains("longer than the --time-limit of 1 s"), "\(outcome.errors)")
  }

  @Test(arguments: [
    "ATTACH '/tmp/retake-query' AS x", "PRAGMA temp_store_directory = '/tmp'",
    "VACUUM INTO '/tmp/retake-query'", "SELECT load_extension('x')", "CREATE TEMP TABLE x (a)",
  ])
  func aQueryReachesNothingButTheTake(sql: String) async throws {
    let made = try await Takes.lossyCall()
    let outcome = try await Tool.run("sql", made.path, sql)
    #expect(outcome.status == 64)
    let refusals = ["a take is only read, never written", "not authorized to use function"]
    #expect(refusals.contains { outcome.errors.contains($0) }, "\(outcome.errors)")
    #expect(!FileManager.default.fileExists(atPath: "/tmp/retake-query"))
  }

  @Test(arguments: ["table", "csv", "json"])
  func aTimeLimitEndsAQuery(format: String) async throws {
    let made = try await Takes.lossyCall()
    let outcome = try await Tool.run(
      "sql", made.path, Self.endless, "--format", format, "--time-limit", "300ms")
    #expect(outcome.status == 1 && !outcome.wasKilled)
    #expect(outcome.errorLines.count == 1)
    let message = "longer than the --time-limit of 0.3 s; it gave "
    let tail = try #require(outcome.errors.split(separator: message).last)
    #expect(tail.hasSuffix(" rows by then\n") || tail.hasSuffix(" row by then\n"), "\(tail)")
    // The message states as many rows as were printed.
    let count = try #require(Int(tail.prefix { $0.isNumber }))
    #expect(count <= 3)
    #expect(outcome.output.components(separatedBy: "row ").count == count + 1)
    let enough = try await Tool.run(
      "sql", made.path, "SELECT 1", "--format", format, "--time-limit", "100")
    #expect(enough.status == 0 && enough.errors.isEmpty)
  }

  @Test func ctrlCOnATerminalEndsAQuery() async throws {
    let made = try await Takes.lossyCall()
    let run = try TerminalRun(["sql", made.path, Self.endless])
    try await run.wait(for: "row 3")
    run.type("\u{03}")
    #expect(try await run.end() == -SIGINT)
    #expect(run.screen.contains("interrupted; it gave 3 rows by then"), "\(run.screen)")
  }

  /// Later rows wider than the columns are not cut.
  @Test func longTablesKeepAllOfTheirRows() async throws {
    let made = try await Takes.lossyCall()
    let query = """
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)
      SELECT i, iif(i > 4000, 'quite a lot longer', 'short') AS text, i AS again FROM n
      """
    let outcome = try await Tool.run("sql", made.path, query)
    let lines = outcome.output.split(separator: "\n")
    #expect(lines.count == 5_002)
    for (index, line) in lines.dropFirst(2).enumerated() {
      let words = line.split(separator: " ")
      #expect(words.first == "\(index + 1)" && words.last == "\(index + 1)", "\(line)")
      if index < 999 { #expect(line.count == lines[2].count) }
      if index >= 4_000 { #expect(line.contains("quite a lot longer")) }
    }
  }
}
