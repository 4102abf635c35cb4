import Secure
import Seeded
import Testing

struct SRTPTests {
  static let profiles: [SRTPProfile] = [
    .aes128CMSHA1_80, .aeadAES128GCM, .aeadAES256GCM,
  ]

  static func key(_ profile: SRTPProfile, _ first: UInt8) -> [UInt8] {
    let count: UInt8 = profile == .aeadAES256GCM ? 44 : profile == .aeadAES128GCM ? 28 : 30
    return (0..<count).map { first &+ $0 }
  }

  static func rtp(_ sequence: UInt16, ssrc: UInt32 = 7, count: Int = 20) -> [UInt8] {
    let number = [UInt8(sequence >> 8), UInt8(truncatingIfNeeded: sequence)]
    return [0x80, 96] + number + [0, 0, 0, 1]
      + (0..<4).map { UInt8(truncatingIfNeeded: ssrc >> (24 - 8 * $0)) }
      + [UInt8](repeating: 0xcd, count: count)
  }

  static let rtcp: [UInt8] = [0x80, 201, 0, 1, 0, 0, 0, 9]

  @Test(arguments: profiles) func packetsRoundTrip(profile: SRTPProfile) throws {
    var alice = try SRTPContext.alice(profile)
    var bob = try SRTPContext.bob(profile)
    for sequence in UInt16(0)..<50 {
      let plain = Self.rtp(sequence, ssrc: UInt32(sequence % 3), count: Int(sequence) * 20)
      var packet = plain
      try alice.protectRTP(&packet)
      #expect(packet.count == plain.count + (profile == .aes128CMSHA1_80 ? 10 : 16))
      #expect(packet.prefix(12) == plain.prefix(12))
      #expect(plain.count == 12 || packet[12...].prefix(8) != plain[12...].prefix(8))
      try bob.unprotectRTP(&packet)
      #expect(packet == plain)
      var control = Self.rtcp
      try bob.protectRTCP(&control)
      #expect(control.count == 8 + 4 + (profile == .aes128CMSHA1_80 ? 10 : 16))
      #expect(control.count <= Self.rtcp.count + SRTPContext.overhead)
      try alice.unprotectRTCP(&control)
      #expect(control == Self.rtcp)
    }
  }

  @Test(arguments: profiles) func headerExtensionsAndContributorsStayReadable(
    profile: SRTPProfile
  ) throws {
    var alice = try SRTPContext.alice(profile)
    var bob = try SRTPContext.bob(profile)
    var plain: [UInt8] = [0x92, 96, 0, 1, 0, 0, 0, 1, 0, 0, 0, 7]
    plain += [0, 0, 0, 1, 0, 0, 0, 2] + [0xbe, 0xde, 0, 1, 0x10, 0x55, 0, 0] + [1, 2, 3, 4]
    var packet = plain
    try alice.protectRTP(&packet)
    #expect(packet.prefix(28) == plain.prefix(28))
    try bob.unprotectRTP(&packet)
    #expect(packet == plain)
  }

