import Media
import Testing
import Wire

/// Blocks of a tone as the capture makes it.
private func toneBlocks(_ count: Int, hertz: Int = 440, channels: Int = 1) -> [AudioBlock] {
  var phase = 0
  return (0..<count).map { _ in
    var samples: [Int16] = []
    for _ in 0..<960 {
      // A parabola in place of a sine: near enough for a codec, and without a library.
      let x = Double(phase) / 48_000
      let half = x < 0.5 ? x : x - 0.5
      let value = 16 * half * (0.5 - half) * 8_000 * (x < 0.5 ? 1 : -1)
      for _ in 0..<channels { samples.append(Int16(value)) }
      phase = (phase + hertz) % 48_000
    }
    return AudioBlock(samples: samples, channels: channels)
  }
}

@Suite struct OpusTests {
  let codecs = LibraryCodecs()

  private func encode(
    _ blocks: [AudioBlock], _ settings: OpusSettings = OpusSettings(), loss: Int32 = 0
  ) throws -> [[UInt8]] {
    let encoder = try codecs.audioEncoder(track: "a", settings)
    encoder.setPacketLoss(percent: loss)
    return try blocks.map { try encoder.encode($0).bytes }
  }

  @Test func theSameSamplesGiveTheSameBytes() throws {
    let blocks = toneBlocks(50)
    #expect(try encode(blocks) == encode(blocks))
  }

  @Test(arguments: [1, 2]) func aToneSurvivesTheRoundTrip(channels: Int) throws {
    var settings = OpusSettings()
    settings.channels = channels
    let blocks = toneBlocks(50, channels: channels)
    let decoder = try codecs.audioDecoder(track: "a", channels: channels)
    var sent: UInt64 = 0
    var received: UInt64 = 0
    for (index, bytes) in try encode(blocks, settings).enumerated() {
      let decoded = try decoder.decode(.payload(bytes))
      #expect(decoded.block.frameCount == 960)
      #expect(decoded.block.channels == channels)
      guard index > 10 else { continue }
      received += decoded.energy
      sent += Loudness(samples: blocks[index].samples, channels: channels).energy
    }
    #expect(received > sent / 2 && received < sent * 2)
  }

  @Test func theLevelFollowsTheTone() throws {
    let encoder = try codecs.audioEncoder(track: "a", OpusSettings())
    let loud = try encoder.encode(toneBlocks(1)[0])
    #expect((13...17).contains(loud.level) && loud.isVoice)
    let silent = try encoder.encode(AudioBlock(blank: 960, channels: 1))
    #expect(silent.level == 127 && !silent.isVoice)
  }

  @Test func theNextPacketRecoversTheOneBefore() throws {
    let packets = try encode(toneBlocks(30), loss: 20)
    #expect(packets.dropFirst(10).allSatisfy { OpusPacket($0)?.hasInbandFEC == true })
    let decoder = try codecs.audioDecoder(track: "a", channels: 1)
    for bytes in packets[..<20] { _ = try decoder.decode(.payload(bytes)) }
    let recovered = try decoder.decode(.recoverPrevious(from: packets[21], frameCount: 960))
    #expect(recovered.block.frameCount == 960)
    #expect(AudioLevel.level(energy: recovered.energy, frameCount: 960) < 25)
  }

  @Test func withoutReportedLossThereIsNothingToRecoverFrom() throws {
    var settings = OpusSettings()
    settings.usesInbandFEC = false
    let packets = try encode(toneBlocks(30), settings, loss: 20)
    #expect(packets.allSatisfy { OpusPacket($0)?.hasInbandFEC == false })
  }

  @Test func concealmentFadesAway() throws {
    let decoder = try codecs.audioDecoder(track: "a", channels: 1)
    for bytes in try encode(toneBlocks(20)) { _ = try decoder.decode(.payload(bytes)) }
    let first = try decoder.decode(.conceal(frameCount: 960))
    var last = first
    for _ in 0..<50 { last = try decoder.decode(.conceal(frameCount: 960)) }
    #expect(first.energy > 100 * (last.energy + 1))
  }

  @Test func discontinuousTransmissionSendsNextToNothingInSilence() throws {
    var settings = OpusSettings()
    settings.usesDTX = true
    let sizes = try encode((0..<50).map { _ in AudioBlock(blank: 960, channels: 1) }, settings)
      .map(\.count)
    #expect(sizes.suffix(20).filter { $0 <= 2 }.count > 15)
  }

