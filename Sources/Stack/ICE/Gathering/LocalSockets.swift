import Wire

/// The sockets that an agent asked the system for, and how much each is preferred.
struct LocalSockets {
  /// A socket that was asked for, and its endpoint once it is open.
  struct Socket {
    let id: UInt32
    let generation: UInt32
    let asked: IPAddress
    let localPreference: UInt16
    /// Whether connections come to it; else datagrams.
    let isListener: Bool
    fileprivate(set) var address: SocketAddress?
  }

  static let maximum = 32

  private(set) var all: [Socket] = []
  /// How many addresses were asked for in this generation: the next one gets the next lower
  /// preference.
  private var asked: UInt16 = 0

  var isFull: Bool { all.count >= Self.maximum }

  /// The open socket with an endpoint.
  func socket(at address: SocketAddress) -> Socket? {
    for socket in all where socket.address == address { return socket }
    return nil
  }

  /// Whether an address has a socket already, open or not.
  func isAsked(_ address: IPAddress, of generation: UInt32) -> Bool {
    all.contains { $0.generation == generation && $0.asked == address }
  }

  /// Whether a socket was asked for that is not open yet.
  func isWaiting(of generation: UInt32) -> Bool {
    all.contains { $0.generation == generation && $0.address == nil }
  }

  /// Whether something can be sent to an address at all.
  func reaches(_ ip: IPAddress) -> Bool { all.contains { $0.asked.isIPv4 == ip.isIPv4 } }

  /// The endpoints of a generation.
  func bases(of generation: UInt32) -> [SocketAddress] {
    all.filter { $0.generation == generation }.compactMap(\.address)
  }

  /// The local preference of the next address (RFC 8445 section 5.1.2.1).
  mutating func nextPreference() -> UInt16 {
    defer { asked += 1 }
    return 65535 - asked
  }

  /// Records that a socket was asked for.
  mutating func ask(
    _ id: UInt32, _ address: IPAddress, of generation: UInt32, localPreference: UInt16,
    isListener: Bool
  ) {
    all.append(
      Socket(
        id: id, generation: generation, asked: address, localPreference: localPreference,
        isListener: isListener))
  }

  /// Sets the endpoint of a socket; nil when nothing waits for it any more.
  mutating func bind(_ id: UInt32, _ address: SocketAddress) -> Socket? {
    guard let index = all.firstIndex(where: { $0.id == id }), all[index].address == nil else {
      return nil
    }
    all[index].address = address
    return all[index]
  }

  /// Forgets a socket.
  mutating func remove(_ id: UInt32) -> Socket? {
    guard let index = all.firstIndex(where: { $0.id == id }) else { return nil }
    return all.remove(at: index)
  }

  /// Forgets some sockets; the endpoints of those that are open.
  mutating func remove(where isOver: (Socket) -> Bool) -> [SocketAddress] {
    defer { all.removeAll(where: isOver) }
    return all.filter(isOver).compactMap(\.address)
  }

  /// Begins another generation.
  mutating func restart() { asked = 0 }
}
