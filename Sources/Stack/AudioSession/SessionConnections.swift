/// The connections that use the session's audio.
struct SessionConnections {
  struct Connection {
    var id: UInt32
    var sends: Bool
    var receives: Bool
  }

  private static let most = 1_024

  private var connections: [Connection] = []
  /// Whether the delegate already knows that audio is running.
  private var reportedRunning = false

  var isEmpty: Bool { connections.isEmpty }
  var isFull: Bool { connections.count >= SessionConnections.most }
  var sends: Bool { connections.contains { $0.sends } }
  var receives: Bool { connections.contains { $0.receives } }

  /// Whether a connection is open and sends.
  func sends(_ id: UInt32) -> Bool { connections.contains { $0.id == id && $0.sends } }

  /// Registers a connection, replacing one with the same id.
  mutating func open(_ connection: Connection) {
    close(connection.id)
    connections.append(connection)
  }

  mutating func close(_ id: UInt32) { connections.removeAll { $0.id == id } }

  /// Returns whether audio is running, if that changed since the last call.
  mutating func consumeChange(runs: Bool) -> Bool? {
    guard runs != reportedRunning else { return nil }
    reportedRunning = runs
    return runs
  }
}
