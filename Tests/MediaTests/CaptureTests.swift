import Media
import RTP
import Testing
import Wire

extension AudioCapture.Output {
  fileprivate var frame: EncodedFrame? {
    if case .encoded(let frame) = self { frame } else { nil }
  }
}

extension VideoCapture.Output {
  fileprivate var frame: EncodedFrame? {
    if case .encoded(let frame, _) = self { frame } else { nil }
  }
}

struct AudioCaptureTests {
  private func capture(
    _ source: MediaSource, _ codecs: any CodecFactory = BlankCodecs(),
    settings: OpusSettings = OpusSettings()
  ) -> AudioCapture {
    AudioCapture(track: "a", source: source, settings: settings, codecs: codecs)
  }

  @Test func aToneTicksEvery20MillisecondsWithoutDrift() {
    var machine = capture(.tone(hertz: 440, pauseSeconds: 0))
    var delay: Int64 = 0
    let outputs = drive(
      &machine, [(milliseconds(3), .start)], until: milliseconds(10_002), deadline: .deadline,
      lateness: {
        delay = (delay + 7) % 19
        return .milliseconds(delay)
      })
    let frames = outputs.compactMap(\.output.frame)
    #expect(frames.count == 500)
    #expect(frames.enumerated().allSatisfy { $1.mediaTime == UInt32($0 * 960) })
    #expect(machine.deadline == milliseconds(10_003))
  }

  @Test func aVeryLateClockSkipsAndKeepsTheMediaTime() {
    var machine = capture(.tone(hertz: 440, pauseSeconds: 0))
    var outbox = Outbox<AudioCapture.Output>()
    machine.step(.start, at: .zero, into: &outbox)
    machine.step(.deadline, at: .zero, into: &outbox)
    machine.step(.deadline, at: milliseconds(1_010), into: &outbox)
    let blocks: [UInt32] = [0, 46, 47, 48, 49, 50]
    #expect(outbox.drain().compactMap(\.frame?.mediaTime) == blocks.map { $0 * 960 })
    #expect(machine.deadline == milliseconds(1_020))
    #expect(machine.counters.blocksSkipped == 45)
  }

  @Test func aDeadlineThatIsNotDueDoesNothing() {
    var machine = capture(.tone(hertz: 440, pauseSeconds: 0))
    var outbox = Outbox<AudioCapture.Output>()
    machine.step(.deadline, at: milliseconds(5), into: &outbox)
    machine.step(.start, at: milliseconds(10), into: &outbox)
    machine.step(.deadline, at: milliseconds(10), into: &outbox)
    machine.step(.deadline, at: milliseconds(15), into: &outbox)
    #expect(outbox.drain().count == 1)
  }

  @Test func stoppingAndStartingKeepTheTimingGrid() {
    var machine = capture(.tone(hertz: 440, pauseSeconds: 0))
    let outputs = drive(
      &machine,
      [(milliseconds(0), .start), (milliseconds(50), .stop), (milliseconds(205), .start)],
      until: milliseconds(250), deadline: .deadline)
    let times: [UInt32] = [0, 960, 1_920, 10_560, 11_520]
    #expect(outputs.compactMap(\.output.frame?.mediaTime) == times)
    let instants: [Int64] = [0, 20, 40, 220, 240]
    #expect(outputs.map(\.at) == instants.map(milliseconds))
  }

  @Test func blankAndRealCodecsHaveTheSameTiming() {
    let script: [(Instant, AudioCapture.Input)] = [
      (milliseconds(0), .start), (milliseconds(333), .lossReported(30)),
      (milliseconds(400), .stop), (milliseconds(555), .start),
    ]
    var real = capture(.tone(hertz: 300, pauseSeconds: 2), LibraryCodecs())
    var blank = capture(.tone(hertz: 300, pauseSeconds: 2))
    let left = drive(&real, script, until: milliseconds(1_500), deadline: .deadline)
    let right = drive(&blank, script, until: milliseconds(1_500), deadline: .deadline)
    #expect(left.map(\.at) == right.map(\.at))
    #expect(left.map(\.output.frame?.mediaTime) == right.map(\.output.frame?.mediaTime))
  }

