import Wire

/// The allocations on TURN servers: their requests, their connections, and how often they were
/// redirected or retried.
///
/// The agent carries out the clients' requests.
struct Relays {
  /// An allocation on a TURN server for one local address.
  struct Relay {
    /// Names the connection, when the transport is one.
    fileprivate(set) var id: UInt32
    let generation: UInt32
    let server: ICEServer
    /// The server's endpoint; another one after a redirection.
    fileprivate(set) var address: SocketAddress
    /// The local endpoint; its port is 0 before a connection has one.
    fileprivate(set) var base: SocketAddress
    let localPreference: UInt16
    fileprivate var client: TURNClient
    /// When the allocation is requested (Ta between two first requests).
    fileprivate var beginAt: Instant?
    /// When a connection that is being made is given up.
    fileprivate var connectBy: Instant?
    fileprivate var redirections = 0
    /// How many times a lost allocation was requested again.
    fileprivate var renewals = 0
    fileprivate var sendFailures = 0

    /// Whether the server is reached over a separate connection.
    var isStream: Bool { server.transport != .udp }
    /// The address on the server; nil before it gave one.
    var relayed: SocketAddress? { client.relayed }
    var isAllocating: Bool { client.isAllocating }
    fileprivate var isOver: Bool { !client.isAllocating && !client.isAllocated }
    /// When the client is due by itself.
    var clientDeadline: Instant? { client.deadline }
    /// When it is due by itself.
    fileprivate var wakeAt: Instant? { beginAt ?? connectBy ?? client.deadline }
  }

  /// The due action for a relay.
  enum Due {
    case nothing
    case begin
    /// The connection to the server was not made in time.
    case abandon
    case deadline
  }

  /// The meaning of a send that the system refused.
  enum Refusal {
    case nothing
    /// The connection accepts no more data: it is lost.
    case lost
    /// The server cannot be reached from here.
    case unreachable
  }

  static let maximum = 32
  private static let redirectionsMaximum = 3
  private static let renewalsMaximum = 5

  private(set) var all: [Relay] = []
  /// Storage for the outputs of clients, kept from one message to the next.
  private var storage = Outbox<TURNClient.Output>()

  var isFull: Bool { all.count >= Self.maximum }
  var isEmpty: Bool { all.isEmpty }
  var indices: Range<Int> { all.indices }
  subscript(index: Int) -> Relay { all[index] }

  // MARK: Finding

  /// The relay whose allocation has an address.
  func index(at relayed: SocketAddress) -> Int? {
    for index in all.indices where all[index].client.relayed == relayed { return index }
    return nil
  }

  /// The relay that speaks to a server from a local endpoint.
  func index(from base: SocketAddress, to server: SocketAddress) -> Int? {
    for index in all.indices where all[index].address == server && all[index].base == base {
      return index
    }
    return nil
  }

  /// The relay whose connection has this request number.
  func index(connection id: UInt32) -> Int? { all.firstIndex { $0.isStream && $0.id == id } }

  /// Whether a server was requested from a base already.
  func isKnown(
    _ server: ICEServer, at address: SocketAddress, from base: SocketAddress, of generation: UInt32
  ) -> Bool {
    all.contains {
      $0.generation == generation && $0.address == address
        && $0.server.transport == server.transport
        && ($0.isStream ? $0.base.ip == base.ip : $0.base == base)
    }
  }

  /// The relayed addresses of a generation.
  func bases(of generation: UInt32) -> [SocketAddress] {
    all.filter { $0.generation == generation }.compactMap(\.client.relayed)
  }

  /// Whether an allocation is still pending.
  var isAllocating: Bool { all.contains { $0.client.isAllocating } }

  /// When a relay is due next.
  var deadline: Instant? {
    var next: Instant?
    for relay in all { next = earliest(next, relay.wakeAt) }
    return next
  }

  // MARK: Life

  /// Adds a relay, to be requested at an instant.
  mutating func add(
    _ id: UInt32, _ server: ICEServer, at address: SocketAddress, _ credentials: TURNCredentials,
    from base: SocketAddress, of generation: UInt32, localPreference: UInt16, due: Instant,
    _ entropy: EntropyStream
  ) {
    let isStream = server.transport != .udp
    all.append(
      Relay(
        id: id, generation: generation, server: server, address: address,
        base: isStream ? SocketAddress(base.ip, port: 0) : base,
        localPreference: localPreference - server.transport.drawback,
        client: TURNClient(
          credentials: credentials, isReliable: isStream, wantsIPv6: !base.ip.isIPv4,
          entropy: entropy),
        beginAt: due))
  }

