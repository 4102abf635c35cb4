import RTP
import Testing
import Wire

@testable import Media

struct QualityLimitationTests {
  /// Records video frames at 30 per second for some seconds.
  private func run(
    _ limitation: inout QualityLimitation, from second: Int64, seconds: Int64, quantiser: UInt8,
    of codec: CodecName = .vp8, late: Int = 0
  ) {
    for videoFrame in 0..<(30 * seconds) {
      let at = Interval(nanoseconds: second * 1_000_000_000 + videoFrame * 1_000_000_000 / 30)
      limitation.record(quantiser: quantiser, of: codec, late: late, at: .zero + at)
    }
  }

  @Test func goodVideoFramesAreNotLimited() {
    var limitation = QualityLimitation()
    #expect(limitation.durations(at: .zero).isEmpty)
    run(&limitation, from: 0, seconds: 3, quantiser: 40)
    #expect(limitation.reason == .none)
    let durations = limitation.durations(at: .zero + .seconds(3))
    #expect(durations.map(\.length) == [.seconds(3), .zero, .zero, .zero])
  }

  /// If the target is far below the desired rate, bandwidth limits the quality even if the video
  /// frames still look good.
  ///
  /// `shown` stays `none`.
  @Test func aNarrowTargetIsABandwidthLimitation() {
    var limitation = QualityLimitation()
    for videoFrame in 0..<120 {
      let second = videoFrame / 30
      limitation.record(
        quantiser: 40, late: 0, isNarrow: second == 1 || second == 2,
        at: .zero + .milliseconds(Int64(second * 1000 + videoFrame % 30 * 33)))
      #expect(limitation.shown == .none)
      if second == 2, videoFrame % 30 > 0 { #expect(limitation.reason == .bandwidth) }
    }
    let durations = limitation.durations(at: .zero + .seconds(4)).map(\.length)
    #expect(durations[2] >= .seconds(1) && durations[2] < .seconds(3))
    #expect(durations.reduce(.zero, +) == .seconds(4))
    limitation.hold(at: .zero + .seconds(4))
    #expect(limitation.reason == .bandwidth)
    #expect(limitation.durations(at: .zero + .seconds(6))[2].length == durations[2] + .seconds(2))
  }

  /// VP9's quantiser scale is twice as long as VP8's.
  @Test(arguments: [(UInt8(120), QualityLimitation.Reason.none), (210, .bandwidth)])
  func quantisersAreJudgedOnTheirCodecsScale(
    quantiser: UInt8, reason: QualityLimitation.Reason
  ) {
    var limitation = QualityLimitation()
    run(&limitation, from: 0, seconds: 3, quantiser: quantiser, of: .vp9)
    #expect(limitation.reason == reason)
  }

  @Test func thinningIsABandwidthLimitation() {
    var limitation = QualityLimitation()
    for videoFrame in 0..<90 {
      let second = videoFrame / 30
      limitation.record(
        isThinned: second == 1,
        at: .zero + .milliseconds(Int64(second * 1000 + videoFrame % 30 * 33)))
    }
    #expect(limitation.reason == .bandwidth)
    limitation.record(isThinned: false, at: .zero + .milliseconds(3_100))
    limitation.record(isThinned: false, at: .zero + .milliseconds(4_200))
    #expect(limitation.reason == .none)
    let durations = limitation.durations(at: .zero + .seconds(5))
    #expect(durations[2].length > .milliseconds(900) && durations[2].length < .seconds(3))
  }

  @Test func aLateClockIsACPULimitationAndCoarseFramesAreBandwidth() {
    var limitation = QualityLimitation()
    run(&limitation, from: 0, seconds: 2, quantiser: 120)
    #expect(limitation.reason == .bandwidth)
    run(&limitation, from: 2, seconds: 2, quantiser: 120, late: 1)
    #expect(limitation.reason == .cpu)
    run(&limitation, from: 4, seconds: 2, quantiser: 20)
    #expect(limitation.reason == .none)
    let durations = limitation.durations(at: .zero + .seconds(6)).map(\.length)
    #expect(durations.reduce(.zero, +) == .seconds(6))
    for length in durations[..<3] { #expect(length > .milliseconds(900)) }
  }
}
