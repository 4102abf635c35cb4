import AudioSession
import Live
import Media
import Retake
import RetakeTesting
import Synchronization
import Testing

@testable import RetakeRTC

extension SharedDevices {
  /// Tests default factories, which use the machine's devices; the test simulates the devices.
  @Suite struct MachineDeviceTests {
    /// The application's single queue, like a phone's main queue.
    private static let queue = DispatchQueue(label: "application")

    /// Runs a closure on the application's queue.
    private func onQueue<Value: Sendable>(
      _ body: @escaping @Sendable () -> Value
    ) async -> Value {
      await withCheckedContinuation { continuation in
        Self.queue.async { continuation.resume(returning: body()) }
      }
    }

    /// Checks a condition on the application's queue until it holds.
    private func wait(until holds: @escaping @Sendable () -> Bool) async {
      while !(await onQueue(holds)) {
        await withCheckedContinuation { continuation in
          Self.queue.asyncAfter(deadline: .now() + .milliseconds(20)) { continuation.resume() }
        }
      }
    }

    private func inFolder(_ body: (String) async throws -> Void) async throws {
      let folder = FileManager.default.temporaryDirectory.path + "/rtc-\(UUID().uuidString)"
      try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
      defer { try? FileManager.default.removeItem(atPath: folder) }
      try await body(folder)
    }

    @Test func roomsThatBeginAtOnceShareASessionAndItsAudio() async throws {
      try await inFolder { folder in
        let machine = MachineSession()
        try machine.record(to: folder + "/rooms.take")
        let sessions = try await withThrowingTaskGroup(of: ObjectIdentifier.self) { group in
          for _ in 0..<8 { group.addTask { ObjectIdentifier(try machine.begin().session) } }
          return try await group.reduce(into: Set()) { $0.insert($1) }
        }
        #expect(sessions.count == 1)
        try await machine.finish()
        let take = try Take.open(folder + "/rooms.take")
        let kinds = try take.query("SELECT kind FROM actor", as: String.self).all()
        #expect(kinds == ["audio session"])
      }
    }

    /// Makes a call between two ordinary applications; the first one publishes.
    private func connected(
      _ caller: RTCPeerConnectionFactory, _ callee: RTCPeerConnectionFactory
    ) async -> (Handed<OrdinaryClient>, Handed<OrdinaryClient>) {
      caller.callbackQueue = Self.queue
      callee.callbackQueue = Self.queue
      let clients = await onQueue {
        let clients = (OrdinaryClient(factory: caller), OrdinaryClient(factory: callee))
        clients.0.open()
        clients.1.open()
        clients.0.publish()
        clients.0.call(clients.1)
        return (Handed(clients.0), Handed(clients.1))
      }
      await wait { clients.0.value.isConnected && clients.1.value.isConnected }
      return clients
    }

    private func end(_ clients: (Handed<OrdinaryClient>, Handed<OrdinaryClient>)) async {
      await onQueue {
        for client in [clients.0.value, clients.1.value] {
          client.peerConn?.close()
          client.other = nil
        }
      }
    }

    // GU13: the guide's five steps, and nothing else, connect microphone and camera.
    @Test func theStepsOfTheGuideSendMicrophoneAndCamera() async throws {
      try await inFolder { folder in
        let machines = TwoMachines()
        defer { machines.end() }
        AVCaptureDevice.useDevices([
          AVCaptureDevice(
            uniqueID: "pattern", localizedName: "a pattern", position: .front,
            capturer: PatternVideoCapturer(supportedFormats: [
              VideoFormat(width: 160, height: 120, framesPerSecond: 30)
            ]))
        ])
        let path = folder + "/call.take"
        let caller = try RTCPeerConnectionFactory(recordingTo: path)
        let callee = RTCPeerConnectionFactory()
        let clients = await connected(caller, callee)
        #expect(await machines.callee.becomes(isLoud: true))
        await wait { clients.1.value.frames > 3 }
        #expect(await onQueue { clients.1.value.size } == CGSize(width: 160, height: 120))
        #expect(await onQueue { clients.1.value.errors + clients.0.value.errors } == [])
        let sources = await onQueue { clients.0.value.stream.map { $0.audioTracks.map(\.source) } }
        #expect(sources?.first?.state == .live)
        await end(clients)
        try await caller.finish()
        try await callee.finish()
        let take = try Take.open(path)
        let routes = try take.query(
          "SELECT to_state FROM state WHERE machine = 'audio-route'", as: String.self
        ).all()
        #expect(routes.contains { $0.contains("tone of 440 Hz") }, "\(routes)")
        let notes = try take.query(
          "SELECT arguments FROM call_request WHERE name = 'noteCapture'", as: String.self
        ).all()
        #expect(notes.contains { $0.contains(#""device":"pattern""#) }, "\(notes)")
        // The application's signaling is recorded, once, without any action on its part.
        let signaled = try take.query(
          "SELECT direction || ' ' || type FROM signaling", as: String.self
        ).all()
        #expect(signaled.count { $0 == "out offer" } == 1, "\(signaled)")
        #expect(signaled.count { $0 == "in answer" } == 1 && signaled.contains("out candidate"))
        #expect(try await take.replay().isIdentical)
      }
    }

