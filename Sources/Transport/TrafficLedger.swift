package import Wire

/// What went over one candidate pair: the counters of W3C candidate-pair.
package struct PairTraffic {
  /// The number of the pair in its agent; 0 for addresses that were no pair yet.
  package let pair: UInt32
  package let local: SocketAddress
  package let remote: SocketAddress
  package var packetsSent: UInt64 = 0
  package var packetsReceived: UInt64 = 0
  package var bytesSent: UInt64 = 0
  package var bytesReceived: UInt64 = 0
  /// What the socket refused.
  package var packetsDiscarded: UInt64 = 0
  package var bytesDiscarded: UInt64 = 0
  package var lastSent: Instant?
  package var lastReceived: Instant?
}

/// The traffic of a transport by candidate pairs.
///
/// An ICE restart makes new pairs over old sockets; what goes over their addresses from then on
/// counts for the newest pair.
package struct TrafficLedger {
  private var entries: [PairTraffic] = []
  /// Where the last packet of each direction was counted: the next one is most likely there too.
  private var lastSending = 0
  private var lastReceiving = 0

  /// How many pairs are told apart; what goes over others counts in the transport's sums alone.
  private static let pairsMaximum = 256

  /// Takes note of a pair that may be new.
  mutating func begin(_ pair: UInt32, _ local: SocketAddress, _ remote: SocketAddress) {
    guard entries.count < TrafficLedger.pairsMaximum,
      !entries.contains(where: { $0.pair == pair && $0.remote == remote && $0.local == local })
    else { return }
    entries.append(PairTraffic(pair: pair, local: local, remote: remote))
    (lastSending, lastReceiving) = (entries.count - 1, entries.count - 1)
  }

  /// What went over a pair; nil when it is not known.
  package func traffic(of pair: UInt32, _ local: SocketAddress, _ remote: SocketAddress)
    -> PairTraffic?
  {
    entries.last { $0.pair == pair && $0.remote == remote && $0.local == local }
  }

  mutating func sent(
    _ bytes: Int, from local: SocketAddress, to remote: SocketAddress, at now: Instant
  ) {
    guard let index = place(local, remote, near: lastSending) else { return }
    lastSending = index
    entries[index].packetsSent += 1
    entries[index].bytesSent += UInt64(bytes)
    entries[index].lastSent = now
  }

  mutating func received(
    _ bytes: Int, at local: SocketAddress, from remote: SocketAddress, at now: Instant
  ) {
    guard let index = place(local, remote, near: lastReceiving) else { return }
    lastReceiving = index
    entries[index].packetsReceived += 1
    entries[index].bytesReceived += UInt64(bytes)
    entries[index].lastReceived = now
  }

  mutating func discarded(
    _ packets: Int, _ bytes: Int, from local: SocketAddress, to remote: SocketAddress
  ) {
    guard let index = place(local, remote, near: lastSending) else { return }
    entries[index].packetsDiscarded &+= UInt64(max(0, packets))
    entries[index].bytesDiscarded &+= UInt64(max(0, bytes))
  }

  private func place(_ local: SocketAddress, _ remote: SocketAddress, near guess: Int) -> Int? {
    if guess < entries.count, entries[guess].remote == remote, entries[guess].local == local {
      return guess
    }
    return entries.lastIndex { $0.remote == remote && $0.local == local }
  }
}
