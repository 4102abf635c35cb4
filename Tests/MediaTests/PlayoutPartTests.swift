import RTP
import Testing
import Wire

@testable import Media

/// Tests each part of an audio playout separately.
struct PlayoutPartTests {
  private func entry(_ number: Int64) throws -> AudioPacketBuffer.Entry {
    let frame = audioFrame(number, arrival: milliseconds(20 * number))
    return AudioPacketBuffer.Entry(frame: frame, packet: try #require(AudioPacket(frame)))
  }

  // MARK: Delay

  @Test func theDelayIsTheLongestRequested() {
    var delay = AudioDelay(minimum: .milliseconds(100))
    #expect(delay.network == AudioPlayout.leastDelay)
    #expect(delay.independent == .milliseconds(100) && delay.target == .milliseconds(100))
    delay.align(to: .milliseconds(250))
    #expect(delay.independent == .milliseconds(100) && delay.target == .milliseconds(250))
    #expect(AudioDelay(minimum: .seconds(60)).independent == .seconds(5))
  }

  @Test func theDelayFollowsLateArrivals() {
    var delay = AudioDelay(minimum: .zero)
    for number in Int64(0)..<10 {
      let lateness: Int64 = number == 9 ? 80 : 0
      let frame = audioFrame(number, arrival: milliseconds(20 * number + lateness))
      #expect(delay.observe(frame) == .steady)
    }
    #expect(delay.network == .milliseconds(90))
    #expect(delay.dueTime(of: 1_000_000) == milliseconds(90))
    delay.reset()
    #expect(delay.observe(audioFrame(10, arrival: milliseconds(500))) == .steady)
    #expect(delay.network == AudioPlayout.leastDelay)
  }

  @Test func theDelayChangesEveryFiveBlocksOrEarlierInSilence() {
    let block = Interval.milliseconds(20)
    var delay = AudioDelay(minimum: .zero)
    #expect(!delay.shouldInsert(.milliseconds(-6), block: block))
    for _ in 0..<5 { delay.tick() }
    #expect(delay.shouldInsert(.milliseconds(-6), block: block))
    #expect(delay.shouldRemove(.milliseconds(30), block: block))
    delay.record(level: 20)
    #expect(!delay.shouldInsert(.milliseconds(-6), block: block))
    #expect(delay.shouldInsert(.milliseconds(-10), block: block))
    #expect(!delay.shouldRemove(.milliseconds(30), block: block))
    delay.recordAdjustment()
    #expect(!delay.shouldInsert(.milliseconds(-10), block: block))
  }

  // MARK: Stream position

  @Test func packetsArrivingAfterPlayoutAreRepeatedOrLate() throws {
    var place = AudioPlace()
    let (first, second) = (try entry(0), try entry(1))
    #expect(place.arrival(of: first.frame) == .inTime)
    place.play(second)
    #expect(place.arrival(of: first.frame) == .late)
    #expect(place.arrival(of: second.frame) == .again)
    let (third, fourth) = (try entry(2).frame, try entry(3).frame)
    #expect(place.isFollowed(by: third) && !place.isFollowed(by: fourth))
    place.forget()
    #expect(place.arrival(of: first.frame) == .inTime && !place.hasPlayed)
  }

  @Test func blocksConcealedDuringAHoldCountTowardsTheGap() throws {
    var place = AudioPlace()
    place.play(try entry(0))
    let isFirst = place.conceal(960)
    place.hold()
    let isFirstAgain = place.conceal(960)
    #expect(isFirst && !isFirstAgain && place.concealedRun == 1920)
    // Two packets are missing, and one block concealed them so far.
    let gap = place.closeGap(before: try entry(3))
    let rest = place.closeGap(before: try entry(3))
    #expect(gap == 960 && rest == 960)
    place.recover()
    let end = try entry(1).end
    #expect(place.concealedRun == 0 && place.playhead == end)
  }

  // MARK: Decoder

  @Test func aMissingDecoderIsRequestedOnce() {
    final class NoCodecs: CodecFactory {
      var requests = 0
      func audioEncoder(
        track: String, _ settings: OpusSettings
      ) throws(CodecError) -> any AudioEncoding {
        throw CodecError(reason: "no")
      }
      func audioDecoder(track: String, _ codec: CodecName, channels: Int) throws(CodecError)
        -> any AudioDecoding
      {
        requests += 1
        throw CodecError(reason: "no")
      }
      func videoEncoder(
        track: String, _ settings: VideoSettings
      ) throws(CodecError) -> any VideoEncoding {
        throw CodecError(reason: "no")
      }
      func videoDecoder(
        track: String, _ codec: CodecName
      ) throws(CodecError) -> any VideoDecoding {
        throw CodecError(reason: "no")
      }
    }
    let codecs = NoCodecs()
    var decoder = PlayoutDecoder(track: "1", channels: 2, codecs: codecs)
    var failures: UInt64 = 0
    for _ in 0..<3 {
      let decoded = decoder.decode(
        .conceal(frameCount: 480), .opus, lasting: 480, failures: &failures)
      #expect(decoded.block.frameCount == 480 && decoded.energy == 0)
    }
    #expect(codecs.requests == 1 && failures == 1)
  }

  @Test func gainChangesAreRampedOverABlock() {
    let block = AudioBlock(samples: Array(repeating: 10_000, count: 1_920), channels: 2)
    let decoded = DecodedAudio(block: block, peak: 10_000, energy: 0)
    let sunk = PlayoutGain.silence.applied(to: decoded, from: .unity)
    let risen = PlayoutGain.unity.applied(to: decoded, from: .silence)
    #expect(sunk.block.samples.last == 0 && risen.block.samples.last == 10_000)
    for samples in [sunk.block.samples, risen.block.samples] {
      let left = stride(from: 0, to: samples.count, by: 2).map { Int(samples[$0]) }
      #expect(zip(left, left.dropFirst()).allSatisfy { abs($0 - $1) <= 11 })
    }
    #expect(sunk.energy > 0 && risen.energy > sunk.energy)
  }
}
