import Wire

// Chooses the operations for each request, and applies the device's answers.
extension SessionControl {
  /// Carries out requests until an operation is waiting for its answer or no request is left.
  mutating func run(into outbox: inout Effects) {
    while requests.asked == nil {
      if requests.current == nil {
        guard let request = requests.begin() else { return }
        let operations = plan(request.purpose, into: &outbox)
        requests.plan(operations)
      }
      guard let (id, operation) = requests.next() else {
        finish(nil, into: &outbox)
        continue
      }
      if case .setActive(let active) = operation, !isActivation {
        outbox.append(.event(.willSetActive(active)))
      }
      outbox.append(.operation(id: id, operation))
    }
  }

  private var isActivation: Bool {
    if case .activation = requests.current?.purpose { true } else { false }
  }

  private mutating func plan(
    _ purpose: DeviceRequest.Purpose, into outbox: inout Effects
  ) -> [AudioDeviceOperation] {
    switch purpose {
    case .operations(let operations): return operations
    case .mode(let mode, let options):
      states.setLock(states.lockCount + 1, into: &outbox)
      return mode.operations(options: options, current: settings.category)
    case .activation(let active):
      outbox.append(.event(.willSetActive(active)))
      let isNeeded = active ? !states.isActive : states.isActive && activations.isLast
      return isNeeded ? [.setActive(active)] : []
    case .permission: return states.permission == .undetermined ? [.requestPermission] : []
    case .connection:
      return [
        .setCategory(.playAndRecord, options: settings.wanted.options),
        .setMode(settings.wanted.mode),
      ]
    case .unit: return unitOperations
    case .afterEvent: return activations.count > 0 && !states.isActive ? [.setActive(true)] : []
    case .pause(let pauses): return [pauses ? .pauseRecording : .resumeRecording]
    case .interruption: return states.unit == .started ? [.stopUnit] : []
    }
  }

  /// The operations that bring the device from its current state to the state that its conditions
  /// call for.
  private var unitOperations: [AudioDeviceOperation] {
    let conditions = conditions
    let changes = states.unit.changes(conditions)
    let isStale =
      states.unit != .uninitialized && settings.unitFormats != formats
      && !conditions.isInterrupted && conditions.hasServer
    if isStale, !changes.contains(.uninitialize) {
      // Reinitialise the device, but keep the session active meanwhile.
      let runs = conditions.isPlaying || conditions.isRecording
      return (states.unit == .started ? [.stopUnit] : [])
        + [.uninitializeUnit, initialization] + (runs ? [.startUnit] : [])
    }
    return changes.flatMap { change -> [AudioDeviceOperation] in
      switch change {
      case .initialize:
        settings.preferences + (states.isActive ? [] : [.setActive(true)]) + [initialization]
      case .start: [.startUnit]
      case .stop: [.stopUnit]
      case .uninitialize:
        [.uninitializeUnit]
          + (states.isActive && activations.isLastOfUnit ? [.setActive(false)] : [])
      }
    }
  }

  private var formats: [AudioFormat?] { [captureFormat, route.renderFormat] }

  private var initialization: AudioDeviceOperation {
    .initializeUnit(capture: captureFormat, render: route.renderFormat)
  }

  // MARK: Answers

  /// Applies the device's answer to an operation, then issues the next one.
  mutating func answer(_ id: UInt32, _ answer: AudioDeviceAnswer, into outbox: inout Effects) {
    guard let operation = requests.answered(id) else { return }
    switch answer {
    case .ok:
      settings.apply(operation)
      apply(operation, into: &outbox)
    case .permission(let next): states.setPermission(next, into: &outbox)
    case .failed(let code): fail(operation, code, into: &outbox)
    }
    run(into: &outbox)
  }

  private mutating func fail(
    _ operation: AudioDeviceOperation, _ code: Int32, into outbox: inout Effects
  ) {
    guard let request = requests.current else { return }
    if case .setActive(let active) = operation, !isActivation {
      outbox.append(.event(.failedToSetActive(active, code: code)))
    } else if request.call == nil || request.isTolerant {
      outbox.append(.event(.operationFailed(operation, code: code)))
    }
    // A tolerant request skips a refused operation, unless audio cannot run without it.
    if !request.isTolerant || operation.isDecisive {
      finish(.refused(operation, code: code), into: &outbox)
    }
  }

  /// Applies a completed operation to the state.
  private mutating func apply(_ operation: AudioDeviceOperation, into outbox: inout Effects) {
    switch operation {
    case .setActive(let active):
      states.setActive(active, into: &outbox)
      if !isActivation { outbox.append(.event(.didSetActive(active))) }
    case .initializeUnit:
      activations.addUnit()
      states.setUnit(.initialized, into: &outbox)
    case .startUnit: states.setUnit(.started, into: &outbox)
    case .stopUnit: states.setUnit(.initialized, into: &outbox)
    case .uninitializeUnit:
      // A device that is only being reinitialised keeps the session active.
      if !requests.initializesLater { activations.removeUnit() }
      states.setUnit(.uninitialized, into: &outbox)
    case .pauseRecording, .resumeRecording: input.pause(operation == .pauseRecording)
    default: break
    }
    updateRunning(into: &outbox)
  }

