import MediaFiles
import Testing

@Suite struct OpusTimelineTests {
  /// Returns a packet of one frame in a configuration (RFC 6716 table 2), with some content.
  private func packet(_ configuration: UInt8, isStereo: Bool = false) -> [UInt8] {
    [configuration << 3 | (isStereo ? 4 : 0), 1, 2, 3]
  }

  /// Places packets on a timeline; returns the resulting pieces: the packets, and fillers for lost
  /// ones.
  private func pieces(
    _ packets: [(bytes: [UInt8], time: UInt32, at: Int64)], _ line: inout OpusTimeline
  ) throws -> [OpusTimeline.Piece] {
    var found: [OpusTimeline.Piece] = []
    for packet in packets {
      try line.place(packet.bytes, time: packet.time, atNanoseconds: packet.at) { piece in
        found.append(piece)
      }
    }
    return found
  }

  @Test func lostPacketsAreConcealedInTheModeOfTheOneBefore() throws {
    var line = OpusTimeline()
    // CELT, full band, 20 ms, stereo; two packets are lost.
    let found = try pieces(
      [
        (packet(31, isStereo: true), 1_000, 0), (packet(31, isStereo: true), 3_880, 60_000_000),
      ], &line)
    #expect(found.map(\.position) == [0, 960, 1_920, 2_880])
    #expect(found.map(\.isFiller) == [false, true, true, false])
    #expect(found[1].bytes == [31 << 3 | 4])
    #expect(line.end == 3_840 && line.concealed == 1_920)
  }

  @Test func aFillerHasALengthThatItsModeHas() throws {
    for (configuration, samples, filler) in [
      (9, 480, 8), (11, 960, 9), (13, 480, 12), (1, 960, 1), (13, 240, 25), (9, 120, 20),
      (15, 240, 29), (2, 120, 16), (28, 240, 29),
    ] as [(UInt8, UInt32, UInt8)] {
      var line = OpusTimeline()
      let first = packet(configuration)
      let length = UInt32([480, 960, 1_920, 2_880][Int(configuration & 3)])
      let usual: UInt32 =
        configuration < 12
        ? length
        : configuration < 16
          ? (configuration & 1 == 0 ? 480 : 960) : 120 << UInt32(configuration & 3)
      let found = try pieces([(first, 0, 0), (first, usual + samples, 1_000_000_000)], &line)
      #expect(found.count == 3, "\(configuration)")
      #expect(found[1].bytes == [filler << 3], "\(configuration): \(found[1].bytes)")
      #expect(found[1].samples == Int(samples))
    }
  }

  @Test func silenceThatWasNotSentIsAsLongAsItWas() throws {
    var line = OpusTimeline()
    let found = try pieces(
      [(packet(9), 0, 0), (packet(9), 48_000 * 60, 60_000_000_000)], &line)
    #expect(found.count == 2 + 2_999 && line.end == 48_000 * 60 + 960)
    #expect(found.allSatisfy { $0.samples == 960 })
  }

  @Test func restartedTimesFollowTheClock() throws {
    var line = OpusTimeline()
    let found = try pieces(
      [
        (packet(9), 4_000_000_000, 0), (packet(9), 7, 1_000_000_000),
        (packet(9), 967, 1_020_000_000),
      ], &line)
    let received = found.filter { !$0.isFiller }
    #expect(received.map(\.position) == [0, 48_000, 48_960])
    // The 32 bits of RTP times wrap around without a jump.
    var over = OpusTimeline()
    #expect(
      try pieces([(packet(9), .max - 959, 0), (packet(9), 0, 20_000_000)], &over).map(\.position)
        == [0, 960])
  }

  @Test func duplicateLateAndInvalidPacketsAreOmitted() throws {
    var line = OpusTimeline()
    let found = try pieces(
      [
        (packet(9), 960, 0), (packet(9), 960, 0), (packet(9), 0, 0), ([], 1_920, 0),
        ([0xff, 0], 1_920, 0),
      ], &line)
    #expect(found.count == 1 && line.dropped == 4)
  }

  @Test func noDateMakesAFileOfAnyLength() throws {
    var line = OpusTimeline(concealing: 48_000)
    let found = try pieces(
      (0..<4).map {
        (packet(9), UInt32($0) &* 1_900_000_000, Int64($0) * 40_000_000_000_000)
      }, &line)
    #expect(found.count == 4 + 50 && line.concealed == 48_000)
    #expect(line.leftOut > 5_000_000_000)
  }
}

@Suite struct AV1FileTests {
  @Test func aSequenceHeaderStatesWhatADecoderNeeds() {
    let header: [UInt8] = [0x0a, 0x0b, 0, 0, 0, 0x24, 0xc4, 0xff, 0xdf, 0, 0x68, 0x02, 0x10]
    let unit: [UInt8] = [0x12, 0] + header + [0x32, 2, 1, 2]
    #expect(AV1File.configuration(unit) == [0x81, 0x04, 0x0c, 0] + header)
    #expect(AV1File.withoutDelimiter(unit).starts(with: header))
    for length in 0..<unit.count { _ = AV1File.configuration(Array(unit.prefix(length))) }
    #expect(AV1File.configuration([0x32, 0xff, 0xff, 0xff, 0xff, 0xff]).isEmpty)
  }
}
