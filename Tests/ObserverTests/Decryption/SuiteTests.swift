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