  @Test func theToneIsTheSameInEveryRunAndPauses() {
    func levels() -> [UInt8?] {
      var machine = capture(.tone(hertz: 440, pauseSeconds: 2), LibraryCodecs())
      let outputs = drive(
        &machine, [(.zero, .start)], until: milliseconds(2_990), deadline: .deadline)
      return outputs.map(\.output.frame?.audioLevel)
    }
    let levels = levels()
    // A peak of -12 dBFS is a mean square of -15 dB.
    #expect(levels[10...40].allSatisfy { $0 == 15 })
    #expect(levels[50..<100].allSatisfy { $0 == 127 })
    #expect(levels[110...140].allSatisfy { $0 == 15 })
  }

  @Test func audioOfAnyLengthIsCutIntoBlocks() {
    let codecs = BlankCodecs()
    var machine = capture(.application, codecs)
    var outbox = Outbox<AudioCapture.Output>()
    machine.step(.start, at: .zero, into: &outbox)
    var at: Int64 = 0
    for _ in 0..<30 {
      machine.step(.block(AudioBlock(blank: 441, channels: 2)), at: milliseconds(at), into: &outbox)
      at += 9
    }
    let times = outbox.drain().compactMap(\.frame?.mediaTime)
    #expect(times == (0..<13).map { UInt32($0 * 960) })
    let half = AudioBlock(blank: 480, channels: 1)
    machine.step(.block(half), at: milliseconds(1_001), into: &outbox)
    machine.step(.block(half), at: milliseconds(1_011), into: &outbox)
    #expect(outbox.drain().compactMap(\.frame?.mediaTime) == [51 * 960], "after a pause")
  }

  @Test func stoppedCapturesAndAbsurdBlocksYieldNothing() {
    var machine = capture(.echo)
    var outbox = Outbox<AudioCapture.Output>()
    machine.step(.block(AudioBlock(blank: 960, channels: 1)), at: .zero, into: &outbox)
    #expect(outbox.isEmpty)
    machine.step(.start, at: .zero, into: &outbox)
    machine.step(.block(AudioBlock(blank: -5, channels: 1)), at: .zero, into: &outbox)
    machine.step(.block(AudioBlock(blank: .max, channels: 1)), at: .zero, into: &outbox)
    #expect(outbox.drain().count == 500)
  }

  @Test func channelsAreConverted() throws {
    var settings = OpusSettings()
    settings.channels = 2
    let codecs = LibraryCodecs()
    var stereo = capture(.application, codecs, settings: settings)
    var mono = capture(.application, codecs)
    var outbox = Outbox<AudioCapture.Output>()
    stereo.step(.start, at: .zero, into: &outbox)
    mono.step(.start, at: .zero, into: &outbox)
    let samples = [Int16](repeating: 8_000, count: 960)
    stereo.step(.block(AudioBlock(samples: samples, channels: 1)), at: .zero, into: &outbox)
    var wide: [Int16] = []
    for _ in 0..<960 { wide += [16_000, 0] }
    mono.step(.block(AudioBlock(samples: wide, channels: 2)), at: .zero, into: &outbox)
    // A channel at 16,000 and a silent channel average to 8,000, so both signals are 12 dB below
    // full scale.
    #expect(outbox.drain().map(\.frame?.audioLevel) == [12, 12])
  }

  @Test func unsentFramesStillAdvanceTheTime() {
    let codecs = BlankCodecs()
    codecs.audioBytes = [0xF8]
    var machine = capture(.tone(hertz: 440, pauseSeconds: 0), codecs)
    var outputs = drive(&machine, [(.zero, .start)], until: milliseconds(90), deadline: .deadline)
    #expect(outputs.isEmpty)
    codecs.audioBytes = [1, 2, 3]
    outputs = drive(&machine, [], until: milliseconds(110), deadline: .deadline)
    #expect(outputs.compactMap(\.output.frame?.mediaTime) == [4_800])
  }

