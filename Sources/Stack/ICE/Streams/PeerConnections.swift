import Wire

/// The connections between the two sides (RFC 6544), those of unknown peers among them.
struct PeerConnections {
  /// An open connection to the peer, or to whoever connected to a listener.
  struct Connection: Equatable {
    let local: SocketAddress
    let remote: SocketAddress
    let openedAt: Instant
  }

  /// How many connections without a valid check are kept open.
  static let strangersMaximum = 16

  private(set) var all: [Connection] = []

  func contains(_ local: SocketAddress, _ remote: SocketAddress) -> Bool {
    all.contains { $0.local == local && $0.remote == remote }
  }

  mutating func open(_ local: SocketAddress, _ remote: SocketAddress, at now: Instant) {
    all.append(Connection(local: local, remote: remote, openedAt: now))
  }

  /// Whether another unknown peer may connect.
  func admitsStrangers(_ checklist: Checklist) -> Bool {
    all.count { checklist.index($0.local, $0.remote) == nil } < Self.strangersMaximum
  }

  /// Forgets a connection that is gone; false when there is none.
  mutating func lose(_ local: SocketAddress, _ remote: SocketAddress) -> Bool {
    guard let place = all.firstIndex(where: { $0.local == local && $0.remote == remote }) else {
      return false
    }
    all.remove(at: place)
    return true
  }

  /// Forgets the connections that no pair can use any more, or never came to.
  mutating func removeUnused(_ checklist: inout Checklist, at now: Instant) -> [Connection] {
    guard !all.isEmpty else { return [] }
    var unused: [Connection] = []
    var kept: [Connection] = []
    for connection in all {
      if let index = checklist.index(connection.local, connection.remote) {
        if checklist[index].state != .failed {
          kept.append(connection)
          continue
        }
        checklist.change(index) { $0.disconnect() }
      } else if connection.openedAt + ICETiming.connectWait > now {
        kept.append(connection)
        continue
      }
      unused.append(connection)
    }
    all = kept
    return unused
  }

  /// Forgets all connections.
  mutating func removeAll() -> [Connection] {
    defer { all = [] }
    return all
  }

  /// When a connection without a valid check is closed.
  func deadline(_ checklist: Checklist) -> Instant? {
    var next: Instant?
    for connection in all where checklist.index(connection.local, connection.remote) == nil {
      next = earliest(next, connection.openedAt + ICETiming.connectWait)
    }
    return next
  }
}
