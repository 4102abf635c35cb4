/// A request that takes several device operations, one after the other.
struct DeviceRequest {
  /// The purpose; operations are decided when it is due.
  enum Purpose {
    /// A call that consists of these operations.
    case operations([AudioDeviceOperation])
    case mode(AudioMode, AudioSessionOptions)
    case activation(Bool)
    case permission
    /// The settings of a sending connection, which replace any others.
    case connection
    /// Whatever the device's state and conditions require.
    case unit
    /// Reactivation after an interruption or reset, followed by this event.
    case afterEvent(AudioSessionEvent)
    /// Pausing or resuming the microphone.
    case pause(Bool)
    /// The system has stopped the device.
    case interruption
  }

  var purpose: Purpose
  /// The call to answer; nil for none.
  var call: UInt32?

  /// Whether refused operations are reported and skipped.
  var isTolerant: Bool {
    switch purpose {
    case .connection, .unit, .afterEvent, .interruption: true
    default: false
    }
  }
}

/// Queued requests: the first is under way, and each of its operations waits for an answer.
struct DeviceRequests {
  private(set) var current: DeviceRequest?
  private var waiting: [DeviceRequest] = []
  private var operations: [AudioDeviceOperation] = []
  /// Whether the current request has issued any operation.
  private(set) var wasAsked = false
  /// The operation under way.
  private(set) var asked: (id: UInt32, operation: AudioDeviceOperation)?
  private var lastID: UInt32 = 0

  private static let maximum = 256

  var isFull: Bool { waiting.count >= DeviceRequests.maximum }

  /// Adds a request; not a second one for the unit, because it evaluates the state when it starts.
  mutating func add(_ request: DeviceRequest) {
    if case .unit = request.purpose, request.call == nil, let last = waiting.last,
      case .unit = last.purpose
    {
      return
    }
    waiting.append(request)
  }

  /// Starts the next request if none is under way.
  mutating func begin() -> DeviceRequest? {
    guard current == nil, !waiting.isEmpty else { return nil }
    current = waiting.removeFirst()
    return current
  }

  /// Sets the operations of the current request.
  mutating func plan(_ operations: [AudioDeviceOperation]) {
    self.operations = operations
    wasAsked = !operations.isEmpty
  }

  /// Whether the current request reinitialises the device later.
  var initializesLater: Bool {
    operations.contains { if case .initializeUnit = $0 { true } else { false } }
  }

  /// The next operation of the current request; nil if it is done.
  mutating func next() -> (id: UInt32, operation: AudioDeviceOperation)? {
    guard current != nil, !operations.isEmpty else { return nil }
    lastID &+= 1
    asked = (lastID, operations.removeFirst())
    return asked
  }

  /// Records an answer; returns the operation, or nil if it is not under way.
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
