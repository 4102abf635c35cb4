import RTP
import Testing
import Wire

@testable import Media

/// Tests both laws of G.711, its sound, and the concealment of lost packets.
struct G711Tests {
  /// Values from ITU-T G.711 tables 1 and 2, at 16 bits.
  @Test(arguments: [
    (G711Law.mu, UInt8(0xff), Int16(0)), (.mu, 0x80, 32_124), (.mu, 0x00, -32_124),
    (.mu, 0xf0, 120), (.mu, 0x8f, 16_764), (.a, 0xd5, 8), (.a, 0x55, -8), (.a, 0xaa, 32_256),
    (.a, 0x2a, -32_256), (.a, 0xc5, 264),
  ])
  func codesStandForTheirSamples(law: G711Law, code: UInt8, sample: Int16) {
    #expect(law.decode(code) == sample)
    #expect(law.encode(sample) == code)
  }

  @Test(arguments: [G711Law.mu, .a])
  func everySampleIsEncodedByItsNearestCode(law: G711Law) {
    for code in UInt8.min...UInt8.max where !(law == .mu && code == 0x7f) {
      #expect(law.encode(law.decode(code)) == code)
    }
    var last = Int16.min
    for sample in stride(from: Int16.min, through: Int16.max - 7, by: 7) {
      let near = law.decode(law.encode(sample))
      #expect(near >= last, "codes are in order")
      last = near
      // A step is a 16th of its segment; the loudest segment ends a little below full scale.
      let most = abs(Int(sample)) / 16 + 9
      #expect(abs(Int(near) - Int(sample)) <= most, "\(sample) is \(near)")
    }
    #expect(G711Law(.pcmu) == .mu && G711Law(.pcma) == .a && G711Law(.opus) == nil)
  }

  /// Encodes and decodes a tone with either law in blocks of 20 ms.
  private func tone(_ hertz: Int, _ codec: CodecName, channels: Int = 1) throws -> [Int16] {
    var settings = OpusSettings()
    settings.codec = codec
    let encoder = try LibraryCodecs().audioEncoder(track: "1", settings)
    let decoder = try LibraryCodecs().audioDecoder(track: "1", codec, channels: channels)
    let source = ToneGenerator(hertz: hertz, pauseSeconds: 0)
    var played: [Int16] = []
    for number in Int64(0)..<25 {
      let block = source.block(at: number * 960, frameCount: 960, channels: 1)
      let encoded = try encoder.encode(block)
      #expect(encoded.bytes.count == 160)
      let decoded = try decoder.decode(.payload(encoded.bytes))
      #expect(decoded.block.frameCount == 960 && decoded.block.channels == channels)
      played += decoded.block.samples
    }
    return played
  }

  @Test(arguments: [CodecName.pcmu, .pcma])
  func aToneIsPlayedUnchanged(codec: CodecName) throws {
    for hertz in [300, 1_000, 3_000] {
      let played = try tone(hertz, codec)
      let source = ToneGenerator(hertz: hertz, pauseSeconds: 0)
      let sent = source.block(at: 0, frameCount: played.count, channels: 1).samples
      // Both filters together have a delay of 138 samples, a little less than 3 ms.
      var (error, energy) = (0.0, 0.0)
      for place in 4_800..<played.count {
        let (there, here) = (Double(sent[place - 138]), Double(played[place]))
        error += (there - here) * (there - here)
        energy += there * there
      }
      #expect(error * 500 < energy, "\(codec.rawValue) \(hertz): \(energy / error)")
    }
    // Frequencies above the telephone band are not aliased into it.
    let high = try tone(6_000, codec)
    #expect(high[4_800...].allSatisfy { abs($0) < 100 })
    let stereo = try tone(1_000, codec, channels: 2)
    #expect(stride(from: 0, to: stereo.count, by: 2).allSatisfy { stereo[$0] == stereo[$0 + 1] })
  }

  @Test func concealmentContinuesAndFadesWithoutClicks() throws {
    let decoder = G711Decoder(.mu, channels: 1)
    var phase = 0.0
    func packet() -> [UInt8] {
      (0..<160).map { _ in
        phase += 200.0 / 8_000
        return G711Law.mu.encode(Int16(10_000 * Sine.ofTurns(phase)))
      }
    }
    var played: [Int16] = []
    for _ in 0..<5 { played += try decoder.decode(.payload(packet())).block.samples }
    let step = zip(played, played.dropFirst()).map { abs(Int($0) - Int($1)) }.max() ?? 0
    var energies: [UInt64] = []
    for _ in 0..<5 {
      let concealment = try decoder.decode(.conceal(frameCount: 960))
      #expect(concealment.block.frameCount == 960)
      energies.append(concealment.energy)
      played += concealment.block.samples
      _ = packet()
    }
    // The first 10 ms are as loud as before, and after 60 ms there is silence.
    #expect(energies[0] > energies[1] && energies[1] > energies[2])
    #expect(energies[4] == 0)
    for _ in 0..<3 { played += try decoder.decode(.payload(packet())).block.samples }
    let widest = zip(played, played.dropFirst()).map { abs(Int($0) - Int($1)) }.max() ?? 0
    #expect(widest <= step * 3 / 2, "\(widest) and \(step)")
  }

