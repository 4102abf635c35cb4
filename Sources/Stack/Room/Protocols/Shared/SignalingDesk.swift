import Wire

/// The current step of a room protocol: its instant, its outputs, and the number of connections
/// opened so far.
struct SignalingStep: Sendable {
  fileprivate(set) var now = Instant.zero
  var outputs: [SignalingOutput] = []
  fileprivate var connectionCount: UInt32 = 0
}

/// The state shared by the parts of a room protocol, which emit events and open connections through
/// it.
protocol SignalingDesk: Sendable {
  var step: SignalingStep { get set }
}

extension SignalingDesk {
  var now: Instant { step.now }

  mutating func begin(at now: Instant) { step.now = now }

  /// Moves the step's outputs into an outbox.
  mutating func end(into outbox: inout Outbox<SignalingOutput>) {
    for output in step.outputs { outbox.append(output) }
    step.outputs = []
  }

  mutating func emit(_ event: SignalingEvent) { step.outputs.append(.event(event)) }

  mutating func emit(_ events: [SignalingEvent]) { for event in events { emit(event) } }

  /// Reports an action's result: success if there is no failure.
  mutating func emit(_ action: ActionID, _ failure: SignalingFailure? = nil) {
    emit(.result(action, failure))
  }

  /// Opens a connection; the numbers start at 1.
  mutating func openConnection(_ role: ConnectionRole, _ servers: ICEServers) -> ConnectionID {
    step.connectionCount += 1
    let id = ConnectionID(step.connectionCount)
    request(id, .open(role, servers))
    return id
  }

  mutating func request(_ connection: ConnectionID, _ request: ConnectionRequest) {
    step.outputs.append(.connection(connection, request))
  }
}

/// The desk of a room that is entered before media is published.
protocol PublishingDesk: SignalingDesk {
  /// Whether the room has been entered on the current transport.
  var isEntered: Bool { get }

  mutating func connect(_ role: ConnectionRole) -> ConnectionID
}
