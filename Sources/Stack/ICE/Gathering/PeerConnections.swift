package import Wire

/// The TCP connections with the peer (RFC 6544), including accepted connections whose sender is not
/// known yet.
struct PeerConnections {
  /// An open connection, either made to the peer or accepted by a listener.
  struct Connection: Equatable {
    let local: SocketAddress
    let remote: SocketAddress
    let openedAt: Instant
  }

  /// The maximum number of connections kept open without a valid check.
  static let strangersMaximum = 16

  private(set) var all: [Connection] = []

  func contains(_ local: SocketAddress, _ remote: SocketAddress) -> Bool {
    all.contains { $0.local == local && $0.remote == remote }
  }

  mutating func open(_ local: SocketAddress, _ remote: SocketAddress, at now: Instant) {
    all.append(Connection(local: local, remote: remote, openedAt: now))
  }

  /// Returns whether another unknown peer may connect.
  func admitsStrangers(_ checklist: Checklist) -> Bool {
    all.count { checklist.index($0.local, $0.remote) == nil } < Self.strangersMaximum
  }

  /// Removes a lost connection; returns false if it is unknown.
  mutating func lose(_ local: SocketAddress, _ remote: SocketAddress) -> Bool {
    guard let place = all.firstIndex(where: { $0.local == local && $0.remote == remote }) else {
      return false
    }
    all.remove(at: place)
    return true
  }

  /// Removes connections whose pair has failed, and connections that have had no pair for too long.
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

  mutating func removeAll() -> [Connection] {
    defer { all = [] }
    return all
  }

  /// Returns when the next connection without a valid check must be closed; nil if there is none.
  func deadline(_ checklist: Checklist) -> Instant? {
    var next: Instant?
    for connection in all where checklist.index(connection.local, connection.remote) == nil {
      next = earliest(next, connection.openedAt + ICETiming.connectWait)
    }
    return next
  }
}

// MARK: - ICEAgent: Streams

// Handles TCP connections with the peer (RFC 6544). The Live modules exchange complete messages on
// them (RFC 4571), so the rest of the agent treats a connection as a path like any other; only
// opening and closing differ.
extension ICEAgent {
  /// Creates an address's active TCP candidate, which connects, and pairs it with the remote
  /// candidates.
  ///
  /// The passive candidate, which accepts connections, follows once the system has assigned a port.
  mutating func gatherTCP(_ ip: IPAddress, localPreference: UInt16) {
    let base = SocketAddress(ip, port: 0)
    addTCP(.active, base, port: ICECandidate.activePort, localPreference: localPreference)
    for remote in remoteSide.candidates { addPair(base: base, remote: remote) }
  }

  /// Adds the active or the passive TCP candidate of an address.
  mutating func addTCP(
    _ type: ICETCPType, _ base: SocketAddress, port: UInt16, localPreference: UInt16
  ) {
    let foundation = gatherer.candidates.foundation(
      .init(kind: .host, base: base.ip, server: nil, isTCP: true))
    let preference = ICEPriority.localPreference(type, of: localPreference)
    let priority = ICEPriority.candidate(.host, isTCP: true, localPreference: preference)
    addLocal(
      ICECandidate(
        foundation: foundation, transport: "tcp", priority: priority, host: shown(base.ip),
        port: port, kind: .host, extensions: [ICECandidate.tcpType(type), fragmentExtension]),
      base: base)
  }

  // MARK: Opening

  /// Requests the connection for a pair whose turn has come (RFC 6544 section 7.1).
  mutating func connect(_ index: Int) {
    let id = numbers.next()
    let end = now + ICETiming.connectWait
    checklist.change(index) { $0.round.connect(id, until: end) }
    emit(
      .request(
        .openStream(
          id: id,
          StreamTarget(from: checklist[index].base.ip, to: checklist[index].target, server: nil))))
  }

  /// Handles an open connection to the peer; returns false if no pair requested it.
  mutating func peerConnected(_ id: UInt32, _ local: SocketAddress) -> Bool {
    guard let index = checklist.index(connection: id) else { return false }
    checklist.change(index) { $0.connected(at: local) }
    gatherer.connections.open(local, checklist[index].target, at: now)
    sendCheck(on: index)
    return true
  }

  mutating func peerConnectionFailed(_ id: UInt32) {
    guard let index = checklist.index(connection: id) else { return }
    checklist.change(index) { $0.fail() }
  }

  /// Handles an incoming connection; the first check identifies the peer.
  mutating func streamAccepted(_ local: SocketAddress, _ remote: SocketAddress) {
    guard gatherer.sockets.socket(at: local)?.isListener == true,
      gatherer.connections.admitsStrangers(checklist)
    else {
      counters.count(.overflows)
      return emit(.request(.closeStream(local: local, remote: remote)))
    }
    gatherer.connections.open(local, remote, at: now)
  }

  // MARK: Closing

  /// Handles a lost connection; returns false if the path is not a connection to the peer.
  ///
  /// The agent that opened a working connection opens another in its place; the other agent learns
  /// of it from checks.
  mutating func streamLost(_ local: SocketAddress, _ remote: SocketAddress) -> Bool {
    guard gatherer.connections.lose(local, remote) else { return false }
    guard let index = checklist.index(local, remote) else { return true }
    let isPresent = checklist.isPresent(index)
    checklist.change(index) { pair in
      pair.disconnect()
      if pair.isActive, pair.state == .succeeded, isPresent {
        pair.restartChecks()
      } else {
        pair.fail()
      }
    }
    return true
  }

  /// Closes connections whose pair has failed, and connections that have had no pair for too long.
  mutating func closeStreams() {
    for connection in gatherer.connections.removeUnused(&checklist, at: now) {
      emit(.request(.closeStream(local: connection.local, remote: connection.remote)))
    }
  }
}

/// The framing of messages on a TCP connection with the peer: a two-byte length precedes each
/// message (RFC 4571 section 2, RFC 6544 section 3).
package enum ICEFraming: MessageFraming {
  package static func first(in bytes: RawSpan) throws(FramingError)
    -> (message: Range<Int>, next: Int)?
  {
    guard bytes.byteCount >= 2 else { return nil }
    let end = 2 + Int(bytes.uint16(at: 0))
    return end <= bytes.byteCount ? (2..<end, end) : nil
  }

  /// Returns a message preceded by its length; empty if the message is too long.
  package static func framed(_ message: [UInt8]) -> [UInt8] {
    guard let count = UInt16(exactly: message.count) else { return [] }
    return [UInt8(count >> 8), UInt8(truncatingIfNeeded: count)] + message
  }
}

// MARK: - StreamTarget: Server

extension StreamTarget {
  /// Describes a connection to a server, or to the peer if `server` is nil.
  init(from local: IPAddress, to remote: SocketAddress, server: ICEServer?) {
    let kind: Kind =
      switch server?.transport {
      case nil: .peer
      case .tls: .secureServer
      case .tcp, .udp: .server
      }
    self.init(
      local: local, remote: remote, kind: kind, name: server?.host.description ?? "")
  }
}
