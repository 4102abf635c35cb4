import AudioSession
import Lab
import Media
import Testing
import Wire

/// Tests the path of audio from its sources to the senders.
struct CaptureTests {
  private static func ramp(_ count: Int, from start: Int = 0) -> [Int16] {
    (0..<count).map { Int16(truncatingIfNeeded: ($0 + start) % 20_011 - 10_000) }
  }

  @Test func theSplitterKeepsEverySample() {
    let entropy = Entropy(seed: [9]).stream("splitter")
    for channels in [1, 2] {
      var splitter = TenMillisecondSplitter(sampleRate: 48_000, channels: channels)
      var sent: [Int16] = []
      var got: [Int16] = []
      for _ in 0..<200 {
        let piece = Self.ramp(Int(entropy.integer(below: 1_700)) * channels, from: sent.count)
        sent += piece
        splitter.deliver(piece) { unit in
          #expect(unit.count == 480 * channels)
          got += unit
        }
      }
      #expect(got == Array(sent.prefix(got.count)))
      #expect(splitter.remainder == sent.count - got.count && splitter.remainder < splitter.unit)
      let rest = splitter.drain() ?? []
      #expect(Array((got + rest).prefix(sent.count)) == sent)
      #expect(splitter.drain() == nil && splitter.remainder == 0)
      splitter.deliver([1, 2, 3]) { _ in Issue.record("nothing is complete") }
      #expect(splitter.reset() == 3 && splitter.remainder == 0)
    }
  }

  /// A device delivers 512 frames at a time; senders get 480.
  @Test func nativeSizesBecomeTenMilliseconds() {
    let session = VirtualAudioSession()
    var sent: [Int16] = []
    for _ in 0..<15 {
      let piece = Self.ramp(512, from: sent.count)
      sent += piece
      #expect(session.deliver(PCMChunk(samples: piece)) == .success(512))
      session.wait(.microseconds(10_667))
    }
    #expect(session.blocks.count == 16)
    #expect(session.blocks.flatMap { $0.block.samples } == sent)
    #expect(session.blocks.map(\.index) == Array(0..<16))
  }

  @Test(arguments: [8_000, 16_000, 22_050, 44_100, 96_000, 192_000], [1, 2])
  func anyRateBecomesBlocksOfTheSameLength(rate: Int, channels: Int) {
    let session = VirtualAudioSession()
    for _ in 0..<50 {
      let chunk = PCMChunk(
        samples: Array(repeating: 1_000, count: rate / 50 * channels), sampleRate: rate,
        channels: channels)
      #expect(session.deliver(chunk) == .success(rate / 50))
      session.wait(.milliseconds(20))
    }
    // A second of audio, minus what the resampling filter still holds.
    #expect((98...100).contains(session.blocks.count))
    #expect(session.blocks.allSatisfy { $0.block.channels == 1 && $0.block.frameCount == 480 })
    let level = session.blocks[50].block.samples
    #expect(level.allSatisfy { abs(Int($0) - 1_000) < 30 })
    #expect(session.snapshot.counters.resampledDeliveries == 50)
  }

  @Test func bigEndianSamplesAreSwapped() {
    let session = VirtualAudioSession()
    let samples = Self.ramp(480)
    var chunk = PCMChunk(samples: samples)
    chunk.format.samples = .s16be
    for index in stride(from: 0, to: chunk.data.count, by: 2) {
      chunk.data.swapAt(index, index + 1)
    }
    session.deliver(chunk)
    #expect(session.blocks.map(\.block.samples) == [samples])
  }

  @Test func otherFormatsAreRefusedAndCounted() {
    let session = VirtualAudioSession()
    let table: [(AudioFormat, Int, AudioDeviceError)] = [
      (AudioFormat(samples: .f32le), 40, .unsupportedSamples(.f32le)),
      (AudioFormat(samples: .s24le), 30, .unsupportedSamples(.s24le)),
      (AudioFormat(samples: .u8), 10, .unsupportedSamples(.u8)),
      (AudioFormat(sampleRate: 7_999), 20, .unsupportedRate(7_999)),
      (AudioFormat(sampleRate: 192_001), 20, .unsupportedRate(192_001)),
      (AudioFormat(sampleRate: .max), 20, .unsupportedRate(.max)),
      (AudioFormat(channels: 0), 20, .unsupportedChannels(0)),
      (AudioFormat(channels: .max), 20, .unsupportedChannels(.max)),
      (AudioFormat(channels: 2), 21, .partialFrame(bytes: 21)),
      (AudioFormat(sampleRate: 8_000), 2 * 16_001, .chunkTooLong(frames: 16_001)),
    ]
    for (format, count, error) in table {
      let chunk = PCMChunk(format: format, data: Array(repeating: 0, count: count))
      #expect(session.deliver(chunk) == .failure(error))
      #expect(!error.description.isEmpty)
    }
    #expect(session.snapshot.counters.drops == table.count)
    #expect(session.snapshot.counters.dropsByReason == ["notAudio": 9, "chunkTooLong": 1])
    #expect(session.deliver(PCMChunk(samples: [])) == .success(0))
    #expect(session.snapshot.counters.drops == table.count && session.blocks.isEmpty)
  }

  @Test func deliveredAudioIsDroppedWhileTheDeviceRuns() {
    let session = VirtualAudioSession()
    let chunk = PCMChunk(samples: Self.ramp(480))
    #expect(session.deliver(chunk) == .success(480))
    session.call(.openConnection(1, sends: true, receives: true))
    #expect(session.deliver(chunk) == .failure(.audioUnitActive))
    #expect(session.deliver(chunk) == .failure(.audioUnitActive))
    #expect(session.deliver(chunk, from: .unit) == .success(480))
    // The refusal is logged only once, but every dropped block is counted.
    #expect(session.log.filter { $0 == "sourceRefused" }.count == 1)
    #expect(session.snapshot.counters.dropsByReason == ["audioUnitActive": 2])
    session.call(.useManualAudio(true))
    #expect(session.deliver(chunk) == .success(480))
    #expect(session.deliver(chunk, from: .unit) == .failure(.audioUnitInactive))
  }

