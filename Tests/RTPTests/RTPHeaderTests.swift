import Seeded
import Testing
import Wire

@testable import RTP

struct RTPHeaderTests {
  /// The extensions negotiated in the recorded call.
  static let map: HeaderExtensionMap = {
    var map = HeaderExtensionMap()
    map.add(uri: HeaderExtensionURI.audioLevel.rawValue, id: 1)
    map.add(uri: HeaderExtensionURI.absoluteSendTime.rawValue, id: 2)
    map.add(uri: HeaderExtensionURI.transportSequence.rawValue, id: 3)
    map.add(uri: HeaderExtensionURI.mid.rawValue, id: 4)
    return map
  }()

  @Test func aBrowsersAudioPacketIsRead() throws {
    let packet = try #require(try SamplePacket.chromiumCall().first).bytes
    let header = try RTPHeader(parsing: packet.span.bytes)
    #expect(header.marker)
    #expect(header.payloadType == 111)
    #expect(header.sequence == 5872)
    #expect(header.timestamp == 3_818_426_442)
    #expect(header.ssrc == 0x960f_0531)
    #expect(header.payload == 28..<packet.count)
    let values = HeaderExtensions(parsing: packet.span.bytes, header: header, map: Self.map)
    #expect(values.transportSequence == 1)
    #expect(values.absoluteSendTime == 0x332135)
    #expect(values.audioLevel == 127)
    #expect(values.isVoice)
    #expect(values.mid.map { Array(packet[$0]) } == [UInt8(ascii: "0")])
  }

  @Test func paddingIsNotPayload() throws {
    let packets = try SamplePacket.chromiumCall().map(\.bytes)
    let probe = try #require(packets.first { $0[0] & 0x20 != 0 && $0[1] & 0x7f == 97 })
    let header = try RTPHeader(parsing: probe.span.bytes)
    #expect(header.payload.isEmpty)
    #expect(header.paddingLength > 200)
    #expect(RTX.unwrap(probe.span.bytes, header: header) == nil)
  }

  @Test func retransmissionsCarryTheOriginalPayload() throws {
    var media: [UInt16: [UInt8]] = [:]
    var compared = 0
    for packet in try SamplePacket.chromiumCall() where packet.isFromSender {
      let span = packet.bytes.span.bytes
      guard DatagramClass(span) == .rtp else { continue }
      let header = try RTPHeader(parsing: span)
      if header.payloadType == 96 { media[header.sequence] = Array(packet.bytes[header.payload]) }
      guard header.payloadType == 97, let lost = RTX.unwrap(span, header: header) else { continue }
      #expect(media[lost.sequence] == Array(packet.bytes[lost.payload]))
      compared += 1
    }
    #expect(compared > 3)
  }

  @Test(arguments: [
    // Payload types 64 to 95 are RTCP, whatever the marker bit says.
    ("80c8", DatagramClass.rtcp), ("81c9", .rtcp), ("8fcd", .rtcp), ("80cf", .rtcp),
    ("80ef", .rtp), ("9060", .rtp), ("bf7f", .rtp), ("0001", .stun), ("0301", .stun),
    ("16fe", .dtls), ("14fe", .dtls), ("3ffe", .dtls), ("4000", .channelData), ("10fe", .other),
    ("c0c8", .other), ("80", .other), ("", .other),
  ])
  func datagramsAreClassified(hex: String, expected: DatagramClass) {
    #expect(DatagramClass(octets(hex).span.bytes) == expected)
  }

  @Test(arguments: [
    "", "80", "40600001 00000000 00000001", "80600001 00000000 000000",
    "81600001 00000000 00000001", "90600001 00000000 00000001 bede",
    "90600001 00000000 00000001 bede0002 00000000", "a0600001 00000000 00000001",
    "a0600001 00000000 00000001 00", "a0600001 00000000 00000001 0103",
  ])
  func brokenPacketsAreRefused(hex: String) {
    #expect(throws: ReadError.self) { try RTPHeader(parsing: octets(hex).span.bytes) }
  }

  @Test func writtenHeadersReadBack() throws {
    for (map, name, form) in [
      (Self.map, "0", UInt16(0xbede)), (Self.map, "a-very-long-section-name", 0x1000),
      (wide(), "0", 0x1000),
    ] {
      var header = OutgoingHeader(
        payloadType: 96, sequence: 65535, timestamp: 0xfedc_ba98, ssrc: 0x8000_0001)
      header.marker = true
      header.mid = Array(name.utf8)
      header.audioLevel = 42
      header.absoluteSendTime = 0x12_3456
      header.transportSequence = 0xabcd
      var writer = ByteWriter()
      header.write(into: &writer, map: map)
      #expect(writer.count == header.length(map: map))
      #expect(writer.count % 4 == 0)
      writer.append([1, 2, 3])
      let packet = writer.bytes
      let read = try RTPHeader(parsing: packet.span.bytes)
      #expect(read.extensionProfile == form)
      #expect(read.sequence == 65535 && read.timestamp == 0xfedc_ba98 && read.marker)
      #expect(Array(packet[read.payload]) == [1, 2, 3])
      let values = HeaderExtensions(parsing: packet.span.bytes, header: read, map: map)
      #expect(values.mid.map { Array(packet[$0]) } == Array(name.utf8))
      #expect(values.audioLevel == 42 && !values.isVoice)
      #expect(values.absoluteSendTime == 0x12_3456)
      #expect(values.transportSequence == 0xabcd)
    }
  }

