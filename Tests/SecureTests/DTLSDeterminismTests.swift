import Glibc
import Secure
import Testing
import Wire

struct DTLSDeterminismTests {
  /// Runs a complete session with lost datagrams and data in both directions.
  static func session(seed: UInt8, mask: UInt32) throws -> DTLSPair {
    let pair = try DTLSPair(seed: seed, link: DTLSPair.losing(mask))
    pair.start()
    pair.run(for: .seconds(29))
    pair.step(pair.client, .send([1, 2, 3]))
    pair.step(pair.server, .send([4, 5]))
    pair.run(for: .seconds(1))
    pair.step(pair.client, .close)
    pair.run(for: .seconds(1))
    return pair
  }

  @Test(arguments: [0, 0x2, 0x4, 0x8, 0x16, 0x1f] as [UInt32])
  func sameSeedGivesTheSameBytes(mask: UInt32) throws {
    let one = try Self.session(seed: 3, mask: mask)
    let two = try Self.session(seed: 3, mask: mask)
    #expect(one.client.result != nil)
    #expect(one.transcript == two.transcript)
    #expect(one.client.entropy.drawn == two.client.entropy.drawn)
  }

  @Test func otherSeedsGiveOtherKeysCertificatesAndBytes() throws {
    let one = try Self.session(seed: 3, mask: 0)
    let two = try Self.session(seed: 4, mask: 0)
    #expect(one.client.sent[0] != two.client.sent[0])
    #expect(one.client.result?.sendKey != two.client.result?.sendKey)
    #expect(one.client.transport.fingerprint != two.client.transport.fingerprint)
  }

  @Test func otherInstantsChangeNoByte() throws {
    let one = try Self.session(seed: 3, mask: 0)
    let slow = try DTLSPair(seed: 3, link: { _, bytes in [(.milliseconds(33), bytes)] })
    slow.start()
    slow.run()
    #expect(slow.client.sent.prefix(2) == one.client.sent.prefix(2))
    #expect(slow.client.result?.sendKey == one.client.result?.sendKey)
  }

  @Test(arguments: [0, 0x1, 0x6, 0x1a] as [UInt32])
  func oneSideIsReplayedFromItsInputs(mask: UInt32) throws {
    let pair = try Self.session(seed: 5, mask: mask)
    for end in [pair.client, pair.server] {
      let seed: [UInt8] = [5, end.role == .client ? 1 : 2]
      let again = try DTLSTransport(
        entropy: Entropy(seed: seed).stream("dtls"), wallClock: .test)
      for (index, (input, at)) in end.tape.enumerated() {
        var outbox = Outbox<DTLSTransport.Output>()
        again.step(input, at: at, into: &outbox)
        let sent = outbox.drain().compactMap { output -> [UInt8]? in
          if case .datagram(let bytes) = output { bytes } else { nil }
        }
        #expect(sent == end.steps[index], "step \(index) of the \(end.role)")
      }
      #expect(again.state == end.transport.state)
    }
  }

  @Test func sessionsOnManyThreadsDoNotDisturbEachOther() async throws {
    let alone = try (0..<8).map { try Self.session(seed: 20 + UInt8($0), mask: UInt32($0) * 3) }
      .map(\.transcript)
    let together = try await withThrowingTaskGroup(of: (Int, [[UInt8]]).self) { group in
      for index in 0..<32 {
        group.addTask {
          let number = index % 8
          let pair = try Self.session(seed: 20 + UInt8(number), mask: UInt32(number) * 3)
          return (number, pair.transcript)
        }
      }
      return try await group.reduce(into: []) { $0.append($1) }
    }
    #expect(together.count == 32)
    for (number, transcript) in together { #expect(transcript == alone[number]) }
  }

  @Test func sessionMayMoveToAnotherThreadAtEveryStep() throws {
    let expected = try Self.session(seed: 6, mask: 0x12)
    let pair = try DTLSPair(seed: 6, link: DTLSPair.losing(0x12), execute: onFreshThread)
    pair.start()
    pair.run(for: .seconds(29))
    #expect(pair.agrees)
    #expect(pair.client.sent == Array(expected.client.sent.prefix(pair.client.sent.count)))
    #expect(pair.server.sent == Array(expected.server.sent.prefix(pair.server.sent.count)))
    #expect(pair.client.result?.sendKey == expected.client.result?.sendKey)
  }

  @Test func engineIsIdentifiedByAFingerprint() throws {
    let fingerprint = try DTLSTransport.engineFingerprint()
    #expect(hex(fingerprint).count == 32)
    #expect(try DTLSTransport.engineFingerprint() == fingerprint)
    #expect(
      DTLSTransport.opensslVersion.hasPrefix("3.") || DTLSTransport.opensslVersion.hasPrefix("4."))
  }

  /// The stack's output on Debian 12 for a fixed seed: an update that changes it must be noticed,
  /// since earlier takes then no longer replay exactly.
  @Test(.enabled(if: DTLSTransport.opensslVersion == "3.0.22"))
  func fingerprintOfThisOpenSSLIsKnown() throws {
    let known = "3c92c8c1b17bfbd71450e4856631a5b8a45fe1b8383341e5e9b7024e39b77cb5"
    let actual = try DTLSTransport.engineFingerprint()
    #expect(actual == known)
  }
}

/// Runs work on a new thread and waits for it to finish.
private func onFreshThread(_ work: @escaping () -> Void) {
  final class Work {
    let run: () -> Void
    init(run: @escaping () -> Void) { self.run = run }
  }
  var thread = pthread_t()
  let pointer = Unmanaged.passRetained(Work(run: work)).toOpaque()
  let status = pthread_create(
    &thread, nil,
    { pointer in
      if let pointer { Unmanaged<Work>.fromOpaque(pointer).takeRetainedValue().run() }
      return nil
    }, pointer)
  #expect(status == 0)
  pthread_join(thread, nil)
}
