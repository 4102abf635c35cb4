import Wire

/// The channels to peers: their numbers, and when they are refreshed (RFC 8656 section 12).
struct Channels {
  /// A channel to a peer.
  private struct Channel {
    let number: UInt16
    let peer: SocketAddress
    var isBound = false
    var refreshAt: Instant?
  }

  static let maximum = 64

  private var all: [Channel] = []

  /// When one is prolonged.
  var deadline: Instant? {
    var deadline: Instant?
    for channel in all { deadline = earliest(deadline, channel.refreshAt) }
    return deadline
  }

  /// Whether a peer may get one: it has none, and there is room.
  func mayAdd(_ peer: SocketAddress) -> Bool {
    all.count < Self.maximum && !all.contains { $0.peer == peer }
  }

  /// The number of the channel to a peer, once data can go through it.
  func bound(to peer: SocketAddress) -> UInt16? {
    for channel in all where channel.isBound && channel.peer == peer { return channel.number }
    return nil
  }

  /// The peer of a channel.
  func peer(of number: UInt16) -> SocketAddress? {
    for channel in all where channel.number == number { return channel.peer }
    return nil
  }

  /// Whether a host has a channel.
  func reach(_ ip: IPAddress) -> Bool { all.contains { $0.peer.ip == ip } }

  /// Adds a channel that is asked for now; returns its number.
  mutating func add(_ peer: SocketAddress) -> UInt16 {
    // A number is used for one peer only, for as long as the allocation lasts.
    let number = (all.map(\.number).max() ?? ChannelData.numbers.lowerBound - 1) + 1
    all.append(Channel(number: number, peer: peer))
    return number
  }

  /// Records that the server knows a channel; returns its peer.
  mutating func bind(_ number: UInt16, at now: Instant) -> SocketAddress? {
    guard let index = all.firstIndex(where: { $0.number == number }) else { return nil }
    all[index].isBound = true
    all[index].refreshAt = now + TURNTiming.permissionRefresh
    return all[index].peer
  }

  /// Records that the server refused a channel or its refresh; indications still work.
  mutating func refuse(_ number: UInt16) {
    all.removeAll { $0.number == number && !$0.isBound }
    for index in all.indices where all[index].number == number {
      all[index].isBound = false
      all[index].refreshAt = nil
    }
  }

  /// Returns those that are to be prolonged now.
  mutating func refreshDue(at now: Instant) -> [UInt16] {
    var due: [UInt16] = []
    for index in all.indices {
      guard let at = all[index].refreshAt, at <= now else { continue }
      all[index].refreshAt = nil
      due.append(all[index].number)
    }
    return due
  }

  mutating func removeAll() { all = [] }
}
