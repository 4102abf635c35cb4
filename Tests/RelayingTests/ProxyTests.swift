import Foundation
import IdentityFiles
import Room
import Signaling
import Synchronization
import TLS
import Testing

@testable import Relaying

/// The relay as a proxy: which messages it forwards unchanged, and which it rejects.
@Suite(.timeLimit(.minutes(10)), .serialized) struct ProxyTests {
  @Test func otherBodiesAndFieldsAreForwardedUnchanged() async throws {
    let big = [UInt8]((0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31) })
    let rig = try await RelayRig { request in
      var response = HTTPResponse(type: "image/png", body: big)
      response.headers.append(("Set-Cookie", "a=b; Domain=127.0.0.1; Path=/; HttpOnly"))
      response.headers.append(("Set-Cookie", "c=d; SameSite=None; Secure"))
      response.headers.append(("X-Echo", request.header("X-Own") ?? ""))
      response.headers.append(("X-Length", String(request.body.count)))
      return response
    }
    var client = HTTPClient(timeout: .seconds(120))
    client.bodyMaximum = 8 << 20
    let response = try await client.send(
      "PUT", rig.proxy.url + "/picture?size=%20", headers: [("X-Own", "1"), ("Cookie", "q=1")],
      body: Array(big.prefix(900_000)))
    #expect(response.body == big)
    let fields = response.headers.map { "\($0.name): \($0.value)" }
    #expect(fields.contains("Set-Cookie: a=b; Path=/; HttpOnly"))
    #expect(fields.contains("Set-Cookie: c=d; SameSite=Lax"))
    #expect(fields.contains("X-Echo: 1") && fields.contains("X-Length: 900000"))
    let request = try #require(rig.arrived.first)
    #expect(request.path == "/picture" && request.query("size") == " ")
    #expect(request.header("Cookie") == "q=1")
    #expect(request.header("Host") == String(rig.server.url.dropFirst("http://".count)))
    #expect(request.header("Accept-Encoding") == "identity")
    try await rig.finish()
  }

  @Test func redirectsLeadToTheRelayOrAreNotFollowed() async throws {
    let elsewhere = "http://192.0.2.66/steal"
    let box = Box()
    let rig = try await RelayRig { request in
      var response = HTTPResponse(status: 307)
      response.headers.append(
        ("Location", request.path == "/own" ? box.value + "/next?x=1" : elsewhere))
      return response
    }
    box.set(rig.server.url)
    let own = try await HTTPClient(timeout: .seconds(120)).get(rig.proxy.url + "/own")
    #expect(own.status == 307 && own.header("Location") == rig.proxy.url + "/next?x=1")
    let other = try await HTTPClient(timeout: .seconds(120)).get(rig.proxy.url + "/other")
    #expect(other.status == 307 && other.header("Location") == elsewhere)
    #expect(rig.arrived.map(\.path) == ["/own", "/other"])
    try await rig.finish()
  }

  @Test func otherOriginsAndHostNamesAreRefused() async throws {
    let rig = try await RelayRig(
      respond: { request in
        HTTPResponse(json: "{\"origin\":\"\(request.header("Origin") ?? "")\"}")
      }, proxied: { $0.origins = ["https://app.example"] })
    func status(_ fields: [(name: String, value: String)], _ method: String = "GET") async throws
      -> HTTPResponse
    {
      try await HTTPClient(timeout: .seconds(120)).send(
        method, rig.proxy.url + "/x", headers: fields)
    }
    #expect(try await status([("Origin", "https://evil.example")]).status == 403)
    #expect(try await status([("Origin", "null")]).status == 403)
    #expect(try await status([("Origin", "https://app.example")]).status == 200)
    // The proxy replaces its own origin with the server's before it forwards a request.
    let own = try await status([("Origin", rig.proxy.url)])
    #expect(own.text.contains(rig.server.url))
    // For the relay, a page of the server is cross-origin, but it is allowed.
    let servers = try await status([("Origin", rig.server.url)])
    #expect(servers.header("Access-Control-Allow-Origin") == rig.server.url)
    let preflight = try await status(
      [
        ("Origin", rig.server.url), ("Access-Control-Request-Method", "PATCH"),
        ("Access-Control-Request-Headers", "authorization"),
      ], "OPTIONS")
    #expect(preflight.status == 204)
    #expect(preflight.header("Access-Control-Allow-Headers") == "authorization")
    let raw = try await RawClient.exchange(
      rig.proxy.port, "GET / HTTP/1.1\r\nHost: rebound.example\r\n\r\n")
    #expect(raw.hasPrefix("HTTP/1.1 421 "))
    // The notice names the refused origin and the option that allows it.
    #expect(rig.said.contains { $0.contains("evil.example") && $0.contains("--allow-origin") })
    try await rig.finish()
  }

  @Test(arguments: [
    ("GET http://192.0.2.66/ HTTP/1.1\r\nHost: localhost\r\n\r\n", "400"),
    ("CONNECT 192.0.2.66:80 HTTP/1.1\r\nHost: localhost\r\n\r\n", "400"),
    ("GET / HTTP/1.1\r\n\r\n", "400"), ("nonsense\r\n\r\n", "400"),
    (
      "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef",
      "400"
    ),
    (
      "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        + "Content-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc", "415"
    ),
    (
      "GET / HTTP/1.1\r\nHost: localhost\r\nX: " + String(repeating: "y", count: 100_000)
        + "\r\n\r\n", "431"
    ),
  ])
  func invalidRequestsReachNoServer(request: String, status: String) async throws {
    let rig = try await RelayRig { _ in HTTPResponse(status: 204) }
    let response = try await RawClient.exchange(rig.proxy.port, request)
    #expect(response.hasPrefix("HTTP/1.1 \(status) "), "\(response.prefix(200))")
    #expect(rig.arrived.isEmpty)
    try await rig.finish()
  }

  @Test func tooLittleIsBounded() async throws {
    let rig = try await RelayRig(
      respond: { _ in HTTPResponse(status: 204) },
      proxied: { ($0.limits.bodySeconds, $0.limits.headSeconds) = (1, 1) })
    // A client sends half of a body, or half of a head, and then nothing.
    #expect(try await RawClient.exchange(rig.proxy.port, "POST / HT").isEmpty)
    #expect(try await RawClient.exchange(rig.proxy.port, "").isEmpty)
    try await rig.finish()
    let patient = try await RelayRig(
      respond: { _ in HTTPResponse(status: 204) },
      proxied: { ($0.limits.bodySeconds, $0.limits.headSeconds) = (1, 600) })
    #expect(
      try await RawClient.exchange(patient.proxy.port, Self.head + "Content-Length: 50\r\n\r\nhalf")
        .hasPrefix("HTTP/1.1 408 "))
    try await patient.finish()
  }

  private static let head =
    "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"

  @Test func tooMuchIsBounded() async throws {
    let rig = try await RelayRig(
      respond: { request in
        request.path == "/long"
          ? HTTPResponse(json: "\"" + String(repeating: "x", count: 20_000) + "\"")
          : HTTPResponse(status: 204)
      },
      proxied: { $0.limits.bodyBytes = 10_000 })
    #expect(
      try await RawClient.exchange(
        rig.proxy.port,
        Self.head + "Content-Length: 20000\r\n\r\n"
          + String(repeating: "x", count: 20_000)
      ).hasPrefix("HTTP/1.1 413 "))
    // A response too long to be searched is forwarded unchanged, and the proxy reports it.
    let long = try await HTTPClient(timeout: .seconds(120)).get(rig.proxy.url + "/long")
    #expect(long.body.count == 20_002)
    #expect(rig.said.contains { $0.contains("forwarded without looking for signaling") })
    try await rig.finish()
  }

  @Test func aServerThatBreaksOffIsReported() async throws {
    let rig = try await RelayRig(proxied: { $0.upstream = "http://127.0.0.1:1" })
    let response = try await HTTPClient(timeout: .seconds(120)).get(rig.proxy.url + "/x")
    #expect(response.status == 502)
    try await rig.finish()
  }

  @Test func binarySignalingIsRefused() async throws {
    let rig = try await RelayRig { _ in HTTPResponse(status: 204) }
    let body = [UInt8]([8, 1, 18, 255]) + Array("v=0\r\na=ice-ufrag:abcd\r\n".utf8)
    let response = try await HTTPClient(timeout: .seconds(120)).send(
      "POST", rig.proxy.url + "/rtc", body: body, type: "application/x-protobuf")
    #expect(response.status == 501 && response.text.contains("protobuf"))
    #expect(rig.arrived.isEmpty)
    try await rig.finish()
  }

  @Test func streamsOfEventsPassLineByLine() async throws {
    let events = "event: a\ndata: {\"x\": 1}\n\n: comment\ndata: last without an end"
    let rig = try await RelayRig { _ in
      HTTPResponse(type: "text/event-stream", body: Array(events.utf8))
    }
    let response = try await HTTPClient(timeout: .seconds(120)).get(rig.proxy.url + "/events")
    #expect(response.text == events)
    try await rig.finish()
  }

  @Test func bothSidesMayHaveTLSAndTheServersCertificateIsChecked() async throws {
    let files = try IdentityFiles()
    let server = try await HTTPServer.listen(
      host: "127.0.0.1", port: 0, identity: files.identity,
      sockets: [
        WebSocketRoute(path: "/echo") { socket, _ in
          while let frame = await socket.receive() { try? await socket.send(frame) }
        }
      ]
    ) { _ in HTTPResponse(type: "text/plain", body: Array("hello".utf8)) }
    var settings = ProxyServer.Settings(upstream: server.url)
    settings.identity = files.identity
    settings.authorities = files.identity.certificate
    let proxy = try await ProxyServer.listen(settings, notice: { _ in }) { _ in .unchanged }
    var client = HTTPClient(timeout: .seconds(120))
    client.authorities = files.identity.certificate
    #expect(try await client.get(proxy.url + "/").text == "hello")
    let socket = try await WebSocket.connect(
      to: "wss" + proxy.url.dropFirst("https".count) + "/echo",
      authorities: files.identity.certificate)
    try await socket.send(.text("over both"))
    #expect(await socket.receive() == .text("over both"))
    await socket.close()
    // Without its authority, the server's certificate is rejected.
    settings.authorities = nil
    let strict = try await ProxyServer.listen(settings, notice: { _ in }) { _ in .unchanged }
    let refused = try await client.get(strict.url + "/")
    #expect(refused.status == 502 && refused.text.contains("certificate"))
    await strict.shutdown()
    await proxy.shutdown()
    await server.shutdown()
  }

  // MARK: WebSockets

  /// Echoes messages, and closes on `bye`.
  private static let echo = WebSocketRoute(path: "/echo", subprotocols: ["talk"]) { socket, _ in
    while let frame = await socket.receive() {
      if case .text("bye") = frame {
        await socket.close(WebSocketCloseCode(rawValue: 4001), reason: "as you like")
        return
      }
      try? await socket.send(frame)
    }
  }

  @Test func webSocketsPassInBothDirections() async throws {
    let rig = try await RelayRig(sockets: [Self.echo])
    let url = "ws" + rig.proxy.url.dropFirst("http".count) + "/echo?x=1"
    let socket = try await WebSocket.connect(to: url, subprotocols: ["other", "talk"])
    #expect(socket.subprotocol == "talk")
    for text in ["", "{\"a\":1}", String(repeating: "x", count: 500_000)] {
      try await socket.send(.text(text))
      #expect(await socket.receive() == .text(text))
    }
    try await socket.send(.binary([0, 255, 1]))
    #expect(await socket.receive() == .binary([0, 255, 1]))
    try await socket.send(.text("bye"))
    #expect(await socket.receive() == nil)
    let closure = await socket.closed()
    #expect(closure.code.rawValue == 4001 && closure.reason == "as you like")
    try await rig.finish()
  }

  @Test func webSocketsOfOtherOriginsAndHugeFramesAreRefused() async throws {
    let rig = try await RelayRig(
      sockets: [Self.echo], proxied: { $0.limits.bodyBytes = 100_000 })
    let url = "ws" + rig.proxy.url.dropFirst("http".count) + "/echo"
    let foreign = await #expect(throws: WebSocketError.self) {
      try await WebSocket.connect(
        to: url, subprotocols: ["talk"], headers: [("Origin", "https://evil.example")])
    }
    #expect(foreign?.status == 403)
    // The server's own refusal reaches the client.
    let nowhere = await #expect(throws: WebSocketError.self) {
      try await WebSocket.connect(to: url + "/nowhere")
    }
    #expect(nowhere?.status != nil)
    let socket = try await WebSocket.connect(to: url, subprotocols: ["talk"])
    try? await socket.send(.text(String(repeating: "x", count: 200_000)))
    #expect(await socket.closed().code == .messageTooBig)
    let jingle = try await WebSocket.connect(to: url, subprotocols: ["talk"])
    try await jingle.send(.text("<iq><jingle xmlns='urn:xmpp:jingle:1'/></iq>"))
    let closure = await jingle.closed()
    #expect(closure.code == .policyViolation && closure.reason.contains("Jingle"))
    try await rig.finish()
  }
}

