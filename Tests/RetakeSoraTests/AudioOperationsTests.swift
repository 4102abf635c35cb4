import AudioSession
import Dispatch
import Live
import Media
import Peer
import RetakeRTC
import RoomServers
import Synchronization
import Testing

@testable import RetakeSora

/// Makes the calls of the SDK's page on audio with a Sora server.
///
/// All tests share the process's one `Sora` object and its one device.
@Suite(.timeLimit(.minutes(10)), .serialized, .machineAlone) struct AudioOperationsTests {
  private static let queue = DispatchQueue(label: "AudioOperations")

  /// A machine with a device, whose channels use the sessions of a test's server.
  private final class Machine {
    let desk: Desk
    let server: SoraChannel

    init(
      _ desk: Desk = Desk(), sendsVoice: Bool = true, receivesVoice: Bool = false, hertz: Int = 440
    ) async throws {
      self.desk = desk
      server = try await SoraChannel(
        sendsVoice: sendsVoice, receivesVoice: receivesVoice, hertz: hertz)
      RTCAudioSession.sharedInstance().use(nil)
      AVCaptureDevice.useAccess()
      AVCaptureDevice.useDevices([])
      RTCAudioDeviceModule.useDevice { desk }
      Sora.shared.callbackQueue = AudioOperationsTests.queue
      Sora.shared.use(server.clients)
    }

    var url: URL { server.address }

    func end() async throws {
      Sora.shared.use(nil)
      RTCAudioDeviceModule.useDevice(nil)
      RTCAudioSession.sharedInstance().use(nil)
      AVCaptureDevice.useDevices(nil)
      AVCaptureDevice.useAccess()
      try await server.end()
    }
  }

  /// Runs a closure on the queue of the application's handlers.
  private func onQueue<Value: Sendable>(_ body: @escaping @Sendable () -> Value) async -> Value {
    await withCheckedContinuation { continuation in
      Self.queue.async { continuation.resume(returning: body()) }
    }
  }

  private func application() -> Handed<AudioOperations> { Handed(AudioOperations()) }

  private func hears(_ text: String, _ app: Handed<AudioOperations>) async throws {
    try await eventually(text) { await onQueue { app.value.happened.contains(text) } }
  }

  // SO1 to SO5: received streams are found by their connection and have volume and mute.
  @Test func aReceivedStreamIsFoundByItsConnectionMadeLouderAndMuted() async throws {
    let machine = try await Machine()
    let (app, url) = (application(), machine.url)
    await onQueue { app.value.connect(app.value.louder(url: url)) }
    try await hears("connected", app)
    try await hears("added other", app)
    try await hears("added mainStream", app)
    // A tone with a peak of 8231, times three.
    try await eventually("a loud tone") { machine.desk.peak > 20_000 }
    let streams = await onQueue { app.value.mediaChannel?.receiverStreams ?? [] }
    #expect(streams.map(\.streamId) == ["other"] && streams[0].remoteAudioVolume == 3)
    streams[0].remoteAudioVolume = 11
    #expect(streams[0].remoteAudioVolume == 10)
    streams[0].remoteAudioVolume = 1
    await onQueue { app.value.handleMuteReceiveStream(connectionId: "nobody") }
    #expect(streams[0].audioEnabled)
    await onQueue { app.value.handleMuteReceiveStream(connectionId: "other") }
    #expect(!streams[0].audioEnabled)
    try await eventually("silence") { machine.desk.peak == 0 }
    await onQueue { app.value.handleMuteReceiveStream(connectionId: "other") }
    try await eventually("the tone again") { (4_000...16_000).contains(machine.desk.peak) }
    await onQueue { app.value.mediaChannel }?.disconnect()
    try await machine.end()
  }

  // SO1: only the application mutes, even while the connection is silent.
  @Test func aVoiceIsEnabledWhileItIsSilent() async throws {
    let machine = try await Machine(hertz: 0)
    let (app, url) = (application(), machine.url)
    await onQueue { app.value.connect(app.value.louder(url: url)) }
    try await hears("connected", app)
    try await hears("added other", app)
    let channel = try #require(await onQueue { app.value.mediaChannel })
    try await eventually("audio") {
      await withCheckedContinuation { continuation in
        channel.getStats { report in
          let counts = report.statistics.values.filter { $0.type == "inbound-rtp" }
            .compactMap { ($0.values["packetsReceived"] as? NSNumber)?.intValue }
          continuation.resume(returning: (counts.max() ?? 0) > 30)
        }
      }
    }
    #expect(channel.receiverStreams.first?.audioEnabled == true)
    channel.disconnect()
    try await machine.end()
  }

  // SO1, SO2: a muted sender is silent and has no volume, while its microphone continues.
  @Test func mutingSentAudioLeavesTheMicrophoneRunning() async throws {
    let machine = try await Machine(Desk(hertz: 440), sendsVoice: false, receivesVoice: true)
    let (app, url) = (application(), machine.url)
    let peak = Mutex(0)
    let hearing = machine.server.peer.onMedia { media in
      guard case .audio(let block) = media.content else { return }
      let loudest = block.samples.map { abs(Int($0)) }.max() ?? 0
      peak.withLock { $0 = loudest }
    }
    await onQueue { app.value.connect(app.value.louder(url: url)) }
    try await hears("connected", app)
    try await eventually("the tone") { peak.withLock { $0 } > 200 }
    try await hears("added mainStream", app)
    let own = try #require(await onQueue { app.value.mediaChannel?.senderStream })
    #expect(own.streamId == "mainStream" && own.audioEnabled)
    own.remoteAudioVolume = 5
    #expect(own.remoteAudioVolume == nil)
    own.audioEnabled = false
    // An encoder's silence may not be exactly zero.
    try await eventually("silence") { peak.withLock { $0 } < 50 }
    #expect(machine.desk.count("stopUnit") == 0 && machine.desk.count("pauseRecording") == 0)
    own.audioEnabled = true
    try await eventually("the tone again") { peak.withLock { $0 } > 200 }
    withExtendedLifetime(hearing) {}
    await onQueue { app.value.mediaChannel }?.disconnect()
    try await machine.end()
  }

  // SO7, SO10: a mode set after the channel connected is not overwritten.
  @Test func aModeThatIsSetWhenConnectedHoldsAndOneFromBeforeDoesNot() async throws {
    let machine = try await Machine()
    let audio = AVAudioSession.sharedInstance()
    let (app, url) = (application(), machine.url)
    await onQueue {
      let config = app.value.louder(url: url)
      app.value.setMode(config)
      app.value.connect(config)
    }
    try await hears("mode set", app)
    #expect(audio.category == .playAndRecord && audio.mode == .default)
    #expect(
      audio.categoryOptions == [
        .defaultToSpeaker, .allowBluetooth, .allowBluetoothA2DP, .allowAirPlay,
      ])
    let operations = machine.desk.operations
    let call = operations.lastIndex(of: .setMode(.voiceChat))
    let chosen = operations.lastIndex(of: .setMode(.default))
    #expect(try #require(call) < #require(chosen))
    // Each of the other modes has its own default options.
    _ = Sora.shared.setAudioMode(.voiceChat(output: .speaker), options: [.mixWithOthers])
    #expect(audio.mode == .voiceChat)
    #expect(audio.categoryOptions == [.mixWithOthers, .defaultToSpeaker])
    #expect(machine.desk.operations.last == .overridePort(.speaker))
    _ = Sora.shared.setAudioMode(.videoChat)
    #expect(audio.mode == .videoChat && audio.category == .playAndRecord)
    #expect(audio.categoryOptions == [.allowBluetooth, .allowBluetoothA2DP, .allowAirPlay])
    _ = Sora.shared.setAudioMode(.default(category: .playback, output: .default))
    #expect(audio.mode == .default && audio.category == .playback)
    await onQueue { app.value.mediaChannel }?.disconnect()
    try await machine.end()
  }

  // SO8: a mode that the device rejects causes an error with a description.
  @Test func aModeThatTheDeviceRefusesIsAFailure() async throws {
    let machine = try await Machine()
    machine.desk.refuse("setMode")
    let (app, url) = (application(), machine.url)
    await onQueue {
      let config = app.value.louder(url: url)
      app.value.setMode(config)
      app.value.connect(config)
    }
    try await eventually("a refusal") {
      await onQueue { app.value.happened.contains { $0.hasPrefix("mode refused: ") } }
    }
    await onQueue { app.value.mediaChannel }?.disconnect()
    try await machine.end()
  }

  // SO12: receive-only channels do not request the microphone.
  @Test func onlySendersRequestTheMicrophone() async throws {
    for role in [Role.recvonly, .sendrecv] {
      let machine = try await Machine()
      let (app, url) = (application(), machine.url)
      await onQueue {
        var config = app.value.louder(url: url)
        config.role = role
        app.value.connect(config)
      }
      try await hears("connected", app)
      try await eventually("the tone") { machine.desk.peak > 4_000 }
      #expect(machine.desk.operations.contains(.requestPermission) == (role == .sendrecv))
      await onQueue { app.value.mediaChannel }?.disconnect()
      try await machine.end()
    }
  }

  // SO13 to SO17: features in the SDK's other documentation.
  @Test func aChannelReportsItsEventsAndItsStatistics() async throws {
    let machine = try await Machine(Desk(hertz: 440), receivesVoice: true)
    (Sora.shared.usesManualAudio, Sora.shared.audioEnabled) = (true, false)
    let (app, url) = (application(), machine.url)
    await onQueue {
      let config = app.value.louder(url: url)
      config.mediaChannelHandlers.onReceiveSignaling = { text in
        if text.contains("offer") { app.value.happened.append("offer") }
      }
      config.mediaChannelHandlers.onDisconnect = { event in
        if case .ok(let code, let reason) = event {
          app.value.happened.append("over \(code) \(reason)")
        }
      }
      app.value.connect(config)
    }
    try await hears("connected", app)
    try await hears("offer", app)
    try await hears("added mainStream", app)
    #expect(machine.desk.count("startUnit") == 0)
    Sora.shared.audioEnabled = true
    #expect(machine.desk.count("startUnit") == 1)
    let channel = try #require(await onQueue { app.value.mediaChannel })
    try await channel.setAudioHardMute(true)
    #expect(machine.desk.operations.last == .pauseRecording)
    try await channel.setAudioHardMute(false)
    #expect(machine.desk.operations.last == .resumeRecording)
    // Without a camera, the local pictures are first black, and then come only from the
    // application.
    let (own, view) = (try #require(channel.senderStream), RTCMTLVideoView())
    own.setVideoRenderer(view)
    let pixels = CVPixelBuffer(
      width: 64, height: 48, pixelFormat: kCVPixelFormatType_32BGRA,
      bytes: [UInt8](repeating: 128, count: 64 * 48 * 4))
    try await eventually("a black picture") { view.videoFrame?.width == 640 }
    var time: Int64 = 0
    try await eventually("the application's picture") {
      time += 66_000_000
      own.send(videoFrame: RTCVideoFrame(pixelBuffer: pixels, rotation: ._0, timeStampNs: time))
      return view.videoFrame?.width == 64
    }
    let types = await withCheckedContinuation { continuation in
      channel.getStats { report in
        continuation.resume(returning: Set(report.statistics.values.map(\.type)))
      }
    }
    #expect(types.isSuperset(of: ["inbound-rtp", "outbound-rtp", "candidate-pair"]))
    machine.server.close(code: 4_490, reason: "moved by its owner")
    try await hears("over 4490 moved by its owner", app)
    try await machine.end()
  }

  @Test func aServerThatIsNotThereIsAnErrorOfConnecting() async throws {
    let machine = try await Machine()
    let app = application()
    let url = try #require(URL(string: "ws://127.0.0.1:1/signaling"))
    await onQueue {
      let config = app.value.louder(url: url)
      config.mediaChannelHandlers.onConnect = { app.value.happened.append("told \($0 != nil)") }
      app.value.connect(config)
    }
    try await hears("told true", app)
    #expect(await onQueue { app.value.happened.first?.hasPrefix("failed: ") } == true)
    #expect(await onQueue { app.value.mediaChannel } == nil)
    try await machine.end()
  }

  @Test @MainActor func anApplicationOnTheMainActorIsCalledThere() async throws {
    let machine = try await Machine()
    Sora.shared.callbackQueue = .main
    let screen = AudioScreen()
    screen.connect(
      Configuration(
        url: machine.url, channelId: "channel", role: .recvonly, multistreamEnabled: true))
    try await eventually("a channel") { screen.mediaChannel != nil && screen.names == ["other"] }
    screen.mediaChannel?.disconnect()
    try await machine.end()
  }
}
