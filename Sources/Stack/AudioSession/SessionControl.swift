import Wire

/// An audio session and its device, without the audio itself.
struct SessionControl {
  typealias Effects = Outbox<AudioSessionEffect>

  private typealias Connection = SessionConnections.Connection

  let policy: AudioSessionPolicy
  var states = SessionStates()
  var settings = SessionSettings()
  var requests = DeviceRequests()
  var activations = SessionActivations()
  var input = SessionInput()
  private(set) var route = AudioRoute()
  private var connections = SessionConnections()
  private(set) var manual = ManualAudio()

  init(_ policy: AudioSessionPolicy) { self.policy = policy }

  var canPlayOrRecord: Bool { manual.canPlayOrRecord }
  var isPaused: Bool { input.isPaused }
  var isPlaying: Bool { connections.receives }
  var isRecording: Bool { input.isAllowed && connections.sends }
  var captureFormat: AudioFormat? { route.captureFormat.flatMap { $0.fault == nil ? $0 : nil } }

  var conditions: AudioUnitConditions {
    var conditions = AudioUnitConditions()
    conditions.isNeeded = !connections.isEmpty
    conditions.canPlayOrRecord = canPlayOrRecord
    (conditions.isPlaying, conditions.isRecording) = (isPlaying, isRecording)
    conditions.isInterrupted = states.isInterrupted
    conditions.hasServer = states.hasServer
    return conditions
  }

  /// Why audio of a source is currently not accepted; nil if it is.
  func refusal(of id: AudioSourceID, _ format: AudioFormat) -> AudioDeviceError? {
    switch id.origin {
    case .external:
      if states.unit != .uninitialized { return .audioUnitActive }
      return isPaused ? .recordingPaused : nil
    case .unit:
      guard states.unit == .started, isRecording else { return .audioUnitInactive }
      if isPaused { return .recordingPaused }
      return captureFormat == format ? nil : .formatMismatch
    }
  }

  // MARK: Calls

  mutating func call(_ id: UInt32, _ call: AudioSessionCall, into outbox: inout Effects) {
    if call.needsLock, states.lockCount == 0 {
      return reply(id, .failed(.lockRequired), into: &outbox)
    }
    if requests.isFull { return reply(id, .failed(.busy), into: &outbox) }
    call.apply(to: &settings.wanted)
    if let operations = call.operations {
      return add(.operations(operations), call: id, into: &outbox)
    }
    switch call {
    case .lock: states.setLock(states.lockCount + 1, into: &outbox)
    case .unlock: states.setLock(max(0, states.lockCount - 1), into: &outbox)
    case .setActive(let isActive): return add(.activation(isActive), call: id, into: &outbox)
    case .applyMode(let mode, let options):
      return add(.mode(mode, options), call: id, into: &outbox)
    case .useManualAudio(let isManual):
      manual.setManual(isManual)
      updateAllowed(into: &outbox)
    case .setAudioEnabled(let isEnabled):
      manual.setEnabled(isEnabled)
      updateAllowed(into: &outbox)
    case .initializeInput: return requestInput(call: id, into: &outbox)
    case .openConnection(let number, let sends, let receives):
      return open(Connection(id: number, sends: sends, receives: receives), id, into: &outbox)
    case .connectionEstablished(let number):
      if connections.sends(number) { return add(.connection, call: id, into: &outbox) }
    case .closeConnection(let number): close(number, into: &outbox)
    case .pauseRecording, .resumeRecording:
      let pauses = call == .pauseRecording
      // Repeating the call has no effect.
      if isPaused != pauses { return add(.pause(pauses), call: id, into: &outbox) }
    default: break
    }
    reply(id, .done, into: &outbox)
    run(into: &outbox)
  }

  private mutating func open(
    _ connection: Connection, _ id: UInt32, into outbox: inout Effects
  ) {
    guard !connections.isFull else { return reply(id, .failed(.busy), into: &outbox) }
    connections.open(connection)
    updateRunning(into: &outbox)
    if connection.sends { requests.add(DeviceRequest(purpose: .connection)) }
    let wantsInput =
      connection.sends || policy.requestsInputOnReceiveOnly && connection.receives
    if wantsInput, policy.inputRequest == .whenSending, !input.isAllowed {
      return requestInput(call: id, into: &outbox)
    }
    add(.unit, call: id, into: &outbox)
  }

