import Foundation
import Testing

/// Tests `retake sql` with queries from arguments, files, pipes and a prompt, with results in every
/// format, and on takes of each kind.
struct SQLCommandTests {
  private static let root = URL(filePath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent().path
  private static let lossy = root + "/Captures/virtual-loss.take"

  private static let kinds = [
    "virtual-loss", "chromium-peer-offers", "chromium-peer-offers-retake-relays",
    "observed-aiortc", "observed-clear-h264", "janus-room", "formats/format-2",
    "formats/format-4",
  ]

  @Test(arguments: kinds)
  func everyViewAnswersOnEveryKindOfTake(_ name: String) async throws {
    let path = "\(Self.root)/Captures/\(name).take"
    let views = [
      "packet_life", "lost_packet", "loss_burst", "repair", "arrival", "gap", "frame_packet",
      "frame_journey", "description", "sdp_line", "milestone", "media_stream", "person", "nack",
      "report_block", "rtp", "stream", "bitrate", "loss", "jitter", "retransmission",
      "one_way_delay",
    ]
    let script = views.map { "SELECT '\($0)' AS name, count(*) AS rows FROM \($0);" }
    let folder = try Folder()
    try script.joined(separator: "\n").write(
      toFile: folder.file("all.sql"), atomically: true, encoding: .utf8)
    let outcome = try await Tool.run(
      "sql", path, "--file", folder.file("all.sql"), "--format", "jsonl")
    #expect(outcome.status == 0, "\(outcome.errors)")
    struct Row: Decodable {
      var name: String
      var rows: Int
    }
    let rows = try outcome.output.split(separator: "\n").map {
      try JSONDecoder().decode(Row.self, from: Data($0.utf8))
    }
    #expect(rows.map(\.name) == views)
    let counts = Dictionary(uniqueKeysWithValues: rows.map { ($0.name, $0.rows) })
    for name in ["rtp", "stream", "packet_life", "media_stream", "milestone", "person"] {
      #expect(counts[name] ?? 0 > 0, "\(name)")
    }
  }

  /// A packet of an observed call is one row for both of its ends, and each request for it counts
  /// once at each end.
  @Test func aRequestForAnObservedPacketCountsOnce() async throws {
    let made = try await Takes.virtual("--loss", "10", "--delay", "30", "--seed", "5")
    let folder = try Folder()
    let (capture, take) = (folder.file("a.pcapng"), folder.file("a.take"))
    let export = try await Tool.run("export", made.path, "--pcapng", capture, "--peer", "2")
    #expect(export.status == 0, "\(export.errors)")
    let imported = try await Tool.run("import", capture, "--out", take)
    #expect(imported.status == 0, "\(imported.errors)")
    let query = """
      SELECT sum(requests) > 0 AS some, sum(requests) = (SELECT count(*) FROM nack AS asked
        WHERE asked.direction = 'out' AND EXISTS (SELECT 1 FROM lost_packet AS lost
          WHERE lost.direction = 'in' AND lost.peer = asked.peer AND lost.ssrc = asked.ssrc
            AND lost.sequence = asked.sequence)) AS once
      FROM lost_packet WHERE direction = 'in'
      """
    let outcome = try await Tool.run("sql", take, query, "--csv")
    #expect(outcome.output == "some,once\r\n1,1\r\n", "\(outcome.output)\(outcome.errors)")
  }

  /// The two ends of one call in two takes, on one clock.
  @Test func aMergedTakeShowsBothEnds() async throws {
    let made = try await Takes.lossyCall()
    let folder = try Folder()
    let joint = folder.file("joint.take")
    let merge = try await Tool.run(
      "merge", made.path, made.path, "--first-peer", "1", "--second-peer", "2", "--out", joint)
    #expect(merge.status == 0, "\(merge.errors)")
    let query = """
      SELECT from_peer, to_peer, count(decoded_ns) > 20 AS shown, min(delay_ms) > 20 AS took
      FROM frame_journey WHERE kind = 'video' AND to_peer IS NOT NULL GROUP BY 1, 2 ORDER BY 1
      """
    let outcome = try await Tool.run("sql", joint, query, "--csv")
    #expect(
      outcome.output == "from_peer,to_peer,shown,took\r\n1,2,1,1\r\n2,1,1,1\r\n", "\(outcome)")
    // A merge renumbers the ends.
    let lost = """
      SELECT count(*) AS n, sum(lost) > 0 AS lost FROM packet_life
      WHERE peer = (SELECT peer FROM peer WHERE label = 'caller')
      """
    let (one, both) = (
      try await Tool.run("sql", made.path, lost, "--csv"),
      try await Tool.run("sql", joint, lost, "--csv")
    )
    #expect(one.output == both.output && both.output.hasSuffix(",1\r\n"))
  }

