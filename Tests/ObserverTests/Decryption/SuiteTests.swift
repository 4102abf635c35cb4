import Secure
import Testing
import Wire

struct SuiteTests {
  private func packet(_ sequence: Int) -> [UInt8] {
    [0x80, 96, UInt8(truncatingIfNeeded: sequence >> 8), UInt8(truncatingIfNeeded: sequence)]
      + [0, 0, 0, 1, 0, 0, 0, 9] + [UInt8](repeating: 7, count: 40)
  }

  @Test(arguments: [
    SRTPProfile.aes128CMSHA1_80, .aes128CMSHA1_32, .nullSHA1_80, .nullSHA1_32, .aeadAES128GCM,
    .aeadAES256GCM,
  ])
  func aReceiverDecryptsWhatAContextProtects(profile: SRTPProfile) throws {
    let suite = try #require(SRTPSuite(profile))
    let key = (0..<suite.keyLength + suite.saltLength).map { UInt8($0) }
    var context = try SRTPContext(profile: profile, sendKey: key, receiveKey: key)
    let receiver = try SRTPReceiver(suite, key: key)
    for sequence in 1...20 {
      var sealed = packet(sequence)
      try context.protectRTP(&sealed)
      #expect(sealed.count == packet(sequence).count + suite.tagLength)
      try receiver.open(&sealed, isRTCP: false)
      #expect(sealed == packet(sequence))
    }
    let report: [UInt8] = [0x80, 201, 0, 1, 0, 0, 0, 9]
    var sealed = report
    try context.protectRTCP(&sealed)
    #expect(sealed.count == report.count + 4 + suite.controlTagLength)
    try receiver.open(&sealed, isRTCP: true)
    #expect(sealed == report)
  }

  @Test(arguments: SRTPSuite.allCases)
  func aReceiverCanBeMadeForEverySuite(suite: SRTPSuite) throws {
    let key = [UInt8](repeating: 3, count: suite.keyLength + suite.saltLength)
    let receiver = try SRTPReceiver(suite, key: key, identifier: [0, 0, 0, 1])
    var packet = packet(1) + [UInt8](repeating: 0, count: 30)
    #expect(throws: SRTPContext.Refusal.self) { try receiver.open(&packet, isRTCP: false) }
    #expect(throws: SecureError.self) { try SRTPReceiver(suite, key: Array(key.dropLast())) }
  }

  /// Re-protects packets with every suite, with and without an MKI, including packets from a sender
  /// whose sequence numbers had wrapped before its first packet was seen.
  @Test(arguments: SRTPSuite.allCases, [[], [1], [0, 0, 0, 7]] as [[UInt8]])
  func packetsAreProtectedAgain(suite: SRTPSuite, identifier: [UInt8]) throws {
    let keys = (1...3).map { [UInt8](repeating: $0, count: suite.keyLength + suite.saltLength) }
    func reprotection(_ old: Int, _ new: Int) throws -> SRTPReprotection {
      try SRTPReprotection(suite, old: keys[old], new: keys[new], identifier: identifier)
    }
    let (sender, redaction) = (try reprotection(0, 1), try reprotection(1, 2))
    let receiver = try SRTPReceiver(suite, key: keys[2], identifier: identifier)
    let report: [UInt8] = [0x80, 201, 0, 1, 0, 0, 0, 9]
    for sequence in stride(from: 0, to: 2 * 65_536, by: 1000) {
      var packet = packet(sequence & 0xffff)
      try sender.protect(&packet, isRTCP: false)
    }
    for number in 0..<20 {
      // In suites with 32-bit tags, RTCP has longer ones.
      let isRTCP = number % 4 == 0
      let plain = isRTCP ? report : packet(2 * 65_536 + number & 0xffff)
      var packet = plain
      try sender.protect(&packet, isRTCP: isRTCP)
      #expect(packet.count > plain.count + identifier.count)
      let sealed = packet
      try redaction.open(&packet, isRTCP: isRTCP)
      #expect(packet == plain)
      try redaction.protect(&packet, isRTCP: isRTCP)
      #expect(packet.count == sealed.count && packet != sealed)
      try receiver.open(&packet, isRTCP: isRTCP)
      #expect(packet == plain)
    }
  }

  @Test func aLateReceiverFindsTheRolloverCounter() throws {
    let key = [UInt8](repeating: 5, count: 28)
    var context = try SRTPContext(profile: .aeadAES128GCM, sendKey: key, receiveKey: key)
    for sequence in stride(from: 0, to: 3 * 65_536, by: 1000) {
      var sealed = packet(sequence & 0xffff)
      try context.protectRTP(&sealed)
    }
    let receiver = try SRTPReceiver(.aeadAES128GCM, key: key)
    for sequence in 3 * 65_536..<3 * 65_536 + 10 {
      var sealed = packet(sequence & 0xffff)
      try context.protectRTP(&sealed)
      try receiver.open(&sealed, isRTCP: false)
      #expect(sealed == packet(sequence & 0xffff))
    }
  }
}
