import Foundation
import Testing

/// Tests output that only a terminal gets: its width, colours, a pager, progress.
struct TerminalTests {
  private static let escape = "\u{1b}["

  private func shown(
    _ arguments: String..., columns: UInt16 = 80, rows: UInt16 = 24,
    environment: [String: String] = [:]
  ) async throws -> (text: String, status: Int32) {
    let run = try TerminalRun(
      arguments, columns: columns, rows: rows, environment: environment)
    let status = try await run.end()
    return (run.screen, status)
  }

  // MARK: Width

  @Test(arguments: [UInt16(200), 72, 40, 10])
  func columnsFitTheTerminal(columns: UInt16) async throws {
    let made = try await Takes.lossyCall()
    for arguments in [
      ["timeline", made.path], ["stats", made.path, "--problems"],
      ["sql", made.path, "SELECT peer, machine, to_state, at_ns FROM state"],
      ["sql", made.path, "SELECT * FROM packet"], ["speakers", made.path],
    ] {
      let run = try TerminalRun(
        arguments + ["--no-pager"], columns: columns, environment: ["NO_COLOR": "1"])
      #expect(try await run.end() == 0, "\(run.screen)")
      let table = run.screen.components(separatedBy: "\r\n\r\n")[0]
      let widest = table.terminalLines.map(\.count).max() ?? 0
      #expect(widest > 0 && widest <= Int(columns), "\(arguments[0]): \(widest)")
    }
  }

  @Test func longCellsEndInAnEllipsisAndPipesGetWholeOnes() async throws {
    let made = try await Takes.lossyCall()
    let long = String(repeating: "word ", count: 60) + "end"
    let query = "SELECT 1 AS number, '\(long)' AS text, 22 AS other"
    let narrow = try await shown("sql", made.path, query, columns: 60)
    #expect(narrow.text.contains("word…") || narrow.text.contains("word …"), "\(narrow.text)")
    // Numbers are never cut.
    #expect(narrow.text.terminalLines[2].hasSuffix("22"), "\(narrow.text)")
    let piped = try await Tool.run("sql", made.path, query)
    #expect(piped.output.contains(long + "     22\n"), "\(piped.output)")
    let timeline = try await Tool.run("timeline", made.path)
    #expect(!timeline.output.contains("…"))
  }

  /// A take contains text from the remote side, and a terminal executes control sequences in it.
  @Test func controlCharactersOfATakeReachNoTerminal() async throws {
    let made = try await Takes.copy()
    try Takes.alter(made.path, "UPDATE peer SET label = 'a' || char(27) || '[2Jb' WHERE peer = 1")
    let timeline = try await shown("timeline", made.path, "--no-pager", columns: 200)
    #expect(timeline.text.contains("a\\u{1b}[2Jb") && !timeline.text.contains("\u{1b}[2J"))
    let query = "SELECT char(27) || '[2J' || char(155) AS x"
    let sql = try await shown("sql", made.path, query, columns: 200)
    #expect(sql.text.contains("\\u{1b}[2J\\u{9b}"), "\(sql.text)")
    // A pipe's output may reach a terminal, too. Only JSON has the original text, for programs.
    let csv = try await Tool.run("sql", made.path, query, "--csv")
    #expect(csv.output == "x\r\n\\u{1b}[2J\\u{9b}\r\n")
    let json = try await Tool.run("sql", made.path, query, "--json")
    #expect(json.output == "[{\"x\":\"\\u001b[2J\\u009b\"}]\n")
  }

  // MARK: Colour