  @Test func functionsBesideThoseOfSQLite() async throws {
    let numbers = "WITH n(i) AS (VALUES (1), (2), (3), (4), (NULL), (10))"
    let outcome = try await Tool.run(
      "sql", Self.lossy,
      """
      \(numbers) SELECT median(i) AS median, percentile(i, 100) AS most, percentile(i, 12.5) AS low,
        round(stddev(i), 6) AS deviation, 'call-17' REGEXP '^call-\\d+$' AS yes,
        'call-x' REGEXP '\\d' AS no, NULL REGEXP 'a' AS none FROM n
      """, "--csv")
    #expect(
      outcome.output
        == "median,most,low,deviation,yes,no,none\r\n3.0,10.0,1.5,3.535534,1,0,\r\n", "\(outcome)")
    let groups = try await Tool.run(
      "sql", Self.lossy,
      """
      SELECT kind, count(*) AS n, median(size) > 0 AS some, median(NULL) AS none, stddev(1) AS one
      FROM frame WHERE direction = 'out' GROUP BY kind
      """, "--csv")
    #expect(groups.output.contains("audio,") && groups.output.contains(",1,,"), "\(groups)")
    for (sql, reason) in [
      ("SELECT percentile(1, 101)", "a number from 0 to 100"),
      ("SELECT percentile(size, size % 100) FROM packet", "the same in all rows"),
      ("SELECT median('x')", "a value is not a number"),
      ("SELECT 'a' REGEXP '('", "is not a regular expression"),
    ] {
      let outcome = try await Tool.run("sql", Self.lossy, sql)
      #expect(outcome.status == 64 && outcome.errors.contains(reason), "\(sql): \(outcome)")
    }
  }

  @Test func answersHaveFiveForms() async throws {
    let sql =
      "SELECT 1 AS n, 'a|b' AS t, NULL AS x, x'00ff' AS b UNION ALL SELECT 2.5, 'c', 3, NULL"
    let forms = [
      "csv": "n,t,x,b\r\n1,a|b,,00ff\r\n2.5,c,3,\r\n",
      "json":
        "[{\"n\":1,\"t\":\"a|b\",\"x\":null,\"b\":\"00ff\"},\n"
        + "{\"n\":2.5,\"t\":\"c\",\"x\":3,\"b\":null}]\n",
      "jsonl":
        "{\"n\":1,\"t\":\"a|b\",\"x\":null,\"b\":\"00ff\"}\n"
        + "{\"n\":2.5,\"t\":\"c\",\"x\":3,\"b\":null}\n",
      "markdown":
        "| n | t | x | b |\n| --- | --- | --- | --- |\n| 1 | a\\|b |  | 00ff |\n| 2.5 | c "
        + "| 3 |  |\n",
    ]
    for (form, wanted) in forms {
      let outcome = try await Tool.run("sql", Self.lossy, sql, "--format", form)
      #expect(outcome.output == wanted, "\(form): \(outcome)")
    }
    let none = try await Tool.run("sql", Self.lossy, "SELECT 1 WHERE 0", "--format", "jsonl")
    #expect(none.status == 0 && none.output.isEmpty)
  }

  /// Semicolons in strings, names and comments do not end a query.
  @Test func queriesAreReadFromFilesAndPipes() async throws {
    let folder = try Folder()
    let script = """
      -- one; of them
      SELECT 'a;b' AS "x;y" /* not; here */;
      ;
      SELECT 2 AS two -- the last one has no semicolon
      """
    try script.write(toFile: folder.file("q.sql"), atomically: true, encoding: .utf8)
    let wanted = "x;y\r\na;b\r\ntwo\r\n2\r\n"
    let file = try await Tool.run("sql", Self.lossy, "--file", folder.file("q.sql"), "--csv")
    #expect(file.output == wanted, "\(file)")
    let pipe = try await Tool.shell(
      "\"$RETAKE\" sql '\(Self.lossy)' --csv < '\(folder.file("q.sql"))'")
    #expect(pipe.output == wanted, "\(pipe)")
    let dash = try await Tool.shell(
      "cat '\(folder.file("q.sql"))' | \"$RETAKE\" sql '\(Self.lossy)' --file - --csv")
    #expect(dash.output == wanted, "\(dash)")

    // The first failing query stops the run; earlier results remain.
    let broken = try await Tool.shell(
      "echo 'SELECT 1 AS a; SELECT b; SELECT 3 AS c' | \"$RETAKE\" sql '\(Self.lossy)' --csv")
    #expect(broken.status == 64 && broken.output == "a\r\n1\r\n" && broken.errors.contains("b"))
    let empty = try await Tool.shell("\"$RETAKE\" sql '\(Self.lossy)' < /dev/null")
    #expect(empty.status == 64 && empty.errors.contains("it contains no query"), "\(empty)")
    let missing = try await Tool.run("sql", Self.lossy, "--file", folder.file("none.sql"))
    #expect(missing.status == 66 && missing.errors.contains("none.sql"))
    let two = try await Tool.run("sql", Self.lossy, "SELECT 1", "--file", folder.file("q.sql"))
    #expect(two.status == 64)
  }

  @Test func thePromptHasHistoryCompletionAndExamples() async throws {
    let folder = try Folder()
    let run = try TerminalRun(
      ["sql", Self.lossy, "--no-pager"], columns: 200,
      environment: ["XDG_STATE_HOME": folder.file("state")])
    try await run.wait(for: "sql> ")
    try await run.type("SELECT 40 + 2 AS answer;\r", until: "42")
    // Queries may span two lines, and a failure does not end the session.
    try await run.type("SELECT 5 *\r", until: "...> ")
    try await run.type("5 AS square;\r", until: "25")
    try await run.type("SELECT missing_word;\r", until: "no such column: missing_word")
    // The Tab key completes a view's name.
    try await run.type("SELECT count(*) AS n FROM packet_l\t;\r", until: "448")
    try await run.type(".schema loss_burst\r", until: "the last packet before the run")
    try await run.type(".example 3\r", until: "from_ms")
    try await run.type(".format csv\r", until: "sql> ")
    try await run.type("SELECT 1 AS a, 2 AS b;\r", until: "a,b")
    // Ctrl-C discards the line that is being typed.
    try await run.type("SELECT 1 FROM\u{03}", until: "sql> ")
    run.type(".quit\r")
    #expect(try await run.end() == 0, "\(run.screen.suffix(500))")
    let history = folder.file("state/retake/sql_history")
    let attributes = try FileManager.default.attributesOfItem(atPath: history)
    #expect(attributes[.posixPermissions] as? Int == 0o600)
    #expect(try String(contentsOfFile: history, encoding: .utf8).contains("square"))
  }

  @Test func theSchemaExplainsViewsFunctionsAndKeys() async throws {
    let outcome = try await Tool.run("sql", "--schema")
    #expect(outcome.status == 0)
    for words in [
      "CREATE VIEW packet_life AS", "percentile(x, p)", "fraction_lost", "event.detail",
      "CREATE VIEW sdp_line AS",
    ] {
      #expect(outcome.output.contains(words), "\(words)")
    }
  }
}
