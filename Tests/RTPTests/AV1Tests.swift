import Seeded
import Testing
import Wire

@testable import RTP

/// AV1's payload format: temporal units are split into packets and assembled again.
struct AV1Tests {
  /// Converts binary digits to bytes, padded with zeros.
  private static func bytes(_ bits: String) -> [UInt8] {
    var digits = bits.filter { $0 != " " }.map { UInt8($0.wholeNumberValue ?? 0) }
    while digits.count % 8 != 0 { digits.append(0) }
    return stride(from: 0, to: digits.count, by: 8).map { start in
      digits[start..<start + 8].reduce(0) { $0 << 1 | $1 }
    }
  }

  /// A 640x360 sequence header: one operating point of level 2.1.
  static let sequence = bytes(
    "000 0 0 0 0 00000 000000000000 00101 1001 1000 1001111111 101100111 0000000")

  /// Returns a unit with its size; by default a frame.
  static func unit(_ payload: [UInt8], type: UInt8 = 6, layer: UInt8? = nil) -> [UInt8] {
    var writer = ByteWriter()
    writer.uint8(type << 3 | (layer == nil ? 0 : 4) | 2)
    if let layer { writer.uint8(layer) }
    writer.variable(UInt64(payload.count))
    writer.append(payload)
    return writer.bytes
  }

  private static func content(_ count: Int, isKey: Bool = false) -> [UInt8] {
    (0..<count).map { $0 == 0 ? (isKey ? 0x10 : 0x30) : UInt8(truncatingIfNeeded: $0 * 7) }
  }

  private func payloads(_ bytes: [UInt8], isKey: Bool, limit: Int) -> [[UInt8]] {
    let frame = EncodedFrame(
      kind: .video, codec: CodecName(rawValue: "AV1"), mediaTime: 0, bytes: bytes, isKey: isKey)
    return PayloadShare.all(of: frame, pictureID: 0, limit: limit).map { share in
      var writer = ByteWriter()
      share.prefix.write(into: &writer)
      #expect(writer.count == share.prefix.length)
      writer.append(frame.bytes.span.bytes.extracting(share.range))
      #expect(writer.count <= limit)
      return writer.bytes
    }
  }

  private func read(_ payload: [UInt8]) -> VideoPacket? {
    VideoPacket(payload.span.bytes, codec: CodecName(rawValue: "av1"))
  }

  private func joined(_ payloads: [[UInt8]]) -> [UInt8]? {
    Codec.named("av1")?.payload.join?(payloads.map { $0[...] })
  }

  @Test(arguments: [20, 100, 1000])
  func aSplitTemporalUnitIsReassembled(limit: Int) throws {
    for length in Array(0...(3 * 20)) + [95, 96, 97, 98, 995, 996, 997, 998, 999, 4000] {
      for others in 0...4 {
        let isKey = others > 0
        var stream = AV1Unit.delimiter
        if isKey { stream += Self.unit(Self.sequence, type: 1) }
        for other in 0..<others {
          stream += Self.unit(
            Self.content(other * 9), type: other % 2 == 0 ? 5 : 3, layer: 0x08)
        }
        stream += Self.unit(Self.content(length, isKey: isKey))
        let payloads = payloads(stream, isKey: isKey, limit: limit)
        #expect(joined(payloads) == stream, "\(length) \(others)")
        let packets = try payloads.map { try #require(read($0)) }
        #expect(packets[0].beginning == (isKey ? .certain : .possible))
        #expect(packets.map(\.isKey) == packets.indices.map { $0 == 0 && isKey })
        #expect(payloads.indices.allSatisfy { payloads[$0][0] & 8 == (packets[$0].isKey ? 8 : 0) })
        // If one packet ends within a unit, the next continues it.
        for (one, next) in zip(payloads, payloads.dropFirst()) {
          #expect((one[0] & 0x40 != 0) == (next[0] & 0x80 != 0))
        }
      }
    }
  }

  /// A sender may keep sizes and delimiters, which are ignored.
  @Test func unitsWithSizesAreAcceptedToo() throws {
    let unit = Self.unit([0x30, 1, 2])
    #expect(joined([[0x10] + unit]) == AV1Unit.delimiter + unit)
    #expect(joined([[0x20, 2] + AV1Unit.delimiter + unit]) == AV1Unit.delimiter + unit)
    // A frame in three packets; the second one's payload starts like an OBU header.
    #expect(
      joined([[0x50, 0x30, 0x10], [0xd0, 0x0a], [0x90, 0xff]]) == [
        0x12, 0, 0x32, 3, 0x10, 0x0a, 0xff,
      ])
  }

