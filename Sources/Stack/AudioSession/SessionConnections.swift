/// The connections that play and record by the session.
struct SessionConnections {
  struct Connection {
    var id: UInt32
    var sends: Bool
    var receives: Bool
  }

  private static let most = 1_024

  private var connections: [Connection] = []
  /// Whether it was told that audio is played or recorded.
  private var reportedRunning = false

  var isEmpty: Bool { connections.isEmpty }
  var isFull: Bool { connections.count >= SessionConnections.most }
  var sends: Bool { connections.contains { $0.sends } }
  var receives: Bool { connections.contains { $0.receives } }

  /// Whether a connection is open and sends.
  func sends(_ id: UInt32) -> Bool { connections.contains { $0.id == id && $0.sends } }

  /// Takes a connection, in place of one of the same number.
  mutating func open(_ connection: Connection) {
    close(connection.id)
    connections.append(connection)
  }

  mutating func close(_ id: UInt32) { connections.removeAll { $0.id == id } }

  /// Whether audio is played or recorded, when that is news; nil when it was told.
  mutating func consumeChange(runs: Bool) -> Bool? {
    guard runs != reportedRunning else { return nil }
    reportedRunning = runs
    return runs
  }
}
