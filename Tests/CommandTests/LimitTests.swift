import Foundation
import Testing

extension LiveTests {
  /// Sends `record serve` requests that it must refuse, from a client other than Retake.
  struct LimitTests {
    /// Returns the status line, fields and body that curl receives.
    private func ask(_ arguments: String...) async throws -> String {
      try await Run("/usr/bin/curl", ["-s", "-i", "--max-time", "20"] + arguments).outcome().output
    }

    private func end(_ run: Run) async throws {
      kill(run.processIdentifier, SIGINT)
      #expect(try await run.outcome().status == 0)
    }

    @Test(arguments: [false, true])
    func aCallTooManyIsRefusedUntilOneHasEnded(usesFolder: Bool) async throws {
      let folder = try Folder()
      let out = usesFolder ? folder.file("takes/") : folder.file("calls.take")
      let (run, url) = try await LiveTests.serve("--calls", "2", "--out", out)
      var ids: [String] = []
      for number in 1...2 {
        let answer = try await ask("-X", "POST", url + "/mkoffer")
        #expect(answer.hasPrefix("HTTP/1.1 200") && answer.contains("\"call-\(number)-"))
        ids.append(try Self.identifier(in: answer))
      }
      for path in ["/mkoffer", "/offer", "/whip"] {
        let sdp = "v=0\\r\\no=- 1 1 IN IP4 127.0.0.1\\r\\ns=-\\r\\nt=0 0\\r\\n"
        let answer =
          path == "/whip"
          ? try await ask(
            "-H", "Content-Type: application/sdp", "--data-binary",
            "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\n"
              + "m=audio 9 UDP/TLS/RTP/SAVPF 111\r\n",
            url + path)
          : try await ask(
            "-d", path == "/offer" ? #"{"type":"offer","sdp":"\#(sdp)"}"# : "", url + path)
        #expect(answer.hasPrefix("HTTP/1.1 503"), "\(path): \(answer)")
        #expect(answer.contains("Retry-After: "), "\(path)")
        #expect(answer.contains("all 2 calls that --calls allows at once are in use"), "\(path)")
      }
      #expect(try await ask(url + "/calls").contains(#""calls":[]"#))
      let list = try await ask("-H", try LiveTests.bearer(run), url + "/calls")
      #expect(list.contains(#""limit":2"#) && list.components(separatedBy: #""id""#).count == 3)
      let first = url + "/call/\(ids[0])"
      #expect(try await ask("-X", "DELETE", first).hasPrefix("HTTP/1.1 200"))
      #expect(try await ask("-X", "POST", url + "/mkoffer").contains("\"call-3-"))
      #expect(try await ask("-X", "DELETE", first).hasPrefix("HTTP/1.1 404"))
      try await end(run)
    }

    /// Returns the call's identifier from the response to an offer, or to a request for an offer.
    private static func identifier(in answer: String) throws -> String {
      let begin = try #require(answer.range(of: #""id":""#)).upperBound
      return String(answer[begin...].prefix { $0 != "\"" })
    }

    /// Another user of the machine can reach loopback, too.
    @Test func nobodyReadsOrEndsACallWithoutItsIdentifierOrTheToken() async throws {
      let folder = try Folder()
      let (run, url) = try await LiveTests.serve("--out", folder.file("a.take"))
      let id = try Self.identifier(in: try await ask("-X", "POST", url + "/mkoffer"))
      #expect(id.count >= "call-1-".count + 32)
      for (path, status) in [
        ("/stats", 401), ("/stats?id=call-1", 404), ("/page?id=call-1", 404),
        ("/stats?id=\(id.dropLast())", 404), ("/page?id=\(id)0", 404),
      ] {
        #expect(try await ask(url + path).hasPrefix("HTTP/1.1 \(status)"), "\(path)")
      }
      for path in ["/call/call-1", "/call/1", "/call/"] {
        let answer = try await ask("-X", "DELETE", url + path)
        #expect(answer.hasPrefix("HTTP/1.1 404"), "\(path)")
      }
      #expect(try await ask("-d", #"{"id":"call-1"}"#, url + "/bye").hasPrefix("HTTP/1.1 404"))
      #expect(!(try await ask(url + "/calls")).contains("call-1"))
      let bearer = try LiveTests.bearer(run)
      #expect(try await ask("-H", bearer, url + "/stats").contains(id))
      #expect(try await ask("-H", bearer + "0", url + "/stats").hasPrefix("HTTP/1.1 401"))
      // The caller that started the call can read all of it.
      #expect(try await ask(url + "/stats?id=\(id)").contains(id))
      #expect(try await ask(url + "/page?id=\(id)").hasPrefix("HTTP/1.1 200"))
      #expect(try await ask(url + "/calls?id=\(id)").contains("a.take"))
      #expect(try await ask("-d", #"{"id":"\#(id)"}"#, url + "/bye").hasPrefix("HTTP/1.1 200"))
      try await end(run)
    }

    @Test(.enabled(if: Tool.has("python3"))) func roomsHaveAsManyGuestsAsTheyMay() async throws {
      let folder = try Folder()
      let (run, url) = try await LiveTests.serve(
        "--rooms", "--guests", "1", "--out", folder.file("a.take"))
      // Two participants join one after the other and print their replies.
      let script = """
        import base64, json, os, random, socket, sys
        sys.path.insert(0, sys.argv[2])
        from hostile_frames import _frame
        def enter(room):
          guest = socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=60)
          key = base64.b64encode(os.urandom(16)).decode()
          guest.sendall(("GET /rooms HTTP/1.1\\r\\nHost: localhost\\r\\nUpgrade: websocket\\r\\n"
            "Connection: Upgrade\\r\\nSec-WebSocket-Version: 13\\r\\nSec-WebSocket-Key: " + key
            + "\\r\\nSec-WebSocket-Protocol: retake-room\\r\\n\\r\\n").encode())
          join = {"type": "join", "room": room, "role": "both", "name": "n"}
          guest.sendall(_frame(1, json.dumps(join).encode(), random.Random(1)))
          said = b""
          while b"}" not in said:
            said += guest.recv(4096)
          print("joined" if b'"joined"' in said else said)
          return guest
        guests = [enter("a"), enter("b")]
        """
      let interop = URL(filePath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().appending(path: "Interop").path
      let port = try #require(url.split(separator: ":").last)
      let said = try await Run(
        "/usr/bin/env", ["python3", "-B", "-c", script, String(port), interop]
      ).outcome()
      #expect(said.output.hasPrefix("joined\n"), "\(said.output) \(said.errors)")
      #expect(said.output.contains("all 1 places that --guests allows are taken"))
      try await end(run)
    }

    /// Datagrams from unknown senders to a known port must not make a take grow.
    @Test(.enabled(if: Tool.has("python3"))) func unknownDatagramsAreCountedAndNotRecorded()
      async throws
    {
      let folder = try Folder()
      let path = folder.file("a.take")
      let (run, url) = try await LiveTests.serve("--out", path)
      let offer = try await ask("-X", "POST", url + "/mkoffer")
      let candidate = try #require(offer.firstMatch(of: #/udp \d+ 127\.0\.0\.1 (\d+)/#))
      let script = """
        import socket, sys
        sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        for number in range(3000):
          first = (0x80, 0x16, 0x00, 0x01)[number % 4]
          sender.sendto(bytes([first]) + bytes(99), ("127.0.0.1", int(sys.argv[1])))
        """
      let sent = try await Run(
        "/usr/bin/env", ["python3", "-c", script, String(candidate.1)]
      ).outcome()
      #expect(sent.status == 0)
      run.send(SIGINT)
      let outcome = try await run.outcome()
      #expect(outcome.status == 0 && outcome.errors.contains("arrived that belong to no call"))
      let count = try await Tool.run("sql", path, "SELECT count(*) FROM packet", "--csv")
      let lines = count.output.split(whereSeparator: \.isNewline)
      let number = try #require(lines.last.flatMap { Int($0) })
      #expect((1...520).contains(number))
      try await Takes.expectIdentical(path)
    }

    /// A short version of `make hostile`.
    @Test(.enabled(if: Tool.has("python3"))) func hostileRequestsAreAnsweredOrRefused()
      async throws
    {
      let script = URL(filePath: #filePath).deletingLastPathComponent()
        .deletingLastPathComponent().appending(path: "Interop/hostile.py").path
      let run = try Run(
        "/usr/bin/env", ["python3", "-B", script, "--retake", Tool.path, "--requests", "100"])
      let outcome = try await run.outcome()
      #expect(outcome.status == 0, "\(outcome.output) \(outcome.errors)")
    }

    /// A peer that never connects must not hold a slot forever.
    @Test func aPeerThatNeverConnectsFreesItsPlace() async throws {
      let folder = try Folder()
      let (run, url) = try await LiveTests.serve(
        "--calls", "1", "--connect-within", "1", "--once", "--out", folder.file("a.take"))
      #expect(try await ask("-X", "POST", url + "/mkoffer").hasPrefix("HTTP/1.1 200"))
      // The recording ends with its only call.
      #expect(try await run.outcome().status == 0)
    }

    @Test func pagesOfOtherOriginsAreRejectedUnlessTheyAreNamed() async throws {
      let folder = try Folder()
      let (run, url) = try await LiveTests.serve(
        "--out", folder.file("a.take"), "--allow-origin", "https://app.example", "--allow-host",
        "recorder.example")
      func status(_ arguments: String...) async throws -> String {
        let answer = try await Run(
          "/usr/bin/curl", ["-s", "-i", "-X", "POST"] + arguments + [url + "/mkoffer"]
        ).outcome().output
        return String(answer.dropFirst("HTTP/1.1 ".count).prefix(3))
      }
      #expect(try await status("-H", "Origin: https://evil.example") == "403")
      #expect(try await status("-H", "Host: evil.example") == "421")
      #expect(try await status("-H", "Origin: https://app.example") == "200")
      #expect(try await status("-H", "Host: recorder.example") == "200")
      #expect(try await status("-H", "Origin: \(url)") == "200")
      try await end(run)
    }

    @Test func beyondLoopbackATokenIsMadeAndRequired() async throws {
      let folder = try Folder()
      let run = try Run(
        Tool.path,
        [
          "record", "serve", "--listen", "0.0.0.0:0", "--bind", "127.0.0.1", "--out",
          folder.file("a.take"),
        ])
      try await run.waitForErrors(with: "need the token")
      let word = try #require(
        run.errors.split { $0 == " " || $0 == "\n" }.first { $0.contains("#token=") })
      let (address, token) = (
        word.prefix { $0 != "#" }, word.drop { $0 != "=" }.dropFirst()
      )
      let url = address.replacing("0.0.0.0", with: "127.0.0.1")
      #expect(try await ask(url + "stats").hasPrefix("HTTP/1.1 401"))
      let told = try await ask("-H", "Authorization: Bearer \(token)", url + "stats")
      #expect(told.hasPrefix("HTTP/1.1 200"))
      try await end(run)
    }
  }
}
