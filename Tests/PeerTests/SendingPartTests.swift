import Media
import RTP
import Testing
import Wire

@testable import Peer

/// Tests each part of a transceiver's sending side separately.
struct SendingPartTests {
  private let codecs = LibraryCodecs()

  private func at(_ milliseconds: Int64) -> Instant { .zero + .milliseconds(milliseconds) }

  private func start(_ codec: String, rid: String? = nil) -> SendingTrack.Start {
    SendingTrack.Start(
      mid: "0", rid: rid, codec: codec, ssrc: 7, encoding: RTPEncoding(), videoBitrate: 300_000)
  }

  // MARK: Stream

  @Test func aHeldStreamRemembersItsSection() {
    var stream = SentStream()
    stream.begin(start("vp8", rid: "low"))
    #expect(stream.isFed && stream.mid == "0" && stream.rid == "low" && stream.ssrc == 7)
    stream.end(isHeld: true)
    #expect(!stream.isFed && stream.heldMID == "0")
    stream.begin(start("vp8"))
    #expect(stream.mid == "0" && stream.heldMID == nil && stream.rid == nil)
    stream.end(isHeld: false)
    #expect(!stream.isFed && stream.heldMID == nil && stream.ssrc == 7)
  }

  @Test func onlyARunningStreamAcceptsOtherLimits() {
    var stream = SentStream()
    let slower = RTPEncoding(maxBitrate: 1_000)
    let isTaken = stream.limit(to: slower)
    #expect(!isTaken)
    stream.begin(start("vp8"))
    let isTakenThen = stream.limit(to: slower)
    #expect(isTakenThen && stream.encoding.maxBitrate == 1_000)
    let isNews = stream.limit(to: slower)
    #expect(!isNews)
  }

  @Test func theRecordOfAFrameNamesItsStream() {
    var stream = SentStream()
    stream.begin(start("opus"))
    var frame = EncodedFrame(
      kind: .audio, codec: .opus, mediaTime: 960, bytes: [1, 2], isKey: true, audioLevel: 20)
    frame.energy = 5
    let record = stream.record(of: frame, from: 3, outcome: "encoded", quantiser: 9)
    #expect(record.transceiver == 3 && record.ssrc == 7 && record.rtpTime == 960)
    #expect(record.audioLevel == 20 && record.energy == 5 && record.quantiser == 9)
    #expect(!record.isInbound && record.outcome == "encoded" && record.bytes == [1, 2])
  }

  // MARK: Limits

