package import Wire

/// How one direction of a virtual path treats datagrams.
package struct LinkSettings: Hashable, Sendable {
  /// The time every datagram takes.
  package var delay = Interval.milliseconds(10)
  /// The most that chance adds to the delay; enough of it reorders datagrams.
  package var jitter = Interval.zero
  /// How many of a thousand datagrams are lost.
  package var lossPerMille: UInt64 = 0
  /// How many of a thousand datagrams arrive twice.
  package var duplicatesPerMille: UInt64 = 0
  /// The rate of the bottleneck in bits per second; nil for none.
  package var bitsPerSecond: UInt64?
  /// How long a datagram may wait before the bottleneck; one that would wait longer is lost.
  package var queueLimit = Interval.milliseconds(300)

  package init() {}
}

/// A seeded network in virtual time: what is sent comes out later, or not, or twice.
package struct VirtualNetwork {
  /// A datagram on its way.
  package struct Delivery: Sendable {
    package var at: Instant
    package var datagram: Datagram
    fileprivate var order: UInt64
  }

  /// The treatment of what each peer sends, by the number of the peer in its call.
  package var links: [LinkSettings]
  /// Datagrams that were lost by chance or by a full queue.
  package private(set) var lost = 0
  /// The addresses that are cut off, as they are seen on the outside.
  package var outage = VirtualOutage()

  /// A NAT, and the peer that is alone behind it with its address.
  private struct Home {
    var peer: Int
    var inside: IPAddress
    var nat: VirtualNAT
  }

  private var homes: [Home] = []
  private let chance: EntropyStream
  private var free: [Instant]
  private var order: UInt64 = 0
  /// Deliveries, latest first, so that the next one is at the end.
  private var pending: [Delivery] = []

  package init(entropy: EntropyStream, links: [LinkSettings]) {
    chance = entropy
    self.links = links
    free = links.map { _ in .zero }
  }

  /// When the next datagram arrives.
  package var nextArrival: Instant? { pending.last?.at }

  /// Puts a peer with its address behind a NAT, where others reach it by the NAT's address alone.
  package mutating func hide(_ peer: Int, at inside: IPAddress, behind nat: VirtualNAT) {
    homes.append(Home(peer: peer, inside: inside, nat: nat))
  }

  /// The peer that is behind a NAT with this address.
  func peer(behind address: IPAddress) -> Int? {
    homes.first { $0.nat.address == address }?.peer
  }

  /// Takes a datagram from a peer; what arrives has its ends swapped to the receiver's view.
  package mutating func send(_ datagram: Datagram, from peer: Int, at now: Instant) {
    var datagram = datagram
    if let home = homes.firstIndex(where: { $0.inside == datagram.local.ip }) {
      datagram.local = homes[home].nat.outbound(datagram.local, to: datagram.remote, at: now)
    }
    guard !homes.contains(where: { $0.inside == datagram.remote.ip }),
      !outage.swallows(from: datagram.local.ip, to: datagram.remote.ip)
    else {
      lost += 1
      return
    }
    let link = links[peer]
    var departure = now
    if let rate = link.bitsPerSecond, rate > 0 {
      let bits = Int64(datagram.bytes.count + 28) * 8
      let begin = max(now, free[peer])
      guard begin - now <= link.queueLimit else {
        lost += 1
        return
      }
      departure = begin + Interval(nanoseconds: bits * 1_000_000_000 / Int64(rate))
      free[peer] = departure
    }
    guard chance.integer(below: 1000) >= link.lossPerMille else {
      lost += 1
      return
    }
    let copies = chance.integer(below: 1000) < link.duplicatesPerMille ? 2 : 1
    for _ in 0..<copies {
      let extra =
        link.jitter > .zero
        ? Interval(nanoseconds: Int64(chance.integer(below: UInt64(link.jitter.nanoseconds))))
        : .zero
      insert(
        Delivery(
          at: departure + link.delay + extra,
          datagram: Datagram(
            local: datagram.remote, remote: datagram.local, bytes: datagram.bytes),
          order: order))
      order += 1
    }
  }

  /// The next datagram that arrives at or before an instant.
  package mutating func next(until limit: Instant) -> Delivery? {
    while let last = pending.last, last.at <= limit {
      pending.removeLast()
      if let delivery = inside(last) { return delivery }
      lost += 1
    }
    return nil
  }

  /// A delivery as the peer behind a NAT sees it; nil when the NAT keeps it out.
  private func inside(_ delivery: Delivery) -> Delivery? {
    let outer = delivery.datagram.local
    guard let home = homes.first(where: { $0.nat.address == outer.ip }) else { return delivery }
    guard let inner = home.nat.inbound(outer, from: delivery.datagram.remote, at: delivery.at)
    else { return nil }
    var delivery = delivery
    delivery.datagram.local = inner
    return delivery
  }

  private mutating func insert(_ delivery: Delivery) {
    var low = 0
    var high = pending.count
    while low < high {
      let middle = (low + high) / 2
      let other = pending[middle]
      if (other.at, other.order) > (delivery.at, delivery.order) {
        low = middle + 1
      } else {
        high = middle
      }
    }
    pending.insert(delivery, at: low)
  }
}
