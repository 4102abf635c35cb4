import AudioSession
import Foundation
import Media
import Synchronization
import Testing

@testable import Live

/// Tests how microphone audio is processed before the session receives it.
@Suite(.timeLimit(.minutes(10))) struct VoiceProcessingTests {
  /// Noise whose loudness varies like speech, the same each time.
  private struct Speech {
    private var state: UInt32
    private var frame = 0
    private let rate: Int
    private let peak: Int

    init(seed: UInt32, rate: Int, peak: Int) { (state, self.rate, self.peak) = (seed, rate, peak) }

    mutating func next(_ count: Int) -> [Int16] {
      (0..<count).map { _ in
        state = state &* 1_664_525 &+ 1_013_904_223
        frame += 1
        // Syllables of 150 ms, with pauses between them.
        let place = frame * 1_000 / rate % 200
        let loudness = place < 150 ? min(place, 150 - place) : 0
        return Int16(
          truncatingIfNeeded: (Int(state >> 16) - 32_768) * peak * loudness / 75 / 32_768)
      }
    }
  }

  private func power(_ samples: ArraySlice<Int16>) -> Double {
    samples.reduce(0) { $0 + Double($1) * Double($1) } / Double(max(1, samples.count))
  }

  /// Simulates a room in which the microphone picks up the loudspeaker 30 ms later, at half the
  /// loudness.
  ///
  /// - Returns: the microphone's input and the processed output, interleaved by channel.
  private func echo(
    _ processor: VoiceProcessor, rate: Int = 16_000, channels: Int = 1, seconds: Int = 6,
    chunk: Int = 160
  ) -> (heard: [Int16], left: [Int16]) {
    var speech = Speech(seed: 7, rate: rate, peak: 12_000)
    var air = [Int16](repeating: 0, count: rate * 30 / 1_000)
    var (heard, left): ([Int16], [Int16]) = ([], [])
    for _ in 0..<seconds * rate / chunk {
      let played = speech.next(chunk)
      processor.played(played)
      air += played.map { $0 / 2 }
      let captured = air.prefix(chunk).flatMap { [Int16](repeating: $0, count: channels) }
      air.removeFirst(chunk)
      heard += captured
      let processed = processor.processed(
        PCMChunk(samples: captured, sampleRate: rate, channels: channels))
      left += samples(processed)
    }
    return (heard, left)
  }

  private func samples(_ chunk: PCMChunk?) -> [Int16] {
    guard let chunk else { return [] }
    return chunk.data.withUnsafeBytes { bytes in
      (0..<bytes.count / 2).map {
        Int16(littleEndian: bytes.loadUnaligned(fromByteOffset: 2 * $0, as: Int16.self))
      }
    }
  }

  /// KA11: for voice, the loudspeaker's echo has less than a thirtieth of its power left.
  @Test(arguments: [(16_000, 1, 160), (48_000, 2, 480), (44_100, 1, 333)])
  func theEchoOfTheLoudspeakerIsRemoved(rate: Int, channels: Int, chunk: Int) {
    let processor = VoiceProcessor(
      renderFormat: AudioFormat(sampleRate: rate), controlsGain: false)
    let (heard, left) = echo(processor, rate: rate, channels: channels, chunk: chunk)
    // All output except an incomplete period.
    #expect((0..<rate / 100 * channels).contains(heard.count - left.count))
    let last = 2 * rate * channels
    #expect(power(left.suffix(last)) * 30 < power(heard.suffix(last)))
  }

  @Test func theLocalSpeakerIsSentDespiteTheEcho() {
    let processor = VoiceProcessor(
      renderFormat: AudioFormat(sampleRate: 16_000), controlsGain: false)
    _ = echo(processor)
    // The remote side is silent now, and the local user speaks.
    var speech = Speech(seed: 99, rate: 16_000, peak: 12_000)
    var (said, left): ([Int16], [Int16]) = ([], [])
    for _ in 0..<200 {
      let captured = speech.next(160)
      processor.played([Int16](repeating: 0, count: 160))
      said += captured
      left += samples(processor.processed(PCMChunk(samples: captured, sampleRate: 16_000)))
    }
    #expect(power(left.suffix(16_000)) * 8 > power(said.suffix(16_000)))
  }

  @Test(arguments: [AudioProcessingProfile.music, .custom(1)])
  func otherProfilesLeaveTheMicrophoneUnchanged(_ profile: AudioProcessingProfile) {
    let processor = VoiceProcessor(
      renderFormat: AudioFormat(sampleRate: 16_000), controlsGain: false)
    processor.set(profile)
    let (heard, left) = echo(processor, seconds: 1, chunk: 77)
    #expect(heard == left)
  }

  /// KA11: automatic gain makes a quiet voice louder; without it, the voice is unchanged.
  @Test func aQuietVoiceIsAmplifiedOnRequest() {
    func left(_ controlsGain: Bool) -> Double {
      let processor = VoiceProcessor(renderFormat: nil, controlsGain: controlsGain)
      processor.set(.music)
      var speech = Speech(seed: 3, rate: 16_000, peak: 1_200)
      var left: [Int16] = []
      for _ in 0..<1_500 {
        left += samples(
          processor.processed(PCMChunk(samples: speech.next(160), sampleRate: 16_000)))
      }
      return power(left.suffix(32_000))
    }
    #expect(left(true) > 4 * left(false))
  }

  @Test func audioThatCannotBeProcessedIsLeftToTheSession() {
    let processor = VoiceProcessor(renderFormat: AudioFormat(), controlsGain: true)
    for format in [
      AudioFormat(sampleRate: 1), AudioFormat(channels: 0), AudioFormat(samples: .s16be),
      AudioFormat(sampleRate: 11_025),
    ] {
      let chunk = PCMChunk(format: format, data: [1, 2, 3])
      #expect(processor.processed(chunk) == chunk)
    }
  }

  /// PX8, TW3: voice processing suppresses a fan's noise; a plain unit does not.
  @Test func theKindOfProcessingThatASessionAsksForIsDone() throws {
    func left(_ profile: AudioProcessingProfile) throws -> Double {
      let session = try Session(Session.Options())
      let device = ManualAudioDevice(captureFormat: AudioFormat(sampleRate: 16_000))
      let audio = try session.makeAudioSession(device: VoiceProcessingDevice(device))
      let samples = Mutex<[Int16]>([])
      let sink = audio.onCaptured { block in samples.withLock { $0 += block.samples } }
      try audio.call(.setProcessing(profile))
      try audio.call(.openConnection(1, sends: true, receives: false))
      var state: UInt32 = 5
      for _ in 0..<600 {
        let noise = (0..<160).map { _ in
          state = state &* 1_664_525 &+ 1_013_904_223
          return Int16(Int(state >> 16) % 1_200 - 600)
        }
        try device.port?.capture(PCMChunk(samples: noise, sampleRate: 16_000))
      }
      withExtendedLifetime(sink) {}
      return power(samples.withLock { $0.suffix(96_000) })
    }
    // The audio unit selects the processing: `rioc` is the unit without any.
    let (processed, plain) = (try left(.voice), try left(.custom(0x7269_6f63)))
    #expect(plain > 0 && processed < plain / 2, "\(processed), \(plain)")
  }

  /// A device with voice processing has the wrapped device's name, and passes the requested
  /// processing on to the wrapped device.
  @Test func aDeviceWithVoiceProcessingIsADeviceLikeAnother() async throws {
    let manual = ManualAudioDevice(name: "microphone")
    let device = VoiceProcessingDevice(manual)
    #expect(device.name == "microphone" && device.captureFormat == AudioFormat())
    device.autoGain = true
    #expect(device.autoGain)
    let session = try Session(Session.Options())
    let audio = try session.makeAudioSession(device: device)
    try audio.configure { audio throws(AudioSessionError) in
      try audio.call(.setProcessing(LocalMediaOptions.AudioType.music.processing))
    }
    #expect(manual.operations.contains(.setProcessing(.music)))
    _ = try await session.finish()
  }
}
