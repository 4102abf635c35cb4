import Foundation
import Testing

struct FindingsCommandTests {
  private static func capture(_ name: String) -> String {
    DebugTests.root.appending(path: "Captures/\(name).take").path
  }

  @Test func causesStandAboveTheirSymptoms() async throws {
    let take = Self.capture("virtual-heavy-loss")
    let outcome = try await Tool.run("findings", take)
    #expect(outcome.status == 0, "\(outcome.errors)")
    let lines = outcome.output.split(separator: "\n")
    #expect(lines[2].contains("Packet loss from "))
    #expect(lines.contains { $0.contains("-> Freeze, ") })
    // The command prints the same under its former name.
    let former = try await Tool.run("stats", "--problems", take)
    #expect(former.output == outcome.output)
  }

  @Test func aScriptEndsWhereItMust() async throws {
    let take = Self.capture("virtual-heavy-loss")
    #expect(try await Tool.run("findings", take, "--fail-on", "high").status == 1)
    // `--fail-on` considers symptoms as well as causes.
    #expect(try await Tool.run("summary", take, "--fail-on", "freeze").status == 1)
    #expect(try await Tool.run("findings", take, "--fail-on", "critical").status == 0)
    #expect(try await Tool.run("findings", take, "--fail-on", "relay-in-use").status == 0)
    let wrong = try await Tool.run("findings", take, "--fail-on", "frieze")
    #expect(wrong.status == 64)
    #expect(wrong.errors.contains("freeze"))
  }

  @Test func aUserAddsRulesAndMovesThresholds() async throws {
    let folder = try Folder()
    let take = Self.capture("virtual-loss")
    func run(_ rules: String) async throws -> Tool.Outcome {
      let file = folder.file("rules.json")
      try rules.write(toFile: file, atomically: true, encoding: .utf8)
      return try await Tool.run("findings", take, "--rules", file)
    }
    let more = try await run(
      """
      {"rules": [{"id": "small-video", "severity": "low", "title": "Small video", "scope": "end",
        "thresholds": {"least_width": 320}, "sql": "SELECT peer, min(at_ns) AS from_ns, max(at_ns) \
      AS to_ns, 'at most ' || max(width) || ' pixels wide' AS evidence FROM frame \
      WHERE kind = 'video' GROUP BY peer HAVING max(width) < :least_width"}],
        "thresholds": {"loss": {"least_share": 90}}}
      """)
    #expect(more.status == 0, "\(more.errors)")
    #expect(more.output.contains("small-video") && more.output.contains("pixels wide"))
    #expect(!more.output.contains("Packet loss"))
    let off = try await run(#"{"off": ["loss", "loss-burst"]}"#)
    #expect(!off.output.contains("Packet loss"))
    for (rules, words) in [
      (#"{"thresholds": {"loss": {"most": 1}}}"#, "it has no threshold most; it has least_share"),
      (
        #"{"thresholds": {"loss": {"least_share": -1}}}"#,
        "thresholds.loss.least_share: it must be between 0 and 1000000000"
      ),
      (#"{"off": ["los"]}"#, "there is no rule los"),
      (#"{"rules": [{"id": "x"}]}"#, "it has no sql"),
      (#"{"rules": [{"id": "x", "sql": "SELECT 1", "severity": "bad"}]}"#, "bad is not a severity"),
      ("{", "it is not JSON with rules"),
    ] {
      let refused = try await run(rules)
      #expect(refused.status != 0 && refused.errors.contains(words), "\(refused.errors)")
    }
  }

  @Test func aSummaryFitsOnAScreenAndIntoAProgram() async throws {
    for name in ["virtual-heavy-loss", "observed-firefox", "janus-room", "live-loopback"] {
      let text = try await Tool.run("summary", Self.capture(name))
      #expect(text.status == 0, "\(text.errors)")
      #expect(text.output.split(separator: "\n").count <= 40, "\(name)")
      let json = try await Tool.run("summary", "--json", Self.capture(name))
      #expect(json.output.utf8.count < 20_000, "\(name)")
    }
    let summary = try await Tool.run("summary", Self.capture("live-loopback"))
    #expect(summary.output.contains("Nothing seems wrong. Looked at: 2 peers, "))
  }

  @Test func explainReportsWhatWouldHaveHelped() async throws {
    let take = Self.capture("virtual-heavy-loss")
    let outcome = try await Tool.run("findings", take, "--explain")
    #expect(outcome.status == 0, "\(outcome.errors)")
    // For each direction, the text names the packets that the receiver counts as lost, and compares
    // the same seconds without and with the change.
    let text = outcome.output.split(whereSeparator: \.isWhitespace).joined(separator: " ")
    #expect(text.contains("packets that were lost from caller to callee (32 of audio, 21 of video"))
    #expect(text.contains("packets that were lost from callee to caller (36 of audio, 15 of video"))
    #expect(text.contains(" delivered: frozen 0.6 s -> none, concealed "), "\(text)")
    #expect(text.contains("freezes are gone with a jitter buffer of "), "\(text)")
    #expect(text.contains(" ms, the smallest sufficient one of those tried ("), "\(text)")
    #expect(text.contains("open loop"))
    // Without `--explain`, the output mentions the option.
    #expect(!text.contains("--explain replays"))
    #expect(try await Tool.run("findings", take).output.contains("--explain replays the call"))
    // Observed calls cannot be run again with a change, and this call has no fault to explain.
    let seen = try await Tool.run("findings", Self.capture("observed-firefox"), "--explain")
    #expect(seen.status == 0 && !seen.output.contains("Replayed"))
    #expect(!seen.output.contains("--explain"))
  }

  @Test func whatIsNotReplayedSaysWhy() async throws {
    let outcome = try await Tool.run(
      "findings", Self.capture("chromium-negotiates"), "--explain")
    #expect(outcome.status == 0, "\(outcome.errors)")
    let text = outcome.output.split(whereSeparator: \.isWhitespace).joined(separator: " ")
    #expect(text.contains("renegotiation-storm"))
    #expect(text.contains("Not replayed: it froze no picture and concealed no audio"))
    #expect(text.components(separatedBy: "Not replayed: ").count == 2)
  }

  @Test func endsHaveTheirLabels() async throws {
    let folder = try Folder()
    let (capture, take) = (folder.file("call.pcap"), folder.file("call.take"))
    _ = try await Tool.run("export", Self.capture("virtual-heavy-loss"), "--pcap", capture)
    let made = try await Tool.run(
      "import", capture, "--name", "10.0.0.1=alice", "--name", "10.0.0.2:40003=bob", "--out", take)
    #expect(made.status == 0, "\(made.errors)")
    let summary = try await Tool.run("summary", take)
    #expect(summary.output.contains("alice's audio to bob"), "\(summary.output)")
    #expect(try await Tool.run("replay", take).status == 0)
    let wrong = try await Tool.run("import", capture, "--name", "10.0.0=alice", "--out", "x.take")
    #expect(wrong.status == 64 && wrong.errors.contains("10.0.0 is not an address"))
  }
}
