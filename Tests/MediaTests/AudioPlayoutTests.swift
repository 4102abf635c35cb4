import Media
import RTP
import Testing
import Wire

struct AudioPlayoutTests {
  typealias Played = (at: Instant, output: AudioPlayout.Output)

  /// Returns packets sent every 20 ms from 0 on, in order of arrival.
  private func arrivals(
    _ count: Int64, lost: Set<Int64> = [], bytes: (Int64) -> [UInt8] = { _ in opusPayload() },
    transit: (Int64) -> Int64
  ) -> [(Instant, AudioPlayout.Input)] {
    var frames: [ReceivedFrame] = []
    for number in 0..<count where !lost.contains(number) {
      let at = Instant(nanoseconds: number * 20_000_000 + transit(number) * 1_000_000)
      frames.append(audioFrame(number, arrival: at, bytes: bytes(number)))
    }
    let order = frames.indices.sorted {
      (frames[$0].lastArrival, $0) < (frames[$1].lastArrival, $1)
    }
    return order.map { (frames[$0].lastArrival, .frame(frames[$0])) }
  }

  private func origins(_ outputs: [Played]) -> [PlayedAudio.Origin] {
    outputs.map { if case .played(let audio) = $0.output { audio.origin } else { .concealed } }
  }

  private func numbers(_ outputs: [Played]) -> [Int64] {
    outputs.compactMap {
      guard case .played(let audio) = $0.output, audio.origin == .packet else { return nil }
      return audio.frame.map { $0.firstSequence - 5_000 }
    }
  }

  private func run(
    _ machine: inout AudioPlayout, _ inputs: [(Instant, AudioPlayout.Input)],
    until end: Int64, lateness: () -> Interval = { .zero }
  ) -> [Played] {
    drive(&machine, inputs, until: milliseconds(end), deadline: .deadline, lateness: lateness)
  }

