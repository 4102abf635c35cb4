import Foundation
import Media
import MediaFiles
import Testing
import Wire

struct IVFWriterTests {
  private func number(_ bytes: [UInt8], _ offset: Int, _ count: Int) -> UInt64 {
    bytes[offset..<offset + count].reversed().reduce(0) { $0 << 8 | UInt64($1) }
  }

  @Test func videoFramesHaveTheirTimes() async throws {
    try await MediaFileTests.inFolder { path in
      var writer = TimedStreamWriter(try MediaFile(path, for: .writing), fourCC: "AV01")
      // The last frame has the same time as the one before.
      for (index, milliseconds) in [Int64(1_000), 1_040, 1_040].enumerated() {
        writer.write(
          .encodedVideo(
            EncodedVideoChunk(
              codec: "h264", isKey: index == 0, bytes: [UInt8](repeating: 7, count: index + 1))),
          at: .zero + .milliseconds(milliseconds))
      }
      #expect(try writer.finish().get() == 3)
      let bytes = [UInt8](try Data(contentsOf: URL(filePath: path)))
      #expect(bytes.starts(with: Array("DKIF".utf8) + [0, 0, 32, 0] + Array("AV01".utf8)))
      #expect(number(bytes, 16, 4) == 90_000 && number(bytes, 20, 4) == 1)
      #expect(number(bytes, 24, 4) == 3 && bytes.count == 32 + 3 * 12 + 6)
      var offset = 32
      for (index, time) in [UInt64(0), 3_600, 3_601].enumerated() {
        #expect(number(bytes, offset, 4) == UInt64(index + 1))
        #expect(number(bytes, offset + 4, 8) == time)
        offset += 12 + index + 1
      }
    }
  }

  @Test func aFileWithoutVideoFramesHasItsHeader() async throws {
    try await MediaFileTests.inFolder { path in
      var writer = TimedStreamWriter(try MediaFile(path, for: .writing), fourCC: "AV01")
      #expect(try writer.finish().get() == 0)
      #expect(try Data(contentsOf: URL(filePath: path)).count == 32)
    }
  }
}