  @Test func wrongSizesAreErrors() throws {
    let encoder = try codecs.audioEncoder(track: "a", OpusSettings())
    #expect(throws: CodecError.self) { try encoder.encode(AudioBlock(blank: 480, channels: 1)) }
    #expect(throws: CodecError.self) { try encoder.encode(AudioBlock(blank: 960, channels: 2)) }
    let decoder = try codecs.audioDecoder(track: "a", channels: 1)
    #expect(throws: CodecError.self) { try decoder.decode(.payload([])) }
    #expect(throws: CodecError.self) { try decoder.decode(.conceal(frameCount: 7)) }
    #expect(throws: CodecError.self) { try decoder.decode(.conceal(frameCount: -960)) }
    #expect(throws: CodecError.self) { try codecs.audioDecoder(track: "a", channels: 3) }
    var settings = OpusSettings()
    settings.complexity = 11
    #expect(throws: CodecError.self) { try codecs.audioEncoder(track: "a", settings) }
  }

  @Test func theDecoderSurvivesAnyBytes() throws {
    let packets = try encode(toneBlocks(20), loss: 20)
    let decoder = try codecs.audioDecoder(track: "a", channels: 2)
    let dice = random(3)
    for round in 0..<20_000 {
      var bytes = packets[round % packets.count]
      for _ in 0...dice.integer(below: 4) {
        bytes[Int(dice.integer(below: UInt64(bytes.count)))] = dice.byte()
      }
      let form = OpusPacket(bytes)
      let decoded = try? decoder.decode(.payload(bytes))
      #expect((decoded != nil) == (form != nil))
      if let decoded, let form { #expect(decoded.block.frameCount == form.duration) }
      if round % 16 == 0 { _ = try? decoder.decode(.recoverPrevious(from: bytes, frameCount: 960)) }
    }
  }

  @Test func versionsAreNamed() {
    #expect(LibraryCodecs.opusVersion.contains("libopus "))
    #expect(LibraryCodecs.vpxVersion.contains("libvpx v"))
  }
}

@Suite struct VP8Tests {
  let codecs = LibraryCodecs()

  private func settings(
    _ width: Int = 320, _ height: Int = 180, bitrate: UInt64 = 400_000
  ) -> VP8Settings {
    VP8Settings(width: width, height: height, framesPerSecond: 30, bitrate: bitrate)
  }

  private func encode(
    _ pictures: [Picture], _ settings: VP8Settings, keyAt keys: Set<Int> = []
  ) throws -> [EncodedVideo] {
    let encoder = try codecs.videoEncoder(track: "v", settings)
    return try pictures.enumerated().compactMap { index, picture in
      try encoder.encode(
        picture, mediaTime: UInt32(index) &* 3_000 &- 9_000, forceKey: keys.contains(index))
    }
  }

  private func pictures(_ count: Int, _ width: Int = 320, _ height: Int = 180) -> [Picture] {
    let pattern = TestPattern(width: width, height: height)
    return (0..<count).map { pattern.picture(Int64($0)) }
  }

  private func meanSquaredError(_ left: Picture, _ right: Picture) -> Double {
    let count = left.width * left.height
    var sum = 0
    for index in 0..<count {
      let difference = Int(left.samples[index]) - Int(right.samples[index])
      sum += difference * difference
    }
    return Double(sum) / Double(count)
  }

  @Test func theSamePicturesGiveTheSameBytes() throws {
    let some = pictures(15)
    #expect(try encode(some, settings()) == encode(some, settings()))
  }

  @Test func thePatternSurvivesTheRoundTrip() throws {
    let some = pictures(20)
    let decoder = try codecs.videoDecoder(track: "v")
    for (picture, encoded) in zip(some, try encode(some, settings(bitrate: 1_000_000))) {
      let decoded = try decoder.decode(encoded.bytes)
      #expect(decoded.picture.width == 320 && decoded.picture.height == 180)
      #expect(decoded.quantiser == encoded.quantiser)
      // 130 is 27 dB.
      #expect(meanSquaredError(picture, decoded.picture) < 130)
    }
  }

  @Test func everyPictureGivesAFrameAndKeysComeOnRequest() throws {
    let encoded = try encode(pictures(20), settings(bitrate: 50_000), keyAt: [7, 13])
    #expect(encoded.count == 20)
    #expect(encoded.indices.filter { encoded[$0].isKey } == [0, 7, 13])
  }

