import Wire

/// Joins the parts of gathering: sockets, connections, servers, requests to them, and local
/// candidates; owns its state (W3C RTCIceGatheringState).
struct Gatherer {
  private(set) var settings: ICESettings
  /// The settings of the next generation.
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

  /// Whether a socket or a connection still exists from which a pair can send or connect.
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

// MARK: - LocalSockets

/// The sockets that an agent requested, and their preferences.
struct LocalSockets {
  /// A requested socket, and its endpoint once it is open.
  struct Socket {
    let id: UInt32
    let generation: UInt32
    let asked: IPAddress
    let localPreference: UInt16
    /// Whether it accepts TCP connections; otherwise it receives datagrams.
    let isListener: Bool
    fileprivate(set) var address: SocketAddress?
  }

  static let maximum = 32

  private(set) var all: [Socket] = []
  /// How many addresses were requested in this generation: the next one gets the next lower
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

  /// Whether a requested socket is not open yet.
  func isWaiting(of generation: UInt32) -> Bool {
    all.contains { $0.generation == generation && $0.address == nil }
  }

  /// Whether any socket can send to an address.
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

  /// Records that a socket was requested.
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

  /// Removes a socket.
  mutating func remove(_ id: UInt32) -> Socket? {
    guard let index = all.firstIndex(where: { $0.id == id }) else { return nil }
    return all.remove(at: index)
  }

  /// Removes some sockets; returns the endpoints of the open ones.
  mutating func remove(where isOver: (Socket) -> Bool) -> [SocketAddress] {
    defer { all.removeAll(where: isOver) }
    return all.filter(isOver).compactMap(\.address)
  }

  /// Starts another generation.
  mutating func restart() { asked = 0 }
}

// MARK: - LocalCandidates

/// The local candidates and their foundations (RFC 8445 section 5.1.1).
struct LocalCandidates {
  /// A local candidate and the socket that it sends from.
  struct Candidate {
    let candidate: ICECandidate
    let base: SocketAddress
    /// The server that reported or allocated the address, for reflexive and relayed candidates.
    let server: ICEServer?
  }

  /// Candidates with equal keys share a foundation (RFC 8445 section 5.1.1.3).
  struct FoundationKey: Equatable {
    let kind: ICECandidate.Kind
    let base: IPAddress
    let server: IPAddress?
    var isTCP = false
  }

  static let maximum = 100

  private(set) var all: [Candidate] = []
  private var foundations: [FoundationKey] = []

  var isFull: Bool { all.count >= Self.maximum }

  /// The foundation of a kind of candidate, as a small number; the same for the whole session.
  mutating func foundation(_ key: FoundationKey) -> String {
    if let index = foundations.firstIndex(of: key) { return String(index + 1) }
    foundations.append(key)
    return String(foundations.count)
  }

  mutating func add(_ candidate: ICECandidate, base: SocketAddress, server: ICEServer? = nil) {
    all.append(Candidate(candidate: candidate, base: base, server: server))
  }

  /// Removes the candidates of a lost base; returns them.
  @discardableResult
  mutating func remove(base: SocketAddress) -> [ICECandidate] { remove { $0.base == base } }

  /// Removes the active candidates of lost addresses; returns them.
  mutating func removeActive(where isGone: (IPAddress) -> Bool) -> [ICECandidate] {
    remove { $0.candidate.tcpType == .active && isGone($0.base.ip) }
  }

  private mutating func remove(where isGone: (Candidate) -> Bool) -> [ICECandidate] {
    defer { all.removeAll(where: isGone) }
    return all.filter(isGone).map(\.candidate)
  }

  /// Begins another generation; foundations stay.
  mutating func restart() { all = [] }

  // MARK: Finding

  /// The candidate that is its own base: a host or a relayed one.
  func baseCandidate(of base: SocketAddress) -> ICECandidate? {
    for local in all
    where local.base == base && (local.candidate.kind == .host || local.candidate.kind == .relayed)
    {
      return local.candidate
    }
    return nil
  }

  /// The candidate of a base that peers see at an address.
  func candidate(_ base: SocketAddress, seenAt address: SocketAddress) -> ICECandidate? {
    all.first { $0.base == base && $0.candidate.address == address }?.candidate
  }

  /// Whether a mapping changes nothing, or another server reported it already, so that it is
  /// redundant (RFC 8445 section 5.1.3).
  func isRedundant(_ mapped: SocketAddress, base: SocketAddress) -> Bool {
    all.contains {
      $0.base == base && $0.candidate.address == mapped && $0.candidate.kind != .peerReflexive
    }
  }

  /// The addresses that connections can begin at.
  var activeBases: [SocketAddress] {
    all.filter { $0.candidate.tcpType == .active }.map(\.base)
  }

  /// The priority of the local candidate that a pair sends from.
  func priority(of pair: CandidatePair) -> UInt32 {
    baseCandidate(of: pair.base)?.priority ?? pair.local.priority
  }
}

/// Names that hide local addresses in candidates (draft-ietf-mmusic-mdns-ice-candidates section
/// 3.1.1), the same for the whole session.
struct HiddenNames {
  private var names: [(ip: IPAddress, name: String)] = []

  /// The name of an address, and whether it is new and has to be published.
  mutating func name(of ip: IPAddress, _ entropy: EntropyStream) -> (name: String, isNew: Bool) {
    for entry in names where entry.ip == ip { return (entry.name, false) }
    let name = "\(entropy.uuid()).local"
    names.append((ip, name))
    return (name, true)
  }
}
