import AudioSession
import Lab
import Testing
import Wire

/// Tests when the device is initialized, when it runs, and when it is released.
struct AudioUnitTests {
  /// The changes expected in each state: first whether the device may be used, then whether it
  /// runs.
  private static let table: [(AudioUnitState, Bool, Bool, [AudioUnitChange])] = [
    (.uninitialized, false, false, []), (.uninitialized, false, true, []),
    (.uninitialized, true, false, [.initialize]),
    (.uninitialized, true, true, [.initialize, .start]),
    (.initialized, false, false, [.uninitialize]), (.initialized, false, true, [.uninitialize]),
    (.initialized, true, false, []), (.initialized, true, true, [.start]),
    (.started, false, false, [.stop, .uninitialize]),
    (.started, false, true, [.stop, .uninitialize]),
    (.started, true, false, [.stop]), (.started, true, true, []),
  ]

  @Test func aDeviceFollowsItsConditions() {
    for (state, may, runs, changes) in Self.table {
      for (isPlaying, isRecording) in runs
        ? [(true, false), (false, true), (true, true)] : [(false, false)]
      {
        var conditions = AudioUnitConditions()
        (conditions.isNeeded, conditions.canPlayOrRecord) = (true, may)
        (conditions.isPlaying, conditions.isRecording) = (isPlaying, isRecording)
        #expect(state.changes(conditions) == changes, "\(state) \(conditions)")
        conditions.isNeeded = false
        #expect(state.changes(conditions).contains(.start) == false)
        conditions.isNeeded = true
        conditions.isInterrupted = true
        #expect(state.changes(conditions).isEmpty, "an interruption ends first")
        (conditions.isInterrupted, conditions.hasServer) = (false, false)
        #expect(state.changes(conditions).isEmpty)
      }
    }
  }

  @Test func withoutManualAudioAConnectionStartsTheDevice() {
    let session = VirtualAudioSession()
    session.call(.openConnection(1, sends: false, receives: true))
    #expect(session.snapshot.unit == .started && session.snapshot.activationCount == 1)
    session.call(.openConnection(2, sends: false, receives: true))
    session.call(.closeConnection(1))
    #expect(session.snapshot.unit == .started)
    session.clear()
    session.call(.closeConnection(2))
    #expect(session.operations == [.stopUnit, .uninitializeUnit, .setActive(false)])
    #expect(session.snapshot.unit == .uninitialized && session.snapshot.activationCount == 0)
    #expect(session.events.contains(.didStopPlayOrRecord))
  }

  @Test func manualAudioWaitsUntilItIsEnabled() {
    let session = VirtualAudioSession()
    session.call(.useManualAudio(true))
    #expect(session.events == [.didChangeCanPlayOrRecord(false)])
    session.call(.openConnection(1, sends: true, receives: true))
    #expect(session.snapshot.unit == .uninitialized)
    session.call(.setAudioEnabled(true))
    #expect(session.snapshot.unit == .started)
    session.call(.setAudioEnabled(false))
    #expect(session.snapshot.unit == .uninitialized)
    #expect(session.states.suffix(6).contains("audio-recording: recording -> stopped"))
    #expect(session.states.suffix(6).contains("audio-playout: playing -> stopped"))
  }

  /// The enable flag has no effect unless audio is manual.
  @Test func theEnableFlagCountsWithManualAudioOnly() {
    let session = VirtualAudioSession()
    session.call(.setAudioEnabled(false))
    session.call(.openConnection(1, sends: false, receives: true))
    #expect(session.snapshot.unit == .started && session.snapshot.canPlayOrRecord)
    session.call(.setAudioEnabled(true))
    session.call(.setAudioEnabled(false))
    #expect(session.snapshot.unit == .started && session.events.contains(.didStartPlayOrRecord))
    session.call(.useManualAudio(true))
    #expect(session.snapshot.unit == .uninitialized)
    session.call(.setAudioEnabled(true))
    #expect(session.snapshot.unit == .started)
    session.call(.setAudioEnabled(false))
    #expect(session.snapshot.unit == .uninitialized)
  }

  // MARK: Permission

