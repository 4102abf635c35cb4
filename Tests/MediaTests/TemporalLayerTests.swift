import RTP
import Testing
import Wire

@testable import Media

/// Tests VP8's temporal layers: the upper layers can be dropped.
struct TemporalLayerTests {
  private func layers(_ count: Int, keys: Set<Int> = [0]) -> [TemporalLayer] {
    var pattern = TemporalPattern(count: count)
    return (0..<9).map { index in
      let isKey = keys.contains(index)
      return pattern.record(pattern.next(isKey: isKey), isKey: isKey)
    }
  }

  @Test func framesFollowTheLayerPattern() {
    #expect(layers(2).map(\.id) == [0, 1, 0, 1, 0, 1, 0, 1, 0])
    #expect(layers(3).map(\.id) == [0, 2, 1, 2, 0, 2, 1, 2, 0])
    #expect(
      layers(3).map(\.isSync) == [true, true, true, false, false, true, true, false, false])
    #expect(
      layers(3).map(\.isReference) == [true, false, true, false, true, false, true, false, true])
    #expect(layers(3, keys: [0, 3]).map(\.id) == [0, 2, 1, 0, 2, 1, 2, 0, 2])
  }

  /// Returns a pattern's frames with the layers that a capture assigns.
  private func encoded(_ count: Int, frames: Int = 24) throws -> [EncodedFrame] {
    let source = MediaSource.pattern(width: 96, height: 64, framesPerSecond: 30)
    var capture = VideoCapture(
      track: "1", source: source, codec: .vp8, codecs: LibraryCodecs())
    var outbox = Outbox<VideoCapture.Output>()
    capture.step(.temporalLayers(count), at: .zero, into: &outbox)
    capture.step(.start, at: .zero, into: &outbox)
    var found: [EncodedFrame] = []
    for _ in 0..<frames {
      let due = try #require(capture.deadline)
      capture.step(.deadline, at: due, into: &outbox)
      while let output = outbox.next() {
        if case .encoded(let frame, _) = output { found.append(frame) }
      }
    }
    return found
  }

  @Test(arguments: [2, 3])
  func remainingLayersDecodeToTheSamePictures(count: Int) throws {
    let frames = try encoded(count)
    #expect(frames.count == 24)
    func pictures(upTo layer: UInt8) throws -> [UInt32: [UInt8]] {
      let decoder = try LibraryCodecs().videoDecoder(track: "1", .vp8)
      var pictures: [UInt32: [UInt8]] = [:]
      for frame in frames where try #require(frame.temporal).id <= layer {
        pictures[frame.mediaTime] = try decoder.decode(frame.bytes).videoFrame.samples
      }
      return pictures
    }
    let all = try pictures(upTo: UInt8(count - 1))
    #expect(all.count == 24)
    for layer in 0..<UInt8(count - 1) {
      let fewer = try pictures(upTo: layer)
      #expect(fewer.count == 24 >> (count - 1 - Int(layer)))
      #expect(fewer.allSatisfy { all[$0.key] == $0.value })
    }
  }

  @Test func aChangeOfLayersBeginsWithAKeyFrame() throws {
    #expect(try encoded(1).allSatisfy { $0.temporal == nil })
    #expect(try encoded(3).map(\.isKey).firstIndex(of: true) == 0)
  }
}
