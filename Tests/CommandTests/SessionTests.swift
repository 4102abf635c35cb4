import Foundation
import Testing

extension LiveTests {
  /// Tests `record whip` and `record whep` with `record serve` over loopback.
  struct SessionTests {
    private func count(_ path: String, _ condition: String, of table: String = "signaling") throws
      -> Int64
    {
      try Takes.number(path, "SELECT count(*) FROM \(table) WHERE \(condition)")
    }

    @Test(arguments: ["whip", "whep"])
    func aSessionIsRecordedOnBothSidesThroughAnICERestart(kind: String) async throws {
      let folder = try Folder()
      let (served, called) = (folder.file("serve.take"), folder.file("call.take"))
      let server = try await LiveTests.serve(
        "--once", "--token", "s3cret", "--out", served, at: "/\(kind)")
      let call = try await Tool.run(
        "record", kind, server.url, "--token", "s3cret", "--trickle", "--restart-ice", "0.7",
        "--seconds", "2", "--bind", "127.0.0.1", "--out", called)
      #expect(call.status == 0 && call.errors.isEmpty, "\(call.errors)")
      // The client's DELETE ends the call, and with it the recording.
      let outcome = try await server.run.outcome()
      #expect(outcome.status == 0, "\(outcome.errors)")
      let receiver = kind == "whip" ? served : called
      for media in ["audio", "video"] {
        let frames = "kind = '\(media)' AND direction = 'in' AND outcome = 'decoded'"
        #expect(try count(receiver, frames, of: "frame") > 5, "\(media)")
      }
      for (path, ours, theirs) in [(called, "out", "in"), (served, "in", "out")] {
        try await Takes.expectIdentical(path)
        #expect(try count(path, "transport <> '\(kind)'") == 0)
        for type in ["offer", "candidate", "restart", "bye"] {
          #expect(try count(path, "type = '\(type)' AND direction = '\(ours)'") >= 1, "\(type)")
        }
        for type in ["answer", "restart"] {
          #expect(try count(path, "type = '\(type)' AND direction = '\(theirs)'") == 1, "\(type)")
        }
        // Media is sent one way, over the first pair and then over the restart's pair.
        let wrong = (path == receiver) ? "out" : "in"
        #expect(try count(path, "direction = '\(wrong)'", of: "frame") == 0)
        #expect(try Takes.number(path, "SELECT count(DISTINCT local) FROM selected_pair") == 2)
        let gathered = "machine = 'ice-gathering' AND to_state = 'complete'"
        #expect(try count(path, gathered, of: "state") == 2)
      }
      // The two takes contain the same messages.
      let text = "SELECT type, message FROM signaling ORDER BY row"
      let words = try await [called, served].asyncMap {
        try await Tool.run("sql", $0, text, "--format", "csv").output
      }
      #expect(words[0] == words[1])
    }

    @Test func aLostConnectionRestartsICEBeforeTheRequestedRestart() async throws {
      let folder = try Folder()
      let path = folder.file("call.take")
      let server = try await LiveTests.serve(
        "--once", "--out", folder.file("serve.take"), at: "/whip")
      let client = try Run(
        Tool.path,
        [
          "record", "whip", server.url, "--restart-ice", "600", "--bind", "127.0.0.1",
          "--out", path,
        ])
      func waitFor(_ condition: String, of table: String = "state") async throws {
        try await poll(condition) { (try? count(path, condition, of: table)) ?? 0 > 0 }
      }
      try await waitFor("machine = 'ice-connection' AND to_state = 'connected'")
      // The client receives nothing while its server is stopped.
      server.run.send(SIGSTOP)
      try await waitFor("machine = 'ice-connection' AND to_state = 'disconnected'")
      server.run.send(SIGCONT)
      try await waitFor("type = 'restart' AND direction = 'in'", of: "signaling")
      client.send(SIGINT)
      let (call, served) = (try await client.outcome(), try await server.run.outcome())
      #expect(call.status == 0, "\(call.errors)")
      #expect(served.status == 0, "\(served.errors)")
    }

