import RTP
import Testing
import Wire

@testable import Media

struct SendLimitTests {
  private static let pattern = MediaSource.pattern(width: 64, height: 48, framesPerSecond: 30)

  private static let factors: [(Double, Int, Int)] = [
    (1, 64, 48), (2, 32, 24), (1.5, 42, 32), (3, 21, 16), (100, 1, 1), (0.5, 64, 48),
    (.infinity, 1, 1), (.nan, 64, 48),
  ]

  @Test(arguments: factors)
  func videoFramesAreScaledDownByTheFactor(factor: Double, width: Int, height: Int) {
    for codecs in [BlankCodecs() as any CodecFactory, LibraryCodecs()] {
      var machine = VideoCapture(track: "v", source: Self.pattern, codec: .vp8, codecs: codecs)
      let outputs = drive(
        &machine,
        [
          (.zero, .limits(framesPerSecond: nil, scaleDownBy: factor)), (.zero, .start),
        ], until: milliseconds(200), deadline: .deadline)
      let frames = outputs.compactMap(\.output.frame)
      #expect(frames.count == 7)
      #expect(frames.allSatisfy { Int($0.width) == width && Int($0.height) == height })
      #expect(machine.counters.width == 64)
    }
  }

  @Test(arguments: [(30.0, 300), (60, 300), (10, 100), (20, 200), (15, 150), (1, 10), (0, 300)])
  func noMoreFramesAreSentThanTheLimitAllows(limit: Double, count: Int) {
    var machine = VideoCapture(track: "v", source: Self.pattern, codec: .vp8, codecs: BlankCodecs())
    let outputs = drive(
      &machine, [(.zero, .limits(framesPerSecond: limit, scaleDownBy: 1)), (.zero, .start)],
      until: milliseconds(9_999), deadline: .deadline)
    let frames = outputs.compactMap(\.output.frame)
    #expect(abs(frames.count - count) <= 1)
    #expect(machine.counters.framesSkipped == UInt64(300 - frames.count))
  }

  @Test func aLimitCanBeRemovedInARunningCapture() {
    var machine = VideoCapture(track: "v", source: Self.pattern, codec: .vp8, codecs: BlankCodecs())
    let outputs = drive(
      &machine,
      [
        (.zero, .start), (milliseconds(1_000), .limits(framesPerSecond: 5, scaleDownBy: 2)),
        (milliseconds(2_000), .limits(framesPerSecond: nil, scaleDownBy: 1)),
      ], until: milliseconds(2_999), deadline: .deadline)
    let frames = outputs.compactMap { output in output.output.frame.map { (output.at, $0) } }
    let limited = frames.filter { $0.0 > milliseconds(1_001) && $0.0 < milliseconds(1_999) }
    #expect((4...6).contains(limited.count))
    #expect(limited.allSatisfy { $0.1.width == 32 })
    #expect((59...62).contains(frames.count - limited.count))
    #expect(frames.last?.1.width == 64)
  }

  @Test func scaledVideoFramesAverageTheirPixels() {
    // Two rows of 4 pixels and 2x1 chroma.
    let videoFrame = I420Buffer(
      width: 4, height: 2, samples: [0, 10, 100, 200, 20, 10, 100, 201, 40, 60, 7, 9])
    let half = VideoScaler.scaled(videoFrame, width: 2, height: 1)
    #expect(half.samples == [10, 150, 50, 8])
    #expect(VideoScaler.scaled(videoFrame, width: 4, height: 2) === videoFrame)
    let odd = VideoScaler.scaled(videoFrame, width: 3, height: 1)
    #expect(odd.samples.count == I420Buffer.byteCount(width: 3, height: 1))
    let blank = I420Buffer(width: 4, height: 2, samples: [])
    #expect(VideoScaler.scaled(blank, width: 2, height: 1).samples.isEmpty)
    let wide = VideoScaler.scaled(videoFrame, width: 8, height: 2)
    #expect(wide.samples[0..<8] == [0, 0, 10, 10, 100, 100, 200, 200])
    #expect(wide.samples[16...] == [40, 40, 60, 60, 7, 7, 9, 9])
    #expect(VideoScaler.scaled(videoFrame, width: 0, height: 4).samples.isEmpty)
  }
}

extension VideoCapture.Output {
  fileprivate var frame: EncodedFrame? {
    if case .encoded(let frame, _) = self { return frame }
    return nil
  }
}