  @Test func onlySendingRequestsMicrophonePermission() {
    let session = VirtualAudioSession()
    session.call(.openConnection(1, sends: false, receives: true))
    #expect(!session.operations.contains(.requestPermission))
    session.call(.openConnection(2, sends: true, receives: true))
    #expect(session.operations.filter { $0 == .requestPermission }.count == 1)
    session.call(.openConnection(3, sends: true, receives: false))
    #expect(session.operations.filter { $0 == .requestPermission }.count == 1)
    #expect(session.snapshot.recording == "recording")
  }

  @Test func anOptionRequestsPermissionOnReceivingToo() {
    var policy = AudioSessionPolicy()
    policy.requestsInputOnReceiveOnly = true
    let session = VirtualAudioSession(policy)
    session.call(.openConnection(1, sends: false, receives: true))
    #expect(session.operations.contains(.requestPermission))
    #expect(session.snapshot.recording == "stopped" && session.snapshot.playout == "playing")
    // Without the option, a connection that only receives does not request permission.
    let usual = VirtualAudioSession()
    usual.call(.openConnection(1, sends: false, receives: true))
    #expect(!usual.operations.contains(.requestPermission))
  }

  @Test(arguments: [AudioPermission.denied, .undetermined])
  func withoutPermissionACallContinuesWithoutAMicrophone(_ answer: AudioPermission) {
    let session = VirtualAudioSession()
    session.permission = answer
    #expect(
      session.call(.openConnection(1, sends: true, receives: true)) == .failed(.permissionDenied))
    #expect(session.snapshot.playout == "playing" && session.snapshot.recording == "stopped")
    // Once permission is refused, the session does not ask again; if there was no answer, it does.
    session.permission = .granted
    session.call(.initializeInput)
    let isAsked = answer == .undetermined
    #expect(session.operations.filter { $0 == .requestPermission }.count == (isAsked ? 2 : 1))
    #expect((session.snapshot.recording == "recording") == isAsked)
  }

  @Test func theMicrophoneCanBeRequestedExplicitly() {
    var policy = AudioSessionPolicy()
    policy.inputRequest = .explicitly
    let session = VirtualAudioSession(policy)
    #expect(session.call(.openConnection(1, sends: true, receives: true)) == .done)
    #expect(!session.operations.contains(.requestPermission))
    #expect(session.snapshot.recording == "stopped")
    #expect(session.call(.initializeInput) == .done)
    #expect(session.snapshot.recording == "recording")
  }

  @Test func withoutAUsageDescriptionPermissionIsNotRequested() {
    var policy = AudioSessionPolicy()
    policy.declaresMicrophoneUse = false
    let session = VirtualAudioSession(policy)
    #expect(session.call(.initializeInput) == .failed(.microphoneUseNotDeclared))
    #expect(!session.operations.contains(.requestPermission))
  }

  // MARK: Faults

  @Test(arguments: ["setActive", "initializeUnit", "startUnit"])
  func aDeviceThatFailsToStartIsReportedAndRetried(_ name: String) {
    let session = VirtualAudioSession()
    session.failures = [name: 7]
    let reply = session.call(.openConnection(1, sends: false, receives: true))
    guard case .failed(.refused(_, code: 7)) = reply else {
      Issue.record("\(String(describing: reply))")
      return
    }
    #expect(session.snapshot.unit == (name == "startUnit" ? .initialized : .uninitialized))
    session.failures = [:]
    session.handle(.externallyActivated)
    #expect(session.snapshot.unit == .started)
  }

  @Test func refusedPreferencesAreReportedAndIgnored() {
    let session = VirtualAudioSession()
    session.failures = ["setPreferredSampleRate": 3]
    #expect(session.call(.openConnection(1, sends: false, receives: true)) == .done)
    #expect(session.events.contains(.operationFailed(.setPreferredSampleRate(48_000), code: 3)))
    #expect(session.snapshot.unit == .started)
  }

  @Test func callsWaitForASlowDevice() {
    let session = VirtualAudioSession()
    session.answersAtOnce = false
    #expect(session.call(.applyMode(.videoChat, options: .modeDefaults)) == nil)
    #expect(session.call(.setProcessing(.music)) == nil)
    #expect(session.operations.count == 1)
    session.answer()
    session.answer()
    #expect(session.reply(to: 1) == .done && session.reply(to: 2) == nil)
    session.answer()
    #expect(session.reply(to: 2) == .done)
    for _ in 0..<300 { session.call(.setProcessing(.voice)) }
    #expect(session.reply(to: 302) == .failed(.busy))
  }
}
