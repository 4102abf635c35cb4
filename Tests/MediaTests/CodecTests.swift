import Media
import Testing
import Wire

/// Returns blocks of a tone, as the capture makes them.
private func toneBlocks(_ count: Int, hertz: Int = 440, channels: Int = 1) -> [AudioBlock] {
  var phase = 0
  return (0..<count).map { _ in
    var samples: [Int16] = []
    for _ in 0..<960 {
      // A parabola in place of a sine. It is close enough for a codec and needs no math library.
      let x = Double(phase) / 48_000
      let half = x < 0.5 ? x : x - 0.5
      let value = 16 * half * (0.5 - half) * 8_000 * (x < 0.5 ? 1 : -1)
      for _ in 0..<channels { samples.append(Int16(value)) }
      phase = (phase + hertz) % 48_000
    }
    return AudioBlock(samples: samples, channels: channels)
  }
}

struct OpusTests {
  let codecs = LibraryCodecs()

  private func encode(
    _ blocks: [AudioBlock], _ settings: OpusSettings = OpusSettings(), loss: Int32 = 0
  ) throws -> [[UInt8]] {
    let encoder = try codecs.audioEncoder(track: "a", settings)
    encoder.setPacketLoss(percent: loss)
    return try blocks.map { try encoder.encode($0).bytes }
  }

  @Test func theSameSamplesGiveTheSameBytes() throws {
    let blocks = toneBlocks(50)
    #expect(try encode(blocks) == encode(blocks))
  }

  @Test(arguments: [1, 2]) func aToneSurvivesTheRoundTrip(channels: Int) throws {
    var settings = OpusSettings()
    settings.channels = channels
    let blocks = toneBlocks(50, channels: channels)
    let decoder = try codecs.audioDecoder(track: "a", channels: channels)
    var sent: UInt64 = 0
    var received: UInt64 = 0
    for (index, bytes) in try encode(blocks, settings).enumerated() {
      let decoded = try decoder.decode(.payload(bytes))
      #expect(decoded.block.frameCount == 960)
      #expect(decoded.block.channels == channels)
      guard index > 10 else { continue }
      received += decoded.energy
      sent += Loudness(samples: blocks[index].samples, channels: channels).energy
    }
    #expect(received > sent / 2 && received < sent * 2)
  }

  @Test func theLevelFollowsTheTone() throws {
    let encoder = try codecs.audioEncoder(track: "a", OpusSettings())
    let loud = try encoder.encode(toneBlocks(1)[0])
    #expect((13...17).contains(loud.level) && loud.isVoice)
    let silent = try encoder.encode(AudioBlock(blank: 960, channels: 1))
    #expect(silent.level == 127 && !silent.isVoice)
  }

  @Test func theNextPacketRecoversTheOneBefore() throws {
    let packets = try encode(toneBlocks(30), loss: 20)
    #expect(packets.dropFirst(10).allSatisfy { OpusPacket($0)?.hasInbandFEC == true })
    let decoder = try codecs.audioDecoder(track: "a", channels: 1)
    for bytes in packets[..<20] { _ = try decoder.decode(.payload(bytes)) }
    let recovered = try decoder.decode(.recoverPrevious(from: packets[21], frameCount: 960))
    #expect(recovered.block.frameCount == 960)
    #expect(AudioMeter.level(energy: recovered.energy, frameCount: 960) < 25)
  }

  @Test func withoutReportedLossThereIsNothingToRecoverFrom() throws {
    var settings = OpusSettings()
    settings.usesInbandFEC = false
    let packets = try encode(toneBlocks(30), settings, loss: 20)
    #expect(packets.allSatisfy { OpusPacket($0)?.hasInbandFEC == false })
  }

  @Test func concealmentFadesAway() throws {
    let decoder = try codecs.audioDecoder(track: "a", channels: 1)
    for bytes in try encode(toneBlocks(20)) { _ = try decoder.decode(.payload(bytes)) }
    let first = try decoder.decode(.conceal(frameCount: 960))
    var last = first
    for _ in 0..<50 { last = try decoder.decode(.conceal(frameCount: 960)) }
    #expect(first.energy > 100 * (last.energy + 1))
  }

  @Test func discontinuousTransmissionSendsAlmostNothingInSilence() throws {
    var settings = OpusSettings()
    settings.usesDTX = true
    let sizes = try encode((0..<50).map { _ in AudioBlock(blank: 960, channels: 1) }, settings)
      .map(\.count)
    #expect(sizes.suffix(20).filter { $0 <= 2 }.count > 15)
  }

  @Test func wrongSizesAreErrors() throws {
    let encoder = try codecs.audioEncoder(track: "a", OpusSettings())
    #expect(throws: CodecError.self) { try encoder.encode(AudioBlock(blank: 480, channels: 1)) }
    #expect(throws: CodecError.self) { try encoder.encode(AudioBlock(blank: 960, channels: 2)) }
    let decoder = try codecs.audioDecoder(track: "a", channels: 1)
    #expect(throws: CodecError.self) { try decoder.decode(.payload([])) }
    #expect(throws: CodecError.self) { try decoder.decode(.conceal(frameCount: 7)) }
    #expect(throws: CodecError.self) { try decoder.decode(.conceal(frameCount: -960)) }
    #expect(throws: CodecError.self) { try codecs.audioDecoder(track: "a", channels: 3) }
    var settings = OpusSettings()
    settings.complexity = 11
    #expect(throws: CodecError.self) { try codecs.audioEncoder(track: "a", settings) }
  }

  @Test func theDecoderSurvivesAnyBytes() throws {
    let packets = try encode(toneBlocks(20), loss: 20)
    let decoder = try codecs.audioDecoder(track: "a", channels: 2)
    let dice = random(3)
    for round in 0..<20_000 {
      var bytes = packets[round % packets.count]
      for _ in 0...dice.integer(below: 4) {
        bytes[Int(dice.integer(below: UInt64(bytes.count)))] = dice.byte()
      }
      let form = OpusPacket(bytes)
      let decoded = try? decoder.decode(.payload(bytes))
      #expect((decoded != nil) == (form != nil))
      if let decoded, let form { #expect(decoded.block.frameCount == form.duration) }
      if round % 16 == 0 { _ = try? decoder.decode(.recoverPrevious(from: bytes, frameCount: 960)) }
    }
  }

  @Test func versionsAreReported() {
    #expect(LibraryCodecs.opusVersion.contains("libopus "))
    #expect(LibraryCodecs.vpxVersion.contains("libvpx v"))
  }
}
