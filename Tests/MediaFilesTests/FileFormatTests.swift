import Media
import MediaFiles
import Testing
import Wire

/// Returns a seeded source of random numbers, the same in every run.
private func random(_ seed: UInt8) -> EntropyStream {
  Entropy(seed: Array(repeating: seed, count: Entropy.seedLength)).stream("test")
}

extension [UInt8] {
  /// Splits the bytes into pieces of random length.
  fileprivate func pieces(_ dice: EntropyStream, most: UInt64) -> [[UInt8]] {
    var rest = self[...]
    var pieces: [[UInt8]] = []
    while !rest.isEmpty {
      let piece = rest.prefix(Int(dice.integer(below: most)) + 1)
      pieces.append(Array(piece))
      rest = rest.dropFirst(piece.count)
    }
    return pieces
  }
}

struct Y4MTests {
  private func read(_ pieces: [[UInt8]]) throws(Y4MError) -> (Y4MReader, [I420Buffer]) {
    var reader = Y4MReader()
    var videoFrames: [I420Buffer] = []
    for piece in pieces {
      reader.append(piece.span.bytes)
      while let videoFrame = try reader.next() { videoFrames.append(videoFrame) }
    }
    return (reader, videoFrames)
  }

  @Test func whatIsWrittenIsReadBackInPiecesOfAnySize() throws {
    let pattern = TestPattern(width: 33, height: 17)
    let header = Y4MHeader(width: 33, height: 17, rateNumerator: 30_000, rateDenominator: 1_001)
    var bytes = Y4MWriter.header(header)
    for number in 0..<5 { bytes += Y4MWriter.frame(pattern.videoFrame(Int64(number))) }
    for most: UInt64 in [1, 100, 100_000] {
      let (reader, videoFrames) = try read(bytes.pieces(random(1), most: most))
      #expect(reader.header == header)
      #expect(header.framesPerSecond == 30)
      #expect(videoFrames.map(\.samples) == (0..<5).map { pattern.videoFrame($0).samples })
      try reader.finish()
    }
  }

  @Test(arguments: [
    ("YUV4MPEG2 W2 H2 F25:1 Ip A1:1 C420mpeg2 XYSCSS=420MPEG2\n", 25),
    ("YUV4MPEG2 H2 W2\n", 30), ("YUV4MPEG2 W2 H2 F0:0 C420\n", 30),
    ("YUV4MPEG2 W2 H2 F60000:1001 C420paldv It\n", 60),
  ])
  func headersOfOtherProgramsAreUnderstood(line: String, rate: Int) throws {
    let frame = Array("FRAME Ip\n".utf8) + [1, 2, 3, 4, 5, 6]
    let (reader, videoFrames) = try read([Array(line.utf8), frame])
    #expect(reader.header?.framesPerSecond == rate)
    #expect(videoFrames.map(\.samples) == [[1, 2, 3, 4, 5, 6]])
  }

  @Test(arguments: [
    ("RIFF1234WAVE", Y4MError.notY4M),
    ("YUV4MPEG2X W2 H2\n", .notY4M),
    ("YUV4MPEG2 W2 H2 C444\n", .unsupportedColourSpace("444")),
    ("YUV4MPEG2 W2 H2 C420p10\n", .unsupportedColourSpace("420p10")),
    ("YUV4MPEG2 W0 H2\n", .malformedHeader("the width is 0")),
    ("YUV4MPEG2 W2 H99999\n", .malformedHeader("the height is 99999")),
    ("YUV4MPEG2 W2\n", .malformedHeader("no picture size")),
    ("YUV4MPEG2 W2 H2 F25\n", .malformedHeader("the frame rate is 25")),
    ("YUV4MPEG2 W2 H2\nFRAMES\n", .malformedFrame(0)),
    (
      "YUV4MPEG2 " + String(repeating: "X", count: 5_000),
      .malformedHeader("the line does not end")
    ),
  ])
  func whatCannotBeReadIsNamed(text: String, error: Y4MError) {
    #expect(throws: error) { try read([Array(text.utf8)]) }
    #expect(!error.description.isEmpty)
  }

