import Foundation
import Media
import MediaFiles
import Testing
import Wire

struct H264FileTests {
  /// Parameter sets for 64x44 pixels without a frame rate.
  private static let sets: [UInt8] = [
    0, 0, 0, 1, 0x67, 0x42, 0xc0, 0x1e, 0xda, 0x11, 0xfe, 0xd0, 0, 0, 0, 1, 0x68, 0xce, 0x3c, 0x80,
  ]

  /// Returns numbered video frames, with a key frame in every four.
  private func file(_ count: Int) -> [UInt8] {
    H264FileTests.sets
      + (0..<count).flatMap { number -> [UInt8] in
        [0, 0, 1] + (number % 4 == 0 ? [0x65, 0xb0] : [0x41, 0xe0]) + [100 + UInt8(number), 0x80]
      }
  }

  private func number(_ content: MediaContent?) -> Int? {
    guard case .encodedVideo(let videoFrame) = content else { return nil }
    return videoFrame.bytes.dropLast().last.map { Int($0) - 100 }
  }

  @Test func videoFramesAreReadAtTheirRateAndRepeated() async throws {
    try await MediaFileTests.inFolder { path in
      try Data(file(6)).write(to: URL(filePath: path))
      var source = try H264FileSource(path: path, loops: true, framesPerSecond: 50)
      #expect(source.framesPerSecond == 50 && source.profileLevelID == "42c01e")
      for index in 0..<14 {
        let (media, nanoseconds) = try #require(try source.next())
        #expect(number(media) == index % 6 && nanoseconds == Int64(index) * 20_000_000)
      }
      var once = try H264FileSource(path: path, loops: false)
      #expect(once.framesPerSecond == 30)
      var count = 0
      while try once.next() != nil { count += 1 }
      #expect(count == 6)
    }
  }

  @Test func theNextKeyFrameIsFoundAlsoBeyondTheEnd() async throws {
    try await MediaFileTests.inFolder { path in
      try Data(file(6)).write(to: URL(filePath: path))
      var source = try H264FileSource(path: path, loops: true)
      _ = try source.next()
      #expect(number(try source.nextKeyFrame()) == 4)
      #expect(number(try source.next()?.media) == 5)
      #expect(number(try source.nextKeyFrame()) == 0)
      #expect(number(try source.next()?.media) == 1)
    }
  }

  @Test func aFileThatCannotBeSentIsRefusedWhenOpened() async throws {
    try await MediaFileTests.inFolder { path in
      for bytes in [[], [0, 0, 0, 1, 0x41, 0xe0, 0x80], Array("RIFF".utf8)] as [[UInt8]] {
        try Data(bytes).write(to: URL(filePath: path))
        do throws(MediaFileError) {
          _ = try H264FileSource(path: path, loops: true)
          Issue.record("\(bytes) was taken")
        } catch { #expect(error.description.hasPrefix("\(path): ")) }
      }
    }
  }

  @Test(arguments: [
    ("clip.h264", MediaFileFormat.h264), ("a.b/c.264", .h264), ("X.Y4M", .y4m), ("s.wav", .wav),
  ])
  func theNameSelectsTheFormat(path: String, format: MediaFileFormat) {
    #expect(MediaFileFormat(path: path) == format)
    #expect(format.kind == (format == .wav ? .audio : .video))
  }

  @Test(arguments: ["clip", "clip.mp4", "h264", "a.h264/clip", ""])
  func otherNamesSelectNone(path: String) { #expect(MediaFileFormat(path: path) == nil) }
}
