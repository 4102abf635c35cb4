import Observer
import Secure
import Testing
import Wire

/// Tests encrypted header extensions (RFC 9335).
struct CryptexTests {
  private static let tuple = FiveTuple(from: Messages.a, to: Messages.b)
  private static let key = [UInt8](0..<30)

  /// Returns the observer's reports for packets with these header extension profiles.
  private func seen(_ profiles: [UInt16], hasKey: Bool = true) throws -> Seen {
    var observer = Observer()
    var call = SyntheticCall()
    if hasKey {
      let key = SRTPKey(suites: [.aes128CMSHA1_80], bytes: Self.key)
      call.watch.step(&observer, .srtpKey(key), at: .zero)
    }
    call.connect(&observer, Self.tuple)
    var protection = try SRTPContext(
      profile: .aes128CMSHA1_80, sendKey: Self.key, receiveKey: Self.key)
    for (sequence, profile) in profiles.enumerated() {
      var packet = Messages.rtp(sequence, type: 96)
      packet[0] |= 0x10
      packet.insert(
        contentsOf: [UInt8(profile >> 8), UInt8(profile & 0xff), 0, 1, 0x10, 0x30, 0, 0], at: 12)
      try protection.protectRTP(&packet)
      call.send(packet, Self.tuple, to: &observer)
    }
    call.watch.end(&observer)
    return call.seen
  }

  @Test(arguments: [0xc0de, 0xc2de] as [UInt16])
  func packetsAreReportedAndNotCountedAsDecrypted(profile: UInt16) throws {
    let seen = try seen([0xbede, profile, profile, 0xbede, profile])
    let row = try #require(seen.coverage.last { $0.kind == .cryptex })
    #expect(row.count == 3 && row.transport == 1)
    #expect(seen.packets.map(\.isClear) == [true, false, false, true, false])
    #expect(!seen.coverage.contains { $0.kind == .notOpened || $0.kind == .noKeys })
  }

  @Test func packetsWithoutAKeyAreReportedToo() throws {
    let seen = try seen([0xc0de, 0xc0de], hasKey: false)
    for kind in [CoverageReport.Kind.cryptex, .noKeys] {
      #expect(seen.coverage.last { $0.kind == kind }?.count == 2)
    }
    #expect(seen.packets.allSatisfy { !$0.isClear })
  }

  @Test func otherExtensionsAreNotReported() throws {
    let seen = try seen([0xbede, 0x1000, 0xbede])
    #expect(!seen.coverage.contains { $0.kind == .cryptex })
    #expect(seen.packets.map(\.isClear) == [true, true, true])
  }
}