  @Test func theBitRateIsKeptAndChangesOnTheFly() throws {
    let encoder = try codecs.videoEncoder(track: "v", settings(640, 360, bitrate: 1_000_000))
    let some = pictures(120, 640, 360)
    var early = 0
    var late = 0
    for (index, picture) in some.enumerated() {
      if index == 60 { encoder.setBitrate(250_000) }
      let size =
        try encoder.encode(picture, mediaTime: UInt32(index * 3_000), forceKey: false)?.bytes.count
        ?? 0
      if (30..<60).contains(index) { early += size * 8 }
      if (90..<120).contains(index) { late += size * 8 }
    }
    #expect((700_000...1_300_000).contains(early))
    #expect((150_000...400_000).contains(late))
  }

  @Test(arguments: [(161, 91), (1, 1), (17, 2), (64, 64)])
  func anySizeWorks(width: Int, height: Int) throws {
    let decoder = try codecs.videoDecoder(track: "v")
    for encoded in try encode(pictures(3, width, height), settings(width, height)) {
      let picture = try decoder.decode(encoded.bytes).picture
      #expect(picture.width == width && picture.height == height)
      #expect(picture.samples.count == Picture.byteCount(width: width, height: height))
    }
  }

  @Test func anotherSizeBeginsAnewWithAKey() throws {
    let mixed = pictures(3) + pictures(3, 160, 90) + pictures(2)
    let encoded = try encode(mixed, settings())
    #expect(encoded.map(\.isKey) == [true, false, false, true, false, false, true, false])
    let decoder = try codecs.videoDecoder(track: "v")
    #expect(
      try encoded.map { try decoder.decode($0.bytes).picture.width }
        == [320, 320, 320, 160, 160, 160, 320, 320])
  }

  @Test func aBlankPictureIsEncodedAsGrey() throws {
    let encoded = try encode([Picture(width: 32, height: 32, samples: [])], settings(32, 32))
    let picture = try codecs.videoDecoder(track: "v").decode(encoded[0].bytes).picture
    #expect(picture.samples.allSatisfy { (120...136).contains($0) })
  }

  @Test func sizesThatVP8DoesNotHaveAreErrors() throws {
    #expect(throws: CodecError.self) { try codecs.videoEncoder(track: "v", settings(0, 10)) }
    #expect(throws: CodecError.self) { try codecs.videoEncoder(track: "v", settings(16_384, 10)) }
  }

  @Test func afterARefusedFrameEverythingUpToAKeyIsRefused() throws {
    let encoded = try encode(pictures(8), settings(), keyAt: [6])
    let decoder = try codecs.videoDecoder(track: "v")
    #expect(throws: CodecError.self) { try decoder.decode(encoded[1].bytes) }
    _ = try decoder.decode(encoded[0].bytes)
    _ = try decoder.decode(encoded[1].bytes)
    #expect(throws: CodecError.self) { try decoder.decode(Array(encoded[2].bytes.prefix(3))) }
    #expect(throws: CodecError.self) { try decoder.decode(encoded[3].bytes) }
    _ = try decoder.decode(encoded[6].bytes)
    _ = try decoder.decode(encoded[7].bytes)
  }

  @Test func aHeaderThatClaimsAHugePictureIsRefused() throws {
    var bytes = try encode(pictures(1), settings())[0].bytes
    bytes.replaceSubrange(6..<10, with: [0xFF, 0x3F, 0xFF, 0x3F])
    let decoder = try codecs.videoDecoder(track: "v")
    #expect(throws: CodecError.self) { try decoder.decode(bytes) }
  }

  @Test func theDecoderSurvivesAnyBytes() throws {
    let encoded = try encode(pictures(12, 64, 48), settings(64, 48), keyAt: [4, 8]).map(\.bytes)
    let decoder = try codecs.videoDecoder(track: "v")
    let dice = random(5)
    var refused = 0
    for round in 0..<20_000 {
      var bytes = encoded[round % encoded.count]
      if round % 5 != 0 {
        // The size in the header stays: another one costs memory, not safety.
        for _ in 0...dice.integer(below: 6) {
          let place = Int(dice.integer(below: UInt64(bytes.count)))
          if !(6..<10).contains(place) { bytes[place] = dice.byte() }
        }
      }
      if round % 7 == 0 { bytes.removeLast(Int(dice.integer(below: UInt64(bytes.count)))) }
      if (try? decoder.decode(bytes)) == nil { refused += 1 }
    }
    #expect(refused > 0 && refused < 20_000)
  }
}