  @Test func anotherFormatDropsAnIncompleteBlock() {
    let session = VirtualAudioSession()
    session.deliver(PCMChunk(samples: Self.ramp(700)))
    #expect(session.blocks.count == 1)
    session.deliver(PCMChunk(samples: Self.ramp(441), sampleRate: 44_100))
    let source = AudioSourceID()
    #expect(
      session.events == [
        .sourceFormatChanged(
          source, from: AudioFormat(), to: AudioFormat(sampleRate: 44_100), lostFrames: 220)
      ])
    #expect(session.snapshot.counters.framesLostByFormatChange == 220)
    #expect(session.snapshot.counters.formatChanges == 1)
  }

  /// Audio in a format other than the route's is dropped, and the device is initialized again for
  /// the new format.
  @Test func aDeviceWithAnotherFormatIsRecreated() {
    let session = VirtualAudioSession()
    session.call(.openConnection(1, sends: true, receives: true))
    session.deliver(PCMChunk(samples: Self.ramp(480)), from: .unit)
    session.clear()
    let other = PCMChunk(samples: Self.ramp(160), sampleRate: 16_000)
    #expect(session.deliver(other, from: .unit) == .failure(.formatMismatch))
    #expect(
      session.operations.map(\.name) == [
        "stopUnit", "uninitializeUnit", "initializeUnit", "startUnit",
      ])
    #expect(session.deliver(other, from: .unit) == .success(160))
    #expect(session.snapshot.counters.dropsByReason == ["formatMismatch": 1])
  }

  // MARK: Several sources

  @Test func sourcesAreMixedAndClipped() {
    let session = VirtualAudioSession()
    let microphone = AudioSourceID(1)
    let application = AudioSourceID(2, tag: .application)
    for _ in 0..<3 {
      session.deliver(PCMChunk(samples: Array(repeating: 20_000, count: 480)), from: microphone)
      session.deliver(PCMChunk(samples: Array(repeating: 20_001, count: 480)), from: application)
      session.wait(.milliseconds(10))
    }
    // The microphone's first block was sent before the second source existed.
    #expect(session.blocks.map(\.sources) == [1, 2, 2])
    #expect(session.blocks.map { $0.block.samples[7] } == [20_000, 32_767, 32_767])
    #expect(session.states.contains("audio-source-2-application: idle -> flowing"))
    session.clear()
    session.call(.removeSource(2))
    session.deliver(PCMChunk(samples: Array(repeating: -5, count: 480)), from: microphone)
    #expect(session.blocks.map(\.sources).last == 1)
    for number in UInt32(3)..<40 {
      session.deliver(PCMChunk(samples: [1]), from: AudioSourceID(number))
    }
    #expect(session.snapshot.counters.dropsByReason["tooManySources"] == 22)
  }

  // MARK: Starvation

  @Test func silenceReplacesAStarvingSource() {
    let session = VirtualAudioSession()
    session.deliver(PCMChunk(samples: Self.ramp(500)))
    #expect(session.deadline == Instant(nanoseconds: 20_416_666))
    session.wait(.milliseconds(50))
    let starved = session.blocks
    // The block that had begun is padded with silence, and silent blocks follow in real time.
    #expect(starved.map(\.sources) == [1, 1, 0, 0, 0])
    #expect(starved[1].block.samples.prefix(20) == Self.ramp(500).suffix(20))
    #expect(starved[2...].allSatisfy { $0.block.samples.allSatisfy { $0 == 0 } })
    session.deliver(PCMChunk(samples: Self.ramp(480)))
    #expect(
      session.events == [
        .sourceStarved(AudioSourceID()), .sourceResumed(AudioSourceID(), silentBlocks: 3),
      ])
    #expect(
      session.states == [
        "audio-source-1-microphone: idle -> flowing",
        "audio-source-1-microphone: flowing -> starved",
        "audio-source-1-microphone: starved -> flowing",
      ])
    #expect(session.snapshot.counters.starvations == 1)
    #expect(session.snapshot.counters.silentBlocks == 3)
  }

  @Test func aTimelySourceNeverStarves() {
    for milliseconds in [10, 20, 60] {
      let session = VirtualAudioSession()
      for _ in 0..<20 {
        session.deliver(PCMChunk(samples: Self.ramp(48 * milliseconds)))
        session.wait(.milliseconds(Int64(milliseconds) + 5))
      }
      #expect(session.snapshot.counters.starvations == 0, "\(milliseconds)")
    }
  }

  @Test func afterAStallAtMostASecondIsCaughtUp() {
    let session = VirtualAudioSession()
    session.deliver(PCMChunk(samples: Self.ramp(480)))
    session.oversleep(.seconds(3_600))
    #expect(session.blocks.count == 101)
    session.clear()
    session.wait(.milliseconds(100))
    #expect(session.blocks.count == 10)
  }

  @Test func aMutedMicrophoneIsNotAwaited() {
    let session = VirtualAudioSession()
    session.call(.openConnection(1, sends: true, receives: true))
    session.deliver(PCMChunk(samples: Self.ramp(480)), from: .unit)
    session.call(.pauseRecording)
    session.wait(.seconds(1))
    #expect(session.blocks.count == 1 && session.deadline == nil)
    #expect(session.snapshot.counters.starvations == 0)
  }
}