    // GU13 without devices: silence and black pictures are sent, and the take records the reason.
    @Test func withoutDevicesTheTakeRecordsIt() async throws {
      try await inFolder { folder in
        let machines = TwoMachines()
        defer { machines.end() }
        RTCAudioDeviceModule.useDevice { PacedAudioDevice.silence() }
        let path = folder + "/call.take"
        let caller = try RTCPeerConnectionFactory(recordingTo: path)
        let callee = RTCPeerConnectionFactory()
        let clients = await connected(caller, callee)
        await wait { clients.1.value.frames > 1 }
        let luma = await onQueue { clients.1.value.lastFrame?.buffer.toI420().dataY }
        #expect(luma?.allSatisfy { $0 < 24 } == true)
        await end(clients)
        try await caller.finish()
        try await callee.finish()
        let take = try Take.open(path)
        let routes = try take.query(
          "SELECT to_state FROM state WHERE machine = 'audio-route'", as: String.self
        ).all()
        #expect(routes.contains { $0.contains("silence") }, "\(routes)")
        let notes = try take.query(
          "SELECT arguments FROM call_request WHERE name = 'noteCapture'", as: String.self
        ).all()
        #expect(notes.contains { $0.contains("no camera: black") }, "\(notes)")
      }
    }

    // GU22: a track removed from its stream is no longer heard, and the microphone continues.
    @Test func aRemovedTrackLeavesTheMicrophoneRunning() async throws {
      let machines = TwoMachines()
      defer { machines.end() }
      let factories = (RTCPeerConnectionFactory(), RTCPeerConnectionFactory())
      let clients = await connected(factories.0, factories.1)
      #expect(await machines.callee.becomes(isLoud: true))
      let track = await onQueue { () -> RTCAudioTrack? in
        let stream = clients.0.value.stream
        guard let track = stream?.audioTracks.first else { return nil }
        stream?.removeAudioTrack(track)
        return track
      }
      #expect(await machines.callee.becomes(isLoud: false))
      #expect(machines.caller.count("startUnit") == 1)
      #expect(
        machines.caller.count("stopUnit") == 0 && machines.caller.count("pauseRecording") == 0)
      // The same track is added again once both sides have negotiated; the microphone never
      // stopped.
      if let track { await onQueue { clients.0.value.stream?.addAudioTrack(track) } }
      await onQueue { clients.0.value.call(clients.1.value) }
      #expect(await onQueue { clients.0.value.errors + clients.1.value.errors } == [])
      #expect(await machines.callee.becomes(isLoud: true))
      #expect(machines.caller.count("startUnit") == 1 && machines.caller.count("stopUnit") == 0)
      // On the receiving side, a volume of 0 mutes the audio and the call continues; a microphone
      // has no volume.
      await onQueue { clients.0.value.stream?.audioTracks.first?.source.volume = 0 }
      #expect(await onQueue { clients.0.value.stream?.audioTracks.first?.source.volume } == 1)
      await onQueue { clients.1.value.received?.audioTracks.first?.source.volume = 0 }
      #expect(await machines.callee.becomes(isLoud: false))
      await end(clients)
      #expect(machines.caller.count("stopUnit") == 1)
      try await factories.0.finish()
      try await factories.1.finish()
    }

    // PX6: manual audio, set before anything else exists.
    @Test func manualAudioThatIsSetFirstAppliesToALaterFactory() async throws {
      let machines = TwoMachines()
      defer { machines.end() }
      let session = RTCAudioSession.sharedInstance()
      session.useManualAudio = true
      #expect(session.useManualAudio && !session.isAudioEnabled)
      let factories = (RTCPeerConnectionFactory(), RTCPeerConnectionFactory())
      let clients = await connected(factories.0, factories.1)
      await wait { clients.1.value.received != nil }
      for device in [machines.caller, machines.callee] {
        #expect(device.count("initializeUnit") == 0 && device.count("startUnit") == 0)
      }
      #expect(session.useManualAudio)
      session.isAudioEnabled = true
      #expect(await machines.callee.becomes(isLoud: true))
      #expect(machines.caller.count("startUnit") == 1)
      session.isAudioEnabled = false
      #expect(machines.caller.count("stopUnit") == 1)
      await end(clients)
      try await factories.0.finish()
      try await factories.1.finish()
    }

