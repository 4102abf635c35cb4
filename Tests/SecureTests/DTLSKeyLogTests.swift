import Secure
import Testing
import Wire

/// Tests decryption with an association's logged secrets.
struct DTLSKeyLogTests {
  private func established() throws -> DTLSPair {
    let pair = try DTLSPair()
    pair.start()
    pair.run()
    #expect(pair.isConnected)
    return pair
  }

  @Test func mediaKeysAreDerivedFromTheSecrets() throws {
    let pair = try established()
    for end in [pair.client, pair.server] {
      let result = try #require(end.result)
      let profile = try #require(result.profile)
      let keys = try #require(
        result.secrets.srtpKeys(profile, cipherSuite: result.cipherSuite, role: end.role))
      #expect(keys.send == result.sendKey)
      #expect(keys.receive == result.receiveKey)
    }
    #expect(pair.client.result?.secrets == pair.server.result?.secrets)
  }

  @Test func recordsAreDecryptedAndEncryptedWithTheSecrets() throws {
    let pair = try established()
    let result = try #require(pair.client.result)
    let message = Array("a message".utf8)
    let before = pair.client.sent.count
    pair.step(pair.client, .send(message))
    let datagram = try #require(pair.client.sent.dropFirst(before).first)
    let record = try #require(DTLSRecord.all(in: datagram).first)
    #expect(record.bytes == datagram)
    let client = try #require(
      DTLSRecordProtection(result.secrets, cipherSuite: result.cipherSuite, sender: .client))
    let server = try #require(
      DTLSRecordProtection(result.secrets, cipherSuite: result.cipherSuite, sender: .server))
    #expect(client.open(record) == message)
    #expect(server.open(record) == nil)
    #expect(client.seal(message, like: record)?.bytes == datagram)
    let other = try #require(client.seal(Array("another".utf8), like: record))
    #expect(client.open(other) == Array("another".utf8))
    var damaged = record
    damaged.fragment[12] ^= 1
    #expect(client.open(damaged) == nil)
    damaged.fragment = [1, 2, 3]
    #expect(client.open(damaged) == nil)
  }

  @Test func suitesWithoutAEADAreNotDecrypted() throws {
    let result = try #require(try established().client.result)
    #expect(
      DTLSRecordProtection(
        result.secrets, cipherSuite: "TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA", sender: .client)
        == nil)
    for suite in ["TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "X_AES_256_GCM_SHA384"] {
      let protection = try #require(
        DTLSRecordProtection(result.secrets, cipherSuite: suite, sender: .client))
      let empty = DTLSRecord(
        type: DTLSRecord.applicationData, epoch: 1, sequence: 7,
        fragment: [UInt8](repeating: 0, count: 8))
      let sealed = try #require(protection.seal([1, 2, 3], like: empty))
      #expect(protection.open(sealed) == [1, 2, 3])
    }
  }

  @Test func anyBytesAreRecordsOrNone() {
    let entropy = Entropy(seed: [9]).stream("records")
    for _ in 0..<5_000 {
      let bytes = entropy.bytes(Int(entropy.integer(below: 80)))
      #expect(DTLSRecord.all(in: bytes).reduce(0) { $0 + $1.bytes.count } <= bytes.count)
    }
  }
}
