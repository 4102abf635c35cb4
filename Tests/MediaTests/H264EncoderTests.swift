import RTP
import Testing
import Wire

@testable import Media

/// Tests H.264 encoding with OpenH264.
@Suite(.enabled(if: LibraryCodecs.openH264Version != nil, "this build has no OpenH264"))
struct H264EncoderTests {
  private func settings(_ width: Int, _ height: Int, bitrate: UInt64 = 400_000) -> VideoSettings {
    VideoSettings(
      codec: .h264, width: width, height: height, framesPerSecond: 30, bitrate: bitrate)
  }

  /// Encodes a moving pattern, requesting key frames at `keys`.
  private func encoded(
    _ settings: VideoSettings, count: Int, keys: Set<Int> = [0], ticks: UInt32 = 3000,
    change: (Int, any VideoEncoding) -> Void = { _, _ in }
  ) throws -> [EncodedVideo?] {
    let encoder = try LibraryCodecs().videoEncoder(track: "1", settings)
    let pattern = TestPattern(width: settings.width, height: settings.height)
    return try (0..<count).map { number in
      change(number, encoder)
      return try encoder.encode(
        pattern.videoFrame(Int64(number)), mediaTime: UInt32(number) &* ticks,
        forceKey: keys.contains(number))
    }
  }

  private func units(_ frame: EncodedVideo) -> [(type: UInt8, size: Int)] {
    H264Payload.units(of: frame.bytes.span.bytes).map {
      (frame.bytes[$0.lowerBound] & 0x1f, $0.count)
    }
  }

  @Test func equalInputsGiveEqualBytesThatAreDecoded() throws {
    let first = try encoded(settings(320, 180), count: 60)
    #expect(try encoded(settings(320, 180), count: 60) == first)
    let decoder = try LibraryCodecs().videoDecoder(track: "1", .h264)
    let frames = first.compactMap(\.self)
    #expect(frames.count > 50)
    for frame in frames {
      let shown = try decoder.decode(frame.bytes)
      #expect(shown.videoFrame.width == 320 && shown.videoFrame.height == 180)
      #expect(frame.quantiser > 0 && frame.quantiser <= 51)
    }
  }

  @Test func streamsAreConstrainedBaselineWithRequestedKeyFrames() throws {
    let frames = try encoded(settings(320, 180), count: 40, keys: [0, 25])
    #expect(frames.indices.filter { frames[$0]?.isKey == true } == [0, 25])
    let key = try #require(frames[25])
    #expect(units(key).map(\.type) == [7, 8, 5])
    let set = try #require(H264Payload.units(of: key.bytes.span.bytes).first)
    let read = try H264SequenceParameters(parsing: key.bytes.span.bytes.extracting(set))
    #expect(
      H264ProfileLevelID(read.profileLevelIDText)?.profile == .constrainedBaseline)
  }

  /// The bit rate is divided among the actual frames, not the expected ones.
  @Test(arguments: [(3000, 30.0), (6000, 15.0)])
  func theBitRateIsKept(ticks: Int, rate: Double) throws {
    let count = 300
    let frames = try encoded(
      settings(640, 360, bitrate: 500_000), count: count, ticks: UInt32(ticks)
    ) { number, encoder in
      if number == count / 2 { encoder.setBitrate(200_000) }
    }
    func rateOf(_ part: Range<Int>) -> Double {
      let bytes = frames[part].reduce(0) { $0 + ($1?.bytes.count ?? 0) }
      return Double(bytes * 8) * rate / Double(part.count)
    }
    #expect(rateOf(60..<150) < 600_000, "\(rateOf(60..<150))")
    #expect(rateOf(60..<150) > 200_000, "\(rateOf(60..<150))")
    #expect(rateOf(200..<300) < 260_000, "\(rateOf(200..<300))")
  }

  @Test func unitsAreShortWherePacketsCannotBeFragmented() throws {
    var wanted = settings(640, 360, bitrate: 2_000_000)
    wanted.unitLimit = 1_000
    let frames = try encoded(wanted, count: 20).compactMap(\.self)
    #expect(frames.contains { units($0).count > 3 })
    #expect(frames.allSatisfy { units($0).allSatisfy { $0.size <= 1_050 } })
    let decoder = try LibraryCodecs().videoDecoder(track: "1", .h264)
    for frame in frames { _ = try decoder.decode(frame.bytes) }
  }

  @Test func oddSizesAreCroppedAndTinyOnesRefused() throws {
    let frames = try encoded(settings(101, 75), count: 3).compactMap(\.self)
    let decoder = try LibraryCodecs().videoDecoder(track: "1", .h264)
    let shown = try decoder.decode(try #require(frames.first).bytes).videoFrame
    #expect(shown.width == 100 && shown.height == 74)
    #expect(throws: CodecError.self) { try encoded(settings(8, 8), count: 1) }
  }

  /// The same video is encoded differently if the encoder knows that it shows a screen.
  @Test func screenContentIsEncodedDifferently() throws {
    func text(_ isScreen: Bool) throws -> [EncodedVideo?] {
      var wanted = settings(320, 180)
      wanted.isScreen = isScreen
      return try encoded(wanted, count: 5)
    }
    #expect(try text(true) != text(false))
  }
}