    // PX2, PX10: the fork's extension sends a broadcast, and the audio unit is never started.
    @Test func aBroadcastIsReceivedWithAudioAndVideo() async throws {
      let machines = TwoMachines()
      defer { machines.end() }
      let handler = await onQueue {
        let handler = SampleHandler()
        handler.broadcastStarted(withSetupInfo: nil)
        handler.client?.factory.callbackQueue = Self.queue
        return Handed(handler)
      }
      // The remote end is an ordinary call, whose device may run.
      var options = Session.Options()
      options.statsInterval = nil
      let session = try Session(options)
      let ear = HummingDevice(hertz: nil)
      let module = RTCAudioDeviceModule(
        audioSession: try session.makeAudioSession(device: ear))
      let callee = RTCPeerConnectionFactory(session: session, audioDeviceModule: module)
      callee.callbackQueue = Self.queue
      let viewer = await onQueue {
        let viewer = OrdinaryClient(factory: callee)
        viewer.open()
        handler.value.client?.call(viewer)
        return Handed(viewer)
      }
      let feeding = Task {
        var number = 0
        while !Task.isCancelled {
          let piece = number
          await onQueue { Self.feed(handler.value, piece) }
          number += 1
          await withCheckedContinuation { continuation in
            Self.queue.asyncAfter(deadline: .now() + .milliseconds(20)) { continuation.resume() }
          }
        }
      }
      #expect(await ear.becomes(isLoud: true))
      await wait { viewer.value.frames > 1 }
      feeding.cancel()
      await feeding.value
      #expect(machines.caller.count("initializeUnit") == 0)
      #expect(handler.value.module?.audioSession?.counters.deliveredFrames ?? 0 > 4_410)
      #expect(
        machines.caller.operations.contains(.setProcessing(.custom(kAudioUnitSubType_RemoteIO))))
      // The handler ends the broadcast by itself, with a message for the user.
      let reason = Mutex("")
      await onQueue {
        handler.value.onFinish = { error in reason.withLock { $0 = error.localizedDescription } }
        handler.value.finishBroadcastWithError(
          NSError(domain: "sample", code: 1, userInfo: [NSLocalizedDescriptionKey: "over"]))
        handler.value.broadcastFinished()
        viewer.value.peerConn?.close()
        handler.value.client?.other = nil
        viewer.value.other = nil
      }
      #expect(reason.withLock { $0 } == "over")
      try await handler.value.client?.factory.finish()
      try await session.finish()
    }

    /// Feeds 20 ms of a square wave at 44.1 kHz, and with every fifth call a picture.
    private static func feed(_ handler: SampleHandler, _ piece: Int) {
      let samples = (0..<882).flatMap { index -> [Int16] in
        let value = Int16(((piece * 882 + index) / 50) % 2 == 0 ? 9_000 : -9_000)
        return [value, value]
      }
      handler.processSampleBuffer(
        CMSampleBuffer(
          samples: samples, sampleRate: 44_100, channels: 2,
          presentationTimeNs: Int64(piece) * 20_000_000), with: .audioMic)
      guard piece % 5 == 0 else { return }
      let grey = [UInt8](repeating: 128, count: 64 * 48 * 4)
      let pixels = CVPixelBuffer(
        width: 64, height: 48, pixelFormat: kCVPixelFormatType_32BGRA, bytes: grey)
      handler.processSampleBuffer(
        CMSampleBuffer(imageBuffer: pixels, presentationTimeNs: Int64(piece) * 20_000_000),
        with: .video)
    }

    // GU20: AVAudioSession is used directly, before and while there is a device.
    @Test func theAudioSessionOfThePlatformIsUsedDirectly() async throws {
      let machines = TwoMachines()
      defer { machines.end() }
      let audio = AVAudioSession.sharedInstance()
      try audio.setCategory(.playAndRecord, mode: .videoChat, options: [.allowBluetooth])
      try audio.setPreferredIOBufferDuration(0.02)
      #expect(audio.category == .playAndRecord && audio.mode == .videoChat)
      #expect(audio.currentRoute.inputs.isEmpty && audio.preferredIOBufferDuration == 0.02)
      let factories = (RTCPeerConnectionFactory(), RTCPeerConnectionFactory())
      let clients = await connected(factories.0, factories.1)
      let device = machines.caller
      #expect(device.operations.contains(.setMode(.videoChat)))
      #expect(device.operations.contains(.setPreferredIOBuffer(milliseconds: 20)))
      try audio.overrideOutputAudioPort(.speaker)
      #expect(device.operations.contains(.overridePort(.speaker)))
      let session = RTCAudioSession.sharedInstance()
      #expect(session.currentRoute.outputs.map(\.portType) == [.builtInSpeaker])
      #expect(audio.currentRoute.inputs.map(\.portName) == ["silence"])
      #expect(session.sampleRate == 48_000 && session.inputNumberOfChannels == 1)
      #expect(session.inputAvailable && session.inputGain == 1 && !session.isInputGainSettable)
      #expect(throws: RTCAudioSessionError.self) { try audio.setInputGain(0.5) }
      #expect(session.outputVolume == 1 && session.inputLatency == session.ioBufferDuration)
      #expect(session.session === audio && session.preferredSampleRate == 48_000)
      try audio.setActive(true, options: .notifyOthersOnDeactivation)
      #expect(session.isActive)
      try audio.setActive(false, options: .notifyOthersOnDeactivation)
      await end(clients)
      try await factories.0.finish()
      try await factories.1.finish()
    }

    // KA2: the user's permissions for cameras and the microphone.
    @Test func withoutPermissionNothingIsRecordedOrCaptured() async throws {
      let machines = TwoMachines()
      defer { machines.end() }
      let asked = Mutex<[AVMediaType]>([])
      AVCaptureDevice.useAccess { mediaType in
        asked.withLock { $0.append(mediaType) }
        return false
      }
      #expect(AVCaptureDevice.authorizationStatus(for: .video) == .notDetermined)
      #expect(AVAudioSession.sharedInstance().recordPermission == .undetermined)
      let answer = await AVCaptureDevice.requestAccess(for: .video)
      let told = Told()
      AVCaptureDevice.requestAccess(for: .video) { told.note("\($0)") }
      await told.wait(for: "false")
      #expect(!answer && AVCaptureDevice.authorizationStatus(for: .video) == .denied)
      #expect(asked.withLock { $0 } == [.video])
      #expect(await startsCamera()?.contains("refused") == true)
      // The call that sends requests the microphone, which stays silent.
      let factories = (RTCPeerConnectionFactory(), RTCPeerConnectionFactory())
      let clients = await connected(factories.0, factories.1)
      await wait { clients.1.value.received != nil }
      #expect(asked.withLock { $0 } == [.video, .audio])
      #expect(AVCaptureDevice.authorizationStatus(for: .audio) == .denied)
      #expect(machines.caller.count("startUnit") == 0)
      await end(clients)
      try await factories.0.finish()
      try await factories.1.finish()
    }

    // GU2: an application without usage descriptions is refused before the user is asked.
    @Test func withoutUsageDescriptionsCameraAndMicrophoneAreRefused() async throws {
      let machines = TwoMachines()
      defer { machines.end() }
      let asked = Mutex(0)
      AVCaptureDevice.useAccess(infoDictionary: ["CFBundleName": "App"]) { _ in
        asked.withLock { $0 += 1 }
        return true
      }
      #expect(AVCaptureDevice.authorizationStatus(for: .video) == .restricted)
      #expect(await startsCamera()?.contains("NSCameraUsageDescription") == true)
      let factories = (RTCPeerConnectionFactory(), RTCPeerConnectionFactory())
      let clients = await connected(factories.0, factories.1)
      #expect(machines.caller.count("startUnit") == 0 && asked.withLock { $0 } == 0)
      await end(clients)
      try await factories.0.finish()
      try await factories.1.finish()
      AVCaptureDevice.useAccess(infoDictionary: [
        "NSCameraUsageDescription": "to be seen", "NSMicrophoneUsageDescription": "to be heard",
      ])
      #expect(await startsCamera() == nil)
      #expect(AVCaptureDevice.authorizationStatus(for: .video) == .authorized)
    }

    /// Returns why a camera does not start; nil if it does.
    private func startsCamera() async -> String? {
      let source = RTCPeerConnectionFactory().videoSource()
      let device = AVCaptureDevice(
        uniqueID: "p", localizedName: "p", position: .front, capturer: PatternVideoCapturer())
      let capturer = RTCCameraVideoCapturer(delegate: source)
      guard let format = device.formats.first else { return "no format" }
      let answer = Mutex<String?>(nil)
      let told = Told()
      capturer.startCapture(with: device, format: format, fps: 30) { error in
        answer.withLock { $0 = error?.localizedDescription }
        told.note("answer")
      }
      await told.wait(for: "answer")
      capturer.stopCapture()
      return answer.withLock { $0 }
    }
  }
}
