import STUN
import TURN
import Wire

/// Sockets, servers and own candidates of an agent.
struct ICEGathering {
  /// A server and its addresses once they are known.
  struct Server {
    let server: ICEServer
    var addresses: [IPAddress]?
    /// The number under which its name is being resolved.
    var nameID: UInt32?
  }

  /// A socket that was asked for, and its end point once it is open.
  struct Socket {
    let id: UInt32
    let epoch: UInt32
    let asked: IPAddress
    let localPreference: UInt16
    /// Whether connections come to it; else datagrams.
    var isListener = false
    var address: SocketAddress?
  }

  /// An open connection to the peer, or to whoever connected to a listener.
  struct Connection {
    let local: SocketAddress
    let remote: SocketAddress
    let openedAt: Instant
  }

  /// A question to a STUN server about the mapping of one socket.
  struct Query {
    let base: SocketAddress
    let server: SocketAddress
    let transaction: STUNTransactionID
    /// When the next request is due, or the question is given up; nil once it is answered.
    var nextAttempt: Instant?
    var attempts = 0
    var sendFailures = 0
    /// When the mapping is to be kept alive next.
    var keepAliveAt: Instant?
  }

  /// A TURN server that is asked for an allocation from one own address.
  struct Relay {
    /// Names the connection, when the transport is one.
    var id: UInt32
    let epoch: UInt32
    let server: ICEServer
    /// The server's end point; another one after a redirection.
    var address: SocketAddress
    /// The own end point; its port is 0 before a connection has one.
    var base: SocketAddress
    let localPreference: UInt16
    var client: TURNClient
    /// When the allocation is asked for (Ta between two first requests).
    var beginAt: Instant?
    /// When a connection that is being made is given up.
    var connectBy: Instant?
    var redirections = 0
    /// How often an allocation that was lost was asked for anew.
    var renewals = 0
    var sendFailures = 0
  }

  /// An own candidate and the socket that it sends from.
  struct LocalCandidate {
    var candidate: ICECandidate
    let base: SocketAddress
    /// Who told or gave the address, for reflexive and relayed candidates.
    var server: ICEServer?
  }

  /// What makes two candidates share a foundation (RFC 8445 section 5.1.1.3).
  struct FoundationKey: Equatable {
    let kind: ICECandidate.Kind
    let base: IPAddress
    let server: IPAddress?
    var isTCP = false
  }

  static let serversMaximum = 4
  static let socketsMaximum = 32
  static let localCandidatesMaximum = 100
  static let relaysMaximum = 32

  var servers: [Server]
  var sockets: [Socket] = []
  var queries: [Query] = []
  var relays: [Relay] = []
  var connections: [Connection] = []
  var candidates: [LocalCandidate] = []
  private var foundations: [FoundationKey] = []
  /// How many sockets were asked for in this epoch: the next one gets the next lower preference.
  var socketsAsked: UInt16 = 0
  /// When the next question may be asked for the first time (Ta).
  var nextQueryAt = Instant.zero
  /// When names of servers are no longer waited for.
  var namesUntil: Instant?

  init(_ servers: [ICEServer]) {
    self.servers = servers.prefix(ICEGathering.serversMaximum).map { server in
      guard case .address(let ip) = server.host else { return Server(server: server) }
      return Server(server: server, addresses: [ip])
    }
  }

  /// The foundation of a kind of candidate, as a small number; the same for the whole session.
  mutating func foundation(_ key: FoundationKey) -> String {
    if let index = foundations.firstIndex(of: key) { return String(index + 1) }
    foundations.append(key)
    return String(foundations.count)
  }

  /// The server at an end point.
  func server(at address: SocketAddress) -> ICEServer? {
    servers.first {
      $0.server.port == address.port && $0.addresses?.contains(address.ip) == true
    }?.server
  }

  /// The open socket with an end point.
  func socket(at address: SocketAddress) -> Socket? {
    for socket in sockets where socket.address == address { return socket }
    return nil
  }

  /// The relay whose allocation has an address.
  func relayIndex(at relayed: SocketAddress) -> Int? {
    for index in relays.indices where relays[index].client.relayed == relayed { return index }
    return nil
  }

  /// The relay that speaks to a server from an own end point.
  func relayIndex(from base: SocketAddress, to server: SocketAddress) -> Int? {
    for index in relays.indices
    where relays[index].address == server && relays[index].base == base { return index }
    return nil
  }

  /// The end points of an epoch that pairs can begin at: open sockets, relayed addresses, and
  /// addresses that connections can begin at.
  func bases(of epoch: UInt32) -> [SocketAddress] {
    sockets.filter { $0.epoch == epoch }.compactMap(\.address)
      + relays.filter { $0.epoch == epoch }.compactMap(\.client.relayed)
      + candidates.filter { $0.candidate.tcpType == .active }.map(\.base)
  }

  /// The candidate that is its own base (RFC 8445 section 5.1.1): a host or a relayed one.
  func baseCandidate(of base: SocketAddress) -> ICECandidate? {
    for local in candidates
    where local.base == base && (local.candidate.kind == .host || local.candidate.kind == .relayed)
    {
      return local.candidate
    }
    return nil
  }

  /// The priority of the own candidate that a pair sends from.
  func localPriority(_ pair: CandidatePair) -> UInt32 {
    baseCandidate(of: pair.base)?.priority ?? pair.local.priority
  }

  /// Whether there is still something that a pair can send from, or connect from.
  func hasBase(_ pair: CandidatePair) -> Bool {
    if pair.isActive {
      return candidates.contains {
        $0.candidate.tcpType == .active && $0.base.ip == pair.base.ip
      }
    }
    if pair.local.isTCP { return connectionIndex(pair.base, pair.target) != nil }
    return localPreference(of: pair.base) != nil
  }

  func connectionIndex(_ local: SocketAddress, _ remote: SocketAddress) -> Int? {
    connections.firstIndex { $0.local == local && $0.remote == remote }
  }

  /// How much the socket or relay of a base is preferred; nil when there is none.
  func localPreference(of base: SocketAddress) -> UInt16? {
    socket(at: base)?.localPreference ?? relayIndex(at: base).map { relays[$0].localPreference }
  }

  /// Forgets what belongs to the epoch before, but for the server's addresses.
  mutating func beginEpoch() {
    queries = []
    candidates = []
    socketsAsked = 0
    namesUntil = nil
  }
}

extension SocketAddress {
  /// What stands for an address that is not told (RFC 8839 section 5.1).
  static func hidden(isIPv4: Bool) -> SocketAddress {
    SocketAddress(isIPv4 ? IPAddress(ipv4: 0) : IPAddress(ipv6High: 0, low: 0), port: 0)
  }
}
