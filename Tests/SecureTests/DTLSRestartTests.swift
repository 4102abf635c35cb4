import Secure
import Testing
import Wire

struct DTLSRestartTests {
  private func restart(_ pair: DTLSPair) {
    pair.step(
      pair.server, .restart(.server, remoteFingerprints: [pair.client.transport.fingerprint]))
    pair.step(
      pair.client, .restart(.client, remoteFingerprints: [pair.server.transport.fingerprint]))
  }

  @Test func anotherAssociationHasOtherKeysAndTheSameCertificates() throws {
    let pair = try DTLSPair()
    pair.start()
    pair.run()
    let before = try #require(pair.client.result)
    restart(pair)
    pair.run()
    #expect(pair.agrees)
    let after = try #require(pair.client.result)
    #expect(after.sendKey != before.sendKey)
    #expect(after.remoteCertificate == before.remoteCertificate)
    #expect(pair.client.states == [.connecting, .connected, .connecting, .connected])
    pair.step(pair.client, .send([1, 2, 3]))
    pair.run()
    #expect(pair.server.data == [[1, 2, 3]])
  }

  @Test(arguments: UInt32(0)..<24) func aRestartSucceedsDespiteLoss(mask: UInt32) throws {
    var isLossy = false
    var count: UInt32 = 0
    let pair = try DTLSPair { _, bytes in
      guard isLossy else { return [(DTLSPair.delay, bytes)] }
      defer { count += 1 }
      return count < 32 && mask >> count & 1 == 1 ? [] : [(DTLSPair.delay, bytes)]
    }
    pair.start()
    pair.run()
    isLossy = true
    restart(pair)
    pair.run(for: .seconds(29))
    #expect(pair.agrees)
  }

  @Test func aRestartAfterAnEndOrAFailureWorksToo() throws {
    let wrong = CertificateFingerprint(
      algorithm: "sha-256", value: Array(repeating: "AB", count: 32).joined(separator: ":"))
    let failed = try DTLSPair()
    failed.start(clientExpects: [wrong])
    failed.run()
    #expect(failed.client.transport.state == .failed)
    restart(failed)
    failed.run()
    #expect(failed.agrees)

    let closed = try DTLSPair()
    closed.start()
    closed.run()
    closed.step(closed.client, .close)
    closed.run()
    #expect(closed.server.transport.state == .closed)
    restart(closed)
    closed.run()
    #expect(closed.agrees)
  }

  @Test func datagramsOfTheFormerAssociationDoNoHarm() throws {
    let pair = try DTLSPair()
    pair.start()
    pair.run()
    let handshake = pair.client.sent.count
    for number in UInt8(0)..<8 { pair.step(pair.client, .send([number])) }
    pair.run()
    let old = pair.client.sent[handshake...]
    #expect(old.count == 8)
    restart(pair)
    for bytes in old { pair.step(pair.server, .datagram(bytes)) }
    pair.run(for: .seconds(29))
    #expect(pair.agrees)
  }

  @Test func theRestartChecksTheNewFingerprints() throws {
    let pair = try DTLSPair()
    pair.start()
    pair.run()
    let other = try DTLSPair.End(.client, seed: [77]).transport.fingerprint
    pair.step(pair.server, .restart(.server, remoteFingerprints: [other]))
    pair.step(
      pair.client, .restart(.client, remoteFingerprints: [pair.server.transport.fingerprint]))
    pair.run()
    #expect(pair.server.transport.state == .failed)
  }
}
