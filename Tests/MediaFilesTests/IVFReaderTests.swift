import Foundation
import Media
import RTP
import Testing

@testable import MediaFiles

/// Reads and decodes VP8 and VP9 in IVF files.
struct IVFReaderTests {
  private func file(_ codec: CodecName, _ fourCC: String, videoFrames: Int) throws -> [UInt8] {
    let settings = VideoSettings(
      codec: codec, width: 64, height: 48, framesPerSecond: 25, bitrate: 400_000)
    let encoder = try LibraryCodecs().videoEncoder(track: "1", settings)
    var bytes = IVFWriter.header(
      fourCC: fourCC, width: 64, height: 48, ticksPerSecond: 25, frameCount: videoFrames)
    for number in 0..<videoFrames {
      let videoFrame = TestPattern(width: 64, height: 48).videoFrame(Int64(number))
      let encoded = try #require(
        try encoder.encode(
          videoFrame, mediaTime: UInt32(number * 3_600), forceKey: number == 0))
      bytes += IVFWriter.frameHeader(byteCount: encoded.bytes.count, time: UInt64(number))
      bytes += encoded.bytes
    }
    return bytes
  }

  private func withFile<Value>(_ bytes: [UInt8], _ body: (String) throws -> Value) throws -> Value {
    let path = FileManager.default.temporaryDirectory.path + "/\(UUID().uuidString).ivf"
    defer { try? FileManager.default.removeItem(atPath: path) }
    try Data(bytes).write(to: URL(fileURLWithPath: path))
    return try body(path)
  }

  @Test(arguments: [(CodecName.vp8, "VP80"), (.vp9, "VP90")])
  func aFileIsDecodedOverAndOver(codec: CodecName, fourCC: String) throws {
    try withFile(try file(codec, fourCC, videoFrames: 3)) { path in
      var source = try IVFFileSource(path: path, loops: true)
      #expect(source.width == 64 && source.height == 48 && source.framesPerSecond == 25)
      var times: [Int64] = []
      for _ in 0..<7 {
        let (media, time) = try #require(try source.next())
        guard case .videoFrame(let videoFrame) = media else { continue }
        #expect(videoFrame.width == 64 && videoFrame.samples.count == 64 * 48 * 3 / 2)
        times.append((time + 500_000) / 1_000_000)
      }
      #expect(times == [0, 40, 80, 120, 160, 200, 240])
      var once = try IVFFileSource(path: path, loops: false)
      for _ in 0..<3 { _ = try once.next() }
      #expect(try once.next() == nil)
    }
  }

  @Test func badFilesAreReportedAndNeverTrap() throws {
    let good = try file(.vp8, "VP80", videoFrames: 2)
    var other = good
    other.replaceSubrange(8..<12, with: Array("AV01".utf8))
    for (bytes, words) in [
      (Array("DKIF".utf8), "not an IVF file"), (Array(repeating: 7, count: 100), "not an IVF file"),
      (other, "AV01 cannot be decoded"), (Array(good[..<32]), "contains no video frame"),
      (good[..<32] + [255, 255, 255, 255] + [UInt8](repeating: 0, count: 40), "impossible length"),
    ] {
      let error = try withFile(bytes) { path in
        #expect(throws: MediaFileError.self) { try IVFFileSource(path: path, loops: true) }
      }
      #expect(error?.reason.contains(words) == true, "\(error?.description ?? "")")
    }
    for index in stride(from: 0, to: good.count, by: 7) {
      var bad = good
      bad[index] ^= 0x5a
      try withFile(bad) { path in
        var source = try? IVFFileSource(path: path, loops: false)
        for _ in 0..<4 { _ = try? source?.next() }
      }
    }
  }
}
