package import Wire

/// A seeded network in virtual time that delays, loses and duplicates datagrams.
///
/// It has hosts, some behind NATs, and a STUN and TURN server. All random numbers come from one
/// seeded stream, so that a run can be repeated exactly.
package struct VirtualNetwork {
  /// A datagram that reached a socket, with its endpoints as the receiving host sees them.
  package struct Arrival: Sendable {
    package var at: Instant
    package var host: Int
    package var local: SocketAddress
    package var remote: SocketAddress
    package var bytes: [UInt8]
  }

  /// A datagram in flight, with its endpoints as seen from the outside.
  private struct Flight {
    var at: Instant
    var order: UInt64
    var source: SocketAddress
    var destination: SocketAddress
    var bytes: [UInt8]
  }

  /// A NAT, the host behind it, and those of the host's addresses that the NAT hides.
  private struct Home {
    var host: Int
    var inside: [IPAddress]
    var nat: VirtualNAT
  }

  /// The links, by host number.
  ///
  /// A host's datagrams use its own link; those from the server and from responders use the
  /// destination's.
  package var links: [LinkSettings]
  /// The addresses that are cut off, as seen from the outside.
  package var outage = VirtualOutage()
  /// The firewall's rule: returns whether a datagram passes, given its endpoints as seen from the
  /// outside.
  package var passes: (_ source: SocketAddress, _ destination: SocketAddress) -> Bool = { _, _ in
    true
  }
  /// Returns the additional delay between two endpoints.
  package var extraDelay: (_ source: SocketAddress, _ destination: SocketAddress) -> Interval = {
    _, _ in .zero
  }
  /// A middlebox that replaces a datagram with others, each after a delay; nil if there is none.
  package var box:
    (
      (_ source: SocketAddress, _ destination: SocketAddress, _ bytes: [UInt8], _ at: Instant)
        -> [(bytes: [UInt8], after: Interval)]
    )?
  /// Whether about every third datagram is mutated, at random.
  package var mutates = false
  package var server: VirtualTURNServer?
  /// Endpoints without a host, which may answer each datagram.
  package var responders: [SocketAddress: (_ source: SocketAddress, [UInt8]) -> [UInt8]?] = [:]
  package private(set) var sent = 0
  /// The number of datagrams lost at random, in a full queue or an outage, or at a NAT, firewall or
  /// middlebox.
  package private(set) var lost = 0

  private var homes: [Home] = []
  private var sockets: [(address: SocketAddress, host: Int)] = []
  private let chance: EntropyStream
  /// The time at which each link's bottleneck becomes free.
  private var free: [Instant]
  private var order: UInt64 = 0
  /// Datagrams in flight, latest first, so that the next one is at the end.
  private var flights: [Flight] = []

  package init(entropy: EntropyStream, links: [LinkSettings] = []) {
    chance = entropy
    self.links = links
    free = links.map { _ in .zero }
  }

  /// The next datagram's arrival time; nil if none is in flight.
  package var nextArrival: Instant? { flights.last?.at }

  /// Adds a host with its link, and returns its number.
  package mutating func addHost(_ link: LinkSettings) -> Int {
    links.append(link)
    free.append(.zero)
    return links.count - 1
  }

  /// Puts some of a host's addresses behind a NAT; other hosts reach them only at the NAT's
  /// address.
  package mutating func hide(_ host: Int, at inside: [IPAddress], behind nat: VirtualNAT) {
    homes.append(Home(host: host, inside: inside, nat: nat))
  }

  /// Makes a host's NAT forget its mappings, as after a restart: it then maps to other ports.
  package mutating func rebind(_ host: Int) {
    for place in homes.indices where homes[place].host == host { homes[place].nat.forget() }
  }

  package mutating func bind(_ address: SocketAddress, of host: Int) {
    sockets.append((address, host))
  }

  /// Closes a socket; later arrivals are dropped.
  package mutating func close(_ address: SocketAddress) {
    sockets.removeAll { $0.address == address }
  }

  /// Closes a host's sockets at all addresses except `addresses`, which the host keeps.
  package mutating func restrict(_ host: Int, to addresses: [IPAddress]) {
    sockets.removeAll { $0.host == host && !addresses.contains($0.address.ip) }
  }

  package mutating func send(
    _ bytes: [UInt8], from source: SocketAddress, to destination: SocketAddress, of host: Int,
    at now: Instant
  ) {
    var visible = source
    if let home = homes.firstIndex(where: { $0.host == host && $0.inside.contains(source.ip) }) {
      visible = homes[home].nat.outbound(source, to: destination, at: now)
    }
    launch(bytes, from: visible, to: destination, over: host, at: now)
  }

  /// Sends a datagram from an endpoint without a host.
  package mutating func inject(
    _ bytes: [UInt8], from source: SocketAddress, to destination: SocketAddress, at now: Instant
  ) {
    guard let host = host(at: destination) else { return }
    launch(bytes, from: source, to: destination, over: host, at: now)
  }

  /// Returns the next arrival at a host by `limit`, or nil if there is none; datagrams for the
  /// server or a responder are delivered on the way.
  package mutating func next(until limit: Instant) -> Arrival? {
    while let flight = flights.last, flight.at <= limit {
      flights.removeLast()
      if flight.destination.ip == server?.address.ip {
        serve(flight.bytes, from: flight.source, to: flight.destination, at: flight.at)
      } else if let responder = responders[flight.destination] {
        guard let answer = responder(flight.source, flight.bytes) else { continue }
        inject(answer, from: flight.destination, to: flight.source, at: flight.at)
      } else if let arrival = arrival(of: flight) {
        return arrival
      }
    }
    return nil
  }

  /// Returns the host that owns an endpoint, or that is behind the NAT with the endpoint's address;
  /// nil if there is none.
  private func host(at end: SocketAddress) -> Int? {
    homes.first { $0.nat.address == end.ip }?.host ?? sockets.first { $0.address == end }?.host
  }

  /// Passes a datagram to the server; nothing is lost between two of the server's endpoints.
  private mutating func serve(
    _ bytes: [UInt8], from source: SocketAddress, to destination: SocketAddress, at now: Instant
  ) {
    let departures = server?.receive(bytes, from: source, to: destination, at: now) ?? []
    for departure in departures {
      let (source, destination) = (departure.source, departure.destination)
      if destination.ip == server?.address.ip {
        serve(departure.bytes, from: source, to: destination, at: now)
      } else {
        inject(departure.bytes, from: source, to: destination, at: now)
      }
    }
  }

  /// Returns the arrival of a flight; nil if a NAT filters it or no socket is bound there.
  private mutating func arrival(of flight: Flight) -> Arrival? {
    var local = flight.destination
    if let home = homes.first(where: { $0.nat.address == local.ip }) {
      guard let inner = home.nat.inbound(local, from: flight.source, at: flight.at) else {
        lost += 1
        return nil
      }
      local = inner
    }
    guard let socket = sockets.first(where: { $0.address == local }) else { return nil }
    return Arrival(
      at: flight.at, host: socket.host, local: local, remote: flight.source, bytes: flight.bytes)
  }

  private mutating func launch(
    _ bytes: [UInt8], from source: SocketAddress, to destination: SocketAddress, over host: Int,
    at now: Instant
  ) {
    guard let box else {
      carry(bytes, from: source, to: destination, over: host, after: .zero, at: now)
      return
    }
    let pieces = box(source, destination, bytes, now)
    if pieces.isEmpty { (sent, lost) = (sent + 1, lost + 1) }
    for piece in pieces {
      carry(piece.bytes, from: source, to: destination, over: host, after: piece.after, at: now)
    }
  }

  private mutating func carry(
    _ bytes: [UInt8], from source: SocketAddress, to destination: SocketAddress, over host: Int,
    after wait: Interval, at now: Instant
  ) {
    sent += 1
    // Private addresses behind a NAT are unreachable from outside.
    guard !homes.contains(where: { $0.inside.contains(destination.ip) }),
      passes(source, destination), !outage.swallows(from: source.ip, to: destination.ip),
      let departure = departure(of: bytes.count, over: host, at: now),
      chance.integer(below: 1000) >= links[host].lossPerMille
    else {
      lost += 1
      return
    }
    let link = links[host]
    let copies = chance.integer(below: 1000) < link.duplicatesPerMille ? 2 : 1
    for _ in 0..<copies {
      let extra =
        link.jitter > .zero
        ? Interval(nanoseconds: Int64(chance.integer(below: UInt64(link.jitter.nanoseconds))))
        : .zero
      let changed = mutates && chance.integer(below: 3) == 0 ? mutated(bytes) : bytes
      insert(
        Flight(
          at: departure + link.delay + extra + extraDelay(source, destination) + wait,
          order: order,
          source: source, destination: destination, bytes: changed))
      order += 1
    }
  }

  /// Returns the time at which a datagram leaves a link's bottleneck; nil if the queue is full.
  private mutating func departure(of size: Int, over host: Int, at now: Instant) -> Instant? {
    let link = links[host]
    guard let rate = link.bitsPerSecond, rate > 0 else { return now }
    let begin = max(now, free[host])
    guard begin - now <= link.queueLimit else { return nil }
    let bits = Int64(size + 28) * 8
    free[host] = begin + Interval(nanoseconds: bits * 1_000_000_000 / Int64(rate))
    return free[host]
  }

  private func mutated(_ bytes: [UInt8]) -> [UInt8] {
    guard !bytes.isEmpty else { return bytes }
    var bytes = bytes
    let place = Int(chance.integer(below: UInt64(bytes.count)))
    switch chance.integer(below: 3) {
    case 0: bytes[place] ^= 1 << (chance.byte() & 7)
    case 1: bytes.removeSubrange(place...)
    default: bytes.insert(chance.byte(), at: place)
    }
    return bytes
  }

  private mutating func insert(_ flight: Flight) {
    var low = 0
    var high = flights.count
    while low < high {
      let middle = (low + high) / 2
      let other = flights[middle]
      if (other.at, other.order) > (flight.at, flight.order) {
        low = middle + 1
      } else {
        high = middle
      }
    }
    flights.insert(flight, at: low)
  }
}

