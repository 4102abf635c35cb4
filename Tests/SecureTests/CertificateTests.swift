import Secure
import Testing
import Wire

struct CertificateTests {
  private static let now = WallClock.test.unixNanosecondsAtZero / 1_000_000_000

  private static func certificate(
    _ algorithm: CertificateAlgorithm, _ seed: UInt8 = 1, lifetime: Int64 = 86_400
  ) -> PeerCertificate {
    PeerCertificate(
      algorithm: algorithm, seed: [UInt8](repeating: seed, count: 32),
      createdUnixSeconds: now - 3_600, lifetimeSeconds: lifetime)
  }

  @Test(arguments: CertificateAlgorithm.allCases)
  func theSameSeedGivesTheSameCertificateInEveryConnection(algorithm: CertificateAlgorithm) throws {
    let certificate = Self.certificate(algorithm)
    let bytes = try certificate.bytes()
    #expect(try certificate.bytes() == bytes)
    #expect(try Self.certificate(algorithm, 2).bytes() != bytes)
    for seed in [UInt8(1), 2] {
      let end = try DTLSPair.End(
        .client, seed: [seed], DTLSPair.Options(certificates: [certificate]))
      #expect(end.transport.certificates == [bytes])
      #expect(
        end.transport.fingerprint
          == CertificateFingerprint(algorithm: "sha-256", certificate: bytes))
    }
  }

  /// The client's and the server's certificates, and the resulting cipher suite.
  private static let pairs: [([CertificateAlgorithm], [CertificateAlgorithm], String)] = [
    ([.rsa2048], [.rsa2048], "RSA"), ([.ecdsaP256], [.rsa2048], "RSA"),
    ([.rsa2048], [.ecdsaP256], "ECDSA"), ([.rsa2048], [.rsa2048, .ecdsaP256], "ECDSA"),
  ]

  @Test(arguments: pairs)
  func everyPairOfAlgorithmsConnectsReproducibly(
    client: [CertificateAlgorithm], server: [CertificateAlgorithm], key: String
  ) throws {
    var transcripts: [[[UInt8]]] = []
    for _ in 0..<2 {
      let pair = try DTLSPair(
        client: .init(certificates: client.map { Self.certificate($0, 3) }),
        server: .init(certificates: server.map { Self.certificate($0, 4) }))
      pair.start(clientExpects: pair.server.transport.fingerprints)
      pair.run()
      #expect(pair.agrees)
      let result = try #require(pair.client.result)
      #expect(result.cipherSuite == "TLS_ECDHE_\(key)_WITH_AES_128_GCM_SHA256")
      #expect(result.localCertificate == pair.client.transport.certificate)
      #expect(result.remoteCertificate == pair.server.result?.localCertificate)
      #expect(pair.server.transport.certificates.contains(result.remoteCertificate))
      transcripts.append(pair.transcript)
    }
    #expect(transcripts[0] == transcripts[1])
  }

  @Test func anExpiredCertificateIsRefused() throws {
    let over = Self.certificate(.ecdsaP256, lifetime: 3_600)
    #expect(over.hasExpired(atUnixSeconds: Self.now))
    let error = #expect(throws: SecureError.self) {
      try DTLSPair.End(.client, seed: [1], DTLSPair.Options(certificates: [over]))
    }
    #expect(error?.reason == "a certificate has expired")
  }

  @Test func theWholeSeedIsUsed() throws {
    var seeds = [[UInt8](repeating: 1, count: 32)]
    for place in [0, 15, 16, 31] {
      seeds.append(seeds[0])
      seeds[seeds.count - 1][place] = 2
    }
    let generated = try seeds.map {
      try PeerCertificate(
        algorithm: .ecdsaP256, seed: $0, createdUnixSeconds: 0, lifetimeSeconds: 1
      ).bytes()
    }
    #expect(Set(generated).count == seeds.count)
  }

  @Test func twoCertificatesOfAnAlgorithmAreRefused() throws {
    let two = [Self.certificate(.ecdsaP256, 1), Self.certificate(.ecdsaP256, 2)]
    let error = #expect(throws: SecureError.self) {
      try DTLSPair.End(.client, seed: [1], DTLSPair.Options(certificates: two))
    }
    #expect(error?.reason.contains("two certificates") == true)
  }

  @Test func lifetimesAreLimitedToAYear() {
    let long = Self.certificate(.ecdsaP256, lifetime: .max)
    #expect(long.expiresUnixSeconds - long.createdUnixSeconds == 365 * 86_400)
    let none = Self.certificate(.ecdsaP256, lifetime: -5)
    #expect(none.expiresUnixSeconds == none.createdUnixSeconds)
  }

  private static let profiles: [([SRTPProtection], [SRTPProtection], SRTPProfile?)] = [
    ([.aeadAES256GCM], SRTPProtection.preferred, .aeadAES256GCM),
    (SRTPProtection.preferred, [.aeadAES256GCM, .aeadAES128GCM], .aeadAES256GCM),
    (SRTPProtection.preferred, SRTPProtection.preferred, .aeadAES128GCM),
    ([.aes128CMSHA1_80], SRTPProtection.preferred, .aes128CMSHA1_80),
    ([.aeadAES256GCM], [.aeadAES128GCM], nil),
  ]

  @Test(arguments: profiles)
  func theServersPreferenceAmongCommonProfilesIsUsed(
    client: [SRTPProtection], server: [SRTPProtection], agreed: SRTPProfile?
  ) throws {
    let pair = try DTLSPair(client: .init(profiles: client), server: .init(profiles: server))
    pair.start()
    pair.run()
    #expect(pair.agrees == (agreed != nil))
    #expect(pair.client.result?.profile == agreed)
    if let agreed, let result = pair.client.result {
      #expect(result.sendKey.count == (agreed == .aeadAES256GCM ? 44 : result.sendKey.count))
      _ = try SRTPContext(
        profile: agreed, sendKey: result.sendKey, receiveKey: result.receiveKey)
    }
  }
}