  @Test func anEndInTheMiddleIsAnError() throws {
    let text = Array("YUV4MPEG2 W2 H2\nFRAME\n123456FRAME\n12".utf8)
    let (reader, videoFrames) = try read([text])
    #expect(videoFrames.count == 1)
    #expect(throws: Y4MError.truncated(afterFrames: 1)) { try reader.finish() }
    #expect(throws: Y4MError.notY4M) { try Y4MReader().finish() }
  }

  @Test func anyBytesAreSafe() {
    let dice = random(2)
    let good = Array("YUV4MPEG2 W4 H2 F25:1 C420jpeg\nFRAME\n123456789012FRAME\n123456789012".utf8)
    var whole = 0
    for _ in 0..<20_000 {
      var bytes = good
      for _ in 0...dice.integer(below: 5) {
        bytes[Int(dice.integer(below: UInt64(bytes.count)))] =
          dice.byte() < 128 ? dice.byte() : good[Int(dice.integer(below: UInt64(good.count)))]
      }
      if let (reader, videoFrames) = try? read(bytes.pieces(dice, most: 40)) {
        #expect(videoFrames.count <= bytes.count)
        if (try? reader.finish()) != nil { whole += 1 }
      }
    }
    #expect(whole > 1_000 && whole < 20_000)
  }
}

struct WAVTests {
  private func read(
    _ pieces: [[UInt8]], frameCount: Int = 960
  ) throws(WAVError) -> (WAVFormat?, [Int16]) {
    var reader = WAVReader()
    var samples: [Int16] = []
    for piece in pieces {
      try reader.append(piece.span.bytes)
      while let block = reader.next(frameCount: frameCount) { samples += block.samples }
    }
    try reader.finish()
    while let block = reader.next(frameCount: frameCount) { samples += block.samples }
    if let block = reader.rest() { samples += block.samples }
    return (reader.format, samples)
  }

  private func file(_ format: WAVFormat, _ samples: [Int16], length: Bool = true) -> [UInt8] {
    WAVWriter.header(format, dataByteCount: length ? 2 * samples.count : nil)
      + WAVWriter.samples(AudioBlock(samples: samples, channels: format.channels))
  }

  /// Returns a triangle wave; its peak is a fraction of full scale.
  private func wave(_ count: Int, period: Int, channels: Int = 1) -> [Int16] {
    (0..<count).flatMap { index -> [Int16] in
      let place = index % period
      let value = 20_000 * (place < period / 2 ? place : period - place) / (period / 2) - 10_000
      return Array(repeating: Int16(value), count: channels)
    }
  }

  @Test(arguments: [1, 2]) func whatIsWrittenAt48KilohertzIsReadBack(channels: Int) throws {
    let samples = wave(5_000, period: 100, channels: channels)
    let format = WAVFormat(channels: channels, sampleRate: 48_000)
    for length in [true, false] {
      for most: UInt64 in [1, 333, 100_000] {
        let bytes = file(format, samples, length: length)
        let (readFormat, readSamples) = try read(bytes.pieces(random(3), most: most))
        #expect(readFormat == format)
        #expect(readSamples == samples)
      }
    }
  }

  @Test(arguments: [8_000, 11_025, 16_000, 44_100, 96_000])
  func otherRatesAreConverted(rate: Int) throws {
    // 100 Hz for half a second, far below every cutoff.
    let period = rate / 100
    let bytes = file(
      WAVFormat(channels: 1, sampleRate: rate), wave(period * 50, period: period))
    let (_, whole) = try read([bytes])
    let (_, pieces) = try read(bytes.pieces(random(4), most: 50), frameCount: 77)
    #expect(whole == pieces, "the output does not depend on the pieces")
    let expected = Double(period * 50) * 48_000 / Double(rate)
    #expect(abs(Double(whole.count) - expected) <= 2)
    var worst = 0
    for index in 2_000..<20_000 {
      // The same triangle at 48 kHz, allowing for the rounded period.
      let position = Double(index) * Double(rate) / 48_000
      let place = position - (position / Double(period)).rounded(.down) * Double(period)
      let half = Double(period / 2)
      let value = 20_000 * (place < half ? place : Double(period) - place) / half - 10_000
      worst = max(worst, abs(Int(whole[index]) - Int(value)))
    }
    #expect(worst < 700, "\(worst)")
  }

