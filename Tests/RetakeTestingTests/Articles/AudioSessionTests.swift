import Foundation
import Retake
import Testing

/// The code in the article "Audio session and devices".
struct AudioSessionArticleTests {
  @Test func aDevicesToneIsReceivedAtTheOtherEnd() async throws {
    let folder = FileManager.default.temporaryDirectory.path + "/article-" + UUID().uuidString
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    var options = Session.Options()
    options.takePath = folder + "/call.take"
    options.bind = .addresses([IPAddress(ipv4: 0x7f00_0001)])
    let session = try Session(options)
    let caller = session.makePeer(label: "caller")
    let callee = session.makePeer(label: "callee")
    let audio = try session.makeAudioSession(device: PacedAudioDevice.tone(hertz: 440))
    let transceiver = try await caller.addTransceiver(
      .audio, direction: .sendrecv, source: .application)
    let attachment = try audio.attach(caller, sending: transceiver.id)
    let (heard, note) = AsyncStream.makeStream(of: Bool.self)
    let subscription = callee.onMedia { media in
      guard case .audio(let block) = media.content else { return }
      if block.samples.contains(where: { $0 > 4_000 }) { note.yield(true) }
    }
    try await connect(caller, callee)
    for await _ in heard { break }
    audio.handle(.interruptionBegan)
    audio.handle(.interruptionEnded(shouldResume: true))
    withExtendedLifetime((attachment, subscription)) {}
    try await session.finish()
    let take = try Take.open(folder + "/call.take")
    let units = try take.rows(of: StateChange.self).all().filter { $0.machine == "audio-unit" }
    #expect(
      units.map(\.to).prefix(4) == ["initialized", "started", "initialized", "started"])
    #expect(try await take.replay().isIdentical)
  }

  private func connect(_ caller: PeerConnection, _ callee: PeerConnection) async throws {
    try await negotiate(caller, callee)
    try await caller.waitUntilConnected()
  }

  @Test func aVoiceIsProcessed() async throws {
    let session = try Session()
    let microphone = ManualAudioDevice()
    let device = VoiceProcessingDevice(microphone, autoGain: true)
    let audio = try session.makeAudioSession(device: device)
    try audio.configure { (audio) throws(AudioSessionError) in
      try audio.call(.setProcessing(.music))
    }
    #expect(microphone.operations == [.setProcessing(.music)])
    try await session.finish()
  }

  @Test func anApplicationHandsAudioIn() async throws {
    let session = try Session()
    let audio = try session.makeAudioSession(device: NullAudioDevice())
    let samples = [Int16](repeating: 5, count: 882)
    audio.useManualAudio = true
    let frames = try audio.deliver(
      PCMChunk(samples: samples, sampleRate: 44_100, channels: 2),
      from: AudioSourceID(2, tag: .application))
    #expect(frames == 441)
    try audio.configure { (audio) throws(AudioSessionError) in
      try audio.call(.setPreferredSampleRate(16_000))
    }
    try audio.apply(.voiceChat(output: .speaker))
    audio.handle(.interruptionBegan)
    audio.handle(.interruptionEnded(shouldResume: true))
    #expect(audio.counters.resampledDeliveries == 1)
    try await session.finish()
  }
}