    @Test(arguments: [
      (["--token", "wrong"], "401", "check --token"), ([], "401", "give a token with --token"),
    ])
    func aTokenThatIsMissingOrWrongIsReported(options: [String], status: String, hint: String)
      async throws
    {
      let folder = try Folder()
      let server = try await LiveTests.serve(
        "--token", "s3cret", "--out", folder.file("serve.take"), at: "/whip")
      let path = folder.file("call.take")
      let call = try await Tool.run(
        ["record", "whip", server.url, "--bind", "127.0.0.1", "--out", path] + options)
      #expect(call.status == 74)
      #expect(call.errorLines.count == 1, "\(call.errors)")
      for word in [server.url, status, hint] { #expect(call.errors.contains(word)) }
      // Without a session there is no take.
      #expect(!FileManager.default.fileExists(atPath: path))
      server.run.send(SIGINT)
      let outcome = try await server.run.outcome()
      #expect(outcome.status == 0 && outcome.output.contains("there was no call"), "\(outcome)")
    }

    private func post(_ url: String, _ body: String, _ type: String) async throws -> (
      status: String, body: String
    ) {
      let folder = try Folder()
      let file = try folder.write("body", body.utf8)
      let line =
        "curl -s -o '\(folder.file("out"))' -w '%{http_code}' -H 'Content-Type: \(type)' "
        + "--data-binary '@\(file)' '\(url)'"
      let outcome = try await Tool.shell(line)
      let text = try? String(contentsOf: folder.url("out"), encoding: .utf8)
      return (outcome.output, text ?? "")
    }

    @Test(.enabled(if: Tool.has("curl"))) func aRefusedOfferEndsNoRecording() async throws {
      let folder = try Folder()
      let path = folder.file("serve.take")
      let server = try await LiveTests.serve("--once", "--out", path, at: "/whip")
      let head = "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\n"
      let section = "m=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=mid:0\r\na=rtpmap:111 opus/48000/2\r\n"
      var unknown = head + section + "a=rtcp-mux\r\na=sendonly\r\n"
      unknown = unknown.replacing("opus/48000/2", with: "AV1/90000")
      let refusals: [(String, String, String)] = [
        ("hello", "400", "line 1"), (head + section + "a=recvonly\r\n", "422", "try /whep"),
        (head + section + "a=rtcp-mux\r\na=sendonly\r\n", "422", "ice-ufrag"),
        (unknown, "422", "must be opus, PCMU or PCMA, video VP8, VP9 or H264"),
      ]
      for (sdp, status, word) in refusals {
        let answer = try await post(server.url, sdp, "application/sdp")
        #expect(answer.status == status, "\(answer)")
        #expect(answer.body.contains(word), "\(answer)")
      }
      let offer = server.url.replacing("/whip", with: "/offer")
      #expect(try await post(offer, #"{"sdp":"hello"}"#, "application/json").status == "400")
      let call = try await Tool.run(
        "record", "whip", server.url, "--seconds", "0.5", "--bind", "127.0.0.1", "--out",
        folder.file("call.take"))
      #expect(call.status == 0, "\(call.errors)")
      #expect(try await server.run.outcome().status == 0)
      try await Takes.expectIdentical(path)
    }

    @Test func severalSessionsAtOnceGoIntoOneTake() async throws {
      let folder = try Folder()
      let path = folder.file("serve.take")
      let server = try await LiveTests.serve("--out", path, at: "/whip")
      let player = server.url.replacing("/whip", with: "/whep")
      let clients = try [("whip", server.url), ("whip", server.url), ("whep", player)].enumerated()
        .map { index, way in
          try Run(
            Tool.path,
            [
              "record", way.0, way.1, "--bind", "127.0.0.1", "--seconds", "1.5", "--out",
              folder.file("\(index).take"),
            ])
        }
      for client in clients {
        let outcome = try await client.outcome()
        #expect(outcome.status == 0, "\(outcome.errors)")
      }
      server.run.send(SIGINT)
      let outcome = try await server.run.outcome()
      #expect(outcome.status == 0 && outcome.output.contains("3 calls"), "\(outcome)")
      try await Takes.expectIdentical(path)
      #expect(try Takes.number(path, "SELECT count(*) FROM peer") == 3)
      // Each peer has its own signaling, and a connection that overlaps with the others.
      let ends = "count(DISTINCT CASE WHEN to_state = 'connected' THEN peer END)"
      let connected = "SELECT \(ends) FROM state WHERE machine = 'connection'"
      #expect(try Takes.number(path, connected) == 3)
      let alone = """
        SELECT count(*) FROM peer WHERE (SELECT count(*) FROM signaling
        WHERE signaling.peer = peer.peer AND type IN ('offer', 'answer', 'bye')) <> 3
        """
      #expect(try Takes.number(path, alone) == 0)
      let overlapping = """
        SELECT (SELECT min(at_ns) FROM state WHERE machine = 'connection' AND to_state = 'closed')
        > (SELECT max(at_ns) FROM state WHERE machine = 'connection' AND to_state = 'connecting')
        """
      #expect(try Takes.number(path, overlapping) == 1)
    }

    @Test(.enabled(if: Tool.has("openssl"))) func aSessionMayGoThroughTLS() async throws {
      let folder = try Folder()
      let (certificate, key) = (folder.file("c.pem"), folder.file("k.pem"))
      let made = try await Tool.shell(
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 "
          + "-subj /CN=test -addext subjectAltName=IP:127.0.0.1 -keyout \(key) -out \(certificate)")
      #expect(made.status == 0, "\(made.errors)")
      let server = try await LiveTests.serve(
        "--certificate", certificate, "--key", key, "--once", "--out", folder.file("serve.take"),
        at: "/whep")
      #expect(server.url.hasPrefix("https://127.0.0.1:"))
      let arguments = ["record", "whep", server.url, "--bind", "127.0.0.1", "--seconds", "1"]
      let refused = try await Tool.run(arguments + ["--out", folder.file("refused.take")])
      #expect(refused.status == 74 && refused.errors.contains("not trusted"), "\(refused.errors)")
      let path = folder.file("call.take")
      let call = try await Tool.run(
        arguments + ["--out", path], environment: ["SSL_CERT_FILE": certificate])
      #expect(call.status == 0, "\(call.errors)")
      #expect(try await server.run.outcome().status == 0)
      #expect(try count(path, "direction = 'in' AND outcome = 'decoded'", of: "frame") > 5)
      try await Takes.expectIdentical(path)
    }
  }
}

extension Array {
  fileprivate func asyncMap<Value>(_ body: (Element) async throws -> Value) async throws -> [Value]
  {
    var values: [Value] = []
    for element in self { values.append(try await body(element)) }
    return values
  }
}
