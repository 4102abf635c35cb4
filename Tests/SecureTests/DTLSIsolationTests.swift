import CDTLS
import COpenSSL
import Glibc
import Secure
import Testing
import Wire

/// Process-wide OpenSSL settings must not affect an association.
struct DTLSIsolationExitTests {
  @Test func noRandomnessComesFromOpenSSLsDefaultContext() async throws {
    await #expect(processExitsWith: .success) {
      // From here on, every random draw from the default context fails.
      guard RAND_set_DRBG_type(nil, "TEST-RAND", nil, nil, nil) == 1 else { exit(2) }
      var byte: UInt8 = 0
      guard RAND_bytes(&byte, 1) != 1 else { exit(3) }
      let pair = try DTLSPair(link: DTLSPair.losing(0x5))
      pair.start()
      pair.run(for: .seconds(29))
      pair.step(pair.client, .send([1]))
      exit(pair.agrees ? 0 : 4)
    }
  }

  @Test func configurationFilesChangeNoByte() async throws {
    let expected = try DTLSTransport.engineFingerprint()
    await #expect(processExitsWith: .success) { [expected = expected as String] in
      let path = "/tmp/retake-openssl-\(getpid()).cnf"
      let text = """
        openssl_conf = all
        [all]
        ssl_conf = ssl
        [ssl]
        system_default = defaults
        [defaults]
        Options = -EncryptThenMac,-ExtendedMasterSecret
        Groups = P-521
        CipherString = AES256-SHA
        SignatureAlgorithms = ECDSA+SHA512
        """
      guard let file = fopen(path, "w") else { exit(2) }
      fputs(text, file)
      fclose(file)
      setenv("OPENSSL_CONF", path, 1)
      // Load the file, as another part of the process may have done.
      guard OPENSSL_init_crypto(UInt64(OPENSSL_INIT_LOAD_CONFIG), nil) == 1,
        OPENSSL_init_ssl(0, nil) == 1
      else { exit(3) }
      let actual = try DTLSTransport.engineFingerprint()
      unlink(path)
      exit(actual == expected ? 0 : 4)
    }
  }
}

/// Associations must not exhaust the few thread-specific keys that a process has.
struct DTLSIsolationTests {
  /// A process has 1,024 thread-specific keys; with two per peer, only about 500 peers would fit.
  @Test func aThousandPeersWorkAtOnceInOneProcess() throws {
    let transports = try (0..<1100).map { number in
      try DTLSTransport(
        entropy: Entropy(seed: [UInt8(number & 0xff), UInt8(number >> 8)]).stream("dtls"),
        wallClock: WallClock(unixNanosecondsAtZero: 1_700_000_000_000_000_000))
    }
    #expect(Set(transports.map(\.fingerprints)).count == transports.count)
  }

  /// Each peer's random bytes are its own, even if another peer ran before on the same thread.
  @Test func peersOfOneThreadDoNotShareTheirRandomness() throws {
    func transport(_ seed: UInt8) throws -> DTLSTransport {
      try DTLSTransport(
        entropy: Entropy(seed: [seed]).stream("dtls"),
        wallClock: WallClock(unixNanosecondsAtZero: 1_700_000_000_000_000_000))
    }
    func hello(_ transport: DTLSTransport) -> [[UInt8]] {
      var outbox = Outbox<DTLSTransport.Output>()
      transport.step(
        .start(.client, remoteFingerprints: transport.fingerprints), at: .zero, into: &outbox)
      return outbox.drain().compactMap { output in
        if case .datagram(let bytes) = output { bytes } else { nil }
      }
    }
    let alone = hello(try transport(1))
    let (first, second) = (try transport(1), try transport(2))
    let other = hello(second)
    #expect(!alone.isEmpty && hello(first) == alone && other != alone)
  }

  @Test func otherCodeStillReadsTheRealTime() throws {
    let pair = try DTLSPair()
    pair.start()
    pair.run()
    var time = timeval()
    #expect(gettimeofday(&time, nil) == 0)
    var exact = timespec()
    clock_gettime(CLOCK_REALTIME, &exact)
    #expect(abs(exact.tv_sec - time.tv_sec) <= 1)
  }

  @Test func frozenClockAffectsOneThreadAndIsRestored() {
    var clock = cdtls_frozen_clock(seconds: 4711, reads: 0)
    let before = cdtls_clock_freeze(&clock)
    var time = timeval()
    gettimeofday(&time, nil)
    _ = cdtls_clock_freeze(before)
    #expect(time.tv_sec == 4711 && time.tv_usec == 0)
    #expect(clock.reads == 1)
    gettimeofday(&time, nil)
    #expect(time.tv_sec > 1_700_000_000)
    #expect(clock.reads == 1)
  }
}
