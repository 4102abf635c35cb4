import Wire

/// The STUN and TURN servers, and how long to wait for their names.
struct ServerList {
  /// A server, with its addresses once they are known.
  struct Server {
    let server: ICEServer
    fileprivate(set) var addresses: [IPAddress]?
    /// The id of the request that resolves the server's name; nil if no request is waiting.
    fileprivate var nameID: UInt32?
  }

  static let maximum = 4

  private(set) var all: [Server]
  /// When the time limit for resolving server names ends.
  private(set) var namesUntil: Instant?

  init(_ servers: [ICEServer]) {
    all = servers.prefix(Self.maximum).map { server in
      guard case .address(let ip) = server.host else { return Server(server: server) }
      return Server(server: server, addresses: [ip])
    }
  }

  func server(at address: SocketAddress) -> ICEServer? {
    all.first {
      $0.server.port == address.port && $0.addresses?.contains(address.ip) == true
    }?.server
  }

  /// Returns the names to resolve, and starts waiting for them.
  mutating func namesToResolve(
    _ numbers: inout RequestNumbers, at now: Instant
  ) -> [(id: UInt32, name: String)] {
    namesUntil = now + ICETiming.nameWait
    var names: [(UInt32, String)] = []
    for index in all.indices {
      guard case .name(let name) = all[index].server.host, all[index].addresses == nil,
        all[index].nameID == nil
      else { continue }
      let id = numbers.next()
      all[index].nameID = id
      names.append((id, name))
    }
    return names
  }

  /// Stores a name's addresses; returns nil if no server waits for them.
  mutating func resolve(_ id: UInt32, _ addresses: [IPAddress]) -> Server? {
    guard let index = all.firstIndex(where: { $0.nameID == id }) else { return nil }
    all[index].nameID = nil
    all[index].addresses = Array(addresses.prefix(2))
    return all[index]
  }

  /// Returns whether names are still being resolved within their time limit.
  mutating func isWaiting(at now: Instant) -> Bool {
    if let until = namesUntil, until <= now || !all.contains(where: { $0.nameID != nil }) {
      namesUntil = nil
    }
    return namesUntil != nil
  }

  /// Stops waiting for names because another generation starts; known addresses stay.
  mutating func restart() { namesUntil = nil }
}

// MARK: - ServerQueries

/// The requests to STUN servers: when each is sent, repeated or given up, and how mappings are kept
/// alive (RFC 8445 sections 5.1.1.2, 11 and 14).
struct ServerQueries {
  /// A request for one socket's mapping.
  struct Query {
    let base: SocketAddress
    let server: SocketAddress
    let transaction: STUNTransactionID
    /// When the request is sent or given up; nil once it has been answered or given up.
    fileprivate var nextAttempt: Instant?
    fileprivate var attempts = 0
    fileprivate var sendFailures = 0
    /// When to refresh the mapping next.
    fileprivate var keepAliveAt: Instant?

    fileprivate init(
      _ base: SocketAddress, _ server: SocketAddress, _ transaction: STUNTransactionID,
      at due: Instant
    ) {
      self.base = base
      self.server = server
      self.transaction = transaction
      nextAttempt = due
    }
  }

  /// A request's due action.
  enum Due {
    case nothing, request, keepAlive, givenUp
  }

  private(set) var all: [Query] = []
  /// When the next new request may be sent (Ta).
  private var nextFirst = Instant.zero

  /// Returns when a new request may be sent.
  func turn(at now: Instant) -> Instant { max(now, nextFirst) }

  /// Records that a new request, to any server, is sent at `due`.
  mutating func useTurn(at due: Instant) { nextFirst = due + ICETiming.paceSmall }

  /// Adds a request first sent at `due`.
  mutating func add(
    _ base: SocketAddress, _ server: SocketAddress, _ transaction: STUNTransactionID,
    at due: Instant
  ) {
    all.append(Query(base, server, transaction, at: due))
  }

  /// Drops the requests from an address that is gone.
  mutating func drop(from base: SocketAddress) { all.removeAll { $0.base == base } }

  mutating func removeAll() { all = [] }

  /// Handles a response; returns whether it was still awaited, or nil if it answers no request.
  mutating func receive(
    _ transaction: STUNTransactionID, _ local: SocketAddress, _ remote: SocketAddress
  ) -> Bool? {
    let index = all.firstIndex {
      $0.transaction == transaction && $0.base == local && $0.server == remote
    }
    guard let index else { return nil }
    defer { all[index].nextAttempt = nil }
    return all[index].nextAttempt != nil
  }

  /// Records a refused send, and ends the request after the third refusal; returns whether a
  /// pending request ended.
  @discardableResult
  mutating func refuse(_ local: SocketAddress, _ remote: SocketAddress) -> Bool {
    var isOver = false
    for index in all.indices where all[index].base == local && all[index].server == remote {
      all[index].sendFailures += 1
      guard all[index].sendFailures >= 3 else { continue }
      isOver = isOver || all[index].nextAttempt != nil
      all[index].nextAttempt = nil
    }
    return isOver
  }

  /// Starts refreshing the mapping that a server reported.
  mutating func keepAlive(_ base: SocketAddress, _ server: SocketAddress, at now: Instant) {
    for index in all.indices where all[index].base == base && all[index].server == server {
      all[index].keepAliveAt = now + ICETiming.keepAlive
    }
  }

  /// Returns a request's due action.
  ///
  /// - Parameter keepsAlive: whether to refresh mappings; false once a pair is nominated, because
  ///   its checks do so.
  mutating func removeDue(_ index: Int, keepsAlive: Bool, at now: Instant) -> Due {
    if let due = all[index].nextAttempt, due <= now {
      guard all[index].attempts < TURNTiming.queryWaits.count else {
        all[index].nextAttempt = nil
        return .givenUp
      }
      all[index].nextAttempt = now + TURNTiming.queryWaits[all[index].attempts]
      all[index].attempts += 1
      return .request
    }
    guard keepsAlive, let due = all[index].keepAliveAt, due <= now else { return .nothing }
    all[index].keepAliveAt = now + ICETiming.keepAlive
    return .keepAlive
  }

  /// Drops requests that were answered or given up and keep no mapping alive.
  mutating func removeFinished() {
    all.removeAll { $0.nextAttempt == nil && $0.keepAliveAt == nil }
  }

  /// Whether a response is still expected.
  var isWaiting: Bool { all.contains { $0.nextAttempt != nil } }

  /// Returns when the next request or keep-alive message is due; nil if none is.
  func deadline(keepsAlive: Bool) -> Instant? {
    var next: Instant?
    for query in all {
      next = earliest(next, query.nextAttempt ?? (keepsAlive ? query.keepAliveAt : nil))
    }
    return next
  }
}
