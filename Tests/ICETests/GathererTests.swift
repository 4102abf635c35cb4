import Testing
import Wire

@testable import ICE

/// Tests each part used in gathering separately.
struct GathererTests {
  private let entropy = Entropy(seed: [8]).stream("ice")
  private let server = SocketAddress(IPAddress(ipv4: 50), port: 3478)

  private func at(_ milliseconds: Int64) -> Instant { .zero + .milliseconds(milliseconds) }
  private func address(_ last: UInt32, _ port: UInt16 = 5000) -> SocketAddress {
    SocketAddress(IPAddress(ipv4: last), port: port)
  }

  @Test func aSocketIsBoundOnceWithDecreasingPreferences() {
    var sockets = LocalSockets()
    let preferences = [sockets.nextPreference(), sockets.nextPreference()]
    #expect(preferences == [65535, 65534])
    sockets.ask(1, IPAddress(ipv4: 9), of: 0, localPreference: 65535, isListener: false)
    #expect(sockets.isAsked(IPAddress(ipv4: 9), of: 0) && !sockets.isAsked(server.ip, of: 0))
    #expect(sockets.isWaiting(of: 0) && !sockets.isWaiting(of: 1))
    let bound = [1, 1, 2].map { sockets.bind($0, address(9))?.id }
    #expect(bound == [1, nil, nil] && sockets.bases(of: 0) == [address(9)])
    #expect(sockets.bases(of: 1) == [] && !sockets.isWaiting(of: 0))
    sockets.restart()
    let first = sockets.nextPreference()
    #expect(first == 65535)
    let closed = sockets.remove { $0.generation == 0 }
    #expect(closed == [address(9)] && sockets.all.isEmpty)
  }

  @Test func serverNamesAreResolvedOnceWithATimeout() {
    var servers = ServerList([
      ICEServer(host: .name("a"), port: 3478), ICEServer(host: .address(server.ip), port: 3478),
    ])
    var numbers = RequestNumbers(ordinal: 0)
    let asked = servers.namesToResolve(&numbers, at: .zero).map(\.id)
    let again = servers.namesToResolve(&numbers, at: .zero).map(\.id)
    #expect(asked == [1] && again == [] && servers.server(at: server) != nil)
    let isWaiting = servers.isWaiting(at: at(9499))
    #expect(isWaiting && servers.namesUntil == at(9500))
    let resolved = [servers.resolve(1, [IPAddress(ipv4: 7)]), servers.resolve(1, [])]
    #expect(resolved.map { $0?.addresses } == [[IPAddress(ipv4: 7)], nil])
    let isWaitingStill = servers.isWaiting(at: .zero)
    #expect(!isWaitingStill && servers.server(at: address(7, 3478)) != nil)
  }

  @Test func aBindingIsRequestedUntilAnsweredAndThenKeptAlive() {
    var queries = ServerQueries()
    let transaction = STUNTransactionID(from: entropy)
    queries.useTurn(at: .zero)
    #expect(queries.turn(at: .zero) == at(20) && queries.turn(at: at(30)) == at(30))
    queries.add(address(9), server, transaction, at: at(20))
    func due(_ now: Instant, keepsAlive: Bool = true) -> ServerQueries.Due {
      queries.removeDue(0, keepsAlive: keepsAlive, at: now)
    }
    #expect(due(at(19)) == .nothing && queries.deadline(keepsAlive: true) == at(20))
    #expect([due(at(20)), due(at(20))] == [.request, .nothing] && queries.isWaiting)
    let wrong = queries.receive(transaction, address(9), address(9))
    let outcomes = [queries.receive(transaction, address(9), server), nil]
    let repeated = queries.receive(transaction, address(9), server)
    #expect(wrong == nil && outcomes == [true, nil] && repeated == false && !queries.isWaiting)
    queries.keepAlive(address(9), server, at: .zero)
    #expect(due(at(15_000), keepsAlive: false) == .nothing)
    #expect(due(at(15_000)) == .keepAlive && queries.deadline(keepsAlive: true) == at(30_000))
    #expect(queries.deadline(keepsAlive: false) == nil)
    queries.removeFinished()
    #expect(queries.all.count == 1)
    queries.drop(from: address(9))
    #expect(queries.all.isEmpty)
  }

  @Test func aRequestThatCannotBeSentIsAbandoned() {
    var queries = ServerQueries()
    queries.add(address(9), server, STUNTransactionID(from: entropy), at: .zero)
    for _ in 0..<2 { queries.refuse(address(9), server) }
    #expect(queries.isWaiting)
    queries.refuse(address(9), server)
    queries.removeFinished()
    #expect(queries.all.isEmpty)
  }