  @Test(arguments: profiles) func repeatedPacketsAreRefused(profile: SRTPProfile) throws {
    var alice = try SRTPContext.alice(profile)
    var bob = try SRTPContext.bob(profile)
    var packet = Self.rtp(10)
    try alice.protectRTP(&packet)
    var control = Self.rtcp
    try alice.protectRTCP(&control)
    for isFirst in [true, false] {
      var again = packet
      var controlAgain = control
      if isFirst {
        try bob.unprotectRTP(&again)
        try bob.unprotectRTCP(&controlAgain)
      } else {
        #expect(
          bob.unprotectRTPRefusal(&again) == .replayed)
        #expect(
          bob.unprotectRTCPRefusal(&controlAgain) == .replayed)
        #expect(again.count == packet.count)
      }
    }
  }

  @Test(arguments: profiles) func onlyPacketsInsideTheReplayWindowAreAccepted(
    profile: SRTPProfile
  ) throws {
    var alice = try SRTPContext.alice(profile)
    var bob = try SRTPContext.bob(profile)
    var packets: [[UInt8]] = []
    for sequence in UInt16(0)..<1500 {
      var packet = Self.rtp(sequence, count: 4)
      try alice.protectRTP(&packet)
      packets.append(packet)
    }
    try bob.unprotectRTP(&packets[1499])
    try bob.unprotectRTP(&packets[1499 - 1000])
    #expect(
      bob.unprotectRTPRefusal(&packets[1499 - 1100]) == .replayed)
  }

  @Test(arguments: profiles) func tamperedPacketsAreRefused(profile: SRTPProfile) throws {
    var alice = try SRTPContext.alice(profile)
    var bob = try SRTPContext.bob(profile)
    var packet = Self.rtp(10)
    try alice.protectRTP(&packet)
    var control = Self.rtcp
    try alice.protectRTCP(&control)
    for bit in 0..<(packet.count * 8) {
      var broken = packet
      broken[bit / 8] ^= 1 << UInt8(bit % 8)
      #expect(bob.unprotectRTPRefusal(&broken) != nil)
    }
    for bit in 0..<(control.count * 8) {
      var broken = control
      broken[bit / 8] ^= 1 << UInt8(bit % 8)
      #expect(bob.unprotectRTCPRefusal(&broken) != nil)
    }
    var payload = packet
    payload[20] ^= 1
    #expect(
      bob.unprotectRTPRefusal(&payload) == .authentication)
    // The unchanged packets are still accepted.
    try bob.unprotectRTP(&packet)
    try bob.unprotectRTCP(&control)
  }

  @Test(arguments: profiles) func otherKeysFailToDecrypt(profile: SRTPProfile) throws {
    var alice = try SRTPContext.alice(profile)
    var packet = Self.rtp(1)
    try alice.protectRTP(&packet)
    #expect(
      alice.unprotectRTPRefusal(&packet) == .authentication)
  }

  @Test(arguments: profiles) func sequenceNumbersWrap(profile: SRTPProfile) throws {
    var alice = try SRTPContext.alice(profile)
    var bob = try SRTPContext.bob(profile)
    for offset in 0..<UInt16(40) {
      let plain = Self.rtp(65_520 &+ offset)
      var packet = plain
      try alice.protectRTP(&packet)
      try bob.unprotectRTP(&packet)
      #expect(packet == plain)
    }
  }

  @Test(arguments: profiles) func samePacketMayBeSentTwice(profile: SRTPProfile) throws {
    var alice = try SRTPContext.alice(profile)
    var one = Self.rtp(5)
    var two = one
    try alice.protectRTP(&one)
    try alice.protectRTP(&two)
    #expect(one == two)
  }

  @Test func libraryVersionIsReported() {
    #expect(SRTPContext.libraryVersion.hasPrefix("libsrtp2 2."))
  }

  @Test func unfitKeysAndProfilesAreRefused() {
    let short = [UInt8](repeating: 1, count: 27)
    #expect(throws: SecureError.self) {
      _ = try SRTPContext(profile: .aeadAES128GCM, sendKey: short, receiveKey: short)
    }
    #expect(throws: SecureError.self) {
      let key = [UInt8](repeating: 1, count: 44)
      _ = try SRTPContext(profile: SRTPProfile(rawValue: 9), sendKey: key, receiveKey: key)
    }
  }

  @Test(arguments: profiles) func roomForTheTagAvoidsACopy(profile: SRTPProfile) throws {
    var alice = try SRTPContext.alice(profile)
    var packet: [UInt8] = []
    packet.reserveCapacity(1200 + SRTPContext.overhead)
    packet += Self.rtp(1, count: 1188)
    let before = packet.withUnsafeBufferPointer { $0.baseAddress }
    try alice.protectRTP(&packet)
    #expect(packet.withUnsafeBufferPointer { $0.baseAddress } == before)
  }

  @Test(arguments: profiles) func mutatedPacketsNeverTrap(profile: SRTPProfile) throws {
    var alice = try SRTPContext.alice(profile)
    var bob = try SRTPContext.bob(profile)
    var random = SeededGenerator(seed: 5)
    var models: [[UInt8]] = []
    for sequence in UInt16(1)..<20 {
      var packet = Self.rtp(sequence, count: Int(sequence) * 5)
      if sequence % 2 == 0 { packet[0] = 0x92 }
      try? alice.protectRTP(&packet)
      models.append(packet)
      var control = Self.rtcp
      try alice.protectRTCP(&control)
      models.append(control)
    }
    models.append([])
    for _ in 0..<15_000 {
      let model = models.randomElement(using: &random) ?? []
      var one = mutated(model, with: &random)
      var two = one
      var three = one
      var four = one
      let count = one.count
      if bob.unprotectRTPRefusal(&one) != nil {
        #expect(one.count == count)
      }
      _ = bob.unprotectRTCPRefusal(&two)
      if bob.protectRTPRefusal(&three) != nil {
        #expect(three.count == count)
      }
      _ = bob.protectRTCPRefusal(&four)
    }
  }
}

extension SRTPContext {
  static func alice(_ profile: SRTPProfile) throws -> SRTPContext {
    try SRTPContext(
      profile: profile, sendKey: SRTPTests.key(profile, 1), receiveKey: SRTPTests.key(profile, 100))
  }

  static func bob(_ profile: SRTPProfile) throws -> SRTPContext {
    try SRTPContext(
      profile: profile, sendKey: SRTPTests.key(profile, 100), receiveKey: SRTPTests.key(profile, 1))
  }

  mutating func protectRTPRefusal(_ packet: inout [UInt8]) -> Refusal? {
    do { try protectRTP(&packet) } catch { return error }
    return nil
  }

  mutating func protectRTCPRefusal(_ packet: inout [UInt8]) -> Refusal? {
    do { try protectRTCP(&packet) } catch { return error }
    return nil
  }

  mutating func unprotectRTPRefusal(_ packet: inout [UInt8]) -> Refusal? {
    do { try unprotectRTP(&packet) } catch { return error }
    return nil
  }

  mutating func unprotectRTCPRefusal(_ packet: inout [UInt8]) -> Refusal? {
    do { try unprotectRTCP(&packet) } catch { return error }
    return nil
  }
}
