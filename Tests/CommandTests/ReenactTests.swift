import Foundation
import Testing

extension LiveTests {
  /// Tests `retake reenact` with other processes over loopback.
  struct ReenactTests {
    private static let source = DebugTests.root.appending(
      path: "Captures/virtual-heavy-loss.take"
    ).path

    /// Starts a re-enactment that waits for its client.
    private static func start(_ arguments: String...) async throws -> (run: Run, url: String) {
      let run = try Run(
        Tool.path,
        ["reenact", source, "--listen", "127.0.0.1:0", "--bind", "127.0.0.1"] + arguments)
      try await run.waitForErrors(with: "/whep")
      let word = run.errors.split { " \n".contains($0) }.first { $0.hasSuffix("/offer") }
      return (run, String(try #require(word).dropLast("/offer".count)))
    }

    @Test func aPlayerGetsTheRecordedCallAndBothTakesReplay() async throws {
      let folder = try Folder()
      let (played, received) = (folder.file("again.take"), folder.file("client.take"))
      let (run, url) = try await Self.start("--peer", "caller", "--out", played, "--json")
      let call = try await Tool.run(
        "record", "whep", url + "/whep", "--bind", "127.0.0.1", "--seconds", "30",
        "--out", received)
      let outcome = try await run.outcome()
      #expect(outcome.status == 0, "\(outcome.errors)")
      let schema = try JSONSchema(
        path: DebugTests.root.appending(
          path: "Sources/Products/Retake/Retake.docc/Resources/output.schema.json"
        ).path)
      let report = try JSONSerialization.jsonObject(with: Data(outcome.output.utf8))
      #expect(schema.misses(of: report, "reenact").isEmpty)
      // The verb ends when everything has been sent, which also ends the client's call.
      #expect(call.errors.isEmpty || call.status == 0, "\(call.errors)")
      let lost = "SELECT sum(lost) FROM loss WHERE peer = 1 AND direction = 'in'"
      #expect(try Takes.number(received, lost) == Takes.number(Self.source, lost))
      for take in [played, received] { try await Takes.expectIdentical(take) }
    }

    /// `record call` acts as the application and `record serve` as its server.
    ///
    /// Neither knows of the relay.
    @Test func anApplicationGetsTheRecordedCallInPlaceOfItsServersMedia() async throws {
      let folder = try Folder()
      let (played, received) = (folder.file("again.take"), folder.file("client.take"))
      let answered = folder.file("server.take")
      let server = try await LiveTests.serve("--once", "--out", answered)
      let run = try Run(
        Tool.path,
        [
          "reenact", Self.source, "--peer", "caller", "--listen", "127.0.0.1:0", "--bind",
          "127.0.0.1", "--upstream", server.url, "--out", played, "--json",
        ])
      try await run.waitForErrors(with: "give it to the application")
      let words = run.errors.split { " \n".contains($0) }.filter { $0.hasPrefix("http://") }
      // In this sentence, the relay's address comes after the server's, and a colon follows it.
      let relay = try #require(words.last).dropLast()
      let call = try await Tool.run(
        "record", "call", relay + "/offer", "--bind", "127.0.0.1",
        "--seconds", "60", "--out", received)
      let outcome = try await run.outcome()
      #expect(outcome.status == 0, "\(outcome.errors)")
      #expect(outcome.errors.contains("call 1 is played"))
      #expect(call.status == 0, "\(call.errors)")
      _ = try await server.run.outcome()
      let lost = "SELECT sum(lost) FROM loss WHERE peer = 1 AND direction = 'in'"
      #expect(try Takes.number(received, lost) == Takes.number(Self.source, lost))
      // In the meantime, the server received the client's media.
      let sent = "SELECT count(*) FROM frame WHERE peer = 1 AND direction = 'in'"
      #expect(try Takes.number(answered, sent) > 20)
      for take in [played, received, answered] { try await Takes.expectIdentical(take) }
    }

    @Test func aServerThatSendsNothingIsNamed() async throws {
      let folder = try Folder()
      let played = folder.file("again.take")
      let run = try Run(
        Tool.path,
        [
          "reenact", Self.source, "--peer", "1", "--listen", "127.0.0.1:0", "--upstream",
          "http://127.0.0.1:9", "--out", played,
        ])
      try await run.waitForErrors(with: "give it to the application")
      run.send(SIGINT)
      let outcome = try await run.outcome()
      #expect(outcome.status == 2 && outcome.errors.contains("another participant"))
      #expect(!FileManager.default.fileExists(atPath: played))
    }

    @Test(.enabled(if: Tool.has("curl")))
    func theRefusalOfAClientNamesTheCodecThatItLacks() async throws {
      let folder = try Folder()
      let (run, url) = try await Self.start("--peer", "1", "--out", folder.file("again.take"))
      let offer = [
        "v=0", "o=- 1 1 IN IP4 0.0.0.0", "s=-", "t=0 0",
        "m=video 9 UDP/TLS/RTP/SAVPF 102", "c=IN IP4 0.0.0.0", "a=mid:0", "a=recvonly",
        "a=rtcp-mux", "a=rtpmap:102 H264/90000", "",
      ].joined(separator: "\\r\\n")
      let answer = try await Tool.shell(
        "curl -s -X POST -H 'Content-Type: application/json' "
          + "-d '{\"type\":\"offer\",\"sdp\":\"\(offer)\"}' \(url)/offer")
      #expect(answer.output.contains("VP8") && answer.output.contains("H264"))
      run.send(SIGINT)
      let outcome = try await run.outcome()
      #expect(outcome.status == 2 && outcome.errors.contains("VP8"), "\(outcome.errors)")
      #expect(!FileManager.default.fileExists(atPath: folder.file("again.take")))
    }

    @Test(
      arguments: [
        (["--peer", "nobody"], 64, "--peer"), ([], 64, "--peer"),
        (["--peer", "1", "--expect", "freezeCount <= 1"], 64, "--against"),
        (["--peer", "1", "--jitter-buffer-target", "1s"], 64, "--against"),
        (
          [
            "--against", "chromium", "--url", "http://[::1]:9/", "--jitter-buffer-target", "1s",
          ], 64, "--url"
        ),
        (["--peer", "1", "--call", "http://[::1]:9/", "--whip", "http://[::1]:9/"], 64, "--whip"),
        (["--peer", "1", "--against", "chromium", "--browser", "/none"], 66, "/none"),
        (["--upstream", "http://[::1]:9", "--call", "http://[::1]:9/"], 64, "--call"),
        (["--upstream", "http://[::1]:9/path"], 64, "--upstream"),
        (["--upstream", "http://[::1]:9", "--against", "chromium"], 64, "--url"),
        (["--upstream", "http://[::1]:9", "--authorities", "a.pem"], 64, "--authorities"),
        (["--peer", "1", "--sdp-rules", "rules.json"], 64, "--upstream"),
      ] as [([String], Int32, String)])
    func unplayableTakesAreReportedInOneSentence(
      options: [String], status: Int32, word: String
    ) async throws {
      let outcome = try await Tool.run(["reenact", Self.source] + options)
      #expect(outcome.status == status && outcome.errors.contains(word), "\(outcome.errors)")
    }
  }
}