  private mutating func close(_ number: UInt32, into outbox: inout Effects) {
    connections.close(number)
    requests.add(DeviceRequest(purpose: .unit))
    updateRunning(into: &outbox)
  }

  /// Requests the microphone unless it was requested before.
  private mutating func requestInput(call: UInt32, into outbox: inout Effects) {
    guard policy.declaresMicrophoneUse else {
      reply(call, .failed(.microphoneUseNotDeclared), into: &outbox)
      requests.add(DeviceRequest(purpose: .unit))
      return run(into: &outbox)
    }
    add(.permission, call: call, into: &outbox)
  }

  // MARK: Events

  mutating func handle(_ event: AudioDeviceEvent, into outbox: inout Effects) {
    switch event {
    case .interruptionBegan:
      states.setActive(false, into: &outbox)
      states.setInterrupted(true, into: &outbox)
      requests.add(DeviceRequest(purpose: .interruption))
      outbox.append(.event(.didBeginInterruption))
    case .interruptionEnded(let shouldResume):
      states.setInterrupted(false, into: &outbox)
      let told = AudioSessionEvent.didEndInterruption(shouldResumeSession: shouldResume)
      requests.add(DeviceRequest(purpose: .afterEvent(told)))
    case .routeChanged(let reason, let route): change(reason, route, into: &outbox)
    case .mediaServerTerminated:
      states.setServer(false, into: &outbox)
      states.setActive(false, into: &outbox)
      states.setUnit(.uninitialized, into: &outbox)
      activations.removeUnit()
      settings.forget()
      updateRunning(into: &outbox)
      outbox.append(.event(.mediaServerTerminated))
    case .mediaServerReset:
      states.setServer(true, into: &outbox)
      requests.add(DeviceRequest(purpose: .afterEvent(.mediaServerReset)))
    case .externallyActivated:
      activations.add()
      states.setActive(true, into: &outbox)
      // An interruption by a telephone call may start and never end.
      states.setInterrupted(false, into: &outbox)
      outbox.append(.event(.didEndInterruption(shouldResumeSession: true)))
      requests.add(DeviceRequest(purpose: .unit))
    case .externallyDeactivated:
      activations.remove()
      states.setActive(false, into: &outbox)
    }
    run(into: &outbox)
  }

  private mutating func change(
    _ reason: AudioRouteChangeReason, _ next: AudioRoute, into outbox: inout Effects
  ) {
    let previous = route
    route = next
    if previous != next {
      outbox.append(.state(machine: "audio-route", from: previous.text, to: next.text))
    }
    outbox.append(.event(.didChangeRoute(reason, previous: previous, current: next)))
    requests.add(DeviceRequest(purpose: .unit))
  }

  /// The device provided audio in another format than its route's, so it is reinitialised for that
  /// one.
  mutating func reinitialize(_ format: AudioFormat, into outbox: inout Effects) {
    var next = route
    next.captureFormat = format
    change(.routeConfigurationChange, next, into: &outbox)
    run(into: &outbox)
  }

  // MARK: Events

  func reply(_ call: UInt32?, _ reply: AudioSessionReply, into outbox: inout Effects) {
    if let call { outbox.append(.reply(call: call, reply)) }
  }

  private mutating func updateAllowed(into outbox: inout Effects) {
    guard let canPlayOrRecord = manual.consumeChange() else { return }
    outbox.append(.event(.didChangeCanPlayOrRecord(canPlayOrRecord)))
    requests.add(DeviceRequest(purpose: .unit))
  }

  /// Reports changes of whether audio is running.
  mutating func updateRunning(into outbox: inout Effects) {
    let isStarted = states.unit == .started
    let recording = !(isRecording && isStarted) ? "stopped" : isPaused ? "paused" : "recording"
    states.setRecording(recording, into: &outbox)
    states.setPlayout(isPlaying && isStarted ? "playing" : "stopped", into: &outbox)
    guard let runs = connections.consumeChange(runs: isPlaying || isRecording) else { return }
    outbox.append(.event(runs ? .didStartPlayOrRecord : .didStopPlayOrRecord))
  }

  private mutating func add(
    _ purpose: DeviceRequest.Purpose, call: UInt32?, into outbox: inout Effects
  ) {
    requests.add(DeviceRequest(purpose: purpose, call: call))
    run(into: &outbox)
  }
}

extension AudioRoute {
  /// The route as one line.
  var text: String {
    "\(input) (\(captureFormat?.text ?? "none")) and \(output) (\(renderFormat?.text ?? "none"))"
  }
}