  // MARK: Completion

  private mutating func finish(_ error: AudioSessionError?, into outbox: inout Effects) {
    guard let request = requests.current else { return }
    let wasAsked = requests.wasAsked
    requests.end()
    var error = error
    switch request.purpose {
    case .mode: states.setLock(max(0, states.lockCount - 1), into: &outbox)
    case .activation(let active):
      finishActivation(active, wasAsked: wasAsked, error, into: &outbox)
    case .permission:
      input.allow(states.permission == .granted)
      if !input.isAllowed, error == nil { error = .permissionDenied }
      updateRunning(into: &outbox)
      requests.add(DeviceRequest(purpose: .unit))
    case .afterEvent(let told):
      outbox.append(.event(told))
      requests.add(DeviceRequest(purpose: .unit))
    default: break
    }
    reply(request.call, error.map { .failed($0) } ?? .done, into: &outbox)
  }

  private mutating func finishActivation(
    _ active: Bool, wasAsked: Bool, _ error: AudioSessionError?, into outbox: inout Effects
  ) {
    if case .refused(_, let code) = error {
      outbox.append(.event(.failedToSetActive(active, code: code)))
    } else if active {
      if states.isInterrupted {
        states.setInterrupted(false, into: &outbox)
        outbox.append(.event(.didEndInterruption(shouldResumeSession: true)))
        requests.add(DeviceRequest(purpose: .unit))
      }
      activations.add()
      outbox.append(.event(.didSetActive(true)))
    }
    guard !active else { return }
    // The session counts as inactive even if the device refused to deactivate it.
    if wasAsked {
      states.setActive(false, into: &outbox)
      outbox.append(.event(.didSetActive(false)))
    }
    activations.remove()
  }
}

extension AudioDeviceOperation {
  /// Whether audio cannot run without the operation.
  fileprivate var isDecisive: Bool {
    switch self {
    case .startUnit, .setActive(true), .initializeUnit: true
    default: false
    }
  }
}

// MARK: - DeviceRequests

/// A request that needs several successive device operations.
struct DeviceRequest {
  /// The purpose of a request, which determines the operations when the request starts.
  enum Purpose {
    /// A call that consists of these operations.
    case operations([AudioDeviceOperation])
    case mode(AudioMode, AudioSessionOptions)
    case activation(Bool)
    case permission
    /// The category and mode for a connection that sends: `playAndRecord`, with the wanted options
    /// and mode.
    case connection
    /// The operations that the device's state and conditions require.
    case unit
    /// Reactivation after an interruption or reset, followed by this event.
    case afterEvent(AudioSessionEvent)
    /// Pauses the microphone if true, and resumes it otherwise.
    case pause(Bool)
    /// Stops the device after the system began an interruption.
    case interruption
  }

  var purpose: Purpose
  /// The call to answer, if any.
  var call: UInt32?

  /// Whether refused operations are reported and, if audio can run without them, skipped.
  var isTolerant: Bool {
    switch purpose {
    case .connection, .unit, .afterEvent, .interruption: true
    default: false
    }
  }
}

/// The queue of requests; the current one issues each operation once the previous one is answered.
struct DeviceRequests {
  private(set) var current: DeviceRequest?
  private var waiting: [DeviceRequest] = []
  private var operations: [AudioDeviceOperation] = []
  /// Whether the current request has issued operations.
  private(set) var wasAsked = false
  /// The operation waiting for its answer; nil if there is none.
  private(set) var asked: (id: UInt32, operation: AudioDeviceOperation)?
  private var lastID: UInt32 = 0

  private static let maximum = 256

  var isFull: Bool { waiting.count >= DeviceRequests.maximum }

  /// Adds a request; repeated unit requests are merged, because they evaluate the state when they
  /// start.
  mutating func add(_ request: DeviceRequest) {
    if case .unit = request.purpose, request.call == nil, let last = waiting.last,
      case .unit = last.purpose
    {
      return
    }
    waiting.append(request)
  }

  /// Starts and returns the next request; nil if one is in progress or none is waiting.
  mutating func begin() -> DeviceRequest? {
    guard current == nil, !waiting.isEmpty else { return nil }
    current = waiting.removeFirst()
    return current
  }

  mutating func plan(_ operations: [AudioDeviceOperation]) {
    self.operations = operations
    wasAsked = !operations.isEmpty
  }

  /// Whether the current request will reinitialise the device.
  var initializesLater: Bool {
    operations.contains { if case .initializeUnit = $0 { true } else { false } }
  }

  /// Returns the current request's next operation; nil if there is none.
  mutating func next() -> (id: UInt32, operation: AudioDeviceOperation)? {
    guard current != nil, !operations.isEmpty else { return nil }
    lastID &+= 1
    asked = (lastID, operations.removeFirst())
    return asked
  }

  /// Records an answer; returns the answered operation, or nil if no operation has this id.
  mutating func answered(_ id: UInt32) -> AudioDeviceOperation? {
    guard let asked, asked.id == id else { return nil }
    self.asked = nil
    return asked.operation
  }

  mutating func end() {
    current = nil
    operations = []
  }
}
