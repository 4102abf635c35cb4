import CZlib
import Foundation
import Media
import MediaFiles
import Testing
import Wire

@testable import Debug

struct TakeMediaTests {
  @Test func theVideoFrameIsTheRecordedOne() throws {
    let take = try LabTake.shared.get()
    let file = "\(take.folder)/\(UUID().uuidString).png"
    let line = try TakeMedia(path: take.path).writeVideoFrame(
      file, TakeMedia.Choice(["peer=2", "track=2"], for: .frame), at: .zero + .milliseconds(1500))
    #expect(line.contains("96x64, peer 2 track 2"))
    #expect(line.contains("the same samples as in the recording"))
    let bytes = [UInt8](try Data(contentsOf: URL(filePath: file)))
    #expect(Array(bytes.prefix(8)) == [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])
    #expect(Array(bytes[16..<24]) == [0, 0, 0, 96, 0, 0, 0, 64])
  }

  @Test func theAudioLastsAsLongAsWanted() throws {
    let take = try LabTake.shared.get()
    let file = "\(take.folder)/\(UUID().uuidString).wav"
    let line = try TakeMedia(path: take.path).writeAudio(
      file, TakeMedia.Choice(["seconds=1"], for: .audio), around: .zero + .milliseconds(1300))
    #expect(line.contains("1.0"))
    let bytes = try Data(contentsOf: URL(filePath: file))
    #expect((92_000...100_100).contains(bytes.count))
    #expect(bytes.dropFirst(44).contains { $0 != 0 })
  }

  @Test func missingTracksAreReported() throws {
    let take = try LabTake.shared.get()
    let media = TakeMedia(path: take.path)
    for (choice, words) in [("track=9", "no such video track"), ("peer=1", "cannot be written")] {
      let error = #expect(throws: DebugFailure.self) {
        try media.writeVideoFrame(
          "/dev/null/x.png", TakeMedia.Choice([choice], for: .frame), at: .zero + .seconds(1))
      }
      #expect(error?.description.contains(words) == true)
    }
    let early = #expect(throws: DebugFailure.self) {
      try media.writeVideoFrame("x.png", TakeMedia.Choice([String](), for: .frame), at: .zero)
    }
    #expect(early?.description.contains("no video was received before this point") == true)
    let bare = try LabTake(seconds: 1, keepsMedia: false)
    let error = #expect(throws: DebugFailure.self) {
      try TakeMedia(path: bare.path).writeVideoFrame(
        "x.png", TakeMedia.Choice([String](), for: .frame), at: .zero + .seconds(1))
    }
    #expect(error?.description.contains("without its media") == true)
  }

  /// Compares sizes, a checksum and colours with values computed by hand.
  @Test func aPNGHasTheColoursOfTheVideoFrame() {
    // 2x2: black above white, without colour.
    let videoFrame = I420Buffer(width: 2, height: 2, samples: [16, 235, 16, 235, 128, 128])
    let file = PNG.file(videoFrame)
    // In bytes: signature 8, IHDR 25, IDAT's length and name 8; at the end IDAT's checksum 4, IEND
    // 12.
    let content = Array(file[41..<(file.count - 16)])
    var rows = [UInt8](repeating: 1, count: 20)
    var count = UInt(rows.count)
    #expect(uncompress(&rows, &count, content, UInt(content.count)) == Z_OK)
    #expect(rows.prefix(Int(count)) == [0, 0, 0, 0, 255, 255, 255, 0, 0, 0, 0, 255, 255, 255])
    #expect(Array(file.suffix(4)) == [0xae, 0x42, 0x60, 0x82])
    // A plain video frame compresses well.
    let plain = I420Buffer(
      width: 640, height: 480, samples: [UInt8](repeating: 128, count: 640 * 480 * 3 / 2))
    #expect(PNG.file(plain).count < 5_000)
  }
}
