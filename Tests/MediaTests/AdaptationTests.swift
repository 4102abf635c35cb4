import RTP
import Testing
import Wire

@testable import Media

struct FrameClockTests {
  private func milliseconds(_ count: Int64) -> Int64 { count * 1_000_000 }

  @Test func framesAreAsFarApartAsTheirTimestamps() {
    var clock = FrameClock()
    // The first frame arrived at media time 9000; the others are late by different amounts.
    #expect(clock.mediaTime(of: milliseconds(70_000), arrival: 9_000) == 9_000)
    #expect(clock.mediaTime(of: milliseconds(70_033), arrival: 15_000) == 9_000 + 33 * 90)
    #expect(clock.mediaTime(of: milliseconds(70_066), arrival: 15_100) == 9_000 + 66 * 90)
  }

  @Test func aClockJumpIsReanchored() {
    var clock = FrameClock()
    _ = clock.mediaTime(of: milliseconds(1_000), arrival: 0)
    #expect(clock.mediaTime(of: milliseconds(90_000), arrival: 3_000) == 3_000)
    #expect(clock.mediaTime(of: milliseconds(90_010), arrival: 3_950) == 3_900)
    // Timestamps that go back to zero, or to the ends of their range.
    #expect(clock.mediaTime(of: 0, arrival: 6_000) == 6_000)
    #expect(clock.mediaTime(of: .min, arrival: 9_000) == 9_000)
    #expect(clock.mediaTime(of: .max, arrival: 12_000) == 12_000)
    // The media time itself never goes back.
    #expect(clock.mediaTime(of: 5, arrival: 11_000) == 12_000)
  }
}

struct ScreenContentTests {
  @Test(arguments: [CodecName.vp8, .vp9])
  func aScreenEncoderIsCreatedAndStartsWithAKeyFrame(codec: CodecName) throws {
    let codecs = LibraryCodecs()
    var machine = VideoCapture(track: "1", source: .application, codec: codec, codecs: codecs)
    let decoder = try codecs.videoDecoder(track: "1", codec)
    var outbox = Outbox<VideoCapture.Output>()
    machine.step(.start, at: .zero, into: &outbox)
    var keys: [Bool] = []
    for number in 0..<4 {
      if number == 2 { machine.step(.screen(true), at: .zero, into: &outbox) }
      if number == 3 { machine.step(.screen(true), at: .zero, into: &outbox) }
      let videoFrame = TestPattern(width: 64, height: 48).videoFrame(Int64(number))
      machine.step(
        .frame(videoFrame, timestamp: Int64(number) * 40_000_000),
        at: .zero + .milliseconds(Int64(40 * number)), into: &outbox)
      while let output = outbox.next() {
        guard case .encoded(let frame, _) = output else {
          Issue.record("\(output)")
          continue
        }
        keys.append(frame.isKey)
        #expect(try decoder.decode(frame.bytes).videoFrame.width == 64)
      }
    }
    #expect(keys == [true, false, true, false])
  }
}

struct VideoAdaptationTests {
  private func judge(
    _ adaptation: inout VideoAdaptation, _ reasons: [QualityLimitation.Reason], from second: Int = 0
  ) {
    for (index, reason) in reasons.enumerated() {
      _ = adaptation.judge(
        reason, framesPerSecond: 30, at: .zero + .seconds(Int64(second + index)))
    }
  }

  @Test func withoutAPreferenceNothingChanges() {
    var adaptation = VideoAdaptation()
    judge(&adaptation, Array(repeating: .bandwidth, count: 60))
    #expect(adaptation.limits == VideoAdaptation.Limits())
  }

  @Test func screensKeepTheirSizeAndDropVideoFrames() {
    var adaptation = VideoAdaptation(preference: ContentHint.text.degradation)
    judge(&adaptation, [.none, .bandwidth, .bandwidth])
    #expect(adaptation.limits.scaleDownBy == 1)
    #expect(abs((adaptation.limits.framesPerSecond ?? 0) - 30 * 4 / 9) < 0.001)
    judge(&adaptation, Array(repeating: .cpu, count: 30), from: 3)
    #expect(adaptation.limits.framesPerSecond == 2 && adaptation.limits.scaleDownBy == 1)
  }

  @Test func motionKeepsItsVideoFrames() {
    var adaptation = VideoAdaptation(preference: ContentHint.motion.degradation)
    judge(&adaptation, [.none, .bandwidth])
    #expect(adaptation.limits.scaleDownBy == 4.0 / 3)
    judge(&adaptation, Array(repeating: .bandwidth, count: 30), from: 2)
    #expect(adaptation.limits.framesPerSecond == nil && adaptation.limits.scaleDownBy == 4)
  }

  @Test func balancedAdaptationAlternatesAndRecovers() {
    var adaptation = VideoAdaptation(preference: .balanced)
    judge(&adaptation, [.none, .bandwidth, .bandwidth])
    #expect(adaptation.limits.framesPerSecond == 20 && adaptation.limits.scaleDownBy == 4.0 / 3)
    judge(&adaptation, Array(repeating: .none, count: 5), from: 3)
    #expect(adaptation.limits.framesPerSecond == 20 && adaptation.limits.scaleDownBy == 1)
    judge(&adaptation, Array(repeating: .none, count: 5), from: 8)
    #expect(adaptation.limits == VideoAdaptation.Limits())
  }

  @Test func anotherPreferenceStartsOver() {
    var adaptation = VideoAdaptation(preference: .maintainFramerate)
    judge(&adaptation, [.none, .bandwidth])
    adaptation.preference = .maintainResolution
    #expect(adaptation.limits == VideoAdaptation.Limits())
  }
}
