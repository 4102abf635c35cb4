import Wire

/// The STUN and TURN servers, and how long their names are waited for.
struct ServerList {
  /// A server and its addresses once they are known.
  struct Server {
    let server: ICEServer
    fileprivate(set) var addresses: [IPAddress]?
    /// The number under which its name is being resolved.
    fileprivate var nameID: UInt32?
  }

  static let maximum = 4

  private(set) var all: [Server]
  /// When names of servers are no longer waited for.
  private(set) var namesUntil: Instant?

  init(_ servers: [ICEServer]) {
    all = servers.prefix(Self.maximum).map { server in
      guard case .address(let ip) = server.host else { return Server(server: server) }
      return Server(server: server, addresses: [ip])
    }
  }

  /// The server at an endpoint.
  func server(at address: SocketAddress) -> ICEServer? {
    all.first {
      $0.server.port == address.port && $0.addresses?.contains(address.ip) == true
    }?.server
  }

  /// The names that are to be resolved, for which is waited from now on.
  mutating func namesToResolve(
    _ numbers: inout RequestNumbers, at now: Instant
  ) -> [(id: UInt32, name: String)] {
    namesUntil = now + ICETiming.nameWait
    var names: [(UInt32, String)] = []
    for index in all.indices {
      guard case .name(let name) = all[index].server.host, all[index].addresses == nil,
        all[index].nameID == nil
      else { continue }
      let id = numbers.next()
      all[index].nameID = id
      names.append((id, name))
    }
    return names
  }

  /// Stores the addresses of a name; nil when nobody waits for them.
  mutating func resolve(_ id: UInt32, _ addresses: [IPAddress]) -> Server? {
    guard let index = all.firstIndex(where: { $0.nameID == id }) else { return nil }
    all[index].nameID = nil
    all[index].addresses = Array(addresses.prefix(2))
    return all[index]
  }

  /// Whether names are still waited for.
  mutating func isWaiting(at now: Instant) -> Bool {
    if let until = namesUntil, until <= now || !all.contains(where: { $0.nameID != nil }) {
      namesUntil = nil
    }
    return namesUntil != nil
  }

  /// Begins another generation; addresses stay known.
  mutating func restart() { namesUntil = nil }
}
