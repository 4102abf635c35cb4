import Foundation
import Observer
import Secure
import Testing
import Wire

/// Tests ends that change their SRTP key during the call.
struct KeyChangeTests {
  private static let tuple = FiveTuple(from: Messages.a, to: Messages.b)
  private static let keys = (1...3).map { [UInt8](repeating: $0, count: 30) }

  private func line(_ keys: [(place: Int, identifier: String)]) -> String {
    let texts = keys.map {
      "inline:" + Data(Self.keys[$0.place]).base64EncodedString() + $0.identifier
    }
    return "a=crypto:1 AES_CM_128_HMAC_SHA1_80 " + texts.joined(separator: ";")
  }

  private func description(_ crypto: String, version: Int = 1) -> String {
    [
      "v=0", "o=- 1 \(version) IN IP4 \(Messages.a.ip)", "s=-", "c=IN IP4 \(Messages.a.ip)",
      "t=0 0", "m=audio \(Messages.a.port) RTP/SAVP 8", crypto, "",
    ].joined(separator: "\r\n")
  }

  private func sender(_ place: Int, _ identifier: [UInt8]) throws -> SRTPReprotection {
    try SRTPReprotection(
      .aes128CMSHA1_80, old: Self.keys[place], new: Self.keys[place], identifier: identifier)
  }

  /// Sends packets, each under one of the keys; returns whether each was decrypted.
  private func opened(
    _ crypto: String, _ keys: [Int], identifiers: [[UInt8]], renewedAt: (Int, String)? = nil,
    settings: ObserverSettings = ObserverSettings()
  ) throws -> [Bool] {
    var observer = Observer(settings)
    var call = SyntheticCall()
    call.watch.step(&observer, .description(description(crypto), .wire), at: .zero)
    let senders = try keys.indices.map { try sender($0, identifiers[$0]) }
    var sequence = 0
    for (key, count) in keys.enumerated() {
      for _ in 0..<count {
        if let renewedAt, renewedAt.0 == sequence {
          call.watch.step(
            &observer, .description(description(renewedAt.1, version: 2), .wire), at: call.now)
        }
        var packet = Messages.rtp(sequence)
        try senders[key].protect(&packet, isRTCP: false)
        call.send(packet, Self.tuple, to: &observer)
        sequence += 1
      }
    }
    call.watch.end(&observer)
    return call.seen.packets.map(\.isClear)
  }

  @Test func packetsWithAnIdentifierAreDecrypted() throws {
    let opened = try opened(line([(0, "|2^20|1:4")]), [20], identifiers: [[0, 0, 0, 1]])
    #expect(opened == [Bool](repeating: true, count: 20))
  }

  /// An SDES line has two keys, and the sender changes from one to the other.
  @Test func theIdentifierChoosesTheKey() throws {
    let opened = try opened(
      line([(0, "|2^20|1:1"), (1, "|2^20|2:1")]), [20, 20], identifiers: [[1], [2]])
    #expect(opened == [Bool](repeating: true, count: 40))
  }

  /// A new offer brings another key (RFC 4568 section 7.1.4).
  @Test func aNewOfferChangesTheKey() throws {
    let opened = try opened(
      line([(0, "")]), [20, 20], identifiers: [[], []], renewedAt: (20, line([(1, "")])))
    #expect(opened == [Bool](repeating: true, count: 40))
  }

  /// Takes recorded before key changes were followed keep their rows.
  @Test func withoutTheSettingTheFirstKeyStays() throws {
    var settings = ObserverSettings()
    settings.followsKeys = false
    let opened = try opened(
      line([(0, "|1:1"), (1, "|2:1")]), [20, 20], identifiers: [[1], [2]], settings: settings)
    #expect(opened == [true, false].flatMap { [Bool](repeating: $0, count: 20) })
  }
}
