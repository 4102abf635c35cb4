package import Wire

/// Connections between hosts in virtual time that deliver everything in order; a lost segment is
/// retransmitted, which delays everything after it.
package struct VirtualStreams {
  /// A change of a connection or listener, or a received message.
  package enum Event: Sendable {
    /// The requested connection is established; the address is the local end.
    case connected(id: UInt32, SocketAddress)
    case refused(id: UInt32)
    /// A listener accepted a connection.
    case accepted(local: SocketAddress, remote: SocketAddress)
    case message(local: SocketAddress, remote: SocketAddress, bytes: [UInt8])
    /// The remote endpoint or the network closed the connection.
    case lost(local: SocketAddress, remote: SocketAddress)
  }

  /// An event, with its time and the host at which it happens.
  package struct Delivery: Sendable {
    package var at: Instant
    package var host: Int
    package var event: Event
  }

  private struct Direction {
    let host: Int
    let local: SocketAddress
    let remote: SocketAddress
    let remoteHost: Int
    /// The last message's arrival time; later messages do not overtake it.
    var lastArrival = Instant.zero
  }

  /// The delay of a segment that is not lost.
  package var delay = Interval.milliseconds(10)
  /// Losses per thousand segments; each loss delays its segment by `retransmission`.
  package var lossPerMille: UInt64 = 0
  package var retransmission = Interval.milliseconds(200)
  /// Whether connections are refused.
  package var refuses = false

  private let chance: EntropyStream
  private var listeners: [(address: SocketAddress, host: Int)] = []
  private var directions: [Direction] = []
  /// Events not returned yet, earliest first.
  private var pending: [Delivery] = []

  package init(entropy: EntropyStream) { chance = entropy }

  package var count: Int { directions.count / 2 }

  /// The time of the next event; nil if none is pending.
  package var nextArrival: Instant? { pending.first?.at }

  /// Returns the next event at or before an instant; nil if there is none.
  package mutating func next(until limit: Instant) -> Delivery? {
    guard let first = pending.first, first.at <= limit else { return nil }
    return pending.removeFirst()
  }

  package mutating func listen(at address: SocketAddress, of host: Int) {
    listeners.append((address, host))
  }

  /// Stops accepting connections; open ones stay open.
  package mutating func stopListening(at address: SocketAddress) {
    listeners.removeAll { $0.address == address }
  }

  /// Opens a connection; the outcome arrives after a round trip.
  package mutating func connect(
    id: UInt32, from local: SocketAddress, to remote: SocketAddress, of host: Int, at now: Instant
  ) {
    let trip = delay + penalty()
    guard !refuses, let listener = listeners.first(where: { $0.address == remote }) else {
      return insert(Delivery(at: now + trip + trip, host: host, event: .refused(id: id)))
    }
    directions.append(
      Direction(host: host, local: local, remote: remote, remoteHost: listener.host))
    directions.append(
      Direction(host: listener.host, local: remote, remote: local, remoteHost: host))
    insert(
      Delivery(
        at: now + trip, host: listener.host, event: .accepted(local: remote, remote: local)))
    insert(Delivery(at: now + trip + trip, host: host, event: .connected(id: id, local)))
  }

  /// Sends a message on a connection; returns false if no connection has these endpoints.
  package mutating func send(
    _ bytes: [UInt8], from local: SocketAddress, to remote: SocketAddress, at now: Instant
  ) -> Bool {
    guard
      let index = directions.firstIndex(where: { $0.local == local && $0.remote == remote })
    else { return false }
    let at = max(now + delay + penalty(), directions[index].lastArrival)
    directions[index].lastArrival = at
    insert(
      Delivery(
        at: at, host: directions[index].remoteHost,
        event: .message(local: remote, remote: local, bytes: bytes)))
    return true
  }

  /// Closes a connection from one end.
  package mutating func close(_ local: SocketAddress, _ remote: SocketAddress, at now: Instant) {
    guard let own = directions.first(where: { $0.local == local && $0.remote == remote }) else {
      return
    }
    remove(own)
    insert(
      Delivery(
        at: now + delay, host: own.remoteHost, event: .lost(local: remote, remote: local)))
  }

  /// Breaks all connections, as a middlebox does when it loses its state.
  package mutating func breakAll(at now: Instant) {
    for direction in directions {
      insert(
        Delivery(
          at: now, host: direction.host,
          event: .lost(local: direction.local, remote: direction.remote)))
    }
    directions = []
  }

  private mutating func remove(_ own: Direction) {
    directions.removeAll {
      $0.local == own.local && $0.remote == own.remote
        || $0.local == own.remote && $0.remote == own.local
    }
  }

  private func penalty() -> Interval {
    guard lossPerMille > 0 else { return .zero }
    var total = Interval.zero
    while chance.integer(below: 1000) < lossPerMille { total = total + retransmission }
    return total
  }

  private mutating func insert(_ delivery: Delivery) {
    let place = pending.firstIndex { $0.at > delivery.at } ?? pending.endIndex
    pending.insert(delivery, at: place)
  }
}