  @Test func packetsReportFrameStartsAndKeyFrames() throws {
    let header: [UInt8] = [0x08] + Self.sequence
    let both = [UInt8(header.count)] + header + [0x30, 0x10, 0xaa]
    // A key frame is known by the new-sequence bit, or by its sequence header.
    for first: UInt8 in [0x28, 0x20] {
      let packet = try #require(read([first] + both))
      #expect(packet.isKey && packet.beginning == .certain)
      #expect(packet.content == .slice(0..<both.count + 1))
    }
    // A header that is only repeated, a frame that continues, a packet that may start a frame.
    let repeated = try #require(read([0x20] + both.dropLast(2) + [0x30, 0xaa]))
    #expect(!repeated.isKey && repeated.beginning == .certain)
    #expect(read([0x90, 0x08, 0])?.beginning == .no)
    #expect(read([0x10, 0x30, 0x30])?.beginning == .possible)
  }

  @Test(arguments: [
    "", "10", "00", "20 02 30", "30 01 30 01", "00 05 30", "00 ff ff ff ff ff ff ff ff ff 01",
    "00 80 80 80 80 80 80 80 80 01 30", "20 ff ff ff ff 7f 30",
  ])
  func brokenPayloadsAreRefused(hex: String) { #expect(read(octets(hex)) == nil) }

  @Test(arguments: ["", "12", "12 00", "80 01 00", "32 05 10 20", "36", "32 ff ff ff ff 7f 10"])
  func invalidTemporalUnitsAreNotSent(hex: String) {
    #expect(payloads(octets(hex), isKey: true, limit: 1000).isEmpty)
  }

  @Test func unitsReportKeyFramesAndSizes() throws {
    let codec = try #require(Codec.named("av1"))
    let look = try #require(codec.look)
    func of(_ stream: [UInt8]) -> FrameLook { look(stream.span.bytes) }
    let key = of(AV1Unit.delimiter + Self.unit(Self.sequence, type: 1) + Self.unit([0x10, 1]))
    #expect(key.isKey && key.hasFrame && key.size ?? (0, 0) == (640, 360))
    let delta = of(AV1Unit.delimiter + Self.unit([0x30, 1]))
    #expect(!delta.isKey && delta.hasFrame && delta.isReference && delta.size == nil)
    // A frame that shows an earlier key frame again depends on that one.
    #expect(!of(Self.unit(Self.sequence, type: 1) + Self.unit([0x80], type: 3)).isKey)
    #expect(!of(AV1Unit.delimiter + Self.unit(Self.sequence, type: 1)).hasFrame)
  }

  @Test(arguments: [
    // A reduced header of a still picture.
    "000 1 1 00101 0011 0010 1111 011",
    // Timing with a decoder model, two operating points, one with a high level, display delays.
    "000 0 0 1 \(zeros(64)) 1 001 01 1 00011 \(zeros(32)) 00000 00000 1 00001"
      + " 000000000001 01000 1 1 0000 0000 1 1 0101 000000000010 00101 0 0"
      + " 0011 0010 1111 011",
  ])
  func sizesFollowOptionalFields(bits: String) throws {
    let size = try AV1Unit.size(ofSequence: Self.bytes(bits).span.bytes)
    #expect(size == (16, 4))
  }

  private static func zeros(_ count: Int) -> String { String(repeating: "0", count: count) }

  @Test func halfASequenceHasNoSize() {
    for length in 0..<(Self.sequence.count - 1) {
      let front = Array(Self.sequence.prefix(length))
      #expect(throws: ReadError.self) { _ = try AV1Unit.size(ofSequence: front.span.bytes) }
    }
  }

  /// Any bytes: nothing traps, and no frame grows beyond twice its packets.
  @Test func anyBytesMayBePayloads() throws {
    var generator = SeededGenerator(seed: 41)
    let look = try #require(Codec.named("av1")?.look)
    let stream =
      AV1Unit.delimiter + Self.unit(Self.sequence, type: 1)
      + Self.unit([1, 2, 3], type: 5, layer: 8)
      + Self.unit(Self.content(60, isKey: true))
    let samples = [20, 40, 200].flatMap { payloads(stream, isKey: true, limit: $0) }
    var accepted = 0
    for _ in 0..<20_000 {
      let packets = (0..<3).map { _ in
        generator.mutated(samples[Int(generator.next() % UInt64(samples.count))])
      }
      for packet in packets where read(packet) != nil { accepted += 1 }
      let joinedBytes = try #require(joined(packets))
      #expect(joinedBytes.count <= 2 + 2 * packets.map(\.count).reduce(0, +))
      _ = look(joinedBytes.span.bytes)
      let damaged = generator.mutated(stream)
      _ = look(damaged.span.bytes)
      let sent = payloads(damaged, isKey: false, limit: 30)
      if !sent.isEmpty { #expect(joined(sent)?.starts(with: AV1Unit.delimiter) == true) }
    }
    #expect(accepted > 20_000)
  }
}
