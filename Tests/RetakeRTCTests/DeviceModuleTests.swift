import AudioSession
import Live
import RetakeRTC
import Synchronization
import Testing

/// Tests a factory's audio device (PX1, PX2).
@Suite(.timeLimit(.minutes(10)), .serialized) struct DeviceModuleTests {
  private final class SpeechListener: RTCAudioDeviceModuleDelegate {
    let told = Told()
    private let isSpeaking = Mutex(false)

    var hasStarted: Bool { isSpeaking.withLock { $0 } }

    func audioDeviceModule(
      _ audioDeviceModule: RTCAudioDeviceModule,
      didReceiveSpeechActivityEvent speechActivityEvent: RTCSpeechActivityEvent
    ) {
      if speechActivityEvent == .started { isSpeaking.withLock { $0 = true } }
      told.note("\(speechActivityEvent)")
    }
  }

  /// 10 ms of audio as loud as a voice.
  private static let voice = (0..<480).map { Int16($0 * 53 % 16_001 - 8_000) }

  @Test func whatTheDeviceRecordsIsSentAndSpeechIntoADisabledTrackIsReported() async throws {
    let session = try LoopbackPair.session()
    let device = ManualAudioDevice()
    let audio = try session.makeAudioSession(device: device)
    let module = RTCAudioDeviceModule(audioSession: audio)
    let listener = SpeechListener()
    module.delegate = listener
    let pair = try LoopbackPair(session: session, device: module)
    #expect(device.operations.isEmpty)
    let track = pair.factory.audioTrack(withTrackId: "a")
    let sender = try #require(pair.caller.add(track, streamIds: ["s"]))
    #expect(device.operations.contains { $0.name == "startUnit" })
    try await pair.connect()
    track.isEnabled = false
    // Delivers audio repeatedly, because audio that is delivered before the track is sent is
    // ignored.
    while !listener.hasStarted {
      _ = try? device.port?.capture(PCMChunk(samples: Self.voice))
      // The loop has processed all earlier audio.
      _ = await pair.caller.statistics()
    }
    track.isEnabled = true
    await listener.told.wait(for: "ended")
    #expect(listener.told.log == ["started", "ended"])
    #expect(audio.counters.capturedBlocks >= 30)
    sender.track = nil
    pair.caller.close()
    pair.callee.close()
    #expect(device.operations.contains { $0.name == "stopUnit" })
    try await session.finish()
  }

  @Test func recordedDataIsDeliveredWhileTheDeviceIsIdle() throws {
    let session = try LoopbackPair.session()
    let audio = try session.makeAudioSession(device: ManualAudioDevice())
    let module = RTCAudioDeviceModule(audioSession: audio)
    audio.useManualAudio = true
    module.deliverRecordedData(CMSampleBuffer(samples: Self.voice, sampleRate: 48_000))
    #expect(audio.counters.deliveredFrames == 480)
    module.audioUnitSubType = RTCAudioDeviceModule.remoteIO
    #expect(module.audioUnitSubType == RTCAudioDeviceModule.remoteIO)
    audio.isAudioEnabled = true
    try audio.call(.openConnection(9, sends: true, receives: false))
    module.deliverRecordedData(CMSampleBuffer(samples: Self.voice, sampleRate: 48_000))
    #expect(audio.counters.drops == 1)
  }
}