  @Test func aConstantStaysConstantAndLoudnessDoesNotWrap() throws {
    let bytes = file(
      WAVFormat(channels: 1, sampleRate: 44_100), [Int16](repeating: .max, count: 4_410))
    let (_, samples) = try read([bytes])
    #expect(samples[200..<4_600].allSatisfy { $0 > 32_700 })
    #expect(samples.allSatisfy { $0 > -4_000 })
  }

  @Test func unknownChunksAndTheExtensibleFormAreUnderstood() throws {
    var bytes = Array("RIFF".utf8) + [99, 0, 0, 0]
    bytes += Array("WAVELIST".utf8) + [3, 0, 0, 0, 9, 9, 9, 0]
    bytes += Array("fmt ".utf8) + [40, 0, 0, 0, 0xFE, 0xFF, 1, 0, 0x80, 0xBB, 0, 0]
    bytes += [0, 0x77, 1, 0, 2, 0, 16, 0, 22, 0, 16, 0, 4, 0, 0, 0, 1, 0]
    bytes += [UInt8](repeating: 0, count: 14)
    bytes += Array("data".utf8) + [4, 0, 0, 0, 1, 0, 2, 0] + Array("junk".utf8)
    let (format, samples) = try read([bytes])
    #expect(format == WAVFormat(channels: 1, sampleRate: 48_000))
    #expect(samples == [1, 2])
  }

  @Test func whatCannotBeReadIsNamed() {
    let good = file(WAVFormat(channels: 1, sampleRate: 48_000), [1, 2])
    func with(_ place: Int, _ bytes: [UInt8]) -> [UInt8] {
      var changed = good
      changed.replaceSubrange(place..<place + bytes.count, with: bytes)
      return changed
    }
    let cases: [([UInt8], WAVError)] = [
      ([], .notWAV), (Array("RIFFxxxxAVI LIST".utf8), .notWAV),
      (with(20, [3, 0]), .unsupportedSamples(format: 3, bits: 16)),
      (with(34, [24, 0]), .unsupportedSamples(format: 1, bits: 24)),
      (with(22, [6, 0]), .unsupportedChannels(6)), (with(22, [0, 0]), .unsupportedChannels(0)),
      (with(24, [1, 0, 0, 0]), .unsupportedRate(1)),
      (with(16, [4, 0]), .malformedFormat),
      (with(12, Array("skip".utf8)), .malformedFormat),
      (Array(good.prefix(40)), .truncated), (Array(good.prefix(5)), .truncated),
    ]
    for (bytes, error) in cases {
      #expect(throws: error) { try read([bytes]) }
      #expect(!error.description.isEmpty)
    }
  }

  @Test func anyBytesAreSafe() {
    let dice = random(6)
    let good = file(WAVFormat(channels: 1, sampleRate: 48_000), wave(40, period: 10))
    var whole = 0
    for round in 0..<20_000 {
      var bytes = good
      for _ in 0...dice.integer(below: 4) {
        bytes[Int(dice.integer(below: 48))] = dice.byte() < 128 ? dice.byte() : 0
      }
      // Each new sample rate needs a new filter, which is slow to build, so few rounds change the
      // rate. Other tests cover rates.
      if round % 500 != 0 { bytes.replaceSubrange(24..<28, with: good[24..<28]) }
      guard let (format, samples) = try? read(bytes.pieces(dice, most: 60)) else { continue }
      whole += 1
      // Even in a 1 Hz file, each sample becomes at most 48,000 samples.
      if format == nil || samples.count > 48_000 * bytes.count {
        Issue.record("\(samples.count) samples of \(bytes.count) bytes")
      }
    }
    #expect(whole > 1_000 && whole < 20_000)
  }
}