  @Test func coloursMeanSomethingAndAreOffWhereTheyAreNotWanted() async throws {
    let made = try await Takes.lossyCall()
    let lane = ["timeline", made.path, "--lane", "state", "--no-pager"]
    func text(_ environment: [String: String]) async throws -> String {
      let run = try TerminalRun(lane, columns: 200, environment: environment)
      #expect(try await run.end() == 0)
      return run.screen
    }
    let coloured = try await text([:])
    let connected = coloured.terminalLines.filter { $0.contains("connection: connecting -> ") }
    #expect(!connected.isEmpty)
    #expect(
      connected.allSatisfy { $0.hasSuffix("-> connected\u{1b}[m") && $0.contains("\u{1b}[32m") })
    // Ordinary states have no colour.
    #expect(coloured.terminalLines.contains { $0.hasSuffix("new -> gathering") })
    for environment in [["NO_COLOR": "1"], ["TERM": "dumb"]] {
      #expect(!(try await text(environment)).contains(Self.escape))
    }
    // An empty NO_COLOR has no effect.
    #expect((try await text(["NO_COLOR": ""])).contains(Self.escape))
    #expect(!(try await Tool.run(lane)).output.contains(Self.escape))
  }

  @Test func problemsFailuresAndDifferencesAreRed() async throws {
    let root = DebugTests.root.appending(path: "Captures/virtual-heavy-loss.take").path
    let problems = try await shown("stats", root, "--problems", "--no-pager", columns: 200)
    #expect(problems.text.contains("\u{1b}[31mhigh"), "\(problems.text.prefix(500))")
    let made = try await Takes.copy()
    let good = try await shown("replay", made.path, "--skip-codecs")
    #expect(good.status == 0 && good.text.contains("\u{1b}[32m\(made.path): identical"))
    try Takes.alter(made.path, "UPDATE state SET to_state = 'failed' WHERE to_state = 'connected'")
    let bad = try await shown("replay", made.path, "--skip-codecs")
    #expect(bad.status == 1 && bad.text.contains("\u{1b}[31m\(made.path): "), "\(bad.text)")
    let folder = made.folder.file("reports")
    let failed = try await shown("verify", made.path, "--reports", folder)
    #expect(failed.status == 1 && failed.text.contains("\u{1b}[31m"), "\(failed.text)")
    let piped = try await Tool.run("verify", made.path, "--reports", folder)
    #expect(piped.status == 1 && !piped.output.contains(Self.escape))
  }

  // MARK: Pager

  @Test func longTablesGoThroughThePager() async throws {
    let made = try await Takes.lossyCall()
    let pager = ["PAGER": "sed 's/^/paged /'"]
    let long = "SELECT * FROM packet LIMIT 60"
    for arguments in [
      ["timeline", made.path], ["sql", made.path, long], ["sql", "--schema"],
      ["stats", made.path], ["info", made.path],
    ] {
      let run = try TerminalRun(arguments, rows: 8, environment: pager)
      #expect(try await run.end() == 0)
      let lines = run.screen.terminalLines.filter { !$0.isEmpty }
      #expect(lines.count > 8 && lines.allSatisfy { $0.hasPrefix("paged ") }, "\(arguments)")
    }
    for (arguments, rows) in [
      (["sql", made.path, long, "--no-pager"], UInt16(8)), (["sql", made.path, "SELECT 1"], 8),
      (["sql", made.path, long], 200), (["timeline", made.path, "--json"], 8),
    ] {
      let run = try TerminalRun(arguments, rows: rows, environment: pager)
      #expect(try await run.end() == 0)
      #expect(!run.screen.isEmpty && !run.screen.contains("paged"), "\(arguments)")
    }
    let piped = try await Tool.run(["timeline", made.path], environment: pager)
    #expect(!piped.output.contains("paged"))
    for none in ["", "cat"] {
      let plain = try await shown("timeline", made.path, rows: 8, environment: ["PAGER": none])
      #expect(plain.status == 0 && plain.text.contains("signaling"))
    }
  }

  @Test func leavingThePagerEarlyIsNoFailure() async throws {
    let made = try await Takes.lossyCall()
    let query = "SELECT * FROM packet, (VALUES (1), (2), (3), (4), (5), (6))"
    let left = try await shown(
      "sql", made.path, query, rows: 8, environment: ["PAGER": "head -n 1"])
    #expect(left.status == 0, "\(left.text)")
    #expect(left.text.terminalLines.filter { !$0.isEmpty }.count == 1)
  }

  @Test func aPagerThatIsNotThereIsReported() async throws {
    let made = try await Takes.lossyCall()
    let none = try await shown(
      "timeline", made.path, rows: 8, environment: ["PAGER": "no-such-pager"])
    #expect(none.status == 74)
    #expect(
      none.text.contains("\"no-such-pager\" cannot be run") && none.text.contains("--no-pager"))
  }

  @Test(.enabled(if: Tool.has("less")))
  func theDefaultPagerIsLess() async throws {
    let made = try await Takes.lossyCall()
    let run = try TerminalRun(["timeline", made.path], rows: 8)
    // The pager waits for a key, and Ctrl-C does not end the command that writes to the pager.
    try await run.wait(for: ":\u{1b}[K")
    // `less` rings the bell, and drops the keys typed at that moment.
    try await run.type("\u{03}", until: "\u{07}")
    #expect(try await run.end(pressing: "q") == 0, "\(run.screen)")
    #expect(run.screen.terminalLines.count < 30)
    let short = try await shown("sql", made.path, "SELECT 'fits'", rows: 8)
    #expect(short.status == 0 && short.text.contains("fits"))
  }

  // MARK: Progress

  @Test func aLongQueryIsFollowed() async throws {
    let made = try await Takes.lossyCall()
    let endless =
      "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n WHERE i < 0"
    let slow = try await shown("sql", made.path, endless, "--time-limit", "1.5s")
    #expect(slow.text.contains("\r\u{1b}[Kquerying: 1."), "\(slow.text)")
    // The progress line is gone before anything else is printed.
    #expect(slow.text.contains("\r\u{1b}[Ki\r\n-\r\n"), "\(slow.text)")
    let piped = try await Tool.run("sql", made.path, endless, "--time-limit", "1.5s")
    #expect(!piped.errors.contains("querying"))
  }

  /// `faketime` makes the clock run fast, so a short task seems to take long.
  @Test(.enabled(if: Tool.has("faketime"))) func longWorkIsFollowed() async throws {
    let made = try await Takes.lossyCall()
    for (arguments, words) in [
      (["whatif", made.path, "--jitter-buffer", "400"], "what if: "),
      (["replay", made.path], "replaying: "),
    ] {
      let run = try TerminalRun(arguments, through: ["faketime", "-f", "+0 x200"])
      #expect(try await run.end() == 0, "\(run.screen)")
      #expect(run.screen.contains("\r\u{1b}[K" + words), "\(run.screen.prefix(300))")
    }
  }

  /// If a step reports no progress, a timer shows the elapsed seconds, in real time.
  @Test func theTakesOfAFolderAreFollowed() async throws {
    let (made, folder) = (try await Takes.virtual("--seed", "3", "--seconds", "4"), try Folder())
    for number in 0..<12 {
      try FileManager.default.copyItem(atPath: made.path, toPath: folder.file("\(number).take"))
    }
    let arguments = ["verify", folder.path, "--jobs", "1", "--reports", folder.file("reports")]
    let run = try TerminalRun(arguments)
    #expect(try await run.end() == 0, "\(run.screen)")
    #expect(run.screen.contains("\r\u{1b}[Kverifying: "), "\(run.screen.prefix(300))")
    let piped = try await Tool.run("verify", made.path, "--reports", folder.file("reports"))
    #expect(piped.status == 0 && piped.errors.isEmpty, "\(piped.errors)")
  }

  /// A short command shows no progress line.
  @Test func shortWorkIsNotFollowed() async throws {
    let made = try await Takes.lossyCall()
    let short = try await shown("sql", made.path, "SELECT 1 AS one")
    #expect(short.text == "one\r\n---\r\n  1\r\n", "\(short.text)")
  }
}
