import Foundation
import Room
import Signaling
import Testing

@testable import Tape

extension LiveTests {
  /// Tests `record page` with the messages of a page's script.
  struct RecordPageTests {
    private static let session = String(repeating: "a", count: 32)
    private static let load = String(repeating: "1", count: 32)
    private static let origin = [(name: "Origin", value: "https://app.example")]

    /// A recorder for pages of `https://app.example`.
    private struct PageRecorder {
      let run: Run
      let address: String
      let token: String
      let folder = try? Folder()

      init(_ options: String..., out: String? = nil) async throws {
        let takes = try #require(folder).file("takes/")
        run = try Run(
          Tool.path,
          ["record", "page", "--listen", "127.0.0.1:0", "--origin", "https://app.example", "--out"]
            + [out ?? takes] + options)
        try await run.waitForErrors(with: "Ctrl-C")
        let script = try #require(
          run.errors.split { "\"\n".contains($0) }.first { $0.contains("/page.js?token=") })
        let parts = script.split(separator: "/page.js?token=")
        (address, token) = (String(parts[0]), String(parts[1]))
      }

      func socket(
        session: String = RecordPageTests.session,
        headers: [(name: String, value: String)] = RecordPageTests.origin
      ) async throws -> WebSocket {
        try await WebSocket.connect(
          to: "ws" + address.dropFirst(4) + "/socket?token=\(token)&session=\(session)",
          headers: headers)
      }

      /// Interrupts the recorder; returns the paths of its takes, sorted by name.
      func finish() async throws -> [String] {
        run.send(SIGINT)
        let outcome = try await run.outcome()
        #expect(outcome.status == 0, "\(outcome.errors)")
        let path = try #require(folder).file("takes")
        let names = (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []
        return names.filter { $0.hasSuffix(".take") }.sorted().map { path + "/" + $0 }
      }

      func request(_ path: String, _ headers: [(name: String, value: String)] = []) async throws
        -> (status: Int, text: String)
      {
        let response = try await HTTPClient(timeout: .seconds(120)).send(
          "GET", address + path, headers: headers)
        return (response.status, response.text)
      }
    }

    /// Returns a message as the page's script sends it: its number, then the given lines, which
    /// carry their own times.
    private static func unit(_ number: Int, _ lines: [String], load: String = RecordPageTests.load)
      -> SignalingFrame
    {
      .text(([load + " \(number)"] + lines).joined(separator: "\n"))
    }

    private static func line(_ method: String, _ connection: String?, _ value: String, at: Int)
      -> String
    {
      let name = connection.map { "\"\($0)\"" } ?? "null"
      return "[\"\(method)\",\(name),\(value),null,\(1_790_000_000_000 + at)]"
    }

    private static func next(_ socket: WebSocket) async -> String {
      if case .text(let text)? = await socket.receive() { return text }
      return ""
    }

