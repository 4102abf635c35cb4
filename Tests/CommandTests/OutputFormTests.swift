import Foundation
import Testing

/// Tests how results are laid out when they are printed.
struct OutputFormTests {
  private static func capture(_ name: String) -> String {
    DebugTests.root.appending(path: "Captures/\(name).take").path
  }

  private func shown(_ arguments: String..., columns: UInt16) async throws -> [String] {
    let run = try TerminalRun(
      arguments + ["--no-pager"], columns: columns, environment: ["NO_COLOR": "1"])
    #expect(try await run.end() == 0, "\(run.screen)")
    return run.screen.terminalLines
  }

  // MARK: Tables

  @Test func columnsWithoutRoomAreNamedAndWideShowsThem() async throws {
    let take = Self.capture("virtual-heavy-loss")
    let query = "SELECT * FROM packet LIMIT 3"
    let narrow = try await shown("sql", take, query, columns: 80)
    #expect(narrow.allSatisfy { $0.count <= 80 || $0.contains("--wide") }, "\(narrow)")
    let foot = try #require(
      narrow.first { $0.contains("left out, because the terminal is too narrow") })
    #expect(foot.contains("--wide shows all"))
    // Every column is in the header or in the footer, and none in both.
    let whole = try await Tool.run("sql", take, query).output.split(separator: "\n")[0]
    let names = whole.split(separator: " ").map { String($0) }
    let listed = try #require(foot.firstRange(of: "too narrow: ")).upperBound
    let left = foot[listed...].prefix { $0 != "(" }.split { $0 == "," || $0 == " " }.map(
      String.init)
    #expect(!left.isEmpty && names.suffix(left.count) == left[...], "\(left)")
    let wide = try await shown("sql", take, query, "--wide", columns: 80)
    #expect(wide[0].split(separator: " ").map(String.init) == names)
    #expect(!wide.contains { $0.contains("…") || $0.contains("left out") })
  }

  @Test func onlyItsOwnLineIsAsLongAsALongText() async throws {
    let take = Self.capture("janus-room")
    let query =
      "SELECT 'a' AS x, '' AS y UNION ALL SELECT 'b', '\(String(repeating: "1", count: 900))'"
    let piped = try await Tool.run("sql", take, query).output.split(separator: "\n")
    #expect(piped.count == 4 && piped[3].count > 900, "\(piped)")
    #expect(piped[..<3].allSatisfy { $0.count <= 120 })
    let terminal = try await shown("sql", take, query, columns: 80)
    #expect(terminal.allSatisfy { $0.count <= 80 } && terminal[3].hasSuffix("…"))
  }

  /// Statistics values are cut to the terminal's width, and complete everywhere else.
  @Test func statisticsAreCutForTerminalsAlone() async throws {
    let take = Self.capture("virtual-heavy-loss")
    func certificates(_ lines: [String]) -> [String] {
      lines.filter { $0.contains("base64Certificate") }
    }
    let query = ["stats", take, "--type", "certificate"]
    let piped = certificates(
      try await Tool.run(query).output.split(separator: "\n").map(String.init))
    #expect(!piped.isEmpty && piped.allSatisfy { $0.count > 200 && !$0.contains("...") })
    let narrow = certificates(try await shown("stats", take, "--type", "certificate", columns: 80))
    #expect(narrow.count == piped.count)
    #expect(narrow.allSatisfy { $0.count == 80 && $0.hasSuffix("...") }, "\(narrow)")
    let wide = try await shown("stats", take, "--type", "certificate", "--wide", columns: 80)
    #expect(wide.allSatisfy { !$0.contains("...") })
  }

  @Test(arguments: ["timeline", "stats --problems", "speakers", "info", "merge", "whatif"])
  func everyTableCanBeWide(verb: String) async throws {
    let help = try await Tool.run(verb.split(separator: " ").map(String.init) + ["--help"])
    #expect(help.status == 0 && help.output.contains("--wide"))
  }

  // MARK: Timeline

  @Test(arguments: [
    "janus-room", "chromium-peer-offers", "janus-videoroom-retake-offers", "observed-clear-vp8",
    "virtual-heavy-loss", "chromium-negotiates",
  ])
  func aTimelineDescribesEventsInOrder(name: String) async throws {
    let timeline = try await Tool.run("timeline", Self.capture(name))
    #expect(timeline.status == 0 && !timeline.output.contains("{\""), "\(timeline.output)")
    let lines = timeline.output.split(separator: "\n").dropFirst(2)
    #expect(lines.allSatisfy { $0.count < 400 })
    let times = lines.compactMap { $0.split(separator: " ").first.flatMap { Double($0) } }
    #expect(times.count == lines.count && times == times.sorted())
  }

  @Test func ordersOfARoomAreWords() async throws {
    let room = Self.capture("janus-room")
    let timeline = try await Tool.run("timeline", room, "--lane", "event").output
    for words in [
      "order: open transport 1 to ws://", "order: make an offer on connection 1",
      "order: apply the offer of the server to connection 2, ",
      "order: send video as local media 1 on connection 1", "order: close connection 2",
      "talking: ben (5187453049611313) talks, -15 dBov", "secured: DTLS 1.2 as server, TLS_ECDHE",
      "connecting: 30 %",
    ] {
      #expect(timeline.contains(words), "\(words)")
    }
    let debug = try await Tool.run("debug", room, "-c", "seek step:24", "-c", "show janus").output
    #expect(debug.contains("event order: open connection 2 (down)"), "\(debug)")
    #expect(debug.contains("plugin: videoroom") || debug.contains("plugin videoroom"), "\(debug)")
    #expect(!debug.contains("number 1, id number"))
  }

  @Test func queriesOfProblemsAreFolded() async throws {
    let take = Self.capture("virtual-heavy-loss")
    let folded = try await Tool.run("stats", take, "--problems").output
    #expect(!folded.contains("SELECT") && folded.contains("--queries"))
    #expect(folded.split(separator: "\n").count < 40)
    let whole = try await Tool.run("stats", take, "--problems", "--queries").output
    #expect(whole.contains("-- freeze\n") && whole.contains("SELECT"))
    #expect(try await Tool.run("stats", take, "--queries").status == 64)
  }

  // MARK: Command line

  @Test(arguments: [
    (["help", "timelin"], "did you mean timeline?"), (["help", "record", "demmo"], "demo"),
    (["timelin"], "did you mean timeline?"),
  ])
  func anUnknownVerbIsReportedWithTheNearest(words: [String], hint: String) async throws {
    let outcome = try await Tool.run(words)
    #expect(outcome.status == 64 && outcome.output.isEmpty, "\(outcome)")
    #expect(outcome.errorLines.count == 1 && outcome.errors.contains(hint), "\(outcome.errors)")
  }

  @Test func helpOfAVerbIsStillPrinted() async throws {
    for words in [["help", "timeline"], ["help", "record", "demo"], ["help"]] {
      let outcome = try await Tool.run(words)
      #expect(outcome.status == 0 && outcome.output.contains("USAGE"), "\(words): \(outcome)")
    }
  }

  /// Runs the hidden command that a shell's completion script calls while the user types.
  @Test func peersLanesAndSettingsAreCompleted() async throws {
    let take = try await Takes.lossyCall().path
    for (verb, option, value) in [
      ("timeline", "--peer", "caller"), ("speakers", "--peer", "callee"), ("whatif", "--peer", "2"),
      ("whatif", "--set", "videoBitrateMaximum="),
    ] {
      let script = try await Tool.run("--generate-completion-script", "bash")
      #expect(script.status == 0)
      let outcome = try await Tool.run(
        ["---completion", verb]
          + (verb == "whatif" && option == "--set" ? ["--", "--set"] : ["--", "--peer"])
          + ["4", "0", "retake", verb, take, option, ""])
      #expect(outcome.output.split(separator: "\n").map(String.init).contains(value), "\(outcome)")
    }
    let script = try await Tool.run("--generate-completion-script", "bash").output
    #expect(script.contains("signaling") && script.contains("inbound-rtp"))
  }

  // MARK: Existing files

  @Test func everyVerbReplacesExistingFilesOnlyWithForce() async throws {
    let (take, folder) = (try await Takes.lossyCall().path, try Folder())
    let seen = Self.capture("observed-clear-vp8")
    let pcap = folder.file("seen.pcap")
    #expect(try await Tool.run("export", seen, "--pcap", pcap).status == 0)
    for line in [
      ["page", take, "--no-media", "--out"], ["export", take, "--pcap"],
      ["export", take, "--pcapng"], ["import", pcap, "--out"], ["upgrade", seen, "--out"],
      ["merge", take, take, "--first-peer", "1", "--second-peer", "2", "--out"],
      ["record", "demo", "--seed", "1", "--seconds", "0.1", "--size", "32x32", "--out"],
      ["record", "demo", "--seconds", "0.1", "--size", "32x32", "--out"],
    ] {
      let path = try folder.write("there", "precious".utf8)
      _ = try folder.write("there-wal", "old".utf8)
      let refused = try await Tool.run(line + [path])
      #expect(refused.status == 74 && refused.errorLines.count == 1, "\(line): \(refused)")
      #expect(refused.errors.contains("--force"), "\(refused.errors)")
      #expect(try Data(contentsOf: folder.url("there")) == Data("precious".utf8))
      let replaced = try await Tool.run(line + [path, "--force"])
      #expect(replaced.status == 0, "\(line): \(replaced)")
      #expect(try Data(contentsOf: folder.url("there")).count > 100)
      // SQLite must not apply the old file's write-ahead log to the new file.
      if line.contains("--out"), line[0] != "page" { try await Takes.expectIdentical(path) }
    }
  }

  @Test func aCommandsInputIsNeverReplaced() async throws {
    let made = try await Takes.copy()
    for line in [["upgrade", made.path, "--out"], ["export", made.path, "--pcap"]] {
      let outcome = try await Tool.run(line + [made.path, "--force"])
      #expect(outcome.status == 64 && outcome.errors.contains("reads"), "\(outcome)")
    }
    let junit = try await Tool.run("verify", made.path, "--junit", made.path)
    #expect(junit.status == 74 && junit.errors.contains("exists already"), "\(junit)")
    try await Takes.expectIdentical(made.path)
  }
}