  @Test func candidatesOfOneTypeAndBaseShareTheirFoundation() {
    var candidates = LocalCandidates()
    let keys: [LocalCandidates.FoundationKey] = [
      .init(kind: .host, base: address(1).ip, server: nil),
      .init(kind: .host, base: address(2).ip, server: nil),
      .init(kind: .host, base: address(1).ip, server: nil, isTCP: true),
      .init(kind: .host, base: address(1).ip, server: nil),
    ]
    #expect(keys.map { candidates.foundation($0) } == ["1", "2", "3", "1"])
    let host = ICECandidate(
      foundation: "1", priority: 5, host: .address(address(1).ip), port: 5000, kind: .host)
    var reflexive = host
    reflexive.kind = .serverReflexive
    reflexive.port = 6000
    candidates.add(reflexive, base: address(1))
    #expect(candidates.baseCandidate(of: address(1)) == nil)
    candidates.add(host, base: address(1))
    #expect(candidates.baseCandidate(of: address(1)) == host)
    #expect(candidates.isRedundant(address(1, 6000), base: address(1)))
    #expect(!candidates.isRedundant(address(1, 6001), base: address(1)))
    #expect(candidates.candidate(address(1), seenAt: address(1, 6000)) == reflexive)
    candidates.remove(base: address(1))
    #expect(candidates.all.isEmpty && candidates.foundation(keys[1]) == "2")
  }

  @Test func connectionsOfUnknownPeersAreLimitedAndExpire() {
    var connections = PeerConnections()
    var checklist = Checklist(after: 0)
    for port in 0..<16 as Range<UInt16> {
      #expect(connections.admitsStrangers(checklist))
      connections.open(address(1), address(2, port), at: .zero)
    }
    #expect(!connections.admitsStrangers(checklist))
    #expect(connections.deadline(checklist) == at(9500))
    let lost = [
      connections.lose(address(1), address(2, 3)), connections.lose(address(1), address(2, 3)),
    ]
    #expect(lost == [true, false] && connections.admitsStrangers(checklist))
    let early = connections.removeUnused(&checklist, at: at(9499))
    let late = connections.removeUnused(&checklist, at: at(9500))
    #expect(early == [] && late.count == 15 && connections.all.isEmpty)
  }

  @Test func aLostAllocationIsRetriedFiveTimesWithGrowingPauses() {
    var relays = Relays()
    var numbers = RequestNumbers(ordinal: 0)
    let credentials = TURNCredentials(username: "u", password: "p")
    let turn = ICEServer(
      host: .address(server.ip), port: 3478, transport: .tcp, credentials: credentials)
    relays.add(
      numbers.next(), turn, at: server, credentials, from: address(9), of: 0,
      localPreference: 65535, due: .zero, entropy)
    #expect(relays[0].base.port == 0 && relays[0].localPreference == 65535 - 0x4000)
    #expect(relays.isKnown(turn, at: server, from: address(9, 1), of: 0))
    guard case .begin = relays.removeDue(0, at: .zero) else {
      Issue.record("gathering does not begin")
      return
    }
    relays.connect(0, at: .zero)
    #expect(relays.deadline == at(9500) && relays.index(connection: 1) == 0)
    let connected = [relays.connected(2, at: address(9)), relays.connected(1, at: address(9))]
    #expect(connected == [nil, 0] && relays.index(from: address(9), to: server) == 0)
    var pauses: [Instant?] = []
    for _ in 0..<6 {
      relays.renew(0, of: 0, &numbers, entropy, at: .zero)
      pauses.append(relays.deadline)
      _ = relays.removeDue(0, at: .zero + .seconds(100))
    }
    #expect(pauses == [at(0), at(1000), at(2000), at(4000), at(8000), nil])
    relays.renew(0, of: 1, &numbers, entropy, at: .zero)
    #expect(numbers.last == 6)
    // Three redirections in a row are followed, a fourth is not.
    var redirections = 0
    while relays.mayRedirect(0, to: address(60 + UInt32(redirections))), redirections < 9 {
      let next = address(60 + UInt32(redirections))
      relays.redirect(0, to: next, &numbers, entropy, at: .zero)
      redirections += 1
    }
    #expect(redirections == 3 && relays[0].address == address(62))
    guard case .lost = relays.refuse(0) else {
      Issue.record("a connection that accepts no data was removed")
      return
    }
  }

  @Test func addressesAreHiddenByNamesAndGatheringRestarts() {
    var gatherer = Gatherer(ICESettings(hidesAddresses: true))
    let shown = (0..<2).map { _ in gatherer.shown(address(1).ip, entropy) }
    #expect(shown[0].published != nil && shown[1].published == nil)
    #expect(shown[0].host == shown[1].host && shown[0].host != .address(address(1).ip))
    let entered = [gatherer.enter(.gathering), gatherer.enter(.gathering)]
    #expect(entered == [true, false])
    gatherer.restart()
    #expect(gatherer.state == .new)
  }
}
