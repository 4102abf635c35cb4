import Wire

/// The allocations on TURN servers: their requests and connections, and how many times they were
/// redirected or renewed.
///
/// The TURN clients here only produce outputs; the agent carries them out.
struct Relays {
  /// An allocation on a TURN server for one local address.
  struct Relay {
    /// The request id of the connection to the server, if the transport is TCP or TLS.
    fileprivate(set) var id: UInt32
    let generation: UInt32
    let server: ICEServer
    /// The server's address, which a redirection changes.
    fileprivate(set) var address: SocketAddress
    /// The local address; its port is 0 until a connection has one.
    fileprivate(set) var base: SocketAddress
    let localPreference: UInt16
    fileprivate var client: TURNClient
    /// When the allocation is requested (first requests are Ta apart).
    fileprivate var beginAt: Instant?
    /// When an attempt to connect is given up.
    fileprivate var connectBy: Instant?
    fileprivate var redirections = 0
    /// The number of times that a lost allocation was requested again.
    fileprivate var renewals = 0
    fileprivate var sendFailures = 0

    /// Whether the server is reached over a TCP or TLS connection opened for this allocation.
    var isStream: Bool { server.transport != .udp }
    /// The relayed address; nil before the server has assigned one.
    var relayed: SocketAddress? { client.relayed }
    var isAllocating: Bool { client.isAllocating }
    fileprivate var isOver: Bool { !client.isAllocating && !client.isAllocated }
    /// When the client needs its next step.
    var clientDeadline: Instant? { client.deadline }
    /// When the relay needs its next step.
    fileprivate var wakeAt: Instant? { beginAt ?? connectBy ?? client.deadline }
  }

  enum Due {
    case nothing
    case begin
    /// The connection to the server was not opened in time.
    case abandon
    case deadline
  }

  /// The consequence of a refused send.
  enum Refusal {
    case nothing
    /// The connection accepts no more data, so it is lost.
    case lost
    /// The server cannot be reached from here.
    case unreachable
  }

  static let maximum = 32
  private static let redirectionsMaximum = 3
  private static let renewalsMaximum = 5

  private(set) var all: [Relay] = []
  /// Storage for the clients' outputs, reused between messages.
  private var storage = Outbox<TURNClient.Output>()

  var isFull: Bool { all.count >= Self.maximum }
  var isEmpty: Bool { all.isEmpty }
  var indices: Range<Int> { all.indices }
  subscript(index: Int) -> Relay { all[index] }

  // MARK: Lookup

  func index(at relayed: SocketAddress) -> Int? {
    for index in all.indices where all[index].client.relayed == relayed { return index }
    return nil
  }

  /// Returns the index of the relay that uses a server from a local address; nil if none does.
  func index(from base: SocketAddress, to server: SocketAddress) -> Int? {
    for index in all.indices where all[index].address == server && all[index].base == base {
      return index
    }
    return nil
  }

  /// Returns the index of the relay whose connection has this request id; nil if there is none.
  func index(connection id: UInt32) -> Int? { all.firstIndex { $0.isStream && $0.id == id } }

  /// Returns whether an allocation on a server was already requested from a base.
  func isKnown(
    _ server: ICEServer, at address: SocketAddress, from base: SocketAddress, of generation: UInt32
  ) -> Bool {
    all.contains {
      $0.generation == generation && $0.address == address
        && $0.server.transport == server.transport
        && ($0.isStream ? $0.base.ip == base.ip : $0.base == base)
    }
  }

  /// Returns the relayed addresses from which a generation's pairs can send.
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

  // MARK: Lifecycle

  /// Adds a relay whose allocation is requested at `due`.
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

  /// Returns the action that is due for a relay; `begin` is due only once.
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

  /// Starts waiting for a connection to the server.
  mutating func connect(_ index: Int, at now: Instant) {
    all[index].connectBy = now + ICETiming.connectWait
  }

  /// Records an open connection to a server; returns the index of the relay that was waiting for
  /// it, or nil if none was.
  mutating func connected(_ id: UInt32, at address: SocketAddress) -> Int? {
    let index = all.firstIndex { $0.isStream && $0.id == id && $0.connectBy != nil }
    guard let index else { return nil }
    all[index].connectBy = nil
    all[index].base = address
    return index
  }

  /// Stops waiting for a connection.
  mutating func abandonConnecting(_ index: Int) { all[index].connectBy = nil }

  /// Counts a refused send to the server, and returns its consequence.
  mutating func refuse(_ index: Int) -> Refusal {
    if all[index].isStream { return .lost }
    all[index].sendFailures += 1
    return all[index].sendFailures >= 3 && all[index].client.isAllocating ? .unreachable : .nothing
  }

  /// Requests a lost allocation of the current generation again, up to a limit.
  mutating func renew(
    _ index: Int, of generation: UInt32, _ numbers: inout RequestNumbers,
    _ entropy: EntropyStream, at now: Instant
  ) {
    let renewals = all[index].renewals
    guard all[index].generation == generation, renewals < Self.renewalsMaximum,
      all[index].server.credentials != nil
    else { return }
    all[index].renewals += 1
    // The first renewal is immediate; the next ones wait 1, 2, 4 and 8 seconds.
    let wait = renewals == 0 ? Interval.zero : .seconds(1 << Int64(renewals - 1))
    beginAnew(index, &numbers, entropy, at: now + wait)
  }

  /// Returns whether to follow a redirection to another server (RFC 8489 section 10).
  func mayRedirect(_ index: Int, to server: SocketAddress) -> Bool {
    let relay = all[index]
    return relay.redirections < Self.redirectionsMaximum
      && server.ip.isIPv4 == relay.address.ip.isIPv4 && server != relay.address
      && relay.server.credentials != nil
  }

  /// Requests the allocation from another server.
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

  mutating func removeOver() -> [Relay] {
    defer { all.removeAll(where: \.isOver) }
    return all.filter(\.isOver)
  }

  mutating func remove(where isGone: (Relay) -> Bool) { all.removeAll(where: isGone) }

  // MARK: Clients

  /// Passes an input to a relay's client; returns the client's outputs, whose storage should be
  /// returned with `recycle`.
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
  /// The amount deducted from a relayed candidate's local preference for this transport; TCP and
  /// TLS rank lower because they stall on loss.
  fileprivate var drawback: UInt16 {
    switch self {
    case .udp: 0
    case .tcp: 0x4000
    case .tls: 0x8000 - 0x1000
    }
  }
}
