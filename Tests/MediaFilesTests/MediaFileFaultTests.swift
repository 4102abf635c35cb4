import Foundation
import Glibc
import MediaFiles
import Testing

/// If a file is unusable, or becomes unusable while it is read, the error says where and why.
@Suite(.timeLimit(.minutes(10))) struct MediaFileFaultTests {
  private func error(_ body: () throws(MediaFileError) -> Void) -> MediaFileError? {
    do throws(MediaFileError) { try body() } catch { return error }
    return nil
  }

  /// Returns H.264 without a frame rate, a key frame first.
  private func h264(_ count: Int) -> [UInt8] {
    let sets: [UInt8] = [
      0, 0, 0, 1, 0x67, 0x42, 0xc0, 0x1e, 0xda, 0x11, 0xfe, 0xd0, 0, 0, 0, 1, 0x68, 0xce, 0x3c,
      0x80,
    ]
    return sets
      + (0..<count).flatMap { [0, 0, 1] + ($0 == 0 ? [0x65, 0xb0] : [0x41, 0xe0]) + [9, 0x80] }
  }

  @Test func filesThatCannotBeReadRepeatedlyAreRefused() async throws {
    try await MediaFileTests.inFolder { path in
      let missing = error { () throws(MediaFileError) in
        _ = try H264FileSource(path: path, loops: true)
      }
      #expect(missing?.cause == .missing)
      #expect(mkfifo(path, 0o600) == 0)
      let pipe = error { () throws(MediaFileError) in
        _ = try WAVFileSource(path: path, loops: true)
      }
      #expect(pipe?.cause == .content && pipe?.reason.contains("not a regular file") == true)
      let folder = error { () throws(MediaFileError) in
        _ = try Y4MFileSource(path: String(path.dropLast("/media".count)), loops: true)
      }
      #expect(folder?.cause == .content && folder?.reason.contains("folder") == true)
      let below = error { () throws(MediaFileError) in
        _ = try Y4MFileSource(path: path + "/x", loops: true)
      }
      #expect(below?.cause == .system)
    }
  }

  @Test func aVideoFrameThatCannotBeSentIsNamedWithItsPlace() async throws {
    try await MediaFileTests.inFolder { path in
      // More video frames than the reader checks before the first is sent.
      let good = h264(70)
      try Data(good + [0, 0, 1, 0x01, 0b1010_1000, 0x80]).write(to: URL(filePath: path))
      var source = try H264FileSource(path: path, loops: true)
      for _ in 0..<70 { _ = try source.next() }
      let told = error { () throws(MediaFileError) in _ = try source.next() }
      #expect(told?.cause == .content && told?.videoFrame == 71)
      #expect(told?.description.hasSuffix("(video frame 71, byte \(good.count + 3))") == true)
    }
  }

  @Test func aFileThatBecomesEmptyEndsWithAnError() async throws {
    try await MediaFileTests.inFolder { path in
      try Data(h264(3)).write(to: URL(filePath: path))
      var source = try H264FileSource(path: path, loops: true)
      for _ in 0..<3 { _ = try source.next() }
      #expect(truncate(path, 0) == 0)
      let told = error { () throws(MediaFileError) in _ = try source.next() }
      #expect(told?.reason.contains("became empty") == true)
    }
  }

  @Test func aFileThatLosesItsKeyFrameEndsWithAnError() async throws {
    try await MediaFileTests.inFolder { path in
      try Data(h264(3)).write(to: URL(filePath: path))
      var source = try H264FileSource(path: path, loops: true)
      for _ in 0..<3 { _ = try source.next() }
      // The file is overwritten in place, so that only the parameter sets remain.
      let handle = try FileHandle(forWritingTo: URL(filePath: path))
      try handle.truncate(atOffset: 20)
      let told = error { () throws(MediaFileError) in _ = try source.next() }
      #expect(told?.reason.contains("no H.264 key frame") == true)
    }
  }

  @Test func aCutVideoFrameIsNamedWithItsPlace() async throws {
    try await MediaFileTests.inFolder { path in
      let whole = MediaFileTests.y4m(count: 3, rate: "30:1")
      try Data(whole.dropLast(5)).write(to: URL(filePath: path))
      var source = try Y4MFileSource(path: path, loops: true)
      for _ in 0..<2 { _ = try source.next() }
      let told = error { () throws(MediaFileError) in _ = try source.next() }
      // Each video frame has 384 bytes, after a line of six bytes.
      #expect(told?.videoFrame == 3 && told?.byteOffset == whole.count - 390)
    }
  }
}
