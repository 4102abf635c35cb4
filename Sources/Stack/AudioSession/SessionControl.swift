import Wire

/// The state of an audio session and its device, without the audio itself.
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

  /// Returns why a source's audio is refused at the moment; nil if it is accepted.
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
      // Pausing or resuming twice has no effect.
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

  /// Requests permission for the microphone, unless the application has not declared its use.
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
      // The end of an interruption by a telephone call may not be reported, so end it here.
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

  /// Reinitialises the device for the format that it actually captures, which differs from the
  /// route's format.
  mutating func reinitialize(_ format: AudioFormat, into outbox: inout Effects) {
    var next = route
    next.captureFormat = format
    change(.routeConfigurationChange, next, into: &outbox)
    run(into: &outbox)
  }

  // MARK: Reports

  func reply(_ call: UInt32?, _ reply: AudioSessionReply, into outbox: inout Effects) {
    if let call { outbox.append(.reply(call: call, reply)) }
  }

  private mutating func updateAllowed(into outbox: inout Effects) {
    guard let canPlayOrRecord = manual.consumeChange() else { return }
    outbox.append(.event(.didChangeCanPlayOrRecord(canPlayOrRecord)))
    requests.add(DeviceRequest(purpose: .unit))
  }

  /// Updates the recording and playout states, and reports when audio starts or stops running.
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
  /// The route on one line.
  var text: String {
    "\(input) (\(captureFormat?.text ?? "none")) and \(output) (\(renderFormat?.text ?? "none"))"
  }
}

/// Counts activations of the session, which is deactivated when the last one is removed.
struct SessionActivations {
  private(set) var count = 0
  /// Whether the initialised device is counted as an activation.
  private var isHeldByUnit = false

  var isLast: Bool { count == 1 }
  /// Whether the device's activation is the only one.
  var isLastOfUnit: Bool { isHeldByUnit && isLast }

  mutating func add() { count += 1 }

  /// Removes an activation; ignored if there is none.
  mutating func remove() { count = max(0, count - 1) }

  /// Counts the initialised device as one activation, unless it is already counted.
  mutating func addUnit() {
    if !isHeldByUnit { add() }
    isHeldByUnit = true
  }

  /// Removes the device's activation if it is counted.
  mutating func removeUnit() {
    if isHeldByUnit { remove() }
    isHeldByUnit = false
  }
}

/// The connections using the session's audio.
struct SessionConnections {
  struct Connection {
    var id: UInt32
    var sends: Bool
    var receives: Bool
  }

  private static let most = 1_024

  private var connections: [Connection] = []
  /// Whether audio was last reported as running.
  private var reportedRunning = false

  var isEmpty: Bool { connections.isEmpty }
  var isFull: Bool { connections.count >= SessionConnections.most }
  var sends: Bool { connections.contains { $0.sends } }
  var receives: Bool { connections.contains { $0.receives } }

  /// Returns whether a connection is open and sends.
  func sends(_ id: UInt32) -> Bool { connections.contains { $0.id == id && $0.sends } }

  /// Registers a connection, replacing one with the same id.
  mutating func open(_ connection: Connection) {
    close(connection.id)
    connections.append(connection)
  }

  mutating func close(_ id: UInt32) { connections.removeAll { $0.id == id } }

  /// Returns whether audio is running, if that changed since the last call; otherwise nil.
  mutating func consumeChange(runs: Bool) -> Bool? {
    guard runs != reportedRunning else { return nil }
    reportedRunning = runs
    return runs
  }
}

/// Whether the device may run: always, or with manual audio only while the application enables it.
struct ManualAudio {
  private(set) var isManual = false
  private(set) var isEnabled = false
  /// The last reported value of `canPlayOrRecord`.
  private var reported = true

  var canPlayOrRecord: Bool { !isManual || isEnabled }

  mutating func setManual(_ isManual: Bool) { self.isManual = isManual }
  mutating func setEnabled(_ isEnabled: Bool) { self.isEnabled = isEnabled }

  /// Returns whether the device may run, if that changed since the last call; otherwise nil.
  mutating func consumeChange() -> Bool? {
    guard canPlayOrRecord != reported else { return nil }
    reported = canPlayOrRecord
    return reported
  }
}

/// Whether the microphone may be used, and whether it is paused.
struct SessionInput {
  /// Whether the user permitted the microphone.
  private(set) var isAllowed = false
  private(set) var isPaused = false

  mutating func allow(_ isAllowed: Bool) { self.isAllowed = isAllowed }

  mutating func pause(_ isPaused: Bool) { self.isPaused = isPaused }
}

// MARK: - AudioUnitPlan

/// How far the audio device has been set up.
package enum AudioUnitState: String, Hashable, Sendable {
  case uninitialized
  case initialized
  case started
}

/// The conditions that decide whether the device is initialised and started.
package struct AudioUnitConditions: Hashable, Sendable {
  /// Whether a connection needs the device.
  package var isNeeded = false
  /// Whether the device may run; false only while audio is manual and not enabled.
  package var canPlayOrRecord = false
  package var isPlaying = false
  package var isRecording = false
  package var isInterrupted = false
  /// Whether the system's audio server is available.
  package var hasServer = true

  package init() {}
}

/// An operation that brings the audio device from one state to another.
package enum AudioUnitChange: Hashable, Sendable {
  case initialize
  case start
  case stop
  case uninitialize
}

extension AudioUnitState {
  /// Returns the changes that the conditions require, in order.
  ///
  /// There are none during an interruption or without an audio server.
  package func changes(_ conditions: AudioUnitConditions) -> [AudioUnitChange] {
    guard !conditions.isInterrupted, conditions.hasServer else { return [] }
    let runs = conditions.isPlaying || conditions.isRecording
    let may = conditions.canPlayOrRecord && conditions.isNeeded
    switch self {
    case .uninitialized: return may ? (runs ? [.initialize, .start] : [.initialize]) : []
    case .initialized: return may ? (runs ? [.start] : []) : [.uninitialize]
    case .started: return may ? (runs ? [] : [.stop]) : [.stop, .uninitialize]
    }
  }
}
