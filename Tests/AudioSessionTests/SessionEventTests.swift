import AudioSession
import Lab
import Testing
import Wire

/// Tests a session's external events, and the order in which they are handled.
struct SessionEventTests {
  private func running() -> VirtualAudioSession {
    let session = VirtualAudioSession()
    session.call(.openConnection(1, sends: true, receives: true))
    session.clear()
    return session
  }

  @Test func aCallBeginsInTheDocumentedOrder() {
    let session = VirtualAudioSession()
    session.call(.openConnection(1, sends: true, receives: true))
    #expect(
      session.log.filter { !$0.hasPrefix("setPreferred") } == [
        "didStartPlayOrRecord", "setCategory", "setMode", "requestPermission",
        "audio-permission granted", "setIOType", "setProcessing", "willSetActive", "setActive",
        "audio-session active", "didSetActive", "initializeUnit", "audio-unit initialized",
        "startUnit", "audio-unit started", "audio-recording recording", "audio-playout playing",
      ])
  }

  @Test(arguments: [true, false])
  func anInterruptionStopsTheDeviceUntilItEnds(shouldResume: Bool) {
    let session = running()
    session.handle(.interruptionBegan)
    #expect(
      session.log == [
        "audio-session inactive", "audio-interruption interrupted", "didBeginInterruption",
        "stopUnit", "audio-unit initialized", "audio-recording stopped", "audio-playout stopped",
      ])
    session.clear()
    // Other changes that happen meanwhile are deferred.
    session.call(.useManualAudio(true))
    session.call(.setAudioEnabled(true))
    #expect(session.operations.isEmpty)
    session.clear()
    session.handle(.interruptionEnded(shouldResume: shouldResume))
    #expect(
      session.log == [
        "audio-interruption none", "willSetActive", "setActive", "audio-session active",
        "didSetActive", "didEndInterruption", "startUnit", "audio-unit started",
        "audio-recording recording", "audio-playout playing",
      ])
    #expect(session.events.contains(.didEndInterruption(shouldResumeSession: shouldResume)))
  }

  @Test func activationEndsAnOpenInterruption() {
    let session = running()
    session.handle(.interruptionBegan)
    session.clear()
    #expect(session.locked(.setActive(true)) == .done)
    #expect(
      session.events.prefix(2) == [
        .willSetActive(true), .didEndInterruption(shouldResumeSession: true),
      ])
    #expect(session.snapshot.unit == .started && session.snapshot.activationCount == 2)
  }

  @Test func activationsAreCounted() {
    let session = VirtualAudioSession()
    session.call(.lock)
    for _ in 0..<2 { session.call(.setActive(true)) }
    #expect(session.operations == [.setActive(true)] && session.snapshot.activationCount == 2)
    session.call(.setActive(false))
    #expect(session.operations.count == 1 && session.snapshot.isActive)
    session.call(.setActive(false))
    #expect(session.operations.last == .setActive(false) && !session.snapshot.isActive)
    session.call(.setActive(false))
    #expect(session.snapshot.activationCount == 0)
  }

  @Test func aRefusedActivationIsReported() {
    let session = VirtualAudioSession()
    session.failures = ["setActive": 561]
    let reply = session.locked(.setActive(true))
    #expect(reply == .failed(.refused(.setActive(true), code: 561)))
    #expect(session.events == [.willSetActive(true), .failedToSetActive(true, code: 561)])
    #expect(session.snapshot.activationCount == 0 && !session.snapshot.isActive)
  }

  /// If the system has already activated the audio session, activating it again requests nothing
  /// from the device.
  @Test func anExternalActivationIsRecognized() {
    let session = VirtualAudioSession()
    session.call(.useManualAudio(true))
    session.call(.openConnection(1, sends: true, receives: true))
    session.clear()
    session.handle(.externallyActivated)
    #expect(session.snapshot.isActive && session.snapshot.unit == .uninitialized)
    session.call(.setAudioEnabled(true))
    #expect(!session.operations.contains(.setActive(true)))
    #expect(session.snapshot.unit == .started && session.snapshot.activationCount == 2)
    session.handle(.externallyDeactivated)
    #expect(!session.snapshot.isActive && session.snapshot.activationCount == 1)
  }

  @Test func aRouteWithOtherFormatsRecreatesTheDevice() {
    let session = running()
    let route = AudioRoute(
      input: "headset", output: "headset", captureFormat: AudioFormat(sampleRate: 16_000),
      renderFormat: AudioFormat(sampleRate: 16_000))
    session.handle(.routeChanged(.newDeviceAvailable, route))
    #expect(
      session.operations == [
        .stopUnit, .uninitializeUnit,
        .initializeUnit(capture: route.captureFormat, render: route.renderFormat), .startUnit,
      ])
    #expect(
      session.events.first
        == .didChangeRoute(.newDeviceAvailable, previous: AudioRoute(), current: route))
    #expect(session.snapshot.activationCount == 1 && session.snapshot.isActive)
    session.clear()
    var renamed = route
    renamed.output = "speaker"
    session.handle(.routeChanged(.override, renamed))
    #expect(session.operations.isEmpty && session.states.count == 1)
  }

  @Test func aRouteChangeDuringAnInterruptionIsAppliedAfterIt() {
    let session = running()
    session.handle(.interruptionBegan)
    let route = AudioRoute(captureFormat: AudioFormat(sampleRate: 44_100))
    session.handle(.routeChanged(.oldDeviceUnavailable, route))
    session.clear()
    session.handle(.interruptionEnded(shouldResume: true))
    #expect(
      session.operations.map(\.name).suffix(3) == [
        "uninitializeUnit", "initializeUnit", "startUnit",
      ])
    #expect(session.snapshot.unit == .started)
  }

  @Test func aTerminatedMediaServerReleasesTheDevice() {
    let session = running()
    session.handle(.mediaServerTerminated)
    #expect(session.events.contains(.mediaServerTerminated))
    #expect(session.snapshot.unit == .uninitialized && !session.snapshot.isActive)
    session.call(.openConnection(2, sends: false, receives: true))
    #expect(session.operations.isEmpty)
    session.clear()
    session.handle(.mediaServerReset)
    #expect(session.events.contains(.mediaServerReset) && session.snapshot.unit == .started)
    // The restarted media server has lost the earlier settings, so the session applies them again.
    #expect(session.operations.contains(.setPreferredSampleRate(48_000)))
  }

  @Test func aHardMuteStopsTheMicrophoneAndIsIdempotent() {
    let session = running()
    for _ in 0..<2 { #expect(session.call(.pauseRecording) == .done) }
    #expect(session.operations == [.pauseRecording])
    #expect(session.snapshot.recording == "paused" && session.snapshot.playout == "playing")
    #expect(
      session.deliver(PCMChunk(samples: Array(repeating: 1, count: 480)), from: .unit)
        == .failure(.recordingPaused))
    for _ in 0..<2 { #expect(session.call(.resumeRecording) == .done) }
    #expect(session.operations == [.pauseRecording, .resumeRecording])
    #expect(session.snapshot.recording == "recording")
    session.failures = ["pauseRecording": 1]
    #expect(session.call(.pauseRecording) == .failed(.refused(.pauseRecording, code: 1)))
    #expect(session.snapshot.recording == "recording")
  }
}
