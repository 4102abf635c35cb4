import Glibc
import NIOCore
import NIOPosix
import Seeded
import Signaling
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(10))) struct HTTPServerTests {
  /// Starts a server that answers each request with its method, path, query and body.
  static func server(
    host: String = "127.0.0.1", limits: HTTPServer.Limits = .patient,
    handler: HTTPServer.Handler? = nil
  ) async throws -> HTTPServer {
    try await HTTPServer.listen(host: host, port: 0, limits: limits) { request in
      if let handler { return await handler(request) }
      let query = request.query.map { "\($0.name)=\($0.value)" }.joined(separator: ",")
      return HTTPResponse(
        type: "text/plain",
        body: Array("\(request.method) \(request.path) \(query) ".utf8) + request.body)
    }
  }

  @Test(arguments: ["127.0.0.1", "::1"]) func requestsAndResponsesTravelWhole(host: String)
    async throws
  {
    let server = try await HTTPServerTests.server(host: host)
    #expect(server.port != 0)
    let client = HTTPClient.patient
    let got = try await client.get("\(server.url)/a%20b/c?x=1&y=%2B#part")
    #expect(got.status == 200)
    #expect(got.text == "GET /a b/c x=1,y=+ ")
    let body = String(repeating: "0123456789", count: 50_000)
    let posted = try await client.post("\(server.url)/offer", json: body)
    #expect(posted.text == "POST /offer  \(body)")
    let root = try await client.get(server.url)
    #expect(root.text == "GET /  ")
    await server.shutdown()
    await #expect(throws: HTTPError.self) { try await client.get(server.url) }
  }

  @Test func aBodyBeyondTheLimitIsRefusedHoweverItIsSent() async throws {
    var limits = HTTPServer.Limits.patient
    limits.bodyBytes = 1000
    let server = try await HTTPServerTests.server(limits: limits)
    let raw = RawClient(port: server.port)
    let announced = try await raw.exchange(
      "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999\r\n\r\n")
    #expect(announced.hasPrefix("HTTP/1.1 413"))
    #expect(announced.contains(#"{"error":"the body is longer than 1000 bytes"}"#))
    let chunk = "400\r\n" + String(repeating: "x", count: 1024) + "\r\n"
    let chunked = try await raw.exchange(
      "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk + chunk
        + "0\r\n\r\n")
    #expect(chunked.hasPrefix("HTTP/1.1 413"))
    let exact = try await HTTPClient.patient.post(
      server.url, json: String(repeating: "x", count: 1000))
    #expect(exact.status == 200)
    await server.shutdown()
  }

  struct BadRequest: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var bytes: String
    var answer: String

    init(_ description: String, _ bytes: String, _ answer: String) {
      testDescription = description
      self.bytes = bytes
      self.answer = answer
    }
  }

  static let badRequests = [
    BadRequest("words", "garbage\r\n\r\n", "HTTP/1.1 400"),
    BadRequest("control characters", "\u{0}\u{1}\u{2}\u{3}\r\n\r\n", "HTTP/1.1 400"),
    BadRequest("another version", "GET / HTTP/9.9\r\n\r\n", "HTTP/1.1 400"),
    BadRequest("negative length", "GET / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", "HTTP/1.1 400"),
    BadRequest(
      "two lengths", "GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
      "HTTP/1.1 400"),
    BadRequest(
      "bad chunk", "POST / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
      "HTTP/1.1 400"),
    BadRequest(
      "long header", "GET / HTTP/1.1\r\nX: \(String(repeating: "y", count: 100_000))\r\n\r\n",
      "HTTP/1.1 431"),
    BadRequest("old but good", "GET / HTTP/1.0\r\nHost: localhost\r\n\r\n", "HTTP/1.0 200"),
    BadRequest(
      "expectation",
      "POST / HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 0\r\n"
        + "Connection: close\r\n\r\n",
      "HTTP/1.1 100"),
  ]

  @Test(arguments: badRequests) func badRequestsGetAStatus(_ row: BadRequest) async throws {
    let server = try await HTTPServerTests.server()
    let answer = try await RawClient(port: server.port).exchange(row.bytes)
    #expect(answer.hasPrefix(row.answer), "\(answer.prefix(200))")
    await server.shutdown()
  }

  @Test func aConnectionIsKeptAndRequestsOnItAreAnsweredInOrder() async throws {
    let server = try await HTTPServerTests.server()
    let answer = try await RawClient(port: server.port).exchange(
      ["GET /1", "GET /2", "HEAD /3"].map { "\($0) HTTP/1.1\r\nHost: localhost\r\n" }
        .joined(separator: "\r\n") + "Connection: close\r\n\r\n")
    #expect(answer.components(of: "HTTP/1.1 200 OK") == 3)
    let first = try #require(answer.offset(of: "GET /1"))
    let second = try #require(answer.offset(of: "GET /2"))
    #expect(first < second)
    #expect(!answer.contains("HEAD /3"))
    await server.shutdown()
  }

  @Test func randomBytesNeverStopTheServer() async throws {
    var limits = HTTPServer.Limits.patient
    limits.connections = 1000
    let server = try await HTTPServerTests.server(limits: limits)
    var random = SeededGenerator(seed: 11)
    let template = Array(
      "POST /offer?x=%41 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 12\r\n\r\n{\"sdp\":\"xx\"}"
        .utf8)
    await withTaskGroup(of: Void.self) { group in
      for _ in 0..<300 {
        var bytes = template
        for _ in 0..<(1 + random.next() % 6) {
          let position = Int(random.next() % UInt64(bytes.count))
          switch random.next() % 3 {
          case 0: bytes[position] = UInt8(truncatingIfNeeded: random.next())
          case 1: bytes.remove(at: position)
          default: bytes.insert(UInt8(truncatingIfNeeded: random.next()), at: position)
          }
        }
        let sent = bytes
        group.addTask {
          _ = try? await RawClient(port: server.port).exchange(sent, endsOutput: true)
        }
      }
    }
    #expect(try await HTTPClient.patient.get(server.url).status == 200)
    await server.shutdown()
  }

  /// Each case has one limit of a second.
  ///
  /// Its other limits are ten minutes, because on a busy machine every client is slow.
  static let slowClients: [(limits: (head: Int64, body: Int64, idle: Int64), String, String)] = [
    ((1, 600, 600), "GET / HT", ""),
    ((600, 600, 1), "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "HTTP/1.1 200"),
    (
      (600, 1, 600), "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nhalf",
      "HTTP/1.1 408"
    ),
  ]

  @Test(arguments: slowClients.indices)
  func slowClientsAreLeft(index: Int) async throws {
    let (seconds, sent, answer) = HTTPServerTests.slowClients[index]
    var limits = HTTPServer.Limits.patient
    (limits.headSeconds, limits.bodySeconds) = (seconds.head, seconds.body)
    limits.idleSeconds = seconds.idle
    let server = try await HTTPServerTests.server(limits: limits)
    let got = try await RawClient(port: server.port).exchange(sent)
    #expect(answer.isEmpty ? got.isEmpty : got.hasPrefix(answer), "\(got)")
    await server.shutdown()
  }

  /// A client must not keep a connection open by sending a byte now and then.
  @Test func dropsOfAHeadDoNotHoldAConnection() async throws {
    var limits = HTTPServer.Limits.patient
    limits.headSeconds = 1
    let server = try await HTTPServerTests.server(limits: limits)
    let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .connect(host: "127.0.0.1", port: server.port).get()
    let drops = channel.eventLoop.scheduleRepeatedTask(
      initialDelay: .zero, delay: .milliseconds(100)
    ) { _ in channel.writeAndFlush(ByteBuffer(string: "G"), promise: nil) }
    try await channel.closeFuture.get()
    drops.cancel()
    await server.shutdown()
  }

  /// Half-sent requests do not delay other clients, even if there are more of them than one client
  /// may have.
  @Test(.timeLimit(.minutes(10))) func halfSentRequestsAreClosedFirst() async throws {
    var limits = HTTPServer.Limits.patient
    (limits.connections, limits.clientConnections) = (64, 32)
    let server = try await HTTPServerTests.server(limits: limits)
    let bootstrap = ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
    var held: [any Channel] = []
    for _ in 0..<300 {
      let channel = try await bootstrap.connect(host: "127.0.0.1", port: server.port).get()
      try? await channel.writeAndFlush(
        ByteBuffer(string: "POST /offer HTTP/1.1\r\nHost: localhost\r\nContent-Le"))
      held.append(channel)
    }
    let response = try await HTTPClient.patient.get(server.url)
    #expect(response.status == 200)
    // The oldest connections were closed; the newest stay open until they time out.
    for channel in held.prefix(300 - 32) { try await channel.closeFuture.get() }
    #expect(held.last?.isActive == true)
    for channel in held.suffix(32) { try? await channel.close() }
    await server.shutdown()
  }

  @Test func connectionsBeyondTheLimitAreClosedWhenAllAreBeingAnswered() async throws {
    var limits = HTTPServer.Limits.patient
    limits.connections = 1
    let arrived = Gate()
    let gate = Gate()
    let server = try await HTTPServerTests.server(limits: limits) { _ in
      arrived.open()
      await gate.wait()
      return HTTPResponse(json: "{}")
    }
    async let first = HTTPClient.patient.get(server.url)
    await arrived.wait()
    #expect(try await RawClient(port: server.port).exchange("GET / HTTP/1.1\r\n\r\n") == "")
    gate.open()
    #expect(try await first.text == "{}")
    await server.shutdown()
  }

  @Test func theClientTimesOut() async throws {
    let gate = Gate()
    let server = try await HTTPServerTests.server { _ in
      await gate.wait()
      return HTTPResponse()
    }
    do throws(HTTPError) {
      _ = try await HTTPClient(timeout: .milliseconds(50)).get(server.url)
      Issue.record("the server does not answer")
    } catch { #expect(error.reason.contains("no answer within")) }
    gate.open()
    await server.shutdown()
  }

  @Test(arguments: [
    ("ftp://a/", "only http://"), ("a", "only http://"), ("https://", "not a URL"),
    ("http://", "not a URL"),
    ("http://a:b/", "port"), ("http://a:70000/", "port"), ("http://a b/", "not a URL"),
    ("http://a/\r\nX: y", "not a URL"), ("http://u@h/", "not a URL"), ("http://:80/", "not a URL"),
  ]) func urlsThatCannotBeCalledAreRefused(url: String, reason: String) async {
    do throws(HTTPError) {
      _ = try await HTTPClient.patient.get(url)
      Issue.record("\(url) was called")
    } catch { #expect(error.reason.contains(reason)) }
  }

  @Test func aPortInUseIsOneSentence() async throws {
    let server = try await HTTPServerTests.server()
    do throws(HTTPError) {
      _ = try await HTTPServer.listen(host: "127.0.0.1", port: server.port) { _ in HTTPResponse() }
      Issue.record("two servers on one port")
    } catch {
      #expect(error.reason.hasPrefix("cannot listen on 127.0.0.1:\(server.port): "))
    }
    await server.shutdown()
  }
}

/// A client that sends any bytes and reads until the server closes.
struct RawClient {
  var port: Int

  func exchange(_ text: String) async throws -> String { try await exchange(Array(text.utf8)) }

  func exchange(_ bytes: [UInt8], endsOutput: Bool = false) async throws -> String {
    let channel = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .channelOption(.allowRemoteHalfClosure, value: true)
      .connect(host: "127.0.0.1", port: port) { channel in
        channel.eventLoop.makeCompletedFuture {
          try NIOAsyncChannel<ByteBuffer, ByteBuffer>(
            wrappingChannelSynchronously: channel,
            configuration: .init(isOutboundHalfClosureEnabled: true))
        }
      }
    return try await channel.executeThenClose { inbound, outbound in
      try? await outbound.write(ByteBuffer(bytes: bytes))
      if endsOutput { outbound.finish() }
      var text = ""
      do {
        for try await part in inbound { text += String(buffer: part) }
      } catch {
        // If the server resets the connection, the response has ended, too.
      }
      return text
    }
  }
}

/// Holds tasks until it is opened.
final class Gate: Sendable {
  private let stream: AsyncStream<Void>
  private let continuation: AsyncStream<Void>.Continuation

  init() { (stream, continuation) = AsyncStream.makeStream(of: Void.self) }

  func wait() async { for await _ in stream {} }
  func open() { continuation.finish() }
}

extension String {
  func components(of text: String) -> Int { ranges(of: text).count }

  func offset(of text: String) -> Int? {
    firstRange(of: text).map { utf8.distance(from: startIndex, to: $0.lowerBound) }
  }
}

extension HTTPServer.Limits {
  /// The default limits with long times, because on a busy machine every client is slow.
  static var patient: Self {
    var limits = Self()
    (limits.headSeconds, limits.bodySeconds) = (600, 600)
    (limits.idleSeconds, limits.sendSeconds) = (600, 600)
    return limits
  }
}

extension HTTPClient {
  /// A client with a long timeout, because other targets' tests may keep all threads busy.
  static let patient = HTTPClient(timeout: .seconds(120))
}
