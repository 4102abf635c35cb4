import Wire

/// The STUN and TURN servers, and how long their names are waited for.
struct ServerList {
  /// A server and its addresses once they are known.
  struct Server {
    let server: ICEServer
    fileprivate(set) var addresses: [IPAddress]?
    /// The number under which its name is being resolved.
    fileprivate var nameID: UInt32?
  }

  static let maximum = 4

  private(set) var all: [Server]
  /// When names of servers are no longer waited for.
  private(set) var namesUntil: Instant?

  init(_ servers: [ICEServer]) {
    all = servers.prefix(Self.maximum).map { server in
      guard case .address(let ip) = server.host else { return Server(server: server) }
      return Server(server: server, addresses: [ip])
    }
  }

  /// The server at an endpoint.
  func server(at address: SocketAddress) -> ICEServer? {
    all.first {
      $0.server.port == address.port && $0.addresses?.contains(address.ip) == true
    }?.server
  }

  /// The names that are to be resolved, for which is waited from now on.
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

  /// Stores the addresses of a name; nil when no request needs them any more.
  mutating func resolve(_ id: UInt32, _ addresses: [IPAddress]) -> Server? {
    guard let index = all.firstIndex(where: { $0.nameID == id }) else { return nil }
    all[index].nameID = nil
    all[index].addresses = Array(addresses.prefix(2))
    return all[index]
  }

  /// Whether names are still waited for.
  mutating func isWaiting(at now: Instant) -> Bool {
    if let until = namesUntil, until <= now || !all.contains(where: { $0.nameID != nil }) {
      namesUntil = nil
    }
    return namesUntil != nil
  }

  /// Begins another generation; addresses stay known.
  mutating func restart() { namesUntil = nil }
}

// MARK: - ServerQueries

/// The requests to STUN servers: when they are sent, repeated or given up, and how mappings are
/// kept alive (RFC 8445 sections 5.1.1.2, 11 and 14).
struct ServerQueries {
  /// A request for the mapping of one socket.
  struct Query {
    let base: SocketAddress
    let server: SocketAddress
    let transaction: STUNTransactionID
    /// When the request is repeated or given up; nil once it is answered.
    fileprivate var nextAttempt: Instant?
    fileprivate var attempts = 0
    fileprivate var sendFailures = 0
    /// When the mapping is to be kept alive next.
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

  /// The due action for a request.
  enum Due {
    case nothing, request, keepAlive, givenUp
  }

  private(set) var all: [Query] = []
  /// When the next new request may go out (Ta).
  private var nextFirst = Instant.zero

  /// When a new request may go out.
  func turn(at now: Instant) -> Instant { max(now, nextFirst) }

  /// Records that a new request, to any server, is sent at `due`.
  mutating func useTurn(at due: Instant) { nextFirst = due + ICETiming.paceSmall }

  /// Adds a request that is first sent at an instant.
  mutating func add(
    _ base: SocketAddress, _ server: SocketAddress, _ transaction: STUNTransactionID,
    at due: Instant
  ) {
    all.append(Query(base, server, transaction, at: due))
  }

  /// Drops the requests from an endpoint that is gone.
  mutating func drop(from base: SocketAddress) { all.removeAll { $0.base == base } }

  /// Drops all requests.
  mutating func removeAll() { all = [] }

  /// Receives a response; returns whether it is the first one, nil when it answers no request.
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

  /// Records that the system refused a send: after three the request is given up and reported.
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

  /// Keeps the mapping that a server reported alive from now on.
  mutating func keepAlive(_ base: SocketAddress, _ server: SocketAddress, at now: Instant) {
    for index in all.indices where all[index].base == base && all[index].server == server {
      all[index].keepAliveAt = now + ICETiming.keepAlive
    }
  }

  /// Returns the due action for a request.
  ///
  /// - Parameter keepsAlive: whether mappings are kept alive; later checks do so.
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

  /// Drops the requests that are finished.
  mutating func removeFinished() {
    all.removeAll { $0.nextAttempt == nil && $0.keepAliveAt == nil }
  }

  /// Whether a response is still expected.
  var isWaiting: Bool { all.contains { $0.nextAttempt != nil } }

  /// When a request is due next.
  func deadline(keepsAlive: Bool) -> Instant? {
    var next: Instant?
    for query in all {
      next = earliest(next, query.nextAttempt ?? (keepsAlive ? query.keepAliveAt : nil))
    }
    return next
  }
}
