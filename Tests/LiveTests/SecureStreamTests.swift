import CSockets
import Foundation
import TLS
import Testing
import Wire

@testable import Live

/// Tests TLS connections to a server, as TURN uses them, over the system's own TCP.
@Suite(.timeLimit(.minutes(10))) struct SecureStreamTests {
  private static let loopback = IPAddress(ipv4: 0x7f00_0001)

  /// A server with a self-signed certificate for `turn.example`.
  private final class Server {
    let folder = FileManager.default.temporaryDirectory.appending(path: "tls-\(UUID())")
    let listener: ListenSocket
    private let session: TLSSession
    private var descriptor: Int32 = -1
    /// The decrypted bytes received.
    private(set) var received: [UInt8] = []
    private var waiting: [UInt8] = []

    var certificate: String { folder.appending(path: "certificate").path }

    init() throws {
      try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
      let (certificate, key) = (
        folder.appending(path: "certificate").path, folder.appending(path: "key").path
      )
      let openssl = Process()
      openssl.executableURL = URL(filePath: "/usr/bin/env")
      openssl.arguments =
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30"
        .split(separator: " ").map { String($0) }
        + [
          "-subj", "/CN=turn.example", "-addext", "subjectAltName=DNS:turn.example", "-keyout", key,
          "-out", certificate,
        ]
      openssl.standardError = FileHandle.nullDevice
      try openssl.run()
      openssl.waitUntilExit()
      try #require(openssl.terminationStatus == 0)
      listener = try ListenSocket(on: SecureStreamTests.loopback)
      session = try TLSSession(
        .server(TLSIdentity(certificate: certificate, key: key)))
    }

    deinit {
      if descriptor >= 0 { _ = csockets_close(descriptor) }
      try? FileManager.default.removeItem(at: folder)
    }

    /// Processes waiting data, and echoes everything it receives.
    func advance() throws {
      if descriptor < 0 {
        var remote = csockets_address()
        let accepted = csockets_tcp_accept(listener.descriptor, &remote)
        guard accepted >= 0 else { return }
        descriptor = accepted
      }
      var room = [UInt8](repeating: 0, count: 4096)
      let count = csockets_tcp_read(descriptor, &room, room.count)
      if count > 0 { session.receive(Array(room[..<Int(count)])) }
      if session.handshake() == .done {
        while case .bytes(let bytes) = session.read() {
          received += bytes
          #expect(session.write(bytes))
        }
      }
      waiting += session.drainOutput()
      let sent = csockets_tcp_write(descriptor, waiting, waiting.count)
      if sent > 0 { waiting.removeFirst(Int(sent)) }
    }
  }

  private static func message(_ number: UInt8) -> [UInt8] {
    [0, 1, 0, 8, 0x21, 0x12, 0xa4, 0x42] + [UInt8](repeating: number, count: 20)
  }

  /// Runs both ends until a condition holds or the client fails; returns the client's error code.
  private func run(
    _ client: StreamSocket, _ server: Server, _ messages: inout [[UInt8]],
    until isDone: ([[UInt8]]) -> Bool
  ) throws -> Int32? {
    while !isDone(messages) {
      try server.advance()
      if case .failed(let code) = client.advance(into: &messages) { return code }
    }
    return nil
  }

  private func target(_ server: Server, _ name: String) -> StreamTarget {
    StreamTarget(
      local: Self.loopback, remote: server.listener.local, kind: .secureServer, name: name)
  }

  @Test func messagesGoToAServerThatIsVouchedForAndBack() throws {
    let server = try Server()
    let client = try StreamSocket(
      to: target(server, "turn.example"), authorities: server.certificate)
    var messages: [[UInt8]] = []
    #expect(try run(client, server, &messages) { _ in client.isOpen } == nil)
    let sent = (0..<100).map { Self.message(UInt8($0)) }
    for message in sent { client.send(message) }
    #expect(try run(client, server, &messages) { $0.count == sent.count } == nil)
    #expect(messages == sent)
    #expect(server.received == sent.flatMap { $0 })
  }

  @Test(arguments: [("other.example", true), ("turn.example", false)])
  func aServerWithAnUntrustedCertificateIsLeft(name: String, isTrusted: Bool) throws {
    let server = try Server()
    let client = try StreamSocket(
      to: target(server, name), authorities: isTrusted ? server.certificate : nil)
    var messages: [[UInt8]] = []
    let code = try run(client, server, &messages) { _ in client.isOpen }
    #expect(code == EPROTO)
    #expect(!client.isOpen && server.received.isEmpty)
  }
}
