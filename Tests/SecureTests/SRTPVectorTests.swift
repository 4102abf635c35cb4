import Secure
import Testing

/// Tests known packets from libsrtp's published reference values and from real calls.
struct SRTPVectorTests {
  struct Vector: Sendable {
    let profile: SRTPProfile
    let key: String
    let rtp: String
    let rtcp: String
  }

  static let plainRTP = hex("800f1234decafbadcafebabe" + String(repeating: "ab", count: 16))
  static let plainRTCP = hex("81c8000bcafebabe" + String(repeating: "ab", count: 16))

  static let vectors = [
    // The master key and salt of RFC 3711 appendix B.3.
    Vector(
      profile: .aes128CMSHA1_80,
      key: "e1f97a0d3e018be0d64fa32c06de4139 0ec675ad498afeebb6960b3aabe6",
      rtp: """
        800f1234decafbadcafebabe
        4e55dc4ce79978d88ca4d215949d2402 b78d6acc99ea179b8dbb
        """,
      rtcp: """
        81c8000bcafebabe
        7128035be487b9bdbef89041f977a5a8 80000001 993e08cd54d6c1230798
        """),
    Vector(
      profile: .aeadAES128GCM,
      key: "000102030405060708090a0b0c0d0e0f a0a1a2a3a4a5a6a7a8a9aaab",
      rtp: """
        800f1234decafbadcafebabe
        c5002ede04cfdd2eb91159e0880aa06e d2976826f796b201df3131a127e8a392
        """,
      rtcp: """
        81c8000bcafebabe
        c98b8b5df0392a55852b6c21ac8e7025 c52c6fbea2b3b446ea31123ba88ce61e 80000001
        """),
    // The AES-256 packet of another implementation, with the key derivation of RFC 6188.
    Vector(
      profile: .aeadAES256GCM,
      key: """
        000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f
        a0a1a2a3a4a5a6a7a8a9aaab
        """,
      rtp: """
        800f1234decafbadcafebabe
        0af7f21e8a90bdad7a425c9c31ed4bb1 d90238917e7390a2793500e1681acaea
        """,
      rtcp: """
        81c8000bcafebabe
        8abfafa780070a90e80f9161cf4aac08 1ed93aaa53c15b0f3ed1a3b984167b03 80000001
        """),
  ]

  @Test(arguments: vectors) func protectedPacketsMatchTheReference(vector: Vector) throws {
    let key = hex(vector.key)
    var context = try SRTPContext(profile: vector.profile, sendKey: key, receiveKey: key)
    var rtp = Self.plainRTP
    try context.protectRTP(&rtp)
    #expect(rtp == hex(vector.rtp))
    try context.unprotectRTP(&rtp)
    #expect(rtp == Self.plainRTP)
    var rtcp = Self.plainRTCP
    try context.protectRTCP(&rtcp)
    #expect(rtcp == hex(vector.rtcp))
    try context.unprotectRTCP(&rtcp)
    #expect(rtcp == Self.plainRTCP)
  }

  @Test(arguments: [CapturedCall.chromium, .firefox])
  func realCallsAreDecrypted(call: CapturedCall) throws {
    var client = try SRTPContext(
      profile: call.profile, sendKey: call.clientKey, receiveKey: call.serverKey)
    var server = try SRTPContext(
      profile: call.profile, sendKey: call.serverKey, receiveKey: call.clientKey)
    for packet in call.packets {
      var bytes = packet.protected
      switch (packet.isRTCP, packet.isFromClient) {
      case (true, true): try server.unprotectRTCP(&bytes)
      case (true, false): try client.unprotectRTCP(&bytes)
      case (false, true): try server.unprotectRTP(&bytes)
      case (false, false): try client.unprotectRTP(&bytes)
      }
      #expect(bytes == packet.plain)
      // Protecting the plain packet again produces the browser's packet.
      guard !packet.isRTCP else { continue }
      if packet.isFromClient {
        try client.protectRTP(&bytes)
      } else {
        try server.protectRTP(&bytes)
      }
      #expect(bytes == packet.protected)
    }
    #expect(call.packets.count >= 5)
  }

  @Test func keysOfAHandshakeProtectAPacket() throws {
    let pair = try DTLSPair()
    pair.start()
    pair.run()
    let one = try #require(pair.client.result)
    let two = try #require(pair.server.result)
    var client = try SRTPContext(
      profile: try #require(one.profile), sendKey: one.sendKey, receiveKey: one.receiveKey)
    var server = try SRTPContext(
      profile: try #require(two.profile), sendKey: two.sendKey, receiveKey: two.receiveKey)
    for _ in 0..<2 {
      var packet = SRTPTests.rtcp
      try client.protectRTCP(&packet)
      try server.unprotectRTCP(&packet)
      #expect(packet == SRTPTests.rtcp)
    }
  }
}
