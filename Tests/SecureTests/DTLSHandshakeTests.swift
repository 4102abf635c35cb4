import Crypto
import Secure
import Seeded
import Testing
import Wire

struct DTLSHandshakeTests {
  @Test func bothEndsAgreeOnKeysAndReportTheirStates() throws {
    let pair = try DTLSPair()
    pair.start()
    pair.run()
    #expect(pair.agrees)
    #expect(pair.client.states == [.connecting, .connected])
    #expect(pair.server.states == [.connecting, .connected])
    let result = try #require(pair.client.result)
    #expect(result.profile == .aeadAES128GCM)
    #expect(result.sendKey.count == 28)
    #expect(result.version == "FEFD")
    #expect(result.cipherSuite == "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256")
    #expect(result.remoteCertificate == pair.server.transport.certificate)
    #expect(pair.server.result?.remoteCertificate == pair.client.transport.certificate)
    #expect(pair.client.transport.deadline == nil && pair.server.transport.deadline == nil)
    #expect(pair.now <= .zero + .milliseconds(100))
  }

  @Test func datagramsStayBelowTheMTU() throws {
    let pair = try DTLSPair()
    pair.start()
    pair.run()
    #expect((pair.client.sent + pair.server.sent).allSatisfy { $0.count <= 1200 })
    #expect((pair.client.sent + pair.server.sent).allSatisfy { (20...63).contains($0[0]) })
  }

  @Test func fingerprintIsTheHashOfTheCertificate() throws {
    let transport = try DTLSPair.End(.client, seed: [9]).transport
    let digest = SHA256.hash(transport.certificate)
    #expect(hex(transport.fingerprint.value) == digest)
    #expect(transport.fingerprint.algorithm == "sha-256")
    #expect(transport.fingerprint.value.utf8.count == 95)
  }

  @Test func everyPatternOfLostDatagramsIsSurvived() throws {
    for mask in UInt32(0)..<192 {
      let pair = try DTLSPair(link: DTLSPair.losing(mask))
      pair.start()
      pair.run(for: .seconds(29))
      #expect(pair.agrees, "mask \(mask)")
      #expect(pair.client.failures.isEmpty && pair.server.failures.isEmpty)
    }
  }

  @Test func eachLostDatagramDelaysTheHandshakeByOneTimeout() throws {
    for index in 0..<UInt32(4) {
      let pair = try DTLSPair(link: DTLSPair.losing(1 << index))
      pair.start()
      pair.run(for: .seconds(29))
      #expect(pair.agrees)
      #expect(pair.now > .zero + .milliseconds(100))
      #expect(pair.now < .zero + .milliseconds(300))
    }
  }

  @Test func retransmissionsAreSentAtDoublingIntervals() throws {
    let pair = try DTLSPair(link: { _, _ in [] })
    pair.start()
    pair.run()
    let fires = pair.client.tape.filter { if case .deadline = $0.0 { true } else { false } }
    let times = fires.map(\.1.nanoseconds).map { $0 / 1_000_000 }
    #expect(
      times == [
        100, 300, 700, 1500, 3100, 6100, 9100, 12100, 15100, 18100, 21100, 24100, 30000,
      ])
    #expect(pair.client.sent.count == 13)
    #expect(pair.client.states == [.connecting, .failed])
    #expect(pair.client.failures == ["the handshake did not finish within 30 s"])
    #expect(pair.server.states == [.connecting, .failed])
    #expect(pair.client.transport.deadline == nil)
  }

  @Test func duplicatesAndReorderingAreSurvived() throws {
    for seed in UInt64(0)..<24 {
      var random = SeededGenerator(seed: seed)
      let pair = try DTLSPair(link: { _, bytes in
        (0..<Int.random(in: 1...3, using: &random)).map { _ in
          (.milliseconds(.random(in: 1...300, using: &random)), bytes)
        }
      })
      pair.start()
      pair.run(for: .seconds(29))
      #expect(pair.agrees, "seed \(seed)")
    }
  }

  @Test func datagramsBeforeTheStartAreKept() throws {
    let pair = try DTLSPair()
    pair.step(
      pair.client, .start(.client, remoteFingerprints: [pair.server.transport.fingerprint]))
    pair.run(for: .milliseconds(50))
    #expect(pair.server.sent.isEmpty)
    pair.step(
      pair.server, .start(.server, remoteFingerprints: [pair.client.transport.fingerprint]))
    #expect(!pair.server.sent.isEmpty)
    pair.run(for: .milliseconds(65))
    #expect(pair.agrees)
    #expect(pair.client.sent.count == 2)
  }

  @Test func onlySomeDatagramsAreKeptBeforeTheStart() throws {
    let pair = try DTLSPair()
    for _ in 0..<100 { pair.step(pair.server, .datagram([22, 254, 253])) }
    #expect(pair.server.transport.dropped == 100 - UInt64(DTLSTransport.earlyDatagramsMaximum))
    pair.start()
    pair.run()
    #expect(pair.agrees)
  }

  @Test func peerClosingDuringTheHandshakeIsReported() throws {
    let pair = try DTLSPair(link: { _, _ in [] })
    pair.start()
    // An unencrypted record with the alert close_notify.
    pair.step(pair.client, .datagram([21, 254, 253, 0, 0, 0, 0, 0, 0, 0, 9, 0, 2, 1, 0]))
    #expect(pair.client.states == [.connecting, .failed])
    #expect(pair.client.failures.first?.contains("closed") == true)
  }

  @Test func fragmentedClientHelloIsReassembled() throws {
    for isSwapped in [false, true] {
      let pair = try DTLSPair(link: { index, bytes in
        guard index == 0 else { return [(DTLSPair.delay, bytes)] }
        let parts = fragments(ofRecord: bytes)
        let delays: [Int64] = isSwapped ? [30, 20, 35] : [20, 30, 35]
        return zip(delays, parts + [parts[0]]).map { (.milliseconds($0), $1) }
      })
      pair.start()
      pair.run()
      #expect(pair.agrees)
    }
  }

  @Test func browsersLongClientHelloIsAnswered() throws {
    for order in [[0, 1], [1, 0], [0, 0, 1, 1]] {
      let server = try DTLSPair()
      server.step(server.server, .start(.server, remoteFingerprints: []))
      for index in order { server.step(server.server, .datagram(BrowserHello.datagrams[index])) }
      let answer = try #require(server.server.sent.first)
      // Handshake record, DTLS 1.2, epoch 0; ServerHello.
      #expect(answer[0] == 22 && answer[1] == 254 && answer[2] == 253 && answer[13] == 2)
      #expect(server.server.transport.state == .connecting)
    }
  }
}

/// Splits an unencrypted record's only handshake message into two records.
func fragments(ofRecord record: [UInt8]) -> [[UInt8]] {
  let header = record[..<13]
  let message = record[13..<25]
  let body = record[25...]
  let half = body.count / 2
  func part(_ range: Range<Int>, number: UInt8) -> [UInt8] {
    var fragment = Array(header)
    fragment[10] = number
    fragment[11] = UInt8((range.count + 12) >> 8)
    fragment[12] = UInt8((range.count + 12) & 255)
    fragment += message[..<(message.startIndex + 6)]
    fragment += [0, UInt8(range.lowerBound >> 8), UInt8(range.lowerBound & 255)]
    fragment += [0, UInt8(range.count >> 8), UInt8(range.count & 255)]
    fragment += body.dropFirst(range.lowerBound).prefix(range.count)
    return fragment
  }
  // The second number leaves room for the following records.
  return [part(0..<half, number: 0), part(half..<body.count, number: 40)]
}