/// The impairments in one direction of a virtual path.
package struct LinkSettings: Hashable, Sendable {
  /// The base delay of every datagram.
  package var delay = Interval.milliseconds(10)
  /// The maximum delay added at random; if large enough, it reorders datagrams.
  package var jitter = Interval.zero
  /// Losses per thousand datagrams.
  package var lossPerMille: UInt64 = 0
  /// Duplicates per thousand datagrams.
  package var duplicatesPerMille: UInt64 = 0
  /// The bottleneck's rate in bits per second; nil if there is no bottleneck.
  package var bitsPerSecond: UInt64?
  /// The longest wait at the bottleneck; a datagram that would wait longer is lost.
  package var queueLimit = Interval.milliseconds(300)

  package init() {}
}

/// Addresses that a test cuts off for a while, without removing their interfaces.
package struct VirtualOutage: Hashable, Sendable {
  /// Addresses whose link is down in both directions.
  package var dead: [IPAddress] = []
  /// Addresses that can receive but not send.
  package var mute: [IPAddress] = []

  package init() {}

  /// Returns whether the outage drops a datagram between two addresses.
  func swallows(from source: IPAddress, to destination: IPAddress) -> Bool {
    dead.contains(source) || dead.contains(destination) || mute.contains(source)
  }
}

