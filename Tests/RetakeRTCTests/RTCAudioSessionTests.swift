import AudioSession
import Live
import RoomServers
import Testing

@testable import RetakeRTC

/// Tests that use the process's devices and its audio session, one at a time.
@Suite(.timeLimit(.minutes(10)), .serialized, .machineAlone) enum SharedDevices {}

extension SharedDevices {
  @Suite struct RTCAudioSessionTests {
    private final class Listener: RTCAudioSessionDelegate {
      let told = Told()

      func audioSession(_ audioSession: RTCAudioSession, willSetActive active: Bool) {
        told.note("will \(active)")
      }
      func audioSession(_ audioSession: RTCAudioSession, didSetActive active: Bool) {
        told.note("did \(active)")
      }
      func audioSession(
        _ audioSession: RTCAudioSession, failedToSetActive active: Bool, error: any Error
      ) { told.note("failed \((error as NSError).code)") }
      func audioSessionDidBeginInterruption(_ session: RTCAudioSession) { told.note("interrupted") }
      func audioSessionDidEndInterruption(
        _ session: RTCAudioSession, shouldResumeSession: Bool
      ) { told.note("resumes \(shouldResumeSession)") }
      func audioSessionDidChangeRoute(
        _ session: RTCAudioSession, reason: AVAudioSession.RouteChangeReason,
        previousRoute: AVAudioSessionRouteDescription
      ) { told.note("route \(reason)") }
    }

    /// Makes the shared session use a simulated device while the closure runs.
    private func with(
      _ body: (RTCAudioSession, ManualAudioDevice, AudioSession) async throws -> Void
    ) async throws {
      let device = ManualAudioDevice()
      let session = try LoopbackPair.session()
      let native = try session.makeAudioSession(device: device)
      let shared = RTCAudioSession.sharedInstance()
      shared.use(native)
      defer { shared.use(nil) }
      try await body(shared, device, native)
    }

    /// Runs a closure under the lock, which belongs to a thread: after a suspension, a task may
    /// continue in another thread.
    private func locked(_ session: RTCAudioSession, _ body: () throws -> Void) rethrows {
      session.lockForConfiguration()
      defer { session.unlockForConfiguration() }
      try body()
    }

    @Test func settingsNeedTheLockAndReachTheDevice() async throws {
      try await with { shared, device, _ in
        let error = #expect(throws: RTCAudioSessionError.self) {
          try shared.setCategory(.playAndRecord)
        }
        #expect(error?.errorCode == kRTCAudioSessionErrorLockRequired)
        shared.lockForConfiguration()
        #expect(shared.isLocked)
        try shared.setCategory(.playAndRecord, with: [.allowBluetooth, .mixWithOthers])
        try shared.setMode(AVAudioSession.Mode.videoChat.rawValue)
        try shared.overrideOutputAudioPort(.speaker)
        shared.unlockForConfiguration()
        #expect(!shared.isLocked)
        #expect(shared.category == "AVAudioSessionCategoryPlayAndRecord")
        #expect(shared.mode == AVAudioSession.Mode.videoChat.rawValue)
        #expect(shared.categoryOptions == [.allowBluetooth, .mixWithOthers])
        #expect(device.operations.contains(.setMode(.videoChat)))
        #expect(device.operations.contains(.overridePort(.speaker)))
      }
    }

    @Test func aConfigurationIsSetAtOnceAndARefusalIsAnError() async throws {
      try await with { shared, device, _ in
        let listener = Listener()
        shared.add(listener)
        defer { shared.remove(listener) }
        let configuration = RTCAudioSessionConfiguration.webRTC()
        configuration.mode = AVAudioSession.Mode.voiceChat.rawValue
        configuration.sampleRate = 16_000
        try locked(shared) { try shared.setConfiguration(configuration, active: true) }
        await listener.told.wait(for: "did true")
        let places = ["will true", "did true"].compactMap { listener.told.place(of: $0) }
        #expect(places.count == 2 && places == places.sorted())
        #expect(shared.isActive)
        try locked(shared) { try shared.setActive(false) }
        await listener.told.wait(for: "did false")
        device.behaviour.failures = ["setActive": 7]
        let error = #expect(throws: RTCAudioSessionError.self) {
          try locked(shared) { try shared.setActive(true) }
        }
        #expect(error?.errorCode == kRTCAudioSessionErrorConfiguration)
        await listener.told.wait(for: "failed 7")
      }
    }

    @Test func externalEventsAreReported() async throws {
      try await with { shared, _, native in
        let listener = Listener()
        shared.add(listener)
        defer { shared.remove(listener) }
        shared.useManualAudio = true
        shared.isAudioEnabled = true
        #expect(shared.useManualAudio && shared.isAudioEnabled)
        shared.audioSessionDidActivate(AVAudioSession.sharedInstance())
        #expect(shared.isActive)
        native.handle(.interruptionBegan)
        native.handle(.interruptionEnded(shouldResume: true))
        native.handle(.routeChanged(.oldDeviceUnavailable, AudioRoute(output: "speaker")))
        await listener.told.wait(for: "route oldDeviceUnavailable")
        let log = listener.told.log
        #expect(log.contains("interrupted") && log.contains("resumes true"))
      }
    }

    @Test func withoutADeviceSettingsNeedTheLockAndAreKept() throws {
      let shared = RTCAudioSession.sharedInstance()
      shared.use(nil)
      defer { shared.use(nil) }
      #expect(throws: RTCAudioSessionError.self) { try shared.setMode(.videoChat) }
      try locked(shared) {
        #expect(shared.isLocked)
        try shared.setMode(.videoChat)
      }
      #expect(shared.mode == AVAudioSession.Mode.videoChat.rawValue)
      #expect(!shared.isActive && !shared.isLocked)
      // A device added later gets the mode too.
      let device = ManualAudioDevice()
      shared.join(try LoopbackPair.session().makeAudioSession(device: device))
      #expect(device.operations.contains(.setMode(.videoChat)))
    }
  }
}
