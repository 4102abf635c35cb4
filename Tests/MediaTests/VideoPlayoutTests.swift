import Media
import RTP
import Testing
import Wire

struct VideoPlayoutTests {
  typealias Shown = (at: Instant, output: VideoPlayout.Output)

  private func arrivals(
    _ count: Int64, transit: (Int64) -> Int64
  ) -> [(Instant, VideoPlayout.Input)] {
    var last = Instant.zero
    return (0..<count).map { number in
      let at = Instant(nanoseconds: number * 100_000_000 / 3 + transit(number) * 1_000_000)
      last = max(last, at)
      return (last, .frame(videoFrame(number, arrival: last, isKey: number == 0)))
    }
  }

  private func run(
    _ machine: inout VideoPlayout, _ inputs: [(Instant, VideoPlayout.Input)], until end: Int64
  ) -> [Shown] {
    drive(&machine, inputs, until: milliseconds(end), deadline: .deadline)
  }

  private func numbers(_ outputs: [Shown]) -> [Int64] {
    outputs.compactMap {
      if case .shown(let frame, _) = $0.output { (frame.firstSequence - 100) / 3 } else { nil }
    }
  }

  @Test func aSteadyStreamIsShownSteadily() {
    var machine = VideoPlayout(track: "v", codecs: BlankCodecs())
    let outputs = run(&machine, arrivals(60) { _ in 20 }, until: 3_000)
    #expect(numbers(outputs) == Array(0..<60))
    let gaps = zip(outputs, outputs.dropFirst()).map { ($1.at - $0.at).nanoseconds }
    #expect(gaps.allSatisfy { (33_333_332...33_333_335).contains($0) })
    #expect(outputs[0].at == milliseconds(30))
    #expect(machine.deadline == nil)
    let counters = machine.counters
    #expect(counters.framesReceived == 60 && counters.framesDecoded == 60)
    #expect(counters.keyFramesDecoded == 1 && counters.qpSum == 1_800)
    #expect(counters.frameWidth == 64 && counters.frameHeight == 48)
    #expect(counters.freezeCount == 0 && counters.pauseCount == 0)
    #expect(counters.framesPerSecond(at: outputs[59].at) == 30)
    #expect(counters.totalInterFrameDelay == outputs[59].at - outputs[0].at)
    #expect(counters.framesAssembledFromMultiplePackets == 60)
    #expect(counters.totalAssemblyTime == .milliseconds(120))
    #expect(counters.jitterBufferDelay == .milliseconds(12 * 60))
  }

  /// H.264 frames are released at the same times as other codecs' frames, but without a decoder.
  @Test func undecodedFramesAreReleasedAtTheirDisplayTime() {
    let codecs = BlankCodecs()
    var machine = VideoPlayout(track: "v", codecs: codecs)
    let inputs = arrivals(30) { _ in 20 }.map { at, input -> (Instant, VideoPlayout.Input) in
      guard case .frame(var frame) = input else { return (at, input) }
      frame.codec = .h264
      return (at, .frame(frame))
    }
    let outputs = run(&machine, inputs, until: 2_000)
    let passed = outputs.filter { if case .passed = $0.output { true } else { false } }
    #expect(passed.count == 30 && passed[0].at == milliseconds(30))
    #expect(codecs.videoDecodes == 0)
    #expect(machine.counters.framesDecoded == 0 && machine.counters.framesDropped == 0)
    #expect(machine.counters.jitterBufferEmittedCount == 30)
  }

  @Test func jitterIsEvenedOut() {
    let dice = random(6)
    var machine = VideoPlayout(track: "v", codecs: BlankCodecs())
    let outputs = run(
      &machine, arrivals(600) { _ in Int64(dice.integer(below: 50)) }, until: 20_100)
    #expect(numbers(outputs) == Array(0..<600))
    let gaps = zip(outputs, outputs.dropFirst()).map { ($1.at - $0.at).milliseconds }
    #expect(gaps.dropFirst(200).allSatisfy { (28...39).contains($0) })
    #expect(machine.counters.freezeCount == 0)
  }

  @Test func theDelayShrinksSlowlyWhenTheJitterIsOver() {
    let dice = random(7)
    var machine = VideoPlayout(track: "v", codecs: BlankCodecs())
    let outputs = run(
      &machine, arrivals(900) { $0 < 300 ? Int64(dice.integer(below: 100)) : 0 }, until: 30_100)
    #expect(machine.targetDelay == VideoPlayout.leastDelay)
    guard case .shown(let last, _) = outputs.last?.output, let end = outputs.last?.at else {
      Issue.record("nothing shown")
      return
    }
    #expect((end - last.lastArrival).milliseconds == 10)
    let gaps = zip(outputs, outputs.dropFirst()).map { ($1.at - $0.at).milliseconds }
    #expect(gaps.dropFirst(400).allSatisfy { (29...37).contains($0) })
  }

