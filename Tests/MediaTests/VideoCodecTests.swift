import Media
import RTP
import Testing
import Wire

/// Runs every test with each codec in libvpx.
struct VideoCodecTests {
  let codecs = LibraryCodecs()

  private func settings(
    _ codec: CodecName, _ width: Int = 320, _ height: Int = 180, bitrate: UInt64 = 400_000
  ) -> VideoSettings {
    VideoSettings(
      codec: codec, width: width, height: height, framesPerSecond: 30, bitrate: bitrate)
  }

  private func encode(
    _ videoFrames: [I420Buffer], _ settings: VideoSettings, keyAt keys: Set<Int> = []
  ) throws -> [EncodedVideo] {
    let encoder = try codecs.videoEncoder(track: "v", settings)
    return try videoFrames.enumerated().compactMap { index, videoFrame in
      try encoder.encode(
        videoFrame, mediaTime: UInt32(index) &* 3_000 &- 9_000, forceKey: keys.contains(index))
    }
  }

  private func videoFrames(_ count: Int, _ width: Int = 320, _ height: Int = 180) -> [I420Buffer] {
    let pattern = TestPattern(width: width, height: height)
    return (0..<count).map { pattern.videoFrame(Int64($0)) }
  }

  private func meanSquaredError(_ left: I420Buffer, _ right: I420Buffer) -> Double {
    let count = left.width * left.height
    var sum = 0
    for index in 0..<count {
      let difference = Int(left.samples[index]) - Int(right.samples[index])
      sum += difference * difference
    }
    return Double(sum) / Double(count)
  }

  @Test(arguments: [CodecName.vp8, .vp9])
  func theSameVideoFramesGiveTheSameBytes(codec: CodecName) throws {
    let some = videoFrames(15)
    #expect(try encode(some, settings(codec)) == encode(some, settings(codec)))
  }

  @Test(arguments: [CodecName.vp8, .vp9])
  func thePatternSurvivesTheRoundTrip(codec: CodecName) throws {
    let some = videoFrames(20)
    let decoder = try codecs.videoDecoder(track: "v", codec)
    for (videoFrame, encoded) in zip(some, try encode(some, settings(codec, bitrate: 1_000_000))) {
      let decoded = try decoder.decode(encoded.bytes)
      #expect(decoded.videoFrame.width == 320 && decoded.videoFrame.height == 180)
      #expect(decoded.quantiser == encoded.quantiser)
      // A mean squared error of 130 is a PSNR of 27 dB.
      #expect(meanSquaredError(videoFrame, decoded.videoFrame) < 130)
    }
  }

  @Test(arguments: [CodecName.vp8, .vp9])
  func everyVideoFrameIsEncodedAndKeyFramesAreProducedOnRequest(codec: CodecName) throws {
    let encoded = try encode(videoFrames(20), settings(codec, bitrate: 50_000), keyAt: [7, 13])
    #expect(encoded.count == 20)
    #expect(encoded.indices.filter { encoded[$0].isKey } == [0, 7, 13])
  }

  @Test(arguments: [CodecName.vp8, .vp9])
  func theBitRateIsKeptAndChangesOnTheFly(codec: CodecName) throws {
    let encoder = try codecs.videoEncoder(track: "v", settings(codec, 640, 360, bitrate: 1_000_000))
    let some = videoFrames(120, 640, 360)
    var early = 0
    var late = 0
    for (index, videoFrame) in some.enumerated() {
      if index == 60 { encoder.setBitrate(250_000) }
      let size =
        try encoder.encode(videoFrame, mediaTime: UInt32(index * 3_000), forceKey: false)?.bytes
        .count
        ?? 0
      if (30..<60).contains(index) { early += size * 8 }
      if (90..<120).contains(index) { late += size * 8 }
    }
    #expect((700_000...1_300_000).contains(early))
    #expect((150_000...400_000).contains(late))
  }

  @Test(arguments: [CodecName.vp8, .vp9], [(161, 91), (1, 1), (17, 2), (64, 64)])
  func anySizeWorks(codec: CodecName, size: (Int, Int)) throws {
    let (width, height) = size
    let decoder = try codecs.videoDecoder(track: "v", codec)
    for encoded in try encode(videoFrames(3, width, height), settings(codec, width, height)) {
      let videoFrame = try decoder.decode(encoded.bytes).videoFrame
      #expect(videoFrame.width == width && videoFrame.height == height)
      #expect(videoFrame.samples.count == I420Buffer.byteCount(width: width, height: height))
    }
  }