  @Test func aFailingEncoderSilencesTheTrackAndIsReportedOnce() {
    let codecs = BlankCodecs()
    codecs.failsToEncode = true
    var machine = capture(.tone(hertz: 440, pauseSeconds: 0), codecs)
    let outputs = drive(&machine, [(.zero, .start)], until: milliseconds(200), deadline: .deadline)
    #expect(outputs.count == 1 && machine.deadline == nil)
    guard case .failure("no") = outputs[0].output else {
      Issue.record("no failure")
      return
    }
  }

  @Test func lossIsReportedInPercentAndOnlyWhenItChanges() {
    let codecs = BlankCodecs()
    var machine = capture(.echo, codecs)
    var outbox = Outbox<AudioCapture.Output>()
    machine.step(.lossReported(26), at: .zero, into: &outbox)
    machine.step(.start, at: .zero, into: &outbox)
    for share: UInt8 in [26, 26, 255, 0] {
      machine.step(.lossReported(share), at: .zero, into: &outbox)
    }
    #expect(codecs.losses == [10, 99, 0])
  }
}

struct VideoCaptureTests {
  private let pattern = MediaSource.pattern(width: 64, height: 48, framesPerSecond: 30)

  @Test(arguments: [7, 24, 30, 60]) func thePatternTicksWithoutDrift(rate: Int) {
    var machine = VideoCapture(
      track: "v", source: .pattern(width: 64, height: 48, framesPerSecond: rate),
      codec: .vp8, codecs: BlankCodecs())
    let outputs = drive(
      &machine, [(milliseconds(5), .start)], until: milliseconds(10_004), deadline: .deadline)
    let frames = outputs.compactMap(\.output.frame)
    #expect(frames.count == 10 * rate)
    #expect(frames.enumerated().allSatisfy { $1.mediaTime == UInt32($0 * 90_000 / rate) })
    #expect(machine.deadline == milliseconds(10_005))
    #expect(frames.allSatisfy { $0.width == 64 && $0.height == 48 })
  }

  @Test func aLateClockDropsVideoFrames() {
    var machine = VideoCapture(track: "v", source: pattern, codec: .vp8, codecs: BlankCodecs())
    var outbox = Outbox<VideoCapture.Output>()
    machine.step(.start, at: .zero, into: &outbox)
    machine.step(.deadline, at: .zero, into: &outbox)
    machine.step(.deadline, at: milliseconds(510), into: &outbox)
    #expect(outbox.drain().compactMap(\.frame?.mediaTime) == [0, 45_000])
    #expect(machine.counters.framesSkipped == 14)
    #expect(machine.deadline == Instant(nanoseconds: 16 * 1_000_000_000 / 30))
  }

  @Test func keyFrameRequestsAndBitRatesReachTheEncoder() {
    let codecs = BlankCodecs()
    var machine = VideoCapture(track: "v", source: pattern, codec: .vp8, codecs: codecs)
    _ = drive(
      &machine,
      [
        (milliseconds(0), .bitrate(300_000)), (milliseconds(0), .start),
        (milliseconds(40), .requestKeyframe), (milliseconds(41), .requestKeyframe),
        (milliseconds(80), .bitrate(300_000)), (milliseconds(90), .bitrate(200_000)),
      ], until: milliseconds(140), deadline: .deadline)
    #expect(codecs.forcedKeys == [true, false, true, false, false])
    #expect(codecs.bitrates == [300_000, 200_000])
  }