  @Test func aStallIsAFreezeAndALongOneAPause() {
    var machine = VideoPlayout(track: "v", codecs: BlankCodecs())
    _ = run(
      &machine,
      arrivals(400) { number in
        if (100..<115).contains(number) { return 500 - (number - 100) * 33 }
        return 0
      }, until: 14_000)
    #expect(machine.counters.freezeCount == 1)
    #expect((400...560).contains(machine.counters.totalFreezesDuration.milliseconds))
    let at = milliseconds(20_000)
    let late = videoFrame(400, arrival: at, time: 1_000_000 + 1_800_000)
    _ = run(&machine, [(at, .frame(late))], until: 21_000)
    #expect(machine.counters.pauseCount == 1 && machine.counters.freezeCount == 1)
  }

  @Test func noFrameWaitsLongerThanTheMaximumDelay() {
    let dice = random(8)
    var machine = VideoPlayout(track: "v", codecs: BlankCodecs())
    let outputs = run(
      &machine, arrivals(600) { _ in Int64(dice.integer(below: 900)) }, until: 22_000)
    #expect(outputs.count == 600)
    #expect(numbers(outputs) == Array(0..<600))
    for shown in outputs {
      guard case .shown(let frame, _) = shown.output else { continue }
      #expect(shown.at - frame.lastArrival <= VideoPlayout.mostDelay)
    }
  }

  @Test func refusedFramesAreReportedAndCounted() {
    let codecs = BlankCodecs()
    codecs.refusesVideo = { (3...5).contains($0) }
    var machine = VideoPlayout(track: "v", codecs: codecs)
    let outputs = run(&machine, arrivals(10) { _ in 0 }, until: 1_000)
    let refused = outputs.indices.filter {
      if case .undecodable = outputs[$0].output { true } else { false }
    }
    #expect(refused == [2, 3, 4])
    #expect(machine.counters.framesDropped == 3 && machine.counters.framesDecoded == 7)
    #expect(codecs.videoDecodes == outputs.count, "one call of the decoder per output")
  }

  @Test func jumpsAndAnotherSSRCLoseNothing() {
    var machine = VideoPlayout(track: "v", codecs: BlankCodecs())
    var inputs = arrivals(20) { _ in 0 }
    for number: Int64 in 20..<40 {
      let at = milliseconds(number * 33)
      inputs.append((at, .frame(videoFrame(number, arrival: at, time: number * 3_000 - 1 << 33))))
    }
    for number: Int64 in 40..<60 {
      let at = milliseconds(number * 33)
      inputs.append((at, .frame(videoFrame(number, arrival: at, ssrc: 9, time: number * 3_000))))
    }
    let outputs = run(&machine, inputs, until: 3_000)
    #expect(numbers(outputs) == Array(0..<60))
  }

  @Test func anOldFrameWithATimeFarAheadDoesNotBlockTheOthers() {
    var machine = VideoPlayout(track: "v", codecs: BlankCodecs())
    var inputs = arrivals(20) { _ in 0 }
    let at = milliseconds(400)
    inputs.insert((at, .frame(videoFrame(0, arrival: at, time: 90_000_000))), at: 13)
    let outputs = run(&machine, inputs, until: 1_000)
    #expect(outputs.count == 21 && machine.deadline == nil)
  }

  @Test func aFloodIsShownImmediatelyInsteadOfQueued() {
    var machine = VideoPlayout(track: "v", codecs: BlankCodecs())
    var outbox = Outbox<VideoPlayout.Output>()
    for number: Int64 in 0..<1_000 {
      // Media time drifts away from the arrival time, but so little that it counts as jitter.
      let frame = videoFrame(number, arrival: .zero, time: number * 60)
      machine.step(.frame(frame), at: .zero, into: &outbox)
    }
    #expect(outbox.drain().count >= 880)
  }

  @Test func absurdTimesDoNoHarm() {
    let dice = random(22)
    var machine = VideoPlayout(track: "v", codecs: BlankCodecs())
    var outbox = Outbox<VideoPlayout.Output>()
    var now = Instant.zero
    var count = 0
    for number: Int64 in 0..<20_000 {
      now += .microseconds(Int64(dice.integer(below: 60_000)))
      let time = Int64(bitPattern: dice.integer(UInt64.self) >> dice.integer(below: 64))
      var frame = videoFrame(number, arrival: now, time: dice.byte() < 30 ? time : nil)
      if dice.byte() == 0 { frame.firstSequence = time }
      if dice.byte() == 0 { frame.lastArrival = Instant(nanoseconds: time) }
      machine.step(.frame(frame), at: now, into: &outbox)
      if let deadline = machine.deadline, deadline <= now {
        machine.step(.deadline, at: now, into: &outbox)
      }
      count += outbox.drain().count
    }
    #expect(count > 19_000)
  }
}