  @Test(arguments: [CodecName.vp8, .vp9])
  func anotherSizeStartsOverWithAKeyFrame(codec: CodecName) throws {
    let mixed = videoFrames(3) + videoFrames(3, 160, 90) + videoFrames(2)
    let encoded = try encode(mixed, settings(codec))
    #expect(encoded.map(\.isKey) == [true, false, false, true, false, false, true, false])
    let decoder = try codecs.videoDecoder(track: "v", codec)
    #expect(
      try encoded.map { try decoder.decode($0.bytes).videoFrame.width }
        == [320, 320, 320, 160, 160, 160, 320, 320])
  }

  @Test(arguments: [CodecName.vp8, .vp9])
  func aBlankVideoFrameIsEncodedAsGrey(codec: CodecName) throws {
    let encoded = try encode(
      [I420Buffer(width: 32, height: 32, samples: [])], settings(codec, 32, 32))
    let videoFrame = try codecs.videoDecoder(track: "v", codec).decode(encoded[0].bytes).videoFrame
    #expect(videoFrame.samples.allSatisfy { (120...136).contains($0) })
  }

  @Test(arguments: [CodecName.vp8, .vp9])
  func impossibleSizesAreErrors(codec: CodecName) throws {
    #expect(throws: CodecError.self) { try codecs.videoEncoder(track: "v", settings(codec, 0, 10)) }
    #expect(throws: CodecError.self) {
      try codecs.videoEncoder(track: "v", settings(codec, 16_384, 10))
    }
  }

  @Test(arguments: [CodecName.vp8, .vp9])
  func afterARefusedFrameOnlyAKeyFrameIsAccepted(codec: CodecName) throws {
    let encoded = try encode(videoFrames(8), settings(codec), keyAt: [6])
    let decoder = try codecs.videoDecoder(track: "v", codec)
    #expect(throws: CodecError.self) { try decoder.decode(encoded[1].bytes) }
    _ = try decoder.decode(encoded[0].bytes)
    _ = try decoder.decode(encoded[1].bytes)
    #expect(throws: CodecError.self) { try decoder.decode(Array(encoded[2].bytes.prefix(3))) }
    #expect(throws: CodecError.self) { try decoder.decode(encoded[3].bytes) }
    _ = try decoder.decode(encoded[6].bytes)
    _ = try decoder.decode(encoded[7].bytes)
  }

  @Test(arguments: [CodecName.vp8, .vp9])
  func aHeaderThatClaimsAHugeVideoFrameIsRefused(codec: CodecName) throws {
    var bytes = try encode(videoFrames(1), settings(codec))[0].bytes
    let size = codec == .vp8 ? 6..<10 : 5..<9
    bytes.replaceSubrange(size, with: [0xFF, 0x3F, 0xFF, 0x3F])
    let decoder = try codecs.videoDecoder(track: "v", codec)
    #expect(throws: CodecError.self) { try decoder.decode(bytes) }
  }

  @Test(arguments: [CodecName.vp8, .vp9])
  func theDecoderSurvivesAnyBytes(codec: CodecName) throws {
    let encoded = try encode(videoFrames(12, 64, 48), settings(codec, 64, 48), keyAt: [4, 8]).map(
      \.bytes)
    let decoder = try codecs.videoDecoder(track: "v", codec)
    let dice = random(5)
    var refused = 0
    for round in 0..<20_000 {
      var bytes = encoded[round % encoded.count]
      if round % 5 != 0 {
        // Leaves the video size in the header unchanged, because a larger size would only use more
        // memory.
        for _ in 0...dice.integer(below: 6) {
          let place = Int(dice.integer(below: UInt64(bytes.count)))
          if !(4..<10).contains(place) { bytes[place] = dice.byte() }
        }
      }
      if round % 7 == 0 { bytes.removeLast(Int(dice.integer(below: UInt64(bytes.count)))) }
      if (try? decoder.decode(bytes)) == nil { refused += 1 }
    }
    #expect(refused > 0 && refused < 20_000)
  }
}
