/// Something that is asked of the device in several operations, one after the other.
struct DeviceRequest {
  /// What it is for; the operations are decided when it is its turn.
  enum Purpose {
    /// A call that is these operations.
    case operations([AudioDeviceOperation])
    case mode(AudioMode, AudioSessionOptions)
    case activation(Bool)
    case permission
    /// What a sending connection writes over whatever was set before.
    case connection
    /// Whatever the device's state and its conditions want.
    case unit
    /// The right to audio again after an interruption or a reset; then this is told.
    case afterEvent(AudioSessionEvent)
    /// The microphone is stopped, or started again.
    case pause(Bool)
    /// The system has stopped the device.
    case interruption
  }

  var purpose: Purpose
  /// The call that waits for it; nil for none.
  var call: UInt32?

  /// Whether what the device refuses is told and passed over.
  var isTolerant: Bool {
    switch purpose {
    case .connection, .unit, .afterEvent, .interruption: true
    default: false
    }
  }
}

/// Requests in their order: the first is under way, and each operation waits for its answer.
struct DeviceRequests {
  private(set) var current: DeviceRequest?
  private var waiting: [DeviceRequest] = []
  private var operations: [AudioDeviceOperation] = []
  /// Whether the request under way has asked the device for anything.
  private(set) var wasAsked = false
  /// The operation that is asked at present.
  private(set) var asked: (id: UInt32, operation: AudioDeviceOperation)?
  private var lastID: UInt32 = 0

  private static let maximum = 256

  var isFull: Bool { waiting.count >= DeviceRequests.maximum }

  /// Adds a request; one for the unit is not added twice, because it looks at the state only then.
  mutating func add(_ request: DeviceRequest) {
    if case .unit = request.purpose, request.call == nil, let last = waiting.last,
      case .unit = last.purpose
    {
      return
    }
    waiting.append(request)
  }

  /// The next request when none is under way.
  mutating func begin() -> DeviceRequest? {
    guard current == nil, !waiting.isEmpty else { return nil }
    current = waiting.removeFirst()
    return current
  }

  /// Sets the operations of the request under way.
  mutating func plan(_ operations: [AudioDeviceOperation]) {
    self.operations = operations
    wasAsked = !operations.isEmpty
  }

  /// Whether the request under way makes the device ready again.
  var initializesLater: Bool {
    operations.contains { if case .initializeUnit = $0 { true } else { false } }
  }

  /// The next operation of the request under way; nil when it is done.
  mutating func next() -> (id: UInt32, operation: AudioDeviceOperation)? {
    guard current != nil, !operations.isEmpty else { return nil }
    lastID &+= 1
    asked = (lastID, operations.removeFirst())
    return asked
  }

  /// The answer to an operation came; returns the operation, or nil when nobody waits for that.
  mutating func answered(_ id: UInt32) -> AudioDeviceOperation? {
    guard let asked, asked.id == id else { return nil }
    self.asked = nil
    return asked.operation
  }

  /// Ends the request under way.
  mutating func end() {
    current = nil
    operations = []
  }
}
