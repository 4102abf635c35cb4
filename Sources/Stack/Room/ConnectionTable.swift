import Wire

/// A room's connections: their roles, states and ICE restarts.
struct ConnectionTable {
  struct Connection: Sendable {
    var id: ConnectionID
    var role: ConnectionRole
    var state = PeerState.new
    /// The peer's number in the take.
    var peer: UInt32 = 0
    /// The number of consecutive ICE restarts.
    var restarts = 0
    /// The instant at which to restart ICE or give up the connection; nil if neither is planned.
    var restartAt: Instant?
    /// Whether an ICE restart was requested but has not started.
    var isRestartAsked = false
    /// The transceivers of received sections.
    var transceivers: [(mid: String, number: UInt32)] = []
  }

  /// What to do about a connection whose path failed.
  enum Remedy: Equatable {
    case restart(ConnectionID, attempt: Int)
    case giveUp(ConnectionID)
  }

  private(set) var connections: [Connection] = []
  private let delay: Interval
  private let maximum: Int
  private let restartsOnceConnected: Bool

  private static let count = 256
  private static let sections = 1_024
  /// How long an ICE restart may take before the next one starts.
  private static let patience = Interval.seconds(8)

  init(delay: Interval, maximum: Int, restartsOnceConnected: Bool = false) {
    self.delay = delay
    self.maximum = maximum
    self.restartsOnceConnected = restartsOnceConnected
  }

  subscript(id: ConnectionID) -> Connection? { connections.first { $0.id == id } }

  var deadline: Instant? { connections.reduce(nil) { earliest($0, $1.restartAt) } }

  /// Connections that send local media.
  var sending: [ConnectionID] { connections.filter { $0.role != .down }.map(\.id) }

  mutating func open(_ id: ConnectionID, _ role: ConnectionRole) -> Bool {
    guard self[id] == nil, connections.count < ConnectionTable.count else { return false }
    connections.append(Connection(id: id, role: role))
    return true
  }

  mutating func close(_ id: ConnectionID) -> Connection? {
    guard let index = connections.firstIndex(where: { $0.id == id }) else { return nil }
    return connections.remove(at: index)
  }

  mutating func setPeer(_ peer: UInt32, of id: ConnectionID) { change(id) { $0.peer = peer } }

  mutating func setTransceiver(_ number: UInt32, of mid: String, on id: ConnectionID) {
    change(id) { connection in
      connection.transceivers.removeAll { $0.mid == mid }
      if connection.transceivers.count < ConnectionTable.sections {
        connection.transceivers.append((mid, number))
      }
    }
  }

  func transceiver(of mid: String, on id: ConnectionID) -> UInt32? {
    self[id]?.transceivers.first { $0.mid == mid }?.number
  }

  /// Records a connection's state; returns the previous state, or nil if the state did not change.
  mutating func setState(_ state: PeerState, of id: ConnectionID, at now: Instant) -> PeerState? {
    guard let known = self[id], known.state != state else { return nil }
    let delay = delay
    change(id) { connection in
      connection.state = state
      switch state {
      case .connected:
        // A working path does not cancel a restart that was requested, as after a network change.
        if !connection.isRestartAsked { (connection.restarts, connection.restartAt) = (0, nil) }
        if connection.isRestartAsked, connection.restartAt == nil { connection.restartAt = now }
      case .disconnected: connection.restartAt = connection.restartAt ?? now + delay
      case .failed: connection.restartAt = now
      case .closed: connection.restartAt = nil
      case .new, .connecting: break
      }
    }
    return known.state
  }

  /// Restarts ICE on all connections, as after a network change.
  ///
  /// If `restartsOnceConnected` is set, a connection that is still new restarts once it is
  /// connected; if not, such a connection is skipped.
  mutating func restartAll(at now: Instant) {
    for connection in connections where connection.state != .closed {
      let isNew = connection.state == .new
      guard !isNew || restartsOnceConnected else { continue }
      change(connection.id) { ($0.restartAt, $0.isRestartAsked) = (isNew ? nil : now, true) }
    }
  }

  /// Returns the ICE restarts that are due, and the connections to give up after too many restarts.
  mutating func consumeDue(at now: Instant) -> [Remedy] {
    var remedies: [Remedy] = []
    for index in connections.indices {
      guard let due = connections[index].restartAt, due <= now else { continue }
      connections[index].isRestartAsked = false
      if connections[index].restarts >= maximum {
        connections[index].restartAt = nil
        remedies.append(.giveUp(connections[index].id))
      } else {
        connections[index].restarts += 1
        connections[index].restartAt = now + ConnectionTable.patience
        remedies.append(
          .restart(connections[index].id, attempt: connections[index].restarts))
      }
    }
    return remedies
  }

  private mutating func change(_ id: ConnectionID, _ change: (inout Connection) -> Void) {
    guard let index = connections.firstIndex(where: { $0.id == id }) else { return }
    change(&connections[index])
  }
}

// MARK: - ActionTable

/// Requests that the service has not answered yet.
struct ActionTable {
  enum Kind: Hashable, Sendable {
    case publish([LocalMediaID])
    case unpublish([LocalMediaID])
    case subscribe([MediaID])
    case unsubscribe([MediaID])
    case profile(MediaID, VideoProfile)
    case pause(MediaID, Bool)
    case message

    /// The error code for a request that the service never answers.
    var timeout: RoomErrorCode {
      switch self {
      case .publish: .publishFailed
      case .unpublish: .unpublishFailed
      case .subscribe, .unsubscribe: .subscribeTimedOut
      case .profile: .profileFailed
      case .pause: .pauseFailed
      case .message: .messageFailed
      }
    }
  }

  struct Action: Sendable {
    var id: ActionID
    var kind: Kind
    /// The call to answer; nil if a failure is reported as an event.
    var call: UInt32?
    var due: Instant
  }

  private(set) var actions: [Action] = []
  private var last: UInt32 = 0
  private let limit: Interval

  private static let maximum = 4_096

  init(limit: Interval) { self.limit = limit }

  var deadline: Instant? { actions.reduce(nil) { earliest($0, $1.due) } }

  /// Records a request; returns nil if too many are unanswered.
  mutating func begin(_ kind: Kind, call: UInt32?, at now: Instant) -> ActionID? {
    guard actions.count < ActionTable.maximum else { return nil }
    last &+= 1
    actions.append(Action(id: ActionID(last), kind: kind, call: call, due: now + limit))
    return ActionID(last)
  }

  /// Removes and returns the request that an answer belongs to; nil if the request is unknown or
  /// timed out.
  mutating func end(_ id: ActionID) -> Action? {
    guard let index = actions.firstIndex(where: { $0.id == id }) else { return nil }
    return actions.remove(at: index)
  }

  /// Removes and returns requests that timed out.
  mutating func removeOverdue(at now: Instant) -> [Action] {
    let overdue = actions.filter { $0.due <= now }
    actions.removeAll { $0.due <= now }
    return overdue
  }

  mutating func removeAll() -> [Action] {
    defer { actions = [] }
    return actions
  }
}