/// A value that a server's handler reads, set once it is known.
private final class Box: Sendable {
  private let text = Mutex("")
  var value: String { text.withLock { $0 } }
  func set(_ new: String) { text.withLock { $0 = new } }
}

/// Sends raw bytes and returns everything received until the connection ends.
private enum RawClient {
  static func exchange(_ port: Int, _ request: String) async throws -> String {
    try await withCheckedThrowingContinuation { continuation in
      Thread.detachNewThread {
        continuation.resume(with: Result { try exchanged(port, request) })
      }
    }
  }

  private struct Failure: Error {}

  private static func exchanged(_ port: Int, _ request: String) throws -> String {
    let handle = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    guard handle >= 0 else { throw Failure() }
    defer { close(handle) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = UInt16(port).bigEndian
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    let isConnected = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(handle, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    guard isConnected == 0 else { throw Failure() }
    let bytes = Array(request.utf8)
    var sent = 0
    while sent < bytes.count {
      let count = bytes[sent...].withUnsafeBytes {
        send(handle, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
      }
      guard count > 0 else { break }
      sent += count
    }
    var response: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 65_536)
    while true {
      let count = recv(handle, &buffer, buffer.count, 0)
      guard count > 0 else { break }
      response += buffer[..<count]
    }
    return String(decoding: response, as: UTF8.self)
  }
}
