package import Wire

/// The traffic in one direction, and the instant of its last packet.
package struct TrafficCount {
  package private(set) var packets: UInt64 = 0
  package private(set) var bytes: UInt64 = 0
  /// The instant at which the last packet was counted; nil before the first.
  package private(set) var last: Instant?

  /// Counts a packet of this many bytes, and records the instant.
  mutating func add(_ size: Int, at now: Instant) {
    packets += 1
    bytes += UInt64(size)
    last = now
  }

  fileprivate mutating func add(_ other: TrafficCount) {
    packets += other.packets
    bytes += other.bytes
  }
}

/// A candidate pair's traffic: the counters of W3C candidate-pair.
package struct PairTotals {
  /// The pair's number in its agent.
  package let pair: UInt32
  package let local: SocketAddress
  package let remote: SocketAddress
  package fileprivate(set) var sent = TrafficCount()
  package fileprivate(set) var received = TrafficCount()
  /// The packets that the socket refused.
  package fileprivate(set) var packetsDiscarded: UInt64 = 0
  package fileprivate(set) var bytesDiscarded: UInt64 = 0
}

/// A transport's traffic without ICE's own messages.
package struct TransportCounters: Hashable, Sendable {
  package fileprivate(set) var packetsSent: UInt64 = 0
  package fileprivate(set) var packetsReceived: UInt64 = 0
  package fileprivate(set) var bytesSent: UInt64 = 0
  package fileprivate(set) var bytesReceived: UInt64 = 0
  package fileprivate(set) var selectedPairChanges: UInt64 = 0
}

/// A transport's traffic, in total and for each candidate pair, and the times at which ICE is
/// informed of it.
///
/// An ICE restart creates new pairs over the same sockets; traffic between their addresses then
/// counts for the newest pair.
package struct TrafficLedger {
  /// The minimum time between traffic reports to ICE.
  private static let reportInterval = Interval.milliseconds(500)

  package private(set) var total = TransportCounters()
  private var entries: [PairTotals] = []
  /// The index of the pair that was counted last; the next packet most likely belongs to it too, in
  /// either direction.
  private var lastPlace = 0
  private var receivedToldAt = Instant(nanoseconds: .min)
  private var sentToldAt = Instant(nanoseconds: .min)

  /// The maximum number of pairs; traffic on further pairs counts only in the totals.
  private static let pairsMaximum = 256

  /// Adds a pair unless it is known already or there are too many.
  mutating func begin(_ pair: UInt32, _ local: SocketAddress, _ remote: SocketAddress) {
    guard entries.count < TrafficLedger.pairsMaximum,
      !entries.contains(where: { $0.pair == pair && $0.remote == remote && $0.local == local })
    else { return }
    entries.append(PairTotals(pair: pair, local: local, remote: remote))
    lastPlace = entries.count - 1
  }

  /// Returns a pair's traffic; nil if the pair is unknown.
  package func traffic(of pair: UInt32, _ local: SocketAddress, _ remote: SocketAddress)
    -> PairTotals?
  {
    entries.last { $0.pair == pair && $0.remote == remote && $0.local == local }
  }

  /// Counts a packet in the totals, and for the newest pair with these addresses if there is one.
  mutating func count(
    _ size: Int, isInbound: Bool, _ local: SocketAddress, _ remote: SocketAddress, at now: Instant
  ) {
    if isInbound {
      total.packetsReceived += 1
      total.bytesReceived += UInt64(size)
    } else {
      total.packetsSent += 1
      total.bytesSent += UInt64(size)
    }
    guard let index = place(local, remote) else { return }
    if isInbound {
      entries[index].received.add(size, at: now)
    } else {
      entries[index].sent.add(size, at: now)
    }
  }

  /// Counts packets that the socket refused, for the newest pair with these addresses.
  mutating func countDiscarded(
    packets: Int, bytes: Int, _ local: SocketAddress, _ remote: SocketAddress
  ) {
    guard let index = place(local, remote) else { return }
    entries[index].packetsDiscarded &+= UInt64(max(0, packets))
    entries[index].bytesDiscarded &+= UInt64(max(0, bytes))
  }

  /// Whether the pairs' traffic does not exceed the transport's; asserted after each step in debug
  /// builds.
  var isConsistent: Bool {
    var (sent, received) = (TrafficCount(), TrafficCount())
    for entry in entries {
      sent.add(entry.sent)
      received.add(entry.received)
    }
    return sent.packets <= total.packetsSent && sent.bytes <= total.bytesSent
      && received.packets <= total.packetsReceived && received.bytes <= total.bytesReceived
  }

  mutating func countSelection() { total.selectedPairChanges += 1 }

  /// Returns whether to inform ICE of a received packet now, at most once per `reportInterval`.
  mutating func reportsReceived(at now: Instant) -> Bool {
    guard now - Self.reportInterval >= receivedToldAt else { return false }
    receivedToldAt = now
    return true
  }

  /// Returns whether to inform ICE of a sent packet now, at most once per `reportInterval`.
  mutating func reportsSent(at now: Instant) -> Bool {
    guard now - Self.reportInterval >= sentToldAt else { return false }
    sentToldAt = now
    return true
  }

  private mutating func place(_ local: SocketAddress, _ remote: SocketAddress) -> Int? {
    if lastPlace < entries.count, entries[lastPlace].remote == remote,
      entries[lastPlace].local == local
    {
      return lastPlace
    }
    let index = entries.lastIndex { $0.remote == remote && $0.local == local }
    if let index { lastPlace = index }
    return index
  }
}
