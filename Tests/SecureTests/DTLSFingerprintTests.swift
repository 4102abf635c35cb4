import Crypto
import Secure
import Testing
import Wire

struct DTLSFingerprintTests {
  private static let wrong = CertificateFingerprint(
    algorithm: "sha-256", value: Array(repeating: "AB", count: 32).joined(separator: ":"))

  private func print(_ algorithm: String, of end: DTLSPair.End) throws -> CertificateFingerprint {
    try #require(
      CertificateFingerprint(algorithm: algorithm, certificate: end.transport.certificate))
  }

  @Test func wrongFingerprintOfTheServerFailsBothEnds() throws {
    let pair = try DTLSPair()
    pair.start(clientExpects: [Self.wrong])
    pair.run()
    #expect(pair.client.states == [.connecting, .failed])
    #expect(pair.client.result == nil)
    let reason = try #require(pair.client.failures.first)
    #expect(reason.contains(pair.server.transport.fingerprint.value))
    // The fatal alert ends the server at once, instead of a time-out.
    #expect(pair.server.states == [.connecting, .failed])
    #expect(pair.server.failures.first?.contains("bad certificate") == true)
    #expect(pair.now < .zero + .milliseconds(200))
  }

  @Test func wrongFingerprintOfTheClientFailsBothEnds() throws {
    let pair = try DTLSPair()
    pair.start(serverExpects: [Self.wrong])
    pair.run()
    #expect(pair.server.states == [.connecting, .failed])
    #expect(pair.server.result == nil && pair.client.result == nil)
    #expect(pair.client.states == [.connecting, .failed])
  }

  @Test(arguments: ["sha-1", "sha-224", "sha-256", "sha-384", "sha-512"])
  func everyHashFunctionIsKnown(algorithm: String) throws {
    let pair = try DTLSPair()
    pair.start(clientExpects: [try print(algorithm, of: pair.server)])
    pair.run()
    #expect(pair.agrees)
  }

  @Test func lettersOfTheHashMayHaveEitherCase() throws {
    let pair = try DTLSPair()
    let value = pair.server.transport.fingerprint.value.lowercased()
    pair.start(clientExpects: [CertificateFingerprint(algorithm: "SHA-256", value: value)])
    pair.run()
    #expect(pair.agrees)
  }

  @Test func oneOfSeveralFingerprintsIsEnough() throws {
    let pair = try DTLSPair()
    let unknown = CertificateFingerprint(algorithm: "md5", value: "00:11")
    pair.start(clientExpects: [unknown, Self.wrong, pair.server.transport.fingerprint])
    pair.run()
    #expect(pair.agrees)
  }

  @Test func weakHashDoesNotReplaceAStrongOne() throws {
    let pair = try DTLSPair()
    pair.start(clientExpects: [try print("sha-1", of: pair.server), Self.wrong])
    pair.run()
    #expect(pair.client.states == [.connecting, .failed])
  }

  @Test(arguments: [[], [CertificateFingerprint(algorithm: "md5", value: "00:11")]])
  func nothingIsAcceptedWithoutAKnownFingerprint(expected: [CertificateFingerprint]) throws {
    let pair = try DTLSPair()
    pair.start(clientExpects: expected)
    pair.run()
    #expect(pair.client.states == [.connecting, .failed])
    #expect(pair.client.failures.first?.contains("known hash function") == true)
  }
}
