import Glibc
import Signaling
import Synchronization
import Testing

/// Tests clients that send requests but do not read the responses.
@Suite(.timeLimit(.minutes(10))) struct BackPressureTests {
  /// A connection that reads only on request.
  private final class Client: Sendable {
    private let descriptor: Int32

    init(port: Int) throws {
      descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
      var limit = timeval(tv_sec: 120, tv_usec: 0)
      setsockopt(
        descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
      var address = sockaddr_in()
      address.sin_family = sa_family_t(AF_INET)
      address.sin_port = in_port_t(UInt16(port).bigEndian)
      address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
      let status = withUnsafePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
          connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
        }
      }
      try #require(status == 0)
    }

    deinit { close(descriptor) }

    func write(_ text: String) {
      let bytes = Array(text.utf8)
      _ = send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL))
    }

    /// Reads to the end of the connection; returns the length, and the first bytes.
    func readAll() -> (count: Int, beginning: String) {
      var bytes = [UInt8](repeating: 0, count: 1 << 16)
      var beginning = ""
      var count = 0
      while true {
        let got = recv(descriptor, &bytes, bytes.count, 0)
        guard got > 0 else { return (count, beginning) }
        if count == 0 { beginning = String(decoding: bytes[..<min(got, 100)], as: UTF8.self) }
        count += got
      }
    }
  }

  private static let request = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
  private static let last =
    "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"

  private func server(_ limits: HTTPServer.Limits, bytes: Int) async throws -> (
    server: HTTPServer, count: @Sendable () -> Int
  ) {
    let asked = Answered()
    let server = try await HTTPServer.listen(host: "127.0.0.1", port: 0, limits: limits) {
      guard $0.path == "/" else { return HTTPResponse(status: 204) }
      asked.count.withLock { $0 += 1 }
      return HTTPResponse(type: "text/plain", body: [UInt8](repeating: 120, count: bytes))
    }
    return (server, { asked.count.withLock { $0 } })
  }

  private final class Answered: Sendable {
    let count = Mutex(0)
  }

  /// Waits for some time, during which the server must keep answering other clients.
  private func pass(_ time: Duration, _ server: HTTPServer) async throws {
    let end = ContinuousClock.now + time
    while ContinuousClock.now < end {
      #expect(try await HTTPClient.patient.get(server.url + "/other").status == 204)
    }
  }

  @Test func aClientThatReadsNothingGetsNoFurtherAnswersUntilItReads() async throws {
    let (server, count) = try await server(HTTPServer.Limits.patient, bytes: 1 << 20)
    let client = try Client(port: server.port)
    client.write(String(repeating: Self.request, count: 99) + Self.last)
    try await pass(.seconds(1), server)
    // The system itself buffers some MB per connection.
    #expect((1..<50).contains(count()))
    let (bytes, beginning) = await Task.detached { client.readAll() }.value
    #expect(beginning.hasPrefix("HTTP/1.1 200") && bytes > 100 << 20)
    #expect(count() == 100)
    await server.shutdown()
  }

  @Test func aClientThatReadsTooSlowlyIsDisconnected() async throws {
    var limits = HTTPServer.Limits.patient
    limits.sendSeconds = 1
    let (server, _) = try await server(limits, bytes: 64 << 20)
    let client = try Client(port: server.port)
    client.write(Self.request)
    try await pass(.seconds(3), server)
    let (bytes, _) = await Task.detached { client.readAll() }.value
    #expect(bytes < 32 << 20)
    await server.shutdown()
  }

  @Test func slowClientsDelayTheEndOfAServerTogetherAndNotOneAfterAnother() async throws {
    // All responses fit into what the server may hold; each exceeds the system's buffers.
    let (server, count) = try await server(HTTPServer.Limits.patient, bytes: 16 << 20)
    let clients = try (0..<14).map { _ in try Client(port: server.port) }
    for client in clients { client.write(Self.request) }
    while count() < clients.count { try await pass(.milliseconds(10), server) }
    let elapsed = await ContinuousClock().measure { await server.shutdown() }
    // Each client may delay the shutdown by two seconds; one after another, this would be 28
    // seconds.
    #expect(elapsed < .seconds(20))
    withExtendedLifetime(clients) {}
  }

  @Test func answersThatWaitOnAllConnectionsAreBounded() async throws {
    var limits = HTTPServer.Limits.patient
    limits.waitingBytes = 48 << 20
    let (server, count) = try await server(limits, bytes: 32 << 20)
    let clients = try (0..<6).map { _ in try Client(port: server.port) }
    for client in clients { client.write(Self.last) }
    while count() < clients.count { try await pass(.milliseconds(10), server) }
    let answers = await Task.detached { clients.map { $0.readAll() } }.value
    #expect(answers.contains { $0.beginning.hasPrefix("HTTP/1.1 200") && $0.count > 32 << 20 })
    #expect(answers.contains { $0.beginning.hasPrefix("HTTP/1.1 503") })
    await server.shutdown()
  }
}
