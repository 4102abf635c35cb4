import Wire

/// Joins what gathering works with: sockets, connections, servers, requests to them, and local
/// candidates; owns its state (W3C RTCIceGatheringState).
struct Gatherer {
  private(set) var settings: ICESettings
  /// What takes the place of the settings once another generation begins.
  private var upcoming: ICESettings?
  private(set) var state = ICEGatheringState.new
  var sockets = LocalSockets()
  var connections = PeerConnections()
  var servers: ServerList
  var queries = ServerQueries()
  var candidates = LocalCandidates()
  private var names = HiddenNames()

  init(_ settings: ICESettings) {
    self.settings = settings
    servers = ServerList(settings.servers)
  }

  /// The settings of the generation that begins next.
  var nextSettings: ICESettings { upcoming ?? settings }

  /// Uses other servers from the next gathering on: the one under way, or done, keeps those that it
  /// has (W3C setConfiguration).
  mutating func use(_ servers: [ICEServer], relayOnly: Bool) {
    var next = settings
    (next.servers, next.relayOnly) = (servers, relayOnly)
    upcoming = next
    if state == .new { applyUpcoming() }
  }

  private mutating func applyUpcoming() {
    guard let next = upcoming else { return }
    upcoming = nil
    guard next != settings else { return }
    settings = next
    self.servers = ServerList(next.servers)
  }

  /// Enters a state; false when it is the current one.
  mutating func enter(_ new: ICEGatheringState) -> Bool {
    guard state != new else { return false }
    state = new
    return true
  }

  /// What a candidate shows of a local address: the address, or a name that only hosts of the same
  /// link can resolve; and whether that name is to be published.
  mutating func shown(
    _ ip: IPAddress, _ entropy: EntropyStream
  ) -> (host: ICECandidate.Host, published: String?) {
    guard settings.hidesAddresses else { return (.address(ip), nil) }
    let (name, isNew) = names.name(of: ip, entropy)
    return (.name(name), isNew ? name : nil)
  }

  /// Whether there is still a socket or a connection that a pair can send from, or connect from.
  func hasBase(_ pair: CandidatePair) -> Bool {
    if pair.isActive { return candidates.activeBases.contains { $0.ip == pair.base.ip } }
    if pair.local.isTCP { return connections.contains(pair.base, pair.target) }
    return sockets.socket(at: pair.base) != nil
  }

  /// Begins another generation.
  mutating func restart() {
    state = .new
    queries.removeAll()
    candidates.restart()
    sockets.restart()
    servers.restart()
    applyUpcoming()
  }
}