  /// Expects the counters to account for all samples of the received packets and of the output.
  private func expectBalance(_ counters: AudioPlayoutCounters, _ packets: Int) {
    #expect(
      counters.totalSamplesReceived
        == counters.jitterBufferEmittedCount + counters.concealedSamples
        + counters.recoveredSamples + counters.insertedSamplesForDeceleration)
    #expect(counters.silentConcealedSamples <= counters.concealedSamples)
    let samples = UInt64(packets * 960)
    #expect(
      counters.jitterBufferEmittedCount + counters.removedSamplesForAcceleration
        + counters.packetsDiscarded * 960 == samples)
  }

  @Test func aSteadyStreamIsPlayedInOrderAfterTheLeastDelay() {
    var machine = AudioPlayout(track: "a", codecs: BlankCodecs())
    let outputs = run(&machine, arrivals(100) { _ in 30 }, until: 2_060)
    #expect(numbers(outputs) == Array(0..<100))
    #expect(outputs.first?.at == milliseconds(70))
    #expect(outputs.enumerated().allSatisfy { $1.at == milliseconds(70 + 20 * Int64($0)) })
    #expect(machine.counters.jitterBufferDelayMicroseconds == 100 * 960 * 40_000)
    #expect(machine.counters.concealedSamples == 0)
    expectBalance(machine.counters, 100)
  }

  @Test func withoutPacketsTheTrackFallsSilentAndHasNoDeadline() {
    var machine = AudioPlayout(track: "a", codecs: BlankCodecs())
    #expect(machine.deadline == nil)
    let outputs = run(&machine, arrivals(10) { _ in 0 }, until: 60_000)
    #expect(machine.deadline == nil)
    #expect(outputs.count == 10 + 50, "one second is concealed")
    #expect(machine.counters.concealmentEvents == 1)
    // Playout resumes.
    let later = audioFrame(2_000, arrival: milliseconds(40_000))
    let more = run(&machine, [(milliseconds(40_000), .frame(later))], until: 40_050)
    #expect(numbers(more) == [2_000])
    #expect(more.first?.at == milliseconds(40_040))
  }

  @Test func aQuietStreamFallsSilentSooner() {
    let codecs = BlankCodecs()
    codecs.energyPerSample = 1
    var machine = AudioPlayout(track: "a", codecs: codecs)
    let outputs = run(&machine, arrivals(10) { _ in 0 }, until: 60_000)
    #expect(outputs.count == 10 + 5)
    #expect(machine.counters.silentConcealedSamples == machine.counters.concealedSamples)
  }

  @Test func reorderedPacketsAreSortedAndDuplicatesCounted() {
    var machine = AudioPlayout(track: "a", codecs: BlankCodecs())
    var inputs = arrivals(60) { $0 % 5 == 2 ? 25 : 0 }
    for index in stride(from: 50, to: 0, by: -10) { inputs.insert(inputs[index], at: index + 1) }
    let outputs = run(&machine, inputs, until: 1_240)
    #expect(numbers(outputs) == Array(0..<60))
    #expect(machine.counters.packetsDuplicated == 5)
    expectBalance(machine.counters, 60)
  }

  @Test func aLostPacketIsRecoveredFromTheNextOne() {
    let codecs = BlankCodecs()
    var machine = AudioPlayout(track: "a", codecs: codecs)
    let inputs = arrivals(40, lost: [10, 20, 21], bytes: { _ in opusPayload(hasFEC: true) }) { _ in
      0
    }
    let outputs = run(&machine, inputs, until: 830)
    let origins = origins(outputs)
    #expect(origins.count == 40)
    #expect(origins.indices.filter { origins[$0] == .recovered } == [10, 21])
    #expect(origins.indices.filter { origins[$0] == .concealed } == [20])
    #expect(machine.counters.recoveredSamples == 1_920)
    #expect(machine.counters.concealmentEvents == 1)
    #expect(codecs.audioRequests.count == outputs.count, "one call of the decoder per block")
    #expect(
      codecs.audioRequests[10]
        == .recoverPrevious(from: opusPayload(hasFEC: true), frameCount: 960))
    expectBalance(machine.counters, 37)
  }

  @Test func withoutFECALostPacketIsConcealed() {
    var machine = AudioPlayout(track: "a", codecs: BlankCodecs())
    let outputs = run(&machine, arrivals(40, lost: [10]) { _ in 0 }, until: 830)
    #expect(origins(outputs).indices.filter { origins(outputs)[$0] == .concealed } == [10])
    #expect(outputs.count == 40)
  }

  @Test func latePacketsArePlayedLaterWhenTheBufferRanDry() {
    // From packet 50 on, all arrive 100 ms later, permanently.
    var machine = AudioPlayout(track: "a", codecs: BlankCodecs())
    let inputs = arrivals(400) { $0 < 50 ? 0 : 100 }
    var outputs = run(&machine, inputs.filter { $0.0 <= milliseconds(6_000) }, until: 6_000)
    #expect((2...6).contains(machine.counters.concealedSamples / 960))
    outputs += run(&machine, inputs.filter { $0.0 > milliseconds(6_000) }, until: 8_300)
    #expect(numbers(outputs) == Array(0..<400), "none is lost")
    #expect(machine.counters.packetsDiscarded == 0)
    expectBalance(machine.counters, 400)
  }

  @Test(arguments: [1, 2, 3, 4] as [UInt8])
  func jitterCausesNoUnderrunOnceTheDelayHasAdapted(seed: UInt8) {
    let dice = random(seed)
    var machine = AudioPlayout(track: "a", codecs: BlankCodecs())
    let inputs = arrivals(1_500) { _ in Int64(dice.integer(below: 80)) }
    let late = random(seed &+ 100)
    _ = run(&machine, inputs.filter { $0.0 <= milliseconds(3_000) }, until: 3_000)
    let early = machine.counters
    let outputs = run(
      &machine, inputs.filter { $0.0 > milliseconds(3_000) }, until: 29_990,
      lateness: { .microseconds(Int64(late.integer(below: 3_000))) })
    #expect(machine.counters.concealedSamples == early.concealedSamples)
    #expect(machine.counters.packetsDiscarded == early.packetsDiscarded)
    let played = numbers(outputs)
    #expect(zip(played, played.dropFirst()).allSatisfy { $0 < $1 })
    #expect((.milliseconds(75)...Interval.milliseconds(92)).contains(machine.snapshot.targetDelay))
  }

  @Test func theDelayShrinksWhenTheJitterIsOver() {
    let dice = random(9)
    for energy: UInt64 in [1, 4_000_000] {
      let codecs = BlankCodecs()
      codecs.energyPerSample = energy
      var machine = AudioPlayout(track: "a", codecs: codecs)
      let inputs = arrivals(2_000) { $0 < 500 ? Int64(dice.integer(below: 200)) : 0 }
      let outputs = run(&machine, inputs, until: 39_990)
      #expect(machine.snapshot.targetDelay == AudioPlayout.leastDelay)
      #expect(machine.counters.removedSamplesForAcceleration >= 5 * 960)
      guard case .played(let last) = outputs.last?.output, let frame = last.frame else {
        Issue.record("nothing played")
        return
      }
      let delay = (outputs[outputs.count - 1].at - frame.firstArrival).milliseconds
      #expect((35...71).contains(delay), "\(delay) ms at the end")
    }
  }

  @Test func theDelayGrowsByInsertionsBeforeItIsNeeded() {
    let dice = random(11)
    var machine = AudioPlayout(track: "a", codecs: BlankCodecs())
    // The jitter grows slowly, and the target delay always stays above the jitter.
    let inputs = arrivals(2_000) { Int64(dice.integer(below: UInt64(1 + $0 / 10))) }
    _ = run(&machine, inputs, until: 39_990)
    #expect(machine.counters.insertedSamplesForDeceleration >= 3 * 960)
    #expect(machine.counters.packetsDiscarded < 20)
  }

  @Test func afterAStallTheExcessIsDroppedAtOnce() {
    // The network holds everything for 900 ms and then releases it.
    var machine = AudioPlayout(track: "a", codecs: BlankCodecs())
    let inputs = arrivals(500) { (50..<95).contains($0) ? max(0, 1_900 - $0 * 20) : 0 }
    let outputs = run(&machine, inputs, until: 9_900)
    let played = numbers(outputs)
    #expect(zip(played, played.dropFirst()).allSatisfy { $0 < $1 })
    let delays = outputs.compactMap { played -> Int64? in
      guard case .played(let audio) = played.output, let frame = audio.frame else { return nil }
      return (played.at - frame.firstArrival).milliseconds
    }
    #expect(delays.suffix(100).allSatisfy { $0 < 560 })
  }

  @Test func aMachineNotSteppedForLongCatchesUp() {
    var machine = AudioPlayout(track: "a", codecs: BlankCodecs())
    var outbox = Outbox<AudioPlayout.Output>()
    for (at, input) in arrivals(3, transit: { _ in 0 }) {
      machine.step(input, at: at, into: &outbox)
    }
    machine.step(.deadline, at: milliseconds(3_000), into: &outbox)
    #expect(outbox.drain().count == 10)
    #expect(machine.deadline == milliseconds(3_020))
  }

  @Test func senderPausesAreNotLosses() {
    // With discontinuous transmission, sequence numbers continue while media time and arrival jump
    // by 2 s.
    var machine = AudioPlayout(track: "a", codecs: BlankCodecs())
    var inputs = arrivals(20) { _ in 0 }
    for number: Int64 in 20..<40 {
      let at = milliseconds(2_000 + number * 20)
      let frame = audioFrame(number, arrival: at, time: 1_000_000 + 96_000 + number * 960)
      inputs.append((at, .frame(frame)))
    }
    let outputs = run(&machine, inputs, until: 2_830)
    #expect(numbers(outputs) == Array(0..<40))
    #expect(machine.counters.packetsDiscarded == 0)
    #expect(outputs.last?.at == milliseconds(2_820))
  }

  @Test(arguments: [(2, 480), (8, 960), (16, 1_920), (24, 2_880)])
  func packetsOfOtherDurationsPlayAtTheirPace(toc: UInt8, duration: Int64) {
    let codecs = BlankCodecs()
    var machine = AudioPlayout(track: "a", codecs: codecs)
    let inputs = (0..<30 as Range<Int64>).map { number -> (Instant, AudioPlayout.Input) in
      let at = Instant(nanoseconds: number * duration * 62_500 / 3)
      let bytes: [UInt8] = toc == 2 ? [0x00, 0, 1] : [toc, 0, 1]
      return (at, .frame(audioFrame(number, arrival: at, bytes: bytes, duration: duration)))
    }
    let end = 30 * duration / 48 + 39
    let outputs = run(&machine, inputs, until: end)
    #expect(numbers(outputs) == Array(0..<30))
    #expect(machine.counters.totalSamplesReceived == UInt64(30 * duration))
    #expect(machine.counters.concealedSamples == 0)
  }

  @Test func anotherSSRCAndATimestampJumpStartOver() {
    var machine = AudioPlayout(track: "a", codecs: BlankCodecs())
    var inputs = arrivals(20) { _ in 0 }
    for number: Int64 in 0..<20 {
      let at = milliseconds(400 + number * 20)
      let frame = audioFrame(number - 3_000, arrival: at, ssrc: 2, time: 7 + number * 960)
      inputs.append((at, .frame(frame)))
    }
    for number: Int64 in 0..<20 {
      let at = milliseconds(800 + number * 20)
      let frame = audioFrame(number, arrival: at, ssrc: 2, time: 1 << 40 + number * 960)
      inputs.append((at, .frame(frame)))
    }
    let outputs = run(&machine, inputs, until: 1_225)
    let played = outputs.compactMap { output -> Int64? in
      guard case .played(let audio) = output.output else { return nil }
      return audio.frame?.extendedTime
    }
    // Packets that still wait when the stream changes are dropped.
    #expect(played.filter { $0 >= 1_000_000 && $0 < 2_000_000 }.count >= 17)
    #expect(played.filter { $0 < 100_000 }.count >= 17)
    #expect(played.filter { $0 >= 1 << 40 }.count == 20)
    #expect(machine.counters.concealedSamples == 0)
  }

  @Test func absurdTimesAndBytesDoNoHarm() {
    let dice = random(21)
    var machine = AudioPlayout(track: "a", codecs: BlankCodecs())
    var outbox = Outbox<AudioPlayout.Output>()
    var now = Instant.zero
    for round in 0..<30_000 {
      now += .microseconds(Int64(dice.integer(below: 30_000)))
      let bits = dice.integer(below: 64)
      let time = Int64(bitPattern: dice.integer(UInt64.self) >> bits)
      var frame = audioFrame(
        Int64(dice.integer(below: 50)) + Int64(round), arrival: now,
        bytes: dice.byte() < 200 ? opusPayload(hasFEC: dice.byte() < 128) : [dice.byte()],
        ssrc: dice.byte() < 2 ? 2 : 1, time: dice.byte() < 30 ? time : nil)
      if dice.byte() == 0 { frame.firstSequence = time }
      if dice.byte() == 0 { frame.firstArrival = Instant(nanoseconds: time) }
      machine.step(.frame(frame), at: now, into: &outbox)
      for _ in 0..<20 {
        guard let deadline = machine.deadline, deadline <= now else { break }
        machine.step(.deadline, at: now, into: &outbox)
      }
      if let deadline = machine.deadline { #expect(deadline < now + .seconds(4_000_000_000)) }
      outbox.removeAll()
    }
    #expect(machine.counters.packetsMalformed > 0)
  }

  @Test func realAudioUnderLossIsTheSameInEveryRun() throws {
    func play() throws -> [[Int16]] {
      let codecs = LibraryCodecs()
      var capture = AudioCapture(
        track: "a", source: .tone(hertz: 440, pauseSeconds: 0), settings: OpusSettings(),
        codecs: codecs)
      let sent = drive(
        &capture, [(.zero, .lossReported(64)), (.zero, .start)], until: milliseconds(1_990),
        deadline: .deadline)
      let dice = random(4)
      var bytes: [[UInt8]] = []
      for output in sent {
        if case .encoded(let frame) = output.output { bytes.append(frame.bytes) }
      }
      let inputs = arrivals(
        Int64(bytes.count), lost: [12, 13, 20, 70], bytes: { bytes[Int($0)] }
      ) { _ in Int64(dice.integer(below: 30)) }
      var machine = AudioPlayout(track: "a", codecs: codecs)
      let outputs = run(&machine, inputs, until: 2_000)
      #expect(machine.counters.recoveredSamples >= 960)
      #expect((0.1...0.3).contains(machine.counters.audioLevel ?? 0))
      return outputs.map { output in
        guard case .played(let audio) = output.output else { return [] }
        return audio.decoded.block.samples
      }
    }
    #expect(try play() == play())
  }
}
