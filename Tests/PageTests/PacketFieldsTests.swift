import Foundation
import Seeded
import Testing
import Wire

@testable import Page

struct PacketFieldsTests {
  private func value(_ name: String, _ packet: PacketFields) -> String? {
    packet.layers.flatMap(\.fields).first { $0.name == name }?.value
  }

  private func bytes(_ hex: String) throws -> [UInt8] {
    try #require([UInt8](hexadecimal: hex.replacing(" ", with: "")))
  }

  /// The sample response of RFC 5769 section 2.2.
  @Test func aBindingResponseHasItsAddressInTheClear() throws {
    let packet = PacketFields(
      try bytes(
        """
        0101003c2112a442b7e7a701bc34d686fa87dfae8022000b7465737420766563746f7220\
        002000080001a147e112a643000800142b91f599fd9e90c38c7489f92af9ba53f06be7d7\
        80280004c07d4c96
        """), kind: "stun")
    #expect(packet.layers.map(\.name) == ["STUN"])
    #expect(value("type", packet) == "Binding success response")
    #expect(value("SOFTWARE", packet) == "test vector")
    #expect(value("XOR-MAPPED-ADDRESS", packet) == "192.0.2.1 port 32853")
    let address = try #require(
      packet.layers[0].fields.first { $0.name == "XOR-MAPPED-ADDRESS" })
    #expect((address.from, address.length) == (36, 12))
  }

  @Test func aCompoundOfReportsHasALayerForEach() throws {
    let compound = try bytes(
      """
      81c8000c 00000001 0102030405060708 00000010 00000020 00000300 \
      00000002 40000005 00010007 00000009 00000000 00010000 \
      81cd0003 00000001 00000002 00640005
      """)
    let packet = PacketFields(compound, kind: "rtcp", isClear: true)
    #expect(packet.layers.map(\.name) == ["RTCP", "RTCP NACK"])
    #expect(value("fraction lost", packet) == "64 of 256")
    #expect(value("delay since then", packet) == "65536 of 65536 s")
    #expect(value("SSRC of media", packet) == "2" && value("missing", packet) == "100")
    #expect(value("and of the next 16", packet) == "0000000000000101")
    // Under SRTCP, only the first header is unencrypted.
    let sealed = PacketFields(compound, kind: "rtcp")
    #expect(sealed.layers.count == 1 && value("encrypted in SRTCP", sealed) != nil)
  }

  @Test func headerExtensionsHaveTheirNumbers() throws {
    let packet = PacketFields(
      try bytes("90e00001 00000002 00000003 bede0002 10aa 2177 88 00 f0 00 0102"), kind: "rtp")
    #expect(value("marker, payload type", packet) == "1, 96")
    #expect(value("extension 1", packet) == "aa" && value("extension 2", packet) == "77 88")
    #expect(value("payload, encrypted in SRTP", packet) == "01 02")
  }

  @Test func aChannelOfTURNIsALayerAroundWhatItCarries() throws {
    let packet = PacketFields(
      try bytes("40010014 00010000 2112a442 000102030405060708090a0b"), kind: "turn")
    #expect(packet.layers.map(\.name) == ["TURN channel", "STUN"])
    #expect(value("channel", packet) == "0x00004001")
    #expect(packet.layers[1].fields.first?.from == 4)
  }

  @Test func recordsAndChunksHaveTheirTypes() throws {
    let hello = try bytes("16fefd0000000000000007000c 02 000000 0001 000000 000000")
    #expect(PacketFields.line(hello, kind: "dtls") == "ServerHello (2)")
    let data = try bytes("13881388 00000001 00000002 00030014 00000007 0001 0002 00000033 68690000")
    let packet = PacketFields(data, kind: "sctp")
    #expect(value("chunk", packet) == "DATA (0), flags 3, 20 bytes")
    #expect(value("TSN", packet) == "7" && value("payload protocol", packet) == "51")
  }

  @Test func truncatedPacketsAreReported() throws {
    let packet = PacketFields(try bytes("8060 0001 0000"), kind: "rtp")
    #expect(packet.layers[0].fields.last?.name == "cut short")
    #expect(PacketFields([], kind: "rtp").layers.isEmpty)
  }

  /// Fields of arbitrary bytes are parsed as far as possible, and always lie within the packet.
  @Test func anyBytesAreRead() {
    var seed = SeededGenerator(seed: 7)
    var layers = 0
    let kinds = ["stun", "dtls", "rtp", "rtcp", "sctp", "turn", "other"]
    for round in 0..<6_000 {
      var bytes = (0..<Int(seed.next() % 160)).map { _ in UInt8(truncatingIfNeeded: seed.next()) }
      if !bytes.isEmpty, round % 2 == 1 {
        bytes[0] = [0, 1, 22, 63, 64, 128, 129, 144][Int(seed.next() % 8)]
      }
      if bytes.count > 1, round % 3 == 0 { bytes[1] = UInt8(200 + seed.next() % 8) }
      for kind in kinds {
        for isClear in [false, true] {
          let packet = PacketFields(bytes, kind: kind, isClear: isClear)
          layers += packet.layers.count
          let isInside = packet.layers.flatMap(\.fields).allSatisfy {
            $0.from >= 0 && $0.length >= 0 && $0.from + $0.length <= bytes.count
          }
          #expect(isInside, "\(kind): \(bytes)")
        }
      }
    }
    #expect(layers > 10_000)
  }

  /// A packet of many short parts must not become megabytes of JSON.
  @Test func partsOfALayerAreLimited() {
    let attributes = [UInt8](repeating: 0, count: 65_000)
    let packet = PacketFields([0, 1] + attributes, kind: "stun")
    #expect(packet.layers[0].fields.count <= 1_001)
  }
}
