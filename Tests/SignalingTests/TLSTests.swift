import Foundation
import IdentityFiles
import NIOCore
import Seeded
import TLS
import Testing

@testable import Signaling

struct TLSTests {
  private func server(_ files: IdentityFiles) async throws -> HTTPServer {
    try await HTTPServer.listen(host: "127.0.0.1", port: 0, identity: files.identity) { request in
      HTTPResponse(type: "text/plain", body: Array("got ".utf8) + request.body)
    }
  }

  /// Makes a client that trusts the server.
  private func client(_ files: IdentityFiles) -> HTTPClient {
    var client = HTTPClient.patient
    client.authorities = files.path("certificate")
    return client
  }

  /// 100,000 bytes are longer than a TLS record, so both sides assemble several.
  @Test(arguments: ["127.0.0.1", "localhost"], [0, 1, 100_000])
  func requestsGoThroughTLS(name: String, length: Int) async throws {
    let files = try IdentityFiles()
    let server = try await server(files)
    #expect(server.url == "https://127.0.0.1:\(server.port)")
    let client = client(files)
    let body = (0..<length).map { UInt8(truncatingIfNeeded: $0 &* 31) }
    let url = "https://\(name):\(server.port)/"
    let response = try await client.send("POST", url, body: body, type: "text/plain")
    #expect(response.status == 200 && response.body == Array("got ".utf8) + body)
    await server.shutdown()
  }

  @Test func aServerWithAnUntrustedCertificateIsRefused() async throws {
    let files = try IdentityFiles()
    let server = try await server(files)
    do throws(HTTPError) {
      _ = try await HTTPClient.patient.get(server.url)
      Issue.record("the server was trusted")
    } catch { #expect(error.reason.contains("certificate is not trusted: self"), "\(error)") }
    await server.shutdown()
  }

  @Test func aCertificateOfAnotherNameIsRefused() async throws {
    let files = try IdentityFiles()
    let server = try await HTTPServer.listen(host: "127.0.0.2", port: 0, identity: files.identity) {
      _ in HTTPResponse()
    }
    let client = client(files)
    do throws(HTTPError) {
      _ = try await client.get(server.url)
      Issue.record("the server was trusted")
    } catch { #expect(error.reason.contains("IP address mismatch"), "\(error)") }
    await server.shutdown()
  }

  @Test func aServerWithoutTLSIsReported() async throws {
    let server = try await HTTPServer.listen(host: "127.0.0.1", port: 0) { _ in HTTPResponse() }
    do throws(HTTPError) {
      _ = try await HTTPClient.patient.get("https://127.0.0.1:\(server.port)/")
      Issue.record("plain text went through TLS")
    } catch { #expect(error.reason.contains("TLS handshake failed"), "\(error)") }
    await server.shutdown()
  }

  @Test func anyBytesMayReplaceAHandshake() async throws {
    let files = try IdentityFiles()
    let server = try await server(files)
    var random = SeededGenerator(seed: 3)
    for _ in 0..<50 {
      let count = 1 + random.next() % 300
      let bytes = (0..<count).map { _ in UInt8(truncatingIfNeeded: random.next()) }
      _ = try? await RawClient(port: server.port).exchange(bytes, endsOutput: true)
      _ = try? await RawClient(port: server.port).exchange(
        [22, 3, 1, 0, UInt8(bytes.count % 250)] + bytes, endsOutput: true)
    }
    let client = client(files)
    #expect(try await client.get(server.url).status == 200)
    await server.shutdown()
  }

  @Test(arguments: [("key", "key"), ("certificate", "certificate"), ("none", "key")])
  func wrongFilesAreReportedBeforeListening(certificate: String, key: String) async throws {
    let files = try IdentityFiles()
    let identity = TLSIdentity(certificate: files.path(certificate), key: files.path(key))
    do throws(HTTPError) {
      _ = try await HTTPServer.listen(host: "127.0.0.1", port: 0, identity: identity) { _ in
        HTTPResponse()
      }
      Issue.record("a server listens without a usable certificate")
    } catch { #expect(error.reason.contains("contains no PEM"), "\(error)") }
  }
}
