import IdentityFiles
import NIOCore
import Room
import Seeded
import TLS
import Testing

@testable import Signaling

/// Tests WebSockets over real sockets, with the server and the client of this package.
@Suite(.timeLimit(.minutes(10))) struct WebSocketTests {
  /// Long limits, because other targets' tests may keep all threads busy.
  static var patient: WebSocketLimits {
    var limits = WebSocketLimits()
    limits.handshakeSeconds = 120
    limits.pingSeconds = 120
    limits.closeSeconds = 120
    return limits
  }

  /// Starts a server that echoes messages until it reads `close`.
  private func echo(
    subprotocols: [String] = [], limits: WebSocketLimits = patient,
    access: AccessRules = AccessRules(), identity: TLSIdentity? = nil
  ) async throws -> HTTPServer {
    let route = WebSocketRoute(path: "/echo", subprotocols: subprotocols, limits: limits) {
      socket, _ in
      while let message = await socket.receive() {
        if message == .text("close") { await socket.close(.tryAgainLater, reason: "enough") }
        try? await socket.send(message)
      }
    }
    return try await HTTPServer.listen(
      host: "127.0.0.1", port: 0, access: access, identity: identity, sockets: [route]
    ) { request in
      request.path == "/page"
        ? HTTPResponse(type: "text/html", body: Array("<p>".utf8)) : .refusal(404, "nothing here")
    }
  }

  private func connect(
    _ server: HTTPServer, path: String = "/echo", subprotocols: [String] = [],
    token: BearerToken? = nil, headers: [(name: String, value: String)] = [],
    limits: WebSocketLimits = patient, authorities: String? = nil
  ) async throws(WebSocketError) -> WebSocket {
    let scheme = authorities == nil ? "ws" : "wss"
    return try await WebSocket.connect(
      to: "\(scheme)://127.0.0.1:\(server.port)\(path)", subprotocols: subprotocols, token: token,
      headers: headers, limits: limits, authorities: authorities)
  }

  /// Lengths around those at which the frame header changes, and one longer than a TLS record.
  private static let lengths = [0, 1, 125, 126, 65_535, 65_536, 300_000]

  @Test(arguments: [false, true]) func messagesAreEchoedWhole(isSecure: Bool) async throws {
    let files = try IdentityFiles()
    let server = try await echo(identity: isSecure ? files.identity : nil)
    let socket = try await connect(
      server, authorities: isSecure ? files.path("certificate") : nil)
    for length in Self.lengths {
      let messages: [SignalingFrame] = [
        .text(String(repeating: "é", count: length / 2)),
        .binary((0..<length).map { UInt8(truncatingIfNeeded: $0 &* 31) }),
      ]
      for message in messages { socket.post(message) }
      for message in messages { #expect(await socket.receive() == message) }
    }
    let closure = await socket.close()
    #expect(closure == WebSocketClosure(.normal, isClean: true))
    #expect(await socket.receive() == nil)
    await #expect(throws: WebSocketError.self) { try await socket.send(.text("late")) }
    await server.shutdown()
  }

  @Test func theFirstToCloseStatesTheReason() async throws {
    let server = try await echo()
    let socket = try await connect(server)
    socket.post(.text("close"))
    #expect(await socket.closed() == WebSocketClosure(.tryAgainLater, "enough", isClean: true))
    await server.shutdown()

    let ended = AsyncStream.makeStream(of: WebSocketClosure.self)
    let route = WebSocketRoute(path: "/", limits: Self.patient) { socket, _ in
      ended.continuation.yield(await socket.closed())
    }
    let listener = try await HTTPServer.listen(
      host: "127.0.0.1", port: 0, identity: nil, sockets: [route]
    ) { _ in HTTPResponse() }
    let leaving = try await connect(listener, path: "/")
    let own = WebSocketCloseCode(rawValue: 4000)
    let words = String(repeating: "ü", count: 100)
    let closure = await leaving.close(own, reason: words)
    #expect(closure == WebSocketClosure(own, words, isClean: true))
    var closures = ended.stream.makeAsyncIterator()
    // A close frame has room for 123 bytes of text, and must not end within a character.
    let told = WebSocketClosure(own, String(words.prefix(61)), isClean: true)
    #expect(await closures.next() == told)
    await listener.shutdown()
  }

  @Test func aStoppingServerClosesItsWebSockets() async throws {
    let server = try await echo()
    let socket = try await connect(server)
    await server.shutdown()
    #expect(
      await socket.closed() == WebSocketClosure(.goingAway, "the server stops", isClean: true))
  }

  @Test func theServerChoosesASubprotocol() async throws {
    let server = try await echo(subprotocols: ["retake-room", "janus-protocol"])
    let socket = try await connect(server, subprotocols: ["janus-protocol", "other"])
    #expect(socket.subprotocol == "janus-protocol")
    let first = try await connect(server, subprotocols: ["janus-protocol", "retake-room"])
    #expect(first.subprotocol == "retake-room")
    await expectRefusal("needs the subprotocol retake-room or janus-protocol", 400) {
      () async throws(WebSocketError) in
      try await connect(server, subprotocols: ["other"])
    }
    await server.shutdown()
  }

  private func expectRefusal(
    _ words: String, _ status: Int?, _ connect: () async throws(WebSocketError) -> WebSocket
  ) async {
    do throws(WebSocketError) {
      _ = try await connect()
      Issue.record("there is a WebSocket where there should be none")
    } catch {
      #expect(error.reason.contains(words) && error.status == status, "\(error)")
    }
  }

  @Test func aRequestWithoutTheTokenIsRefused() async throws {
    let token = try #require(BearerToken("secret"))
    let server = try await echo(access: AccessRules(token: token))
    await expectRefusal("requires a bearer token", 401) { () async throws(WebSocketError) in
      try await connect(server)
    }
    let socket = try await connect(server, token: token)
    socket.post(.text("in"))
    #expect(await socket.receive() == .text("in"))
    await server.shutdown()
  }

  @Test func pagesOfOtherOriginsAreRefused() async throws {
    let server = try await echo()
    await expectRefusal("may not call this server", 403) { () async throws(WebSocketError) in
      try await connect(server, headers: [("Origin", "https://elsewhere.example")])
    }
    let own = try await connect(server, headers: [("Origin", server.url)])
    await own.close()
    await server.shutdown()
  }

  @Test func aResponseOtherThanAWebSocketIsReported() async throws {
    let server = try await echo()
    await expectRefusal("status 404: nothing here", 404) { () async throws(WebSocketError) in
      try await connect(server, path: "/other")
    }
    await expectRefusal("a page instead of opening a WebSocket", 200) {
      () async throws(WebSocketError) in
      try await connect(server, path: "/page")
    }
    let asked = try await HTTPClient.patient.get("\(server.url)/echo")
    #expect(asked.status == 426 && asked.header("Upgrade") == "websocket")
    let old = try await RawClient(port: server.port).exchange(
      "GET /echo HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade, close"
        + "\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 8\r\n\r\n")
    #expect(old.hasPrefix("HTTP/1.1 426") && old.contains("Sec-WebSocket-Version: 13"), "\(old)")
    await server.shutdown()
    await expectRefusal("refused", nil) { () async throws(WebSocketError) in
      try await connect(server)
    }
    await expectRefusal("only ws:// and wss:// URLs", nil) { () async throws(WebSocketError) in
      try await WebSocket.connect(to: server.url)
    }
  }

  @Test func aMessageBeyondTheLimitEndsTheConnection() async throws {
    var limits = Self.patient
    limits.messageBytes = 1000
    let server = try await echo(limits: limits)
    let socket = try await connect(server)
    socket.post(.binary([UInt8](repeating: 1, count: 1000)))
    #expect(await socket.receive() != nil)
    socket.post(.binary([UInt8](repeating: 1, count: 1001)))
    let closure = await socket.closed()
    #expect(closure.code == .messageTooBig && closure.reason.contains("1000 bytes"))
    await server.shutdown()
  }

  /// A client that does not mask its frames gets a close frame with the code 1002.
  @Test func framesThatBreakTheProtocolAreClosedWithTheReason() async throws {
    let server = try await echo()
    let request =
      "GET /echo HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
      + "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    let answer = try await RawClient(port: server.port).exchange(
      Array(request.utf8) + [0x81, 1, 0x41], endsOutput: false)
    #expect(answer.hasPrefix("HTTP/1.1 101"))
    // The key and its answer from RFC 6455 section 1.3.
    #expect(answer.contains("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="))
    #expect(answer.hasSuffix("a frame of a client is not masked"))
    await server.shutdown()
  }

  @Test func anyBytesMayFollowTheHandshake() async throws {
    let server = try await echo()
    let request =
      "GET /echo HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
      + "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    var random = SeededGenerator(seed: 5)
    for round in 0..<40 {
      let heads: [UInt8] = [0x81, 0x82, 0x01, 0x00, 0x88, 0x89, 0x8a, 0xf3]
      var bytes = Array(request.utf8)
      if round % 4 != 0 { bytes += [heads[round % heads.count], 0x80 | UInt8(round)] }
      bytes += (0..<(round * 3)).map { _ in UInt8(truncatingIfNeeded: random.next()) }
      _ = try await RawClient(port: server.port).exchange(bytes, endsOutput: true)
    }
    let socket = try await connect(server)
    socket.post(.text("still there"))
    #expect(await socket.receive() == .text("still there"))
    await server.shutdown()
  }
}