  /// A low target counts as a limitation if the path lowered it, even if the encoding is good, but
  /// not if the application set it.
  @Test(arguments: [
    (true, nil as UInt64?, QualityLimitation.Reason.bandwidth), (true, 55_000, .none),
    (true, 300_000, .bandwidth), (false, nil, .none),
  ])
  func aTargetFarBelowTheMaximumIsABandwidthLimitation(
    followsTarget: Bool, limit: UInt64?, reason: QualityLimitation.Reason
  ) {
    var totals = SendingTotals(followsTarget: followsTarget)
    for number in 0..<150 as Range<Int64> {
      let frame = EncodedFrame(
        kind: .video, codec: .vp8, mediaTime: UInt32(number * 3_000), bytes: [1], isKey: false,
        width: 640, height: 360)
      totals.add(
        frame, quantiser: 50, bitrate: number < 75 ? 984_000 : 55_000, limit: limit, late: 0,
        at: at(number * 1_000 / 30))
      if number == 74 { #expect(totals.limitation.reason == .none) }
    }
    #expect(totals.limitation.reason == reason)
    #expect(totals.limitation.shown == .none)
    let lengths = totals.limitation.durations(at: at(5_000)).map(\.length)
    #expect(lengths.reduce(.zero, +) == .seconds(5))
  }

  // MARK: Audio

  private func startTone(_ audio: inout SentAudio, at now: Instant, origin: Instant? = nil) {
    audio.start(
      track: 1, .tone(hertz: 440, pauseSeconds: 0), within: RTPEncoding(), codecs: codecs,
      origin: origin, isEnabled: true, at: now)
  }

  @Test func audioTotalsContinueForTheSameSource() {
    var audio = SentAudio(bitrateMaximum: 32_000)
    #expect(!audio.isRunning && audio.deadline == nil)
    startTone(&audio, at: at(0))
    audio.drive(.deadline, at: at(0))
    guard case .encoded(let frame) = audio.next() else {
      Issue.record("nothing was encoded")
      return
    }
    #expect(frame.kind == .audio && frame.mediaTime == 0 && audio.next() == nil)
    let first = audio.counters.totalSamplesDuration
    #expect(first == 0.02)
    audio.stop(at: at(10))
    #expect(!audio.isRunning && audio.counters.totalSamplesDuration == first)
    startTone(&audio, at: at(20), origin: at(0))
    audio.drive(.deadline, at: at(40))
    #expect(audio.counters.totalSamplesDuration > first)
    audio.stop(at: at(50))
    audio.replaceSource()
    #expect(audio.counters.totalSamplesDuration == 0)
  }

  @Test func audioNeedsAnotherEncoderOnlyForAnotherBitRate() {
    var audio = SentAudio(bitrateMaximum: 32_000)
    startTone(&audio, at: at(0))
    #expect(!audio.needsRestart(within: RTPEncoding(maxBitrate: 64_000)))
    #expect(audio.needsRestart(within: RTPEncoding(maxBitrate: 16_000)))
  }

  // MARK: Video

  private let pattern = MediaSource.pattern(width: 32, height: 16, framesPerSecond: 10)

  private func begin(_ video: inout SentVideo, _ codec: String, _ source: MediaSource) -> Bool {
    video.start(
      start(codec), track: 1, source, codecs: codecs, origin: nil, isEnabled: true, at: at(0))
  }

  @Test func videoIsEncodedOnItsSourcesClockWithinTheBitRate() {
    var video = SentVideo()
    #expect(begin(&video, "vp8", pattern))
    #expect(video.isEncoding && !video.comesEncoded && video.bitrate == 300_000)
    video.drive(.deadline, at: at(0))
    guard case .encoded(let frame, _) = video.next() else {
      Issue.record("nothing was encoded")
      return
    }
    #expect(frame.isKey && frame.width == 32 && video.deadline == at(100))
    video.drive(.deadline, at: at(300))
    #expect(video.framesLate == 2)
    video.stop(at: at(310))
    #expect(!video.isEncoding && video.origin == nil && video.counters.frames == 2)
    video.replaceSource()
    #expect(video.counters.frames == 0)
  }

  @Test func withoutAnEncoderOnlyEncodedFramesAreSent() {
    var video = SentVideo()
    #expect(!begin(&video, "h264", pattern))
    #expect(begin(&video, "h264", .echo))
    #expect(!video.isEncoding && !video.comesEncoded)
    #expect(begin(&video, "h264", .application))
    #expect(!video.isEncoding && video.comesEncoded)
    #expect(video.accept(encoded: [0], .av1, limit: nil, isEnabled: true, at: at(1)) == nil)
    #expect(video.accept(encoded: [0], .h264, limit: nil, isEnabled: false, at: at(1)) == .useless)
    #expect(video.counters.frames == 0)
    #expect(video.accept(encoded: [0], .h264, limit: nil, isEnabled: true, at: at(1)) == .useless)
    #expect(video.counters.frames == 1)
  }

  @Test func afterAPauseForwardingResumesWithAKeyFrame() {
    var video = SentVideo()
    let key = ReceivedFrame(
      mid: "1", ssrc: 1, kind: .video, codec: .h264, payloadType: 96, firstSequence: 1,
      lastSequence: 1, rtpTime: 90, extendedTime: 90, firstArrival: at(0), lastArrival: at(0),
      bytes: [1], isKey: true)
    var delta = key
    delta.isKey = false
    #expect(video.acceptReceived(delta)?.mediaTime == 90)
    video.setEnabled(false, at: at(1))
    #expect(video.acceptReceived(delta) == nil)
    #expect(video.acceptReceived(key)?.isKey == true)
    #expect(video.acceptReceived(delta)?.bytes == [1])
  }
}
