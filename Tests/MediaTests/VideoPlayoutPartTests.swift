import RTP
import Testing
import Wire

@testable import Media

/// Tests each part of a video playout separately.
struct VideoPlayoutPartTests {
  // MARK: Delay

  @Test func theDelayIsTheLongestRequested() {
    var delay = VideoDelay(minimum: .milliseconds(100))
    #expect(delay.network == VideoPlayout.leastDelay && delay.aligned == .zero)
    #expect(delay.independent == .milliseconds(100) && delay.target == .milliseconds(100))
    #expect(delay.current == .milliseconds(100))
    delay.align(to: .milliseconds(250))
    #expect(delay.independent == .milliseconds(100) && delay.target == .milliseconds(250))
    #expect(delay.aligned == .milliseconds(250) && delay.current == .milliseconds(100))
    #expect(VideoDelay(minimum: .seconds(60)).independent == .seconds(5))
    #expect(VideoDelay(minimum: .zero).current == VideoPlayout.leastDelay)
  }

  /// The delay changes by a tenth of 33⅓ ms per frame, which is too little to see.
  @Test func theDelayFollowsItsTargetSlowly() {
    var delay = VideoDelay(minimum: .zero)
    let start = Instant.zero + .milliseconds(50)
    #expect(delay.observe(videoFrame(0, arrival: start)) == .steady)
    delay.align(to: .milliseconds(200))
    var current = delay.current
    for number in Int64(1)...3 {
      let arrival = start + Interval(nanoseconds: number * 100_000_000 / 3)
      #expect(delay.observe(videoFrame(number, arrival: arrival)) == .steady)
      let step = (delay.current - current).nanoseconds
      #expect((3_333_332...3_333_334).contains(step), "\(step)")
      current = delay.current
    }
  }

  @Test func aLateFrameRaisesTheDelayImmediately() {
    var delay = VideoDelay(minimum: .zero)
    _ = delay.observe(videoFrame(0, arrival: milliseconds(0)))
    let late = videoFrame(3, arrival: milliseconds(180))
    _ = delay.observe(late)
    #expect(delay.current == .milliseconds(80) && delay.network == .milliseconds(80))
    #expect(delay.dueTime(of: late) == milliseconds(180))
  }

  @Test func waitingIsLimitedForAnyMediaTime() {
    var delay = VideoDelay(minimum: .zero)
    _ = delay.observe(videoFrame(0, arrival: milliseconds(0)))
    let ahead = videoFrame(25, arrival: milliseconds(33))
    #expect(delay.observe(ahead) == .steady)
    #expect(delay.dueTime(of: ahead) <= milliseconds(33) + VideoPlayout.mostDelay)
  }

  @Test func anotherStreamStartsWithTheTargetDelay() {
    var delay = VideoDelay(minimum: .zero)
    #expect(delay.independentPlayout(ofRTPTime: 1_000_000) == nil)
    _ = delay.observe(videoFrame(0, arrival: milliseconds(0)))
    #expect(delay.independentPlayout(ofRTPTime: 1_000_000) == milliseconds(10))
    delay.align(to: .milliseconds(90))
    delay.reset()
    #expect(delay.current == .milliseconds(10))
    _ = delay.observe(videoFrame(0, arrival: milliseconds(700), ssrc: 2))
    #expect(delay.current == .milliseconds(90))
    #expect(delay.dueTime(of: videoFrame(0, arrival: milliseconds(700))) == milliseconds(790))
  }

  @Test func aMediaTimeJumpStartsOver() {
    var delay = VideoDelay(minimum: .zero)
    _ = delay.observe(videoFrame(0, arrival: milliseconds(0)))
    delay.align(to: .milliseconds(120))
    let jumped = videoFrame(1, arrival: milliseconds(33), time: 900_000_000)
    #expect(delay.observe(jumped) == .jumped)
    #expect(delay.current == .milliseconds(120))
    #expect(delay.dueTime(of: jumped) == milliseconds(153))
  }

  // MARK: Waiting frames

  @Test func framesAreReleasedInArrivalOrder() {
    var queue = VideoFrameQueue()
    #expect(queue.isEmpty && queue.popFirst() == nil)
    queue.append(videoFrame(5, arrival: .zero, bytes: [1, 2, 3]))
    queue.append(videoFrame(4, arrival: .zero, bytes: [1]))
    #expect(queue.count == 2 && queue.bytes == 4 && !queue.isOverfull)
    #expect(queue.first?.firstSequence == 115)
    #expect(queue.popFirst()?.firstSequence == 115 && queue.bytes == 1)
    #expect(queue.popFirst()?.firstSequence == 112 && queue.bytes == 0)
    #expect(queue.isEmpty)
  }

  @Test func aQueueIsLimitedInFramesAndBytes() {
    var queue = VideoFrameQueue()
    for number in Int64(0)..<120 { queue.append(videoFrame(number, arrival: .zero)) }
    #expect(!queue.isOverfull)
    queue.append(videoFrame(120, arrival: .zero))
    #expect(queue.isOverfull)
    var large = VideoFrameQueue()
    large.append(
      videoFrame(0, arrival: .zero, bytes: [UInt8](repeating: 0, count: (32 << 20) + 1)))
    #expect(large.isOverfull)
  }

  // MARK: Decoder

  private func decoder(_ codecs: BlankCodecs, isOn: Bool = true, _ further: [CodecName] = [])
    -> PlayoutVideoDecoder
  {
    PlayoutVideoDecoder(track: "v", codecs: codecs, isOn: isOn, furtherDecoders: further)
  }

  @Test func undecodedCodecsAreDecodedOnlyOnRequest() {
    let codecs = BlankCodecs()
    #expect(decoder(codecs).decodes(.vp8) && !decoder(codecs).decodes(.h264))
    #expect(decoder(codecs, [.h264]).decodes(.h264))
    #expect(!decoder(codecs, isOn: false, [.h264]).decodes(.h264))
    #expect(!decoder(codecs, isOn: false).decodes(.vp8))
  }

  @Test func aDecoderIsMadeOncePerCodec() throws {
    let codecs = RefusingCodecs()
    var decoder = PlayoutVideoDecoder(
      track: "v", codecs: codecs, isOn: true, furtherDecoders: [])
    var frame = videoFrame(0, arrival: .zero)
    for _ in 0..<3 { #expect(throws: CodecError.self) { try decoder.decode(frame) } }
    #expect(codecs.asked == [.vp8])
    frame.codec = .vp9
    for _ in 0..<3 { #expect(try decoder.decode(frame).quantiser == 30) }
    frame.codec = .vp8
    #expect(throws: CodecError.self) { try decoder.decode(frame) }
    #expect(codecs.asked == [.vp8, .vp9, .vp8])
  }
}

/// Codecs without a VP8 library.
private final class RefusingCodecs: CodecFactory {
  private(set) var asked: [CodecName] = []
  private let blank = BlankCodecs()

  func audioEncoder(track: String, _ settings: OpusSettings) -> any AudioEncoding {
    blank.audioEncoder(track: track, settings)
  }
  func audioDecoder(track: String, _ codec: CodecName, channels: Int) -> any AudioDecoding {
    blank.audioDecoder(track: track, codec, channels: channels)
  }
  func videoEncoder(track: String, _ settings: VideoSettings) -> any VideoEncoding {
    blank.videoEncoder(track: track, settings)
  }
  func videoDecoder(track: String, _ codec: CodecName) throws(CodecError) -> any VideoDecoding {
    asked.append(codec)
    if codec == .vp8 { throw CodecError(reason: "no library") }
    return blank.videoDecoder(track: track, codec)
  }
}
