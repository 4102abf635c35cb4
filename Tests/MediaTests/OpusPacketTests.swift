import COpus
import Media
import Testing
import Wire

struct OpusPacketTests {
  @Test(arguments: [
    (0, 480), (1, 960), (2, 1_920), (3, 2_880), (9, 960), (12, 480), (13, 960), (14, 480),
    (16, 120), (17, 240), (18, 480), (19, 960), (31, 960),
  ])
  func configurationsHaveTheirDurations(configuration: UInt8, duration: Int) {
    #expect(OpusPacket([configuration << 3, 1, 2])?.duration == duration)
  }

  @Test func severalFramesAddUp() {
    #expect(OpusPacket([0x09, 1, 2])?.duration == 1_920)
    #expect(OpusPacket([0x0A, 1, 2])?.duration == 1_920)
    #expect(OpusPacket([0x0B, 3, 1, 2, 3])?.duration == 2_880)
    #expect(OpusPacket([0x0B, 7, 1, 2, 3, 4, 5, 6, 7]) == nil, "140 ms are too long")
    #expect(OpusPacket([0x0B, 0, 1]) == nil)
    #expect(OpusPacket([0x09, 1]) == nil, "two equal frames have an even length")
    #expect(OpusPacket([]) == nil)
  }

  @Test func flagsOfTheLowRateCopyAreFound() {
    #expect(OpusPacket([0x08, 0x40])?.hasInbandFEC == true)
    #expect(OpusPacket([0x08, 0x80])?.hasInbandFEC == false)
    #expect(OpusPacket([0x18, 0x10])?.hasInbandFEC == true, "60 ms: after three voice flags")
    #expect(OpusPacket([0x0C, 0x10])?.hasInbandFEC == true, "stereo: the side channel's flag")
    #expect(OpusPacket([0xF8, 0x40])?.hasInbandFEC == false, "CELT has none")
    #expect(OpusPacket([0x08])?.hasInbandFEC == false)
  }

  @Test func validityMatchesLibopus() {
    let dice = random(1)
    var accepted = 0
    for round in 0..<20_000 {
      let length = Int(dice.integer(below: round % 20 == 0 ? 2_600 : 60))
      var bytes = (0..<min(length, 24)).map { _ in dice.byte() }
      bytes.append(contentsOf: repeatElement(9, count: length - bytes.count))
      let packet = OpusPacket(bytes)
      var sizes = [opus_int16](repeating: 0, count: 48)
      var frames = [UnsafePointer<UInt8>?](repeating: nil, count: 48)
      var toc: UInt8 = 0
      var offset: Int32 = 0
      let count = opus_packet_parse(bytes, Int32(length), &toc, &frames, &sizes, &offset)
      let isRight = length > 0 && count > 0
      #expect((packet != nil) == isRight, "\(bytes.prefix(8)) of \(length): \(count)")
      guard let packet else { continue }
      accepted += 1
      #expect(packet.frameCount == Int(count))
      #expect(packet.duration == Int(opus_packet_get_nb_samples(bytes, Int32(length), 48_000)))
    }
    #expect(accepted > 3_000)
  }
}

struct VP8FrameHeaderTests {
  @Test func nothingIsReadOutOfBounds() {
    let dice = random(2)
    var accepted = 0
    for _ in 0..<50_000 {
      var bytes = (0..<Int(dice.integer(below: 40))).map { _ in dice.byte() }
      if bytes.count > 10, dice.byte() < 128 {
        bytes[0] &= 0xFE
        bytes.replaceSubrange(3..<6, with: [0x9D, 0x01, 0x2A])
      }
      if let header = VP8BitstreamHeader(bytes.span.bytes) {
        accepted += 1
        #expect(header.quantiser < 128)
      }
    }
    #expect(accepted > 1_000)
  }
}

struct AudioMeterTests {
  @Test func levelsAreDecibelsBelowFullScale() {
    // Repeated multiplication yields the mean squares that are 0.5 dB above and below each level.
    let tenth = 0.977_237_220_955_810_6
    var meanSquare = 32_768.0 * 32_768.0
    for level in 0...120 {
      let above = meanSquare / (tenth * tenth * tenth * tenth)
      let below = meanSquare * (tenth * tenth * tenth * tenth)
      for value in [above, meanSquare, below] {
        let measured = AudioMeter.level(energy: UInt64(value * 960_000), frameCount: 960_000)
        #expect(Int(measured) == level, "\(value) at \(level)")
      }
      for _ in 0..<10 { meanSquare *= tenth }
    }
  }

  @Test func silenceIs127AndTheFaintestAudioIsNot() {
    #expect(AudioMeter.level(energy: 0, frameCount: 960) == 127)
    #expect(AudioMeter.level(energy: 1, frameCount: 0) == 127)
    #expect(AudioMeter.level(energy: 1, frameCount: 960_000_000) == 126)
    #expect(AudioMeter.level(energy: .max, frameCount: 1) == 0)
  }

  @Test func linearLevelsFallTenfoldPerTwentyDecibels() {
    #expect(AudioMeter.linear(0) == 1)
    #expect(abs(AudioMeter.linear(20) - 0.1) < 1e-9)
    #expect(abs(AudioMeter.linear(60) - 0.001) < 1e-9)
    #expect(AudioMeter.linear(127) == 0)
  }

  @Test func theLoudestChannelCounts() {
    let loudness = Loudness(samples: [1, -300, 2, 400], channels: 2)
    #expect(loudness.peak == 400 && loudness.energy == 250_000)
    #expect(Loudness(samples: [.min], channels: 1).peak == 32_768)
    #expect(Loudness(samples: [], channels: 1) == Loudness(samples: [0], channels: 1))
  }
}
