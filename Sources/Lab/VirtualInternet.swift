package import Wire

/// Hosts, some behind NATs, and one STUN and TURN server, joined by paths that delay and lose.
///
/// Everything is drawn from one stream of randomness, so that a run can be repeated exactly.
package struct VirtualInternet {
  /// A datagram that has arrived at a host, as that host sees its ends.
  package struct Arrival: Sendable {
    package var at: Instant
    package var host: Int
    package var local: SocketAddress
    package var remote: SocketAddress
    package var bytes: [UInt8]
  }

  private struct Flight {
    var at: Instant
    var source: SocketAddress
    var destination: SocketAddress
    var bytes: [UInt8]
  }

  private struct Host {
    var addresses: [IPAddress]
    /// Which NAT it is behind.
    var nat: Int?
  }

  /// How many of a thousand datagrams are lost on every hop between a host and another end.
  package var lossPerMille: UInt64 = 0
  /// Whether a firewall drops every datagram.
  package var blocksDatagrams = false
  /// The addresses that are cut off, as they are seen on the outside.
  package var outage = VirtualOutage()
  /// What every datagram takes, and what chance adds to that at most.
  package var delay = Interval.milliseconds(20)
  package var jitter = Interval.milliseconds(5)
  package private(set) var nats: [VirtualNAT] = []
  package var server: VirtualTURNServer?

  private var hosts: [Host] = []
  private let chance: EntropyStream
  /// What is on its way, latest first.
  private var flights: [Flight] = []

  package init(entropy: EntropyStream) { chance = entropy }

  /// Adds a host; with a NAT it is alone behind it.
  package mutating func addHost(_ addresses: [IPAddress], nat: VirtualNAT? = nil) -> Int {
    var host = Host(addresses: addresses)
    if let nat {
      nats.append(nat)
      host.nat = nats.count - 1
    }
    hosts.append(host)
    return hosts.count - 1
  }

  /// Gives a host other addresses.
  package mutating func move(_ host: Int, to addresses: [IPAddress]) {
    hosts[host].addresses = addresses
  }

  /// When the next datagram arrives anywhere.
  package var nextArrival: Instant? { flights.last?.at }

  /// Takes a datagram from a host.
  package mutating func send(
    _ bytes: [UInt8], from source: SocketAddress, to destination: SocketAddress, of host: Int,
    at now: Instant
  ) {
    var visible = source
    if let nat = hosts[host].nat {
      // A private address of somebody else's leads nowhere.
      if isPrivate(destination.ip) { return }
      visible = nats[nat].outbound(source, to: destination, at: now)
    }
    launch(bytes, from: visible, to: destination, at: now)
  }

  /// The next arrival at a host at or before an instant; what the server gets, it handles.
  package mutating func next(until limit: Instant) -> Arrival? {
    while let flight = flights.last, flight.at <= limit {
      flights.removeLast()
      if let own = server, flight.destination.ip == own.address.ip {
        let departures =
          server?.receive(
            flight.bytes, from: flight.source, to: flight.destination, at: flight.at) ?? []
        for departure in departures {
          launch(
            departure.bytes, from: departure.source, to: departure.destination, at: flight.at)
        }
      } else if let arrival = arrival(of: flight) {
        return arrival
      }
    }
    return nil
  }

  private func arrival(of flight: Flight) -> Arrival? {
    for (index, host) in hosts.enumerated() {
      var local = flight.destination
      if let nat = host.nat {
        guard nats[nat].address == flight.destination.ip,
          let inner = nats[nat].inbound(flight.destination, from: flight.source, at: flight.at)
        else { continue }
        local = inner
      } else if !host.addresses.contains(flight.destination.ip) {
        continue
      }
      return Arrival(
        at: flight.at, host: index, local: local, remote: flight.source, bytes: flight.bytes)
    }
    return nil
  }

  private mutating func launch(
    _ bytes: [UInt8], from source: SocketAddress, to destination: SocketAddress, at now: Instant
  ) {
    // Between two relayed addresses of one server nothing gets lost.
    if blocksDatagrams || outage.swallows(from: source.ip, to: destination.ip) { return }
    let isInside = source.ip == destination.ip
    guard isInside || chance.integer(below: 1000) >= lossPerMille else { return }
    let extra = chance.integer(below: UInt64(max(jitter.nanoseconds, 1)))
    let at = isInside ? now : now + delay + Interval(nanoseconds: Int64(extra))
    let place = flights.lastIndex { $0.at > at }.map { $0 + 1 } ?? 0
    flights.insert(
      Flight(at: at, source: source, destination: destination, bytes: bytes), at: place)
  }

  private func isPrivate(_ ip: IPAddress) -> Bool { ip.isIPv4 && ip.bytes[0] == 10 }
}
