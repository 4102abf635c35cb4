import Seeded
import Testing
import Wire

@testable import RTP

struct RTCPTests {
  static let block = ReportBlock(
    ssrc: 0x0102_0304, fractionLost: 64, cumulativeLost: -2, highestSequence: 0x0001_ffff,
    jitter: 77, lastSenderReport: 0xaabb_ccdd, delaySinceLastSenderReport: 65536)

  /// Packets and their bytes, worked out by hand from the RFCs.
  static let golden: [(RTCPPacket, String)] = [
    (
      .senderReport(
        SenderReport(
          ssrc: 1, ntpTime: 0xe6f1_c2d3_8000_0000, rtpTime: 90000, packetCount: 10,
          octetCount: 1000, blocks: [block])),
      """
      81c8000c 00000001 e6f1c2d3 80000000 00015f90 0000000a 000003e8
      01020304 40fffffe 0001ffff 0000004d aabbccdd 00010000
      """
    ),
    (.receiverReport(ReceiverReport(ssrc: 7)), "80c90001 00000007"),
    (
      .sourceDescription(SourceDescription(chunks: [.init(ssrc: 5, cname: "abc")])),
      "81ca0003 00000005 0103616263 000000"
    ),
    (.goodbye(Goodbye(ssrcs: [1, 2])), "82cb0002 00000001 00000002"),
    (.goodbye(Goodbye(ssrcs: [1], reason: "end")), "81cb0002 00000001 03656e64"),
    (
      .genericNACK(
        GenericNACK(senderSSRC: 1, mediaSSRC: 2, sequences: [10, 11, 26, 27, 65535, 0])),
      "81cd0005 00000001 00000002 000a8001 001b0000 ffff0001"
    ),
    (.pictureLoss(PictureLoss(senderSSRC: 1, mediaSSRC: 2)), "81ce0002 00000001 00000002"),
    (
      .fullIntraRequest(FullIntraRequest(senderSSRC: 1, entries: [.init(ssrc: 2, number: 9)])),
      "84ce0004 00000001 00000000 00000002 09000000"
    ),
    (
      .maximumBitrate(MaximumBitrate(senderSSRC: 1, bitrate: 2_500_000, ssrcs: [3])),
      "8fce0005 00000001 00000000 52454d42 0112625a 00000003"
    ),
    (
      .extendedReport(
        ExtendedReport(
          ssrc: 1, receiverReferenceTime: 0x0000_0001_8000_0000,
          delays: [.init(ssrc: 2, lastReport: 3, delaySinceLastReport: 4)])),
      "80cf0008 00000001 04000002 00000001 80000000 05000003 00000002 00000003 00000004"
    ),
    (
      .transportFeedback(
        TransportFeedback(
          senderSSRC: 0xfa17_fa17, mediaSSRC: 0xdd39_581e, base: 1, count: 6, reference: 0x8a45,
          number: 0,
          arrivals: [72, 151, 240, 244, 253, 299].enumerated()
            .map { .init(offset: UInt16($0.offset), ticks: $0.element) })),
      "8fcd0006 fa17fa17 dd39581e 0001 0006 008a45 00 2006 48 4f 59 04 09 2e"
    ),
  ]

  @Test func packetsRoundTrip() {
    for (packet, hex) in Self.golden {
      var writer = ByteWriter()
      packet.write(into: &writer)
      #expect(writer.bytes == octets(hex), "\(packet)")
      let compound = RTCPCompound(parsing: octets(hex).span.bytes)
      #expect(compound.packets == [packet])
      #expect(compound.malformedCount == 0)
    }
  }

  @Test func aCompoundKeepsItsOrder() {
    var writer = ByteWriter()
    for (packet, _) in Self.golden { packet.write(into: &writer) }
    let compound = RTCPCompound(parsing: writer.bytes.span.bytes)
    #expect(compound.packets == Self.golden.map(\.0))
  }

  @Test func packetsOfSomeTypesStayAsTheyAre() {
    let compound = Self.golden.flatMap { octets($0.1) }
    for type in Set(Self.golden.map { octets($0.1)[1] }) {
      let wanted = Self.golden.map { octets($0.1) }.filter { $0[1] == type }.flatMap(\.self)
      #expect(RTCPCompound.bytes(of: compound) { $0.rawValue == type } == wanted)
    }
    // An incomplete packet at the end is left out.
    #expect(RTCPCompound.bytes(of: compound) { _ in true } == compound)
    let cut = RTCPCompound.bytes(of: Array(compound.dropLast())) { _ in true }
    #expect(cut.count < compound.count - 1 && compound.starts(with: cut))
  }