// MARK: - VirtualNAT

/// A network address translator in virtual time (RFC 4787).
package struct VirtualNAT {
  /// The classic kinds, whose names are still in use (RFC 3489 section 5).
  package enum Kind: String, CaseIterable, Sendable {
    /// One mapping per inner endpoint; any endpoint may answer.
    case fullCone
    /// One mapping per inner endpoint; addresses that the inner endpoint sent to may answer.
    case addressRestricted
    /// One mapping per inner endpoint; endpoints that the inner endpoint sent to may answer.
    case portRestricted
    /// One mapping per pair of endpoints; only the pair's remote endpoint may answer.
    case symmetric
  }

  private struct Mapping {
    let inner: SocketAddress
    let outer: SocketAddress
    /// The remote endpoint of the mapping; nil unless the NAT is symmetric.
    let remote: SocketAddress?
    var sentTo: [SocketAddress] = []
    var usedAt: Instant
  }

  package let kind: Kind
  package let address: IPAddress
  /// The lifetime of a mapping without outbound traffic (RFC 4787 REQ-5: 2 minutes or more).
  package var lifetime = Interval.seconds(120)
  private var mappings: [Mapping] = []
  private var nextPort: UInt16 = 61_000

  package init(_ kind: Kind, address: IPAddress) {
    self.kind = kind
    self.address = address
  }

  /// Returns the outer endpoint of an outbound datagram; creates the mapping and permits the
  /// answer.
  package mutating func outbound(
    _ inner: SocketAddress, to remote: SocketAddress, at now: Instant
  ) -> SocketAddress {
    mappings.removeAll { $0.usedAt + lifetime < now }
    let index =
      mappings.firstIndex {
        $0.inner == inner && (kind != .symmetric || $0.remote == remote)
      } ?? add(inner, remote, now)
    mappings[index].usedAt = now
    if !mappings[index].sentTo.contains(remote) { mappings[index].sentTo.append(remote) }
    return mappings[index].outer
  }

  /// Returns the inner endpoint for an inbound datagram; nil if it is filtered.
  package func inbound(_ outer: SocketAddress, from remote: SocketAddress, at now: Instant)
    -> SocketAddress?
  {
    guard let mapping = mappings.first(where: { $0.outer == outer }),
      mapping.usedAt + lifetime >= now
    else { return nil }
    switch kind {
    case .fullCone: return mapping.inner
    case .addressRestricted:
      return mapping.sentTo.contains { $0.ip == remote.ip } ? mapping.inner : nil
    case .portRestricted, .symmetric: return mapping.sentTo.contains(remote) ? mapping.inner : nil
    }
  }

  /// Drops all mappings, as a restart does.
  package mutating func forget() { mappings = [] }

  private mutating func add(_ inner: SocketAddress, _ remote: SocketAddress, _ now: Instant) -> Int
  {
    let outer = SocketAddress(address, port: nextPort)
    nextPort &+= 1
    mappings.append(
      Mapping(
        inner: inner, outer: outer, remote: kind == .symmetric ? remote : nil, usedAt: now))
    return mappings.count - 1
  }
}