  @Test func blankAndRealCodecsHaveTheSameTiming() {
    var real = VideoCapture(track: "v", source: pattern, codec: .vp8, codecs: LibraryCodecs())
    var blank = VideoCapture(track: "v", source: pattern, codec: .vp8, codecs: BlankCodecs())
    let script: [(Instant, VideoCapture.Input)] = [
      (.zero, .start), (milliseconds(200), .stop), (milliseconds(333), .start),
    ]
    let left = drive(&real, script, until: milliseconds(600), deadline: .deadline)
    let right = drive(&blank, script, until: milliseconds(600), deadline: .deadline)
    #expect(left.map(\.at) == right.map(\.at))
    #expect(left.map(\.output.frame?.mediaTime) == right.map(\.output.frame?.mediaTime))
    #expect(left.map(\.output.frame?.isKey) == right.map(\.output.frame?.isKey))
  }

  @Test func applicationVideoFramesCarryTheirTimeAndMayChangeTheirSize() throws {
    var machine = VideoCapture(
      track: "v", source: .application, codec: .vp8, codecs: LibraryCodecs())
    var outbox = Outbox<VideoCapture.Output>()
    let small = TestPattern(width: 32, height: 32).videoFrame(0)
    let large = TestPattern(width: 64, height: 32).videoFrame(0)
    machine.step(.start, at: milliseconds(100), into: &outbox)
    machine.step(.videoFrame(small), at: milliseconds(100), into: &outbox)
    machine.step(.videoFrame(small), at: milliseconds(100), into: &outbox)
    machine.step(.videoFrame(small), at: milliseconds(140), into: &outbox)
    machine.step(.videoFrame(large), at: milliseconds(170), into: &outbox)
    let nothing = I420Buffer(width: 0, height: 0, samples: [])
    machine.step(.videoFrame(nothing), at: milliseconds(200), into: &outbox)
    let frames = outbox.drain().compactMap(\.frame)
    #expect(frames.map(\.mediaTime) == [0, 3_600, 6_300])
    #expect(frames.map(\.width) == [32, 32, 64])
    #expect(frames.map(\.isKey) == [true, false, true])
    #expect(machine.deadline == nil)
  }

  @Test func aReplacedSourceContinuesTheMediaTime() {
    var machine = VideoCapture(
      track: "v", source: pattern, codec: .vp8, codecs: BlankCodecs(), origin: milliseconds(1_000))
    let outputs = drive(
      &machine, [(milliseconds(2_010), .start)], until: milliseconds(2_070), deadline: .deadline)
    #expect(outputs.compactMap(\.output.frame?.mediaTime) == [93_000, 96_000])
  }
}

struct PatternTests {
  @Test func aVideoFrameIsAFunctionOfItsNumber() {
    let left = TestPattern(width: 160, height: 90)
    let right = TestPattern(width: 160, height: 90)
    _ = right.videoFrame(77)
    #expect(left.videoFrame(5).samples == right.videoFrame(5).samples)
    #expect(left.videoFrame(5).samples != right.videoFrame(6).samples)
  }

  @Test(arguments: [(1, 1), (2, 3), (3, 2), (7, 5), (33, 17), (640, 2), (2, 640)])
  func anySizeCanBeDrawn(width: Int, height: Int) {
    let pattern = TestPattern(width: width, height: height)
    for number: Int64 in [0, 1, 31, 999_999, 1_000_000, 1 << 40] {
      let videoFrame = pattern.videoFrame(number)
      #expect(videoFrame.samples.count == I420Buffer.byteCount(width: width, height: height))
    }
  }

  @Test func theCounterCanBeRead() {
    // The last digit's upper right segment is dark in 5 and 6 and lit in all others.
    let pattern = TestPattern(width: 640, height: 360)
    let lit = (0..<10 as Range<Int64>).map { number -> Bool in
      let samples = pattern.videoFrame(number).samples
      let unit = 14
      let left = 320 - 3 * 4 * unit - 2 * unit + 5 * 4 * unit
      let top = 90 - 7 * unit / 2 & ~1
      return samples[(top + 2 * unit) * 640 + left + 2 * unit + unit / 2] == 235
    }
    #expect(lit.indices.filter { !lit[$0] } == [5, 6])
  }
}