    @Test func aPageIsRecordedOverLostConnectionsAndReloads() async throws {
      let recorder = try await PageRecorder()
      var socket = try await recorder.socket()
      #expect(await Self.next(socket).contains("\"isNew\":true"))
      let sdp = #"{"type":"offer","sdp":"v=0\r\ns=-\r\n"}"#
      try await socket.send(
        Self.unit(
          1,
          [
            Self.line("page", nil, #"{"url":"https://app.example/call"}"#, at: 0),
            Self.line("create", "PC_0", #"{"iceServers":[]}"#, at: 1),
            #"["setLocalDescription","PC_0",null,"7",1790000000002]"#,
            #"["setLocalDescriptionOnSuccess","PC_0",\#(sdp),"7",1790000000003]"#,
            Self.line("connectionstatechange", "PC_0", #""connecting""#, at: 4), "no JSON",
          ]))
      #expect(await Self.next(socket).contains("{\"\(Self.load)\":1}"))
      let whole =
        #"{"form":"whole","timestamp":1790000000005,"objects":{"T":{"type":"transport","#
        + #""bytesSent":1,"dtlsState":"connecting"}}}"#
      try await socket.send(Self.unit(2, [Self.line("stats", "PC_0", whole, at: 5)]))
      _ = await Self.next(socket)
      await socket.close()
      // Over the new connection, the page resends all messages that were not acknowledged, and
      // sends later ones.
      socket = try await recorder.socket()
      #expect(await Self.next(socket).contains("\"isNew\":false,\"received\":{\"\(Self.load)\":2}"))
      let changes =
        #"{"form":"changes","timestamp":1790000001005,"objects":{"T":{"bytesSent":9}}}"#
      try await socket.send(Self.unit(2, [Self.line("stats", "PC_0", whole, at: 5)]))
      _ = await Self.next(socket)
      try await socket.send(
        Self.unit(
          3,
          [
            Self.line("stats", "PC_0", changes, at: 1005),
            Self.line("connectionstatechange", "PC_0", #""connected""#, at: 1006),
          ]))
      _ = await Self.next(socket)
      let second = String(repeating: "2", count: 32)
      try await socket.send(
        Self.unit(1, [Self.line("create", "PC_0", "{}", at: 3000)], load: second))
      _ = await Self.next(socket)
      await socket.close()
      let takes = try await recorder.finish()
      let take = try #require(takes.count == 1 ? takes.first : nil, "\(takes)")
      func number(_ sql: String) throws -> Int64 { try Takes.number(take, sql) }
      #expect(try number("SELECT count(*) FROM peer") == 2)
      #expect(try number("SELECT count(*) FROM peer WHERE label = 'PC_0, load 2'") == 1)
      #expect(try number("SELECT count(*) FROM stat") == 2)
      #expect(try number("SELECT max(members ->> '$.bytesSent') FROM stat") == 9)
      #expect(try number("SELECT count(*) FROM state WHERE machine = 'connection'") == 2)
      // The browser created this description in `setLocalDescription()`, which had no argument.
      #expect(
        try number("SELECT count(*) FROM signaling WHERE type = 'offer' AND direction = 'out'") == 1
      )
      #expect(
        try number("SELECT count(*) FROM coverage WHERE what = 'strange-lines'") == 1)
      try await Takes.expectIdentical(take)
    }

    @Test func aRingOfAPageHasItsLastSecondsAndWhatTheyAreNotUnderstoodWithout() async throws {
      let recorder = try await PageRecorder("--ring", "10s")
      let socket = try await recorder.socket()
      _ = await Self.next(socket)
      let whole =
        #"{"form":"whole","timestamp":1790000000005,"objects":{"T":{"type":"transport","#
        + #""bytesSent":1,"dtlsState":"connected"}}}"#
      func sample(_ number: Int) -> String {
        let time = 1_790_000_000_005 + number * 1000
        let object = #"{"T":{"bytesSent":\#(number)}}"#
        return Self.line(
          "stats", "PC_0", #"{"form":"changes","timestamp":\#(time),"objects":\#(object)}"#,
          at: 5 + number * 1000)
      }
      try await socket.send(
        Self.unit(
          1,
          [
            Self.line("create", "PC_0", #"{"iceServers":[]}"#, at: 1),
            Self.line("connectionstatechange", "PC_0", #""connected""#, at: 4),
            Self.line("stats", "PC_0", whole, at: 5),
          ] + (1...30).map { sample($0) }))
      _ = await Self.next(socket)
      try await socket.send(
        Self.unit(2, [Self.line("connectionstatechange", "PC_0", #""failed""#, at: 30_500)]))
      _ = await Self.next(socket)
      await socket.close()
      let takes = try await recorder.finish()
      let take = try #require(takes.count == 1 ? takes.first : nil, "\(takes)")
      func number(_ sql: String) throws -> Int64 { try Takes.number(take, sql) }
      let lasted = "SELECT (max(at_ns) - min(at_ns)) / 1000000 FROM stat"
      #expect((9_000...10_000).contains(try number(lasted)))
      #expect(try number("SELECT min(members ->> '$.bytesSent') FROM stat") == 20)
      #expect(try number("SELECT max(members ->> '$.bytesSent') FROM stat") == 30)
      // `dtlsState` was reported only once, before the ring; later samples report only changes.
      let connected = "SELECT count(*) FROM stat WHERE members ->> '$.dtlsState' = 'connected'"
      #expect(try number(connected) > 9)
      #expect(try number("SELECT count(*) FROM state WHERE to_state = 'failed'") == 1)
      #expect(
        try number(
          "SELECT count(*) FROM state WHERE machine = 'connection' AND to_state = 'connected'") == 1
      )
      #expect(try number("SELECT count(*) FROM coverage WHERE what = 'late-start'") == 1)
      #expect(try number("SELECT count(*) FROM tag WHERE key = 'ring_trigger'") == 1)
      try await Takes.expectIdentical(take)
    }

    @Test func encodedFramesOfAPageAreInTheTake() async throws {
      let recorder = try await PageRecorder()
      let socket = try await recorder.socket()
      _ = await Self.next(socket)
      try await socket.send(Self.unit(1, [Self.line("create", "PC_0", "{}", at: 0)]))
      _ = await Self.next(socket)
      for number in 2...17 {
        let head =
          #"["\#(Self.load)",\#(number),[["PC_0",{"mid":"1","kind":"video","ssrc":7,"#
          + #""rtpTime":\#(number * 3000),"key":\#(number == 2),"mimeType":"video/VP8","#
          + #""width":640,"height":480,"size":500,"time":\#(1_790_000_000_000 + 40 * number)}]]]"#
        let bytes = Array(head.utf8)
        try await socket.send(
          .binary(
            [UInt8(bytes.count >> 8), UInt8(bytes.count & 255)] + bytes
              + [UInt8](repeating: UInt8(number), count: 500)))
      }
      // The recorder acknowledges every fourth message with frames.
      for number in [4, 8, 12, 16] { #expect(await Self.next(socket).contains(":\(number)}")) }
      await socket.close()
      let take = try #require(try await recorder.finish().first)
      #expect(
        try Takes.number(
          take,
          """
          SELECT count(*) FROM frame WHERE codec = 'vp8' AND width = 640 AND ssrc = 7
            AND bytes = CAST(replace(hex(zeroblob(500)), '00', char(rtp_time / 3000)) AS BLOB)
          """) == 16)
      #expect(try Takes.number(take, "SELECT sum(key) FROM frame") == 1)
      try await Takes.expectIdentical(take)
    }

    @Test func aTakeOfAPageOpensAfterTheRecorderWasKilled() async throws {
      let recorder = try await PageRecorder()
      let socket = try await recorder.socket()
      _ = await Self.next(socket)
      let folder = try #require(recorder.folder)
      try await socket.send(Self.unit(1, [Self.line("create", "PC_0", "{}", at: 0)]))
      func path() -> String? {
        let names = try? FileManager.default.contentsOfDirectory(atPath: folder.file("takes"))
        return names?.first { $0.hasSuffix(".take") }.map { folder.file("takes/") + $0 }
      }
      try await poll("the connection is not written") {
        guard let path = path() else { return false }
        return (try? Takes.number(path, "SELECT count(*) FROM peer")) == 1
      }
      recorder.run.send(SIGKILL)
      _ = try await recorder.run.outcome()
      let outcome = try await Tool.run("info", try #require(path()))
      #expect(outcome.status == 0, "\(outcome.errors)")
      try await Takes.expectIdentical(try #require(path()))
    }

    @Test func onlyNamedPagesWithTheTokenAreRecorded() async throws {
      let recorder = try await PageRecorder()
      let script = "/page.js?token=\(recorder.token)"
      #expect(try await recorder.request("/page.js").0 == 401)
      #expect(try await recorder.request("/page.js?token=wrong").0 == 401)
      let (status, text) = try await recorder.request(
        script, [("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Dest", "script")])
      #expect(status == 200)
      #expect(text.contains("/socket?token=\(recorder.token)"))
      // Requests whose response a page could read are refused.
      #expect(
        try await recorder.request(
          script, [("Sec-Fetch-Site", "cross-site"), ("Sec-Fetch-Dest", "empty")]
        ).0 == 403)
      #expect(try await recorder.request(script, [("Origin", "https://other.example")]).0 == 403)
      #expect(
        try await recorder.request("/page.mjs?token=\(recorder.token)&media=encoded").0 == 200)
      #expect(try await recorder.request(script + "&media=all").0 == 422)
      #expect(try await recorder.request("/nothing?token=\(recorder.token)").0 == 404)
      await #expect(throws: WebSocketError.self) {
        try await recorder.socket(headers: [(name: "Origin", value: "https://other.example")])
      }
      let nameless = try await recorder.socket(session: "x")
      #expect(await nameless.closed().code == .policyViolation)
      #expect(try await recorder.finish().isEmpty)
    }

    @Test func aSessionsDataIsLimited() async throws {
      let recorder = try await PageRecorder("--session-megabytes", "1", "--sessions", "1")
      let socket = try await recorder.socket()
      _ = await Self.next(socket)
      let long = #""\#(String(repeating: "x", count: 600_000))""#
      try await socket.send(Self.unit(1, [Self.line("page", nil, long, at: 0)]))
      _ = await Self.next(socket)
      let other = try await recorder.socket(session: String(repeating: "b", count: 32))
      #expect(await Self.next(other).contains("--sessions"))
      try await socket.send(Self.unit(2, [Self.line("page", nil, long, at: 1)]))
      #expect(await Self.next(socket).contains("--session-megabytes"))
      #expect(await socket.closed().code == .policyViolation)
      let take = try #require(try await recorder.finish().first)
      #expect(
        try Takes.number(take, "SELECT count(*) FROM coverage WHERE what = 'session-limit'") == 1)
      try await Takes.expectIdentical(take)
    }

    @Test func theExtensionKnowsThePagesTheAddressAndTheToken() async throws {
      let folder = try Folder()
      let recorder = try await PageRecorder("--extension", folder.file("extension"))
      func text(_ name: String) throws -> String {
        try String(contentsOfFile: folder.file("extension/" + name), encoding: .utf8)
      }
      let manifest = try JSONSerialization.jsonObject(with: Data(text("manifest.json").utf8))
      let scripts = (manifest as? [String: Any])?["content_scripts"] as? [[String: Any]] ?? []
      #expect(scripts.count == 2)
      #expect(scripts.allSatisfy { $0["matches"] as? [String] == ["https://app.example/*"] })
      #expect(try text("relay.js").contains("/socket?token=\(recorder.token)"))
      #expect(try text("recorder.js").contains("\"relay\":true"))
      _ = try await recorder.finish()
      let refused = try await Tool.run("record", "page", "--extension", folder.file("other"))
      #expect(refused.status == 64)
      #expect(refused.errors.contains("--origin"))
    }
  }
}
