import Wire

/// Owns the state of gathering (W3C RTCIceGatheringState) and its parts: sockets, connections,
/// servers, requests to them, and local candidates.
struct Gatherer {
  private(set) var settings: ICESettings
  /// Changed settings that the next generation will start with; nil if they are unchanged.
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

  /// The settings that the next generation will start with.
  var nextSettings: ICESettings { upcoming ?? settings }

  /// Changes the servers from the next gathering on; the current gathering keeps its servers (W3C
  /// setConfiguration).
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

  /// Enters a state; returns false if it is the current one.
  mutating func enter(_ new: ICEGatheringState) -> Bool {
    guard state != new else { return false }
    state = new
    return true
  }

  /// Returns what candidates show for a local address, and the name to publish if it is new.
  ///
  /// They show the address, or a name that only hosts on the same link can resolve.
  mutating func shown(
    _ ip: IPAddress, _ entropy: EntropyStream
  ) -> (host: ICECandidate.Host, published: String?) {
    guard settings.hidesAddresses else { return (.address(ip), nil) }
    let (name, isNew) = names.name(of: ip, entropy)
    return (.name(name), isNew ? name : nil)
  }

  /// Returns whether a pair can still send, that is, whether its socket or connection exists or,
  /// for an active TCP pair, the address to connect from.
  func hasBase(_ pair: CandidatePair) -> Bool {
    if pair.isActive { return candidates.activeBases.contains { $0.ip == pair.base.ip } }
    if pair.local.isTCP { return connections.contains(pair.base, pair.target) }
    return sockets.socket(at: pair.base) != nil
  }

  /// Resets gathering for another generation, and applies settings that were changed meanwhile.
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

/// The sockets that the agent requested, with their preferences.
struct LocalSockets {
  /// A requested socket, with its address once it is open.
  struct Socket {
    let id: UInt32
    let generation: UInt32
    let asked: IPAddress
    let localPreference: UInt16
    /// Whether the socket accepts TCP connections; otherwise it receives datagrams.
    let isListener: Bool
    fileprivate(set) var address: SocketAddress?
  }

  static let maximum = 32

  private(set) var all: [Socket] = []
  /// The number of addresses that this generation has requested; each has a lower preference than
  /// the previous one.
  private var asked: UInt16 = 0

  var isFull: Bool { all.count >= Self.maximum }

  func socket(at address: SocketAddress) -> Socket? {
    for socket in all where socket.address == address { return socket }
    return nil
  }

  /// Returns whether a socket was already requested for an address.
  func isAsked(_ address: IPAddress, of generation: UInt32) -> Bool {
    all.contains { $0.generation == generation && $0.asked == address }
  }

  /// Returns whether any socket that a generation requested is not open yet.
  func isWaiting(of generation: UInt32) -> Bool {
    all.contains { $0.generation == generation && $0.address == nil }
  }

  /// Returns whether any socket has the family of an address, and so can send to it.
  func reaches(_ ip: IPAddress) -> Bool { all.contains { $0.asked.isIPv4 == ip.isIPv4 } }

  /// Returns the addresses of a generation's open sockets.
  func bases(of generation: UInt32) -> [SocketAddress] {
    all.filter { $0.generation == generation }.compactMap(\.address)
  }

  /// Returns the next address's local preference (RFC 8445 section 5.1.2.1).
  mutating func nextPreference() -> UInt16 {
    defer { asked += 1 }
    return 65535 - asked
  }

  /// Records a requested socket, which has no address until `bind`.
  mutating func ask(
    _ id: UInt32, _ address: IPAddress, of generation: UInt32, localPreference: UInt16,
    isListener: Bool
  ) {
    all.append(
      Socket(
        id: id, generation: generation, asked: address, localPreference: localPreference,
        isListener: isListener))
  }

  /// Sets a socket's address; returns nil if no such socket waits for an address.
  mutating func bind(_ id: UInt32, _ address: SocketAddress) -> Socket? {
    guard let index = all.firstIndex(where: { $0.id == id }), all[index].address == nil else {
      return nil
    }
    all[index].address = address
    return all[index]
  }