  @Test func contributorsAndTheirLevelsReadBack() throws {
    var map = Self.map
    map.add(uri: HeaderExtensionURI.mixerLevels.rawValue, id: 5)
    var header = OutgoingHeader(payloadType: 111, sequence: 1, timestamp: 2, ssrc: 3)
    header.audioLevel = 20
    header.contributors = (0..<15).map { Contributor(source: 0xffff_fff0 + $0, level: UInt8($0)) }
    let written = header.contributors
    var writer = ByteWriter()
    header.write(into: &writer, map: map)
    #expect(writer.count == header.length(map: map))
    writer.append([1, 2, 3])
    let packet = writer.bytes
    let read = try RTPHeader(parsing: packet.span.bytes)
    #expect(Array(packet[read.payload]) == [1, 2, 3])
    let values = HeaderExtensions(parsing: packet.span.bytes, header: read, map: map)
    #expect(values.contributors(of: read, in: packet.span.bytes) == written)
    // Without the extension, the sources are known but not their levels.
    let other = HeaderExtensions(parsing: packet.span.bytes, header: read, map: Self.map)
    #expect(
      other.contributors(of: read, in: packet.span.bytes).map(\.source) == written.map(\.source))
    #expect(other.contributors(of: read, in: packet.span.bytes).allSatisfy { $0.level == nil })
  }

  @Test(arguments: [
    // Two sources and two levels; a level's top bit is reserved (RFC 6465 section 4).
    ("bede0001 51 82 05 00", [UInt8(2), 5]),
    // For two sources, one level is too few, and three levels are too many.
    ("bede0001 50 02 00 00", nil), ("bede0001 52 02 03 04", nil),
  ])
  func levelsAreUsedWhenEverySourceHasOne(elements: String, levels: [UInt8]?) throws {
    var map = HeaderExtensionMap()
    map.add(uri: HeaderExtensionURI.mixerLevels.rawValue, id: 5)
    let packet = octets("926f0001 00000000 00000001 0000000a 0000000b" + elements)
    let header = try RTPHeader(parsing: packet.span.bytes)
    let values = HeaderExtensions(parsing: packet.span.bytes, header: header, map: map)
    let contributors = values.contributors(of: header, in: packet.span.bytes)
    #expect(contributors.map(\.source) == [10, 11])
    #expect(contributors.compactMap(\.level) == levels ?? [])
  }

  @Test func aHeaderWithoutExtensionsHasTwelveBytes() {
    var header = OutgoingHeader(payloadType: 111, sequence: 1, timestamp: 2, ssrc: 3)
    header.transportSequence = 7
    var writer = ByteWriter()
    header.write(into: &writer, map: HeaderExtensionMap())
    #expect(writer.bytes == octets("806f0001 00000002 00000003"))
  }

  @Test(arguments: [
    // One-byte form: padding between elements; the reserved identifier 15 ends the list.
    ("bede0003 00 00 31 00 09 00 00 f0 31 00 0a 00", UInt16(9)),
    // An element longer than the rest.
    ("bede0001 3f 00 09 00", nil), ("bede0001 31 00 0b 00", 11),
    // Two-byte form with an empty element first.
    ("10000002 07 00 03 02 00 0c 00 00", 12), ("10050002 07 00 03 02 00 0c 00 00", 12),
    ("10000001 03 09 00 0c", nil), ("abcd0001 31 00 09 00", nil),
  ])
  func extensionElementsAreFound(hex: String, expected: UInt16?) throws {
    let packet = octets("90600001 00000000 00000001" + hex)
    let header = try RTPHeader(parsing: packet.span.bytes)
    let values = HeaderExtensions(parsing: packet.span.bytes, header: header, map: Self.map)
    #expect(values.transportSequence == expected)
  }

  @Test func mutatedPacketsNeverTrap() throws {
    let packets = try SamplePacket.chromiumCall().map(\.bytes)
      .filter { DatagramClass($0.span.bytes) == .rtp }
    var generator = SeededGenerator(seed: 1)
    var readable = 0
    for round in 0..<40_000 {
      let packet = generator.mutated(Array(packets[round % packets.count].prefix(120)))
      guard let header = try? RTPHeader(parsing: packet.span.bytes) else { continue }
      readable += 1
      let values = HeaderExtensions(parsing: packet.span.bytes, header: header, map: Self.map)
      if let mid = values.mid { #expect(mid.upperBound <= packet.count) }
      if let lost = RTX.unwrap(packet.span.bytes, header: header) {
        #expect(lost.payload.upperBound <= packet.count)
      }
      var reader = ByteReader(packet.span.bytes.extracting(header.payload))
      _ = try? VP8Descriptor(parsing: &reader)
    }
    #expect(readable > 10_000 && readable < 40_000)
  }

  private func wide() -> HeaderExtensionMap {
    var map = Self.map
    map.transportSequence = 200
    return map
  }
}