  @Test func invalidConcealmentsAreRefused() throws {
    let decoder = G711Decoder(.a, channels: 1)
    for count in [0, -1, 100_000] {
      #expect(throws: CodecError.self) { try decoder.decode(.conceal(frameCount: count)) }
    }
    #expect(try decoder.decode(.conceal(frameCount: 125)).block.frameCount == 125)
    #expect(try decoder.decode(.payload([])).block.frameCount == 0)
  }

  // MARK: Playout

  private func frame(
    _ number: Int64, codec: CodecName = .pcmu, length: Int = 160
  ) -> ReceivedFrame {
    let extendedTime = 70_000 + number * Int64(length)
    return ReceivedFrame(
      mid: "0", ssrc: 1, kind: .audio, codec: codec, payloadType: 0,
      firstSequence: 100 + number, lastSequence: 100 + number,
      rtpTime: UInt32(truncatingIfNeeded: extendedTime), extendedTime: extendedTime,
      firstArrival: milliseconds(20 * number), lastArrival: milliseconds(20 * number),
      bytes: [UInt8](repeating: 0x90, count: length), isKey: true)
  }

  private func play(_ frames: [ReceivedFrame], until end: Int64) -> (AudioPlayout, [PlayedAudio]) {
    var machine = AudioPlayout(track: "1", codecs: LibraryCodecs())
    let outputs = drive(
      &machine, frames.map { ($0.lastArrival, .frame($0)) }, until: milliseconds(end),
      deadline: .deadline)
    return (
      machine,
      outputs.compactMap { if case .played(let audio) = $0.output { audio } else { nil } }
    )
  }

  @Test func anEightKilohertzStreamIsPlayedAtItsRate() {
    let (machine, played) = play((0..<50).filter { $0 != 20 }.map { frame($0) }, until: 1_035)
    #expect(played.count == 50)
    #expect(played.indices.filter { played[$0].origin == .concealed } == [20])
    #expect(played.allSatisfy { $0.codec == .pcmu && $0.decoded.block.frameCount == 960 })
    #expect(machine.counters.concealedSamples == 960 && machine.counters.concealmentEvents == 1)
    #expect(machine.counters.packetsMalformed == 0)
    // An RTP time 100 ms after packet 45's; no packet is late.
    let due = machine.independentPlayout(ofRTPTime: 70_000 + 45 * 160 + 800)
    #expect(due == milliseconds(45 * 20 + 100 + 40))
  }

  /// Events share the audio stream's sequence numbers, so a gap filled by events alone is a pause.
  @Test func eventsAreNotLosses() {
    var concealed: [UInt64] = []
    for hasEvents in [false, true] {
      var machine = AudioPlayout(track: "1", codecs: LibraryCodecs())
      func play(_ numbers: Range<Int64>, until end: Int64) {
        _ = drive(
          &machine, numbers.map { frame($0) }.map { ($0.lastArrival, .frame($0)) },
          until: milliseconds(end), deadline: .deadline)
      }
      play(0..<10, until: 190)
      if hasEvents { for number in Int64(10)..<30 { machine.pass(100 + number) } }
      play(30..<50, until: 1_035)
      concealed.append(machine.counters.concealedSamples)
    }
    #expect(concealed == [19_200, 4_800])
  }

  @Test func aStreamContinuesInAnotherCodec() {
    let opus = (0..<20).map {
      audioFrame(Int64($0), arrival: milliseconds(20 * Int64($0)), bytes: [0xf8, 0xff, 0xfe])
    }
    let later = (20..<40).map { number in
      var frame = frame(Int64(number), codec: number < 30 ? .pcma : .pcmu)
      frame.firstSequence = 5_000 + Int64(number)
      frame.lastSequence = frame.firstSequence
      return frame
    }
    let (machine, played) = play(opus + later, until: 900)
    #expect(machine.counters.packetsMalformed == 0)
    #expect(played.filter { $0.origin == .packet && $0.codec == .pcma }.count == 10)
    #expect(played.filter { $0.origin == .packet && $0.codec == .pcmu }.count == 10)
    #expect(played.last?.codec == .pcmu)
  }

  /// Packets of one sample cause no extra work, and a packet that is too long is rejected.
  @Test func packetLengthsAreLimited() {
    let short = (0..<20).map { frame(Int64($0), length: 1) }
    let (machine, played) = play(short, until: 60_000)
    #expect(played.count < 20 + 500 && machine.deadline == nil)
    let (other, none) = play([frame(0, length: 1_601)], until: 1_000)
    #expect(none.isEmpty && other.counters.packetsMalformed == 1)
  }
}
