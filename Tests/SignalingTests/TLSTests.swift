import Foundation
import NIOCore
import Seeded
import TLS
import Testing

@testable import Signaling

struct TLSTests {
  /// A self-signed certificate for localhost and 127.0.0.1; its key protects nothing.
  static let certificate = """
    -----BEGIN CERTIFICATE-----
    MIIBoDCCAUWgAwIBAgIUHx5xmjSrTrdXzGwgAUQxV8FdExwwCgYIKoZIzj0EAwIw
    FjEUMBIGA1UEAwwLUmV0YWtlIHRlc3QwIBcNMjQwMTAxMDAwMDAwWhgPMjEyMzEy
    MDgwMDAwMDBaMBYxFDASBgNVBAMMC1JldGFrZSB0ZXN0MFkwEwYHKoZIzj0CAQYI
    KoZIzj0DAQcDQgAEzA0PdXnf3NUpjFxlux9c278MayRdVp4nxyFRwnKcgZKv4qd4
    O7oXkFrXTWPaChq6HwSsmsinwlMAkRGbyBuHWqNvMG0wHQYDVR0OBBYEFNvTNUIx
    34l0BIGtUVTLcCvPdDXmMB8GA1UdIwQYMBaAFNvTNUIx34l0BIGtUVTLcCvPdDXm
    MA8GA1UdEwEB/wQFMAMBAf8wGgYDVR0RBBMwEYIJbG9jYWxob3N0hwR/AAABMAoG
    CCqGSM49BAMCA0kAMEYCIQDVQdZXOplsXJNRLgmUK/IgCs6f1UUrwlJatJVkv8OI
    GwIhANWZ2MgHwEFxEv8INceYm1PmghfJtnqLfPePDCGzDsOd
    -----END CERTIFICATE-----
    """
  static let key = """
    -----BEGIN PRIVATE KEY-----
    MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg4KlcOYTl3KYP4316
    9CkbUS7ezxtCVoLgIFevw4Z0JBahRANCAATMDQ91ed/c1SmMXGW7H1zbvwxrJF1W
    nifHIVHCcpyBkq/ip3g7uheQWtdNY9oKGrofBKyayKfCUwCREZvIG4da
    -----END PRIVATE KEY-----
    """

  /// The identity's files, removed after the test.
  final class Files: Sendable {
    let folder = FileManager.default.temporaryDirectory.appending(path: "retake-\(UUID())")
    var identity: TLSIdentity {
      TLSIdentity(certificate: path("certificate"), key: path("key"))
    }

    init() throws {
      try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
      for (name, text) in [("certificate", TLSTests.certificate), ("key", TLSTests.key)] {
        try Data(text.utf8).write(to: folder.appending(path: name))
      }
    }

    deinit { try? FileManager.default.removeItem(at: folder) }

    func path(_ name: String) -> String { folder.appending(path: name).path }
  }

  private func server(_ files: Files) async throws -> HTTPServer {
    try await HTTPServer.listen(host: "127.0.0.1", port: 0, identity: files.identity) { request in
      HTTPResponse(type: "text/plain", body: Array("got ".utf8) + request.body)
    }
  }

  /// Makes a client that trusts the server.
  private func client(_ files: Files) -> HTTPClient {
    var client = HTTPClient.patient
    client.authorities = files.path("certificate")
    return client
  }

  /// 100,000 bytes are longer than a TLS record, so both sides assemble several.
  @Test(arguments: ["127.0.0.1", "localhost"], [0, 1, 100_000])
  func requestsGoThroughTLS(name: String, length: Int) async throws {
    let files = try Files()
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
    let files = try Files()
    let server = try await server(files)
    do throws(HTTPError) {
      _ = try await HTTPClient.patient.get(server.url)
      Issue.record("the server was trusted")
    } catch { #expect(error.reason.contains("certificate is not trusted: self"), "\(error)") }
    await server.shutdown()
  }

  @Test func aCertificateOfAnotherNameIsRefused() async throws {
    let files = try Files()
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
    let files = try Files()
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
    let files = try Files()
    let identity = TLSIdentity(certificate: files.path(certificate), key: files.path(key))
    do throws(HTTPError) {
      _ = try await HTTPServer.listen(host: "127.0.0.1", port: 0, identity: identity) { _ in
        HTTPResponse()
      }
      Issue.record("a server listens without a usable certificate")
    } catch { #expect(error.reason.contains("in PEM"), "\(error)") }
  }
}