  @Test func aBrowsersPacketsReadBack() throws {
    var counts: [String: Int] = [:]
    for packet in try SamplePacket.chromiumCall()
    where DatagramClass(packet.bytes.span.bytes) == .rtcp {
      let compound = RTCPCompound(parsing: packet.bytes.span.bytes)
      #expect(compound.malformedCount == 0)
      var writer = ByteWriter()
      for packet in compound.packets {
        packet.write(into: &writer)
        counts[String("\(packet)".prefix { $0 != "(" }), default: 0] += 1
      }
      #expect(RTCPCompound(parsing: writer.bytes.span.bytes) == compound)
      let isFeedback = compound.packets.contains {
        if case .transportFeedback = $0 { true } else { false }
      }
      // Feedback may be encoded with other chunks; everything else has only one encoding.
      if !isFeedback { #expect(writer.bytes == packet.bytes) }
    }
    #expect(counts["senderReport", default: 0] >= 6)
    #expect(counts["receiverReport", default: 0] >= 4)
    #expect(counts["extendedReport", default: 0] >= 4)
    #expect(counts["transportFeedback", default: 0] >= 40)
    #expect(counts["other"] == nil)
  }

  @Test func arrivalTimesOfAnyPatternReadBack() throws {
    var generator = SeededGenerator(seed: 7)
    for round in 0..<400 {
      let count = Int.random(in: 1...600, using: &generator)
      let density = Double.random(in: 0...1, using: &generator)
      let late = Double.random(in: 0...0.5, using: &generator)
      var ticks: Int32 = 0
      var arrivals: [TransportFeedback.Arrival] = []
      for offset in 0..<count where Double.random(in: 0..<1, using: &generator) < density {
        let isLarge = Double.random(in: 0..<1, using: &generator) < late
        ticks +=
          isLarge
          ? Int32.random(in: -3000...3000, using: &generator)
          : Int32.random(in: 0...255, using: &generator)
        arrivals.append(.init(offset: UInt16(offset), ticks: ticks))
      }
      let feedback = TransportFeedback(
        senderSSRC: 1, mediaSSRC: 2, base: UInt16.random(in: 0...65535, using: &generator),
        count: UInt16(count), reference: round % 2 == 0 ? -5 : 0x7f_ffff,
        number: UInt8(round % 256),
        arrivals: arrivals)
      var writer = ByteWriter()
      RTCPPacket.transportFeedback(feedback).write(into: &writer)
      #expect(
        RTCPCompound(parsing: writer.bytes.span.bytes).packets == [.transportFeedback(feedback)])
    }
  }

  @Test(arguments: [
    // A run of 20 missing packets fits into one chunk.
    ([Int](repeating: 0, count: 20), ["0014"]),
    // A mixture fits into a vector of 14 one-bit symbols; only large deltas need two-bit symbols.
    ([1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0], ["aaaa"]),
    ([1, 0, 2, 0, 1, 0, 1, 1], ["d211", "2001"]),
    ([1, 0, 1], ["a800"]),
  ])
  func chunksAreChosenBySize(statuses: [Int], expected: [String]) {
    var writer = ByteWriter()
    StatusChunk.write(statuses.map { PacketStatus(rawValue: UInt8($0)) }, into: &writer)
    #expect(writer.bytes == expected.flatMap { octets($0) })
  }

  @Test(arguments: [
    (UInt64(0), UInt64(0)), (262_143, 262_143), (262_144, 262_144), (2_500_001, 2_500_000),
    (.max, .max << 46),
  ])
  func bitratesKeepTheir18HighestBits(bitrate: UInt64, expected: UInt64) {
    var writer = ByteWriter()
    MaximumBitrate(senderSSRC: 1, bitrate: bitrate, ssrcs: []).write(into: &writer)
    guard
      case .maximumBitrate(let read)? = RTCPCompound(parsing: writer.bytes.span.bytes).packets.first
    else {
      Issue.record("not a REMB")
      return
    }
    #expect(read.bitrate == expected)
  }

  @Test(arguments: [
    // Too short for its count of blocks; the next packet is still read.
    ("81c90001 00000007 80c90001 00000007", 1, 1), ("81c90002 00000007", 0, 1),
    ("00c90001 00000007", 0, 1), ("80c9", 0, 1), ("", 0, 0),
    // Padding longer than the packet.
    ("a0c90001 00000009", 0, 1), ("a0c90002 00000007 00000004", 1, 0),
    // A chunk with a run of zero packets would never end.
    ("8fcd0005 00000001 00000002 00010005 00000000 00000000", 0, 1),
    // A reserved status symbol.
    ("8fcd0005 00000001 00000002 00010005 00000000 60050000", 0, 1),
    // An APP packet and an unknown type are skipped.
    ("80cc0002 00000001 41424344 80d10001 00000002", 2, 0),
    // Application layer feedback other than REMB.
    ("8fce0003 00000001 00000002 41424344", 1, 0),
  ])
  func brokenPacketsAreCountedAndSkipped(hex: String, packets: Int, malformed: Int) {
    let compound = RTCPCompound(parsing: octets(hex).span.bytes)
    #expect(compound.packets.count == packets)
    #expect(compound.malformedCount == malformed)
  }

  @Test func mutatedPacketsNeverTrap() throws {
    var packets = try SamplePacket.chromiumCall().map(\.bytes)
      .filter { DatagramClass($0.span.bytes) == .rtcp }
    packets += Self.golden.map { octets($0.1) }
    var generator = SeededGenerator(seed: 2)
    var read = 0
    for round in 0..<40_000 {
      let mutated = generator.mutated(packets[round % packets.count])
      #expect(RTCPCompound.bytes(of: mutated) { _ in true }.count <= mutated.count)
      let compound = RTCPCompound(parsing: mutated.span.bytes)
      read += compound.packets.count
      var writer = ByteWriter()
      for packet in compound.packets { packet.write(into: &writer) }
    }
    #expect(read > 20_000)
  }
}