  /// Returns the due action for a relay.
  mutating func removeDue(_ index: Int, at now: Instant) -> Due {
    if let due = all[index].beginAt {
      guard due <= now else { return .nothing }
      all[index].beginAt = nil
      return .begin
    }
    if let due = all[index].connectBy { return due <= now ? .abandon : .nothing }
    guard let due = all[index].client.deadline, due <= now else { return .nothing }
    return .deadline
  }

  /// Waits for a connection to the server.
  mutating func connect(_ index: Int, at now: Instant) {
    all[index].connectBy = now + ICETiming.connectWait
  }

  /// Registers a connection to a server; returns the relay that waits for it.
  mutating func connected(_ id: UInt32, at address: SocketAddress) -> Int? {
    let index = all.firstIndex { $0.isStream && $0.id == id && $0.connectBy != nil }
    guard let index else { return nil }
    all[index].connectBy = nil
    all[index].base = address
    return index
  }

  /// Stops waiting for a connection.
  mutating func abandonConnecting(_ index: Int) { all[index].connectBy = nil }

  /// Records that the system refused to send to the server.
  mutating func refuse(_ index: Int) -> Refusal {
    if all[index].isStream { return .lost }
    all[index].sendFailures += 1
    return all[index].sendFailures >= 3 && all[index].client.isAllocating ? .unreachable : .nothing
  }

  /// Requests a lost allocation of the current generation again, a few times.
  mutating func renew(
    _ index: Int, of generation: UInt32, _ numbers: inout RequestNumbers,
    _ entropy: EntropyStream, at now: Instant
  ) {
    let renewals = all[index].renewals
    guard all[index].generation == generation, renewals < Self.renewalsMaximum,
      all[index].server.credentials != nil
    else { return }
    all[index].renewals += 1
    // At once the first time, later ones after a while that doubles.
    let wait = renewals == 0 ? Interval.zero : .seconds(1 << Int64(renewals - 1))
    beginAnew(index, &numbers, entropy, at: now + wait)
  }

  /// Whether a server that another one names is turned to (RFC 8489 section 10).
  func mayRedirect(_ index: Int, to server: SocketAddress) -> Bool {
    let relay = all[index]
    return relay.redirections < Self.redirectionsMaximum
      && server.ip.isIPv4 == relay.address.ip.isIPv4 && server != relay.address
      && relay.server.credentials != nil
  }

  /// Turns to another server.
  mutating func redirect(
    _ index: Int, to server: SocketAddress, _ numbers: inout RequestNumbers,
    _ entropy: EntropyStream, at now: Instant
  ) {
    all[index].address = server
    all[index].redirections += 1
    beginAnew(index, &numbers, entropy, at: now)
  }

  private mutating func beginAnew(
    _ index: Int, _ numbers: inout RequestNumbers, _ entropy: EntropyStream, at due: Instant
  ) {
    guard let credentials = all[index].server.credentials else { return }
    all[index].id = numbers.next()
    if all[index].isStream { all[index].base.port = 0 }
    all[index].client = TURNClient(
      credentials: credentials, isReliable: all[index].isStream,
      wantsIPv6: !all[index].base.ip.isIPv4, entropy: entropy)
    all[index].beginAt = due
  }

  /// Removes the relays that are finished, and returns them.
  mutating func removeOver() -> [Relay] {
    defer { all.removeAll(where: \.isOver) }
    return all.filter(\.isOver)
  }

  /// Removes some relays.
  mutating func remove(where isGone: (Relay) -> Bool) { all.removeAll(where: isGone) }

  // MARK: Clients

  /// Steps the client of a relay; returns its outputs, whose storage is reused after `recycle`.
  mutating func step(
    _ index: Int, _ input: TURNClient.Input, at now: Instant
  ) -> Outbox<TURNClient.Output> {
    var outputs = Outbox<TURNClient.Output>()
    swap(&outputs, &storage)
    all[index].client.step(input, at: now, into: &outputs)
    return outputs
  }

  /// Keeps the storage of handled outputs for the next step.
  mutating func recycle(_ outputs: consuming Outbox<TURNClient.Output>) { storage = outputs }
}

extension ICEServer.Transport {
  /// The deduction from the priority of a relay reached over this transport: TCP stalls on loss.
  fileprivate var drawback: UInt16 {
    switch self {
    case .udp: 0
    case .tcp: 0x4000
    case .tls: 0x8000 - 0x1000
    }
  }
}