  mutating func remove(_ id: UInt32) -> Socket? {
    guard let index = all.firstIndex(where: { $0.id == id }) else { return nil }
    return all.remove(at: index)
  }

  /// Removes matching sockets; returns the addresses of the open ones.
  mutating func remove(where isOver: (Socket) -> Bool) -> [SocketAddress] {
    defer { all.removeAll(where: isOver) }
    return all.filter(isOver).compactMap(\.address)
  }

  /// Starts again with the highest preference because another generation starts.
  mutating func restart() { asked = 0 }
}

// MARK: - LocalCandidates

/// The local candidates and their foundations (RFC 8445 section 5.1.1).
struct LocalCandidates {
  /// A local candidate and its base: the address of its socket, or its relayed address.
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

  /// Returns the foundation for a key as a small number, the same throughout the session.
  mutating func foundation(_ key: FoundationKey) -> String {
    if let index = foundations.firstIndex(of: key) { return String(index + 1) }
    foundations.append(key)
    return String(foundations.count)
  }

  mutating func add(_ candidate: ICECandidate, base: SocketAddress, server: ICEServer? = nil) {
    all.append(Candidate(candidate: candidate, base: base, server: server))
  }

  @discardableResult
  mutating func remove(base: SocketAddress) -> [ICECandidate] { remove { $0.base == base } }

  /// Removes and returns the active TCP candidates of lost addresses.
  mutating func removeActive(where isGone: (IPAddress) -> Bool) -> [ICECandidate] {
    remove { $0.candidate.tcpType == .active && isGone($0.base.ip) }
  }

  private mutating func remove(where isGone: (Candidate) -> Bool) -> [ICECandidate] {
    defer { all.removeAll(where: isGone) }
    return all.filter(isGone).map(\.candidate)
  }

  /// Removes all candidates because another generation starts; foundations stay.
  mutating func restart() { all = [] }

  // MARK: Lookup

  /// Returns the host or relayed candidate with this base; nil if there is none.
  func baseCandidate(of base: SocketAddress) -> ICECandidate? {
    for local in all
    where local.base == base && (local.candidate.kind == .host || local.candidate.kind == .relayed)
    {
      return local.candidate
    }
    return nil
  }

  /// Returns the candidate of a base that has the address seen by a peer; nil if there is none.
  func candidate(_ base: SocketAddress, seenAt address: SocketAddress) -> ICECandidate? {
    all.first { $0.base == base && $0.candidate.address == address }?.candidate
  }

  /// Returns whether a candidate of the base already shows a mapped address: either the host
  /// candidate, unless a name hides its address, or one from another server (RFC 8445 section
  /// 5.1.3).
  func isRedundant(_ mapped: SocketAddress, base: SocketAddress) -> Bool {
    all.contains {
      $0.base == base && $0.candidate.address == mapped && $0.candidate.kind != .peerReflexive
    }
  }

  /// The addresses that TCP connections can be opened from.
  var activeBases: [SocketAddress] {
    all.filter { $0.candidate.tcpType == .active }.map(\.base)
  }

  /// Returns the priority of the local candidate whose base a pair sends from.
  func priority(of pair: CandidatePair) -> UInt32 {
    baseCandidate(of: pair.base)?.priority ?? pair.local.priority
  }
}

/// Names that hide local addresses in candidates (draft-ietf-mmusic-mdns-ice-candidates
/// section 3.1.1), the same throughout the session.
struct HiddenNames {
  private var names: [(ip: IPAddress, name: String)] = []

  /// Returns an address's name, and whether it is new and has to be published.
  mutating func name(of ip: IPAddress, _ entropy: EntropyStream) -> (name: String, isNew: Bool) {
    for entry in names where entry.ip == ip { return (entry.name, false) }
    let name = "\(entropy.uuid()).local"
    names.append((ip, name))
    return (name, true)
  }
}
