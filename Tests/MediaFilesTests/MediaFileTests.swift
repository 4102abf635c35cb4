import Foundation
import Media
import MediaFiles
import Testing
import Wire

@Suite(.timeLimit(.minutes(10))) struct MediaFileTests {
  /// Returns the closure's result for a path in a folder that is removed afterwards.
  static func inFolder<Value>(_ body: (String) async throws -> Value) async throws -> Value {
    let folder = FileManager.default.temporaryDirectory.path + "/media-files-\(UUID().uuidString)"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    return try await body(folder + "/media")
  }

  /// Returns a Y4M file of grey video frames, each as bright as its number.
  static func y4m(count: Int, rate: String, side: Int = 16) -> [UInt8] {
    var bytes = Array("YUV4MPEG2 W\(side) H\(side) F\(rate) C420\n".utf8)
    for index in 0..<count {
      bytes += Array("FRAME\n".utf8)
      bytes += [UInt8](repeating: UInt8(index), count: side * side * 3 / 2)
    }
    return bytes
  }

  static func brightness(_ content: MediaContent) -> UInt8? {
    guard case .videoFrame(let videoFrame) = content else { return nil }
    return videoFrame.samples.first
  }

  @Test func videoFramesAreReadInOrderWithTheirTimesAndRepeated() async throws {
    try await MediaFileTests.inFolder { path in
      try Data(MediaFileTests.y4m(count: 3, rate: "25:1")).write(to: URL(filePath: path))
      var once = try Y4MFileSource(path: path, loops: false)
      var times: [Int64] = []
      while let (media, nanoseconds) = try once.next() {
        #expect(MediaFileTests.brightness(media) == UInt8(times.count))
        times.append(nanoseconds / 1_000_000)
      }
      #expect(times == [0, 40, 80])
      #expect(once.width == 16 && once.height == 16)
      var looped = try Y4MFileSource(path: path, loops: true)
      for index in 0..<10 {
        let (media, nanoseconds) = try #require(try looped.next())
        #expect(MediaFileTests.brightness(media) == UInt8(index % 3))
        #expect(nanoseconds / 1_000_000 == Int64(40 * index))
      }
    }
  }

  @Test(arguments: [("30000:1001", 33_366_666), ("0:0", 33_333_333), ("90000:1", 1_000_000)])
  func theRateOfAFileSetsItsPace(rate: String, nanoseconds: Int64) async throws {
    try await MediaFileTests.inFolder { path in
      try Data(MediaFileTests.y4m(count: 2, rate: rate)).write(to: URL(filePath: path))
      var source = try Y4MFileSource(path: path, loops: false)
      _ = try source.next()
      let second = try #require(try source.next())
      #expect(abs(second.nanoseconds - nanoseconds) <= 1)
    }
  }

  @Test func audioIsReadInBlocksOfTwentyMilliseconds() async throws {
    try await MediaFileTests.inFolder { path in
      let samples = (0..<2400).map { Int16($0) }
      let format = WAVFormat(channels: 1, sampleRate: 48_000)
      let bytes =
        WAVWriter.header(format, dataByteCount: 4800)
        + WAVWriter.samples(AudioBlock(samples: samples, channels: 1))
      try Data(bytes).write(to: URL(filePath: path))
      var source = try WAVFileSource(path: path, loops: false)
      var all: [Int16] = []
      var times: [Int64] = []
      while let (media, nanoseconds) = try source.next() {
        guard case .audio(let block) = media else { continue }
        all += block.samples
        times.append(nanoseconds)
      }
      #expect(all == samples)
      #expect(times == [0, 20_000_000, 40_000_000])
      var looped = try WAVFileSource(path: path, loops: true)
      for _ in 0..<3 { _ = try looped.next() }
      let again = try #require(try looped.next())
      #expect(again.nanoseconds == 50_000_000)
    }
  }

  @Test func filesThatCannotBeUsedAreRefusedByNameWhenOpened() async throws {
    try await MediaFileTests.inFolder { path in
      #expect(throws: MediaFileError.self) { try Y4MFileSource(path: path, loops: true) }
      for bytes in [[], Array("RIFF....WAVE".utf8), Array("no media at all".utf8)] as [[UInt8]] {
        try Data(bytes).write(to: URL(filePath: path))
        do throws(MediaFileError) {
          _ = try Y4MFileSource(path: path, loops: true)
          Issue.record("\(bytes) is no Y4M file")
        } catch { #expect(error.description.hasPrefix("\(path): ")) }
        do throws(MediaFileError) {
          _ = try WAVFileSource(path: path, loops: true)
          Issue.record("\(bytes) is no WAV file")
        } catch { #expect(error.description.hasPrefix("\(path): ")) }
      }
    }
  }

  @Test func aFileThatEndsInTheMiddleIsReportedAfterItsLastVideoFrame() async throws {
    try await MediaFileTests.inFolder { path in
      let bytes = MediaFileTests.y4m(count: 2, rate: "30:1").dropLast(5)
      try Data(bytes).write(to: URL(filePath: path))
      var source = try Y4MFileSource(path: path, loops: true)
      #expect(try source.next() != nil)
      #expect(throws: MediaFileError.self) { try source.next() }
    }
  }

  @Test func aLongPauseIsOmittedBeyondItsBudget() async throws {
    try await MediaFileTests.inFolder { path in
      let file = try MediaFile(path, for: .writing)
      var writer = VideoWriter(
        file, framesPerSecond: 10, gaps: GapBudget(nanoseconds: 2_000_000_000))
      let times: [Int64] = [0, 500, 1_500, 3_600_000, 7_200_000, 7_200_100]
      for time in times {
        let picture = I420Buffer(width: 16, height: 16, samples: Array(repeating: 9, count: 384))
        writer.write(.videoFrame(picture), at: .zero + .milliseconds(time))
      }
      // The frames fill, in this order: 0.5 s; 1 s; one second of the first hour plus the budget of
      // 2 s; one second of the second hour; 0.1 s; and the last frame.
      #expect(try writer.finish().get() == 5 + 10 + 30 + 10 + 1 + 1)
      #expect(writer.leftOut == .milliseconds(7_198_500 - 4_000))
    }
  }

  @Test func endsOfTimeAreOnlyAPause() async throws {
    try await MediaFileTests.inFolder { path in
      var writer = VideoWriter(
        try MediaFile(path, for: .writing), framesPerSecond: 120, gaps: GapBudget(nanoseconds: 0))
      let picture = I420Buffer(width: 16, height: 16, samples: Array(repeating: 9, count: 384))
      for time in [Int64.min, 0, .max, .min, .max] {
        writer.write(.videoFrame(picture), at: Instant(nanoseconds: time))
      }
      #expect(try writer.finish().get() == 121)
    }
  }

  @Test func longSilenceIsOmittedBeyondItsBudget() async throws {
    try await MediaFileTests.inFolder { path in
      var writer = AudioWriter(
        try MediaFile(path, for: .writing), gaps: GapBudget(nanoseconds: 1_000_000_000))
      let silence = AudioBlock(blank: 480, channels: 1)
      let sound = AudioBlock(samples: Array(repeating: 7, count: 480), channels: 1)
      func write(_ block: AudioBlock, _ count: Int) {
        for _ in 0..<count { writer.write(.audio(block), at: .zero) }
      }
      write(silence, 50)
      write(sound, 2)
      write(silence, 500)
      write(sound, 1)
      write(silence, 100)
      #expect(try writer.finish().get() == 50 + 2 + 200 + 1 + 100)
      #expect(writer.leftOut == .seconds(3))
    }
  }

  /// If the budget covers only part of a block, that part is written and the rest is counted as
  /// omitted.
  @Test func silenceIsCutWithinABlock() async throws {
    try await MediaFileTests.inFolder { path in
      var writer = AudioWriter(
        try MediaFile(path, for: .writing), gaps: GapBudget(nanoseconds: 5_000_000))
      for _ in 0..<102 {
        writer.write(.audio(AudioBlock(blank: 480, channels: 1)), at: .zero)
      }
      #expect(try writer.finish().get() == 101)
      #expect(writer.leftOut == .milliseconds(15))
      // One second is always written, and the budget allows 5 ms more, in 16-bit samples after the
      // header.
      let size = try Data(contentsOf: URL(filePath: path)).count
      #expect(size == 44 + 2 * (48_000 + 240))
    }
  }

  @Test func videoFramesOfOtherSizesAreWrittenInThatOfTheFirst() async throws {
    try await MediaFileTests.inFolder { path in
      var writer = VideoWriter(try MediaFile(path, for: .writing), framesPerSecond: 10)
      // A smaller frame without content, then a smaller and a larger one with content.
      let videoFrames: [(Int, UInt8?)] = [(16, 10), (8, nil), (8, 30), (32, 40), (16, 50)]
      for (index, (side, brightness)) in videoFrames.enumerated() {
        let count = brightness == nil ? 0 : I420Buffer.byteCount(width: side, height: side)
        let videoFrame = I420Buffer(
          width: side, height: side, samples: Array(repeating: brightness ?? 0, count: count))
        writer.write(.videoFrame(videoFrame), at: .zero + .milliseconds(Int64(100 * index)))
      }
      #expect(try writer.finish().get() == 5)
      var source = try Y4MFileSource(path: path, loops: false)
      var seen: [UInt8?] = []
      while let (media, _) = try source.next() { seen.append(MediaFileTests.brightness(media)) }
      #expect(seen == [10, 128, 30, 40, 50])
    }
  }
}
