import Testing
import Wire

@testable import ICE

/// Tests each part of a TURN client separately.
struct TURNPartTests {
  private let entropy = Entropy(seed: [4]).stream("ice")
  private let peer = SocketAddress(IPAddress(ipv4: 1), port: 5000)
  private let other = SocketAddress(IPAddress(ipv4: 2), port: 5000)

  private func at(_ seconds: Int64) -> Instant { .zero + .seconds(seconds) }

  private func error(_ code: UInt16, realm: String? = nil, nonce: [UInt8]? = nil) throws
    -> STUNMessage
  {
    var writer = STUNWriter(
      .error, method: .allocate, transactionID: STUNTransactionID(from: entropy))
    writer.errorCode(STUNErrorCode(code: code, reason: "no"))
    if let realm { writer.attribute(.realm, Array(realm.utf8)) }
    if let nonce { writer.attribute(.nonce, nonce) }
    return try STUNMessage(writer.finish())
  }

  private func request() -> STUNWriter {
    STUNWriter(.request, method: .allocate, transactionID: STUNTransactionID(from: entropy))
  }

  // MARK: Authentication

  @Test func credentialsAreSentOnceTheServerAsksForThem() throws {
    var authentication = ServerAuthentication(
      TURNCredentials(username: "user", password: "password"))
    let first = try STUNMessage(authentication.finish(request()))
    #expect(!first.hasIntegrity && first.realm == nil)
    let refusals = [
      authentication.learn(401, try error(401)), authentication.learn(486, try error(486)),
      authentication.learn(438, try error(438)),
    ]
    #expect(refusals == [false, false, false])
    let challenges = [
      authentication.learn(401, try error(401, realm: "here", nonce: [1])),
      // A second 401 with the same realm is a final refusal.
      authentication.learn(401, try error(401, realm: "here", nonce: [2])),
      authentication.learn(438, try error(438, nonce: [3])),
    ]
    #expect(challenges == [true, false, true])
    let second = try STUNMessage(authentication.finish(request()))
    let key = stunLongTermKey(username: "user", realm: "here", password: "password")
    #expect(second.verifiesIntegrity(key: key) && second.nonce == [3])
    #expect(second.realm == "here")
  }

  @Test func aSuccessMustBeAuthenticated() throws {
    var authentication = ServerAuthentication(
      TURNCredentials(username: "user", password: "password"))
    let success = try STUNMessage(
      STUNWriter(.success, method: .allocate, transactionID: STUNTransactionID(from: entropy))
        .finish())
    #expect(authentication.accepts(success))
    _ = authentication.learn(401, try error(401, realm: "here", nonce: [1]))
    let stale = try error(438)
    #expect(!authentication.accepts(success) && authentication.accepts(stale))
  }

  // MARK: Transactions

  @Test(arguments: [(false, 7, Int64(9750)), (true, 1, 9500)])
  func aRequestIsRepeatedOnlyOverUDP(isReliable: Bool, count: Int, end: Int64) {
    var transactions = ServerTransactions(isReliable: isReliable)
    let id = STUNTransactionID(from: entropy)
    transactions.begin(.refresh, id, [1], renewals: 0, at: .zero)
    #expect(transactions.contains(.refresh) && transactions.contains(id))
    var sent = 1
    var silent: [ServerTransactions.Purpose] = []
    var now = Instant.zero
    while let due = transactions.deadline {
      now = due
      let news = transactions.retransmitDue(at: now)
      sent += news.again.count
      silent += news.silent
    }
    #expect(sent == count && silent == [.refresh] && now == .zero + .milliseconds(end))
  }

  @Test func aRequestReplacesOneForTheSameChannel() {
    var transactions = ServerTransactions(isReliable: false)
    let ids = (0..<3).map { _ in STUNTransactionID(from: entropy) }
    transactions.begin(.channel(1), ids[0], [], renewals: 0, at: .zero)
    transactions.begin(.channel(2), ids[1], [], renewals: 0, at: .zero)
    transactions.begin(.channel(1), ids[2], [], renewals: 3, at: .zero)
    #expect(ids.map { transactions.contains($0) } == [false, true, true])
    let renewed = transactions.remove(ids[2])
    #expect(renewed?.purpose == .channel(1) && renewed?.mayRenew == false)
    #expect(transactions.remove(ids[2]) == nil)
    #expect(transactions.remove(ids[1])?.mayRenew == true)
  }

  // MARK: Allocation

  @Test func anAllocationIsRefreshedBeforeItExpires() {
    var allocation = Allocation(wantsIPv6: true)
    let begun = [allocation.begin(), allocation.begin()]
    let six = [allocation.fallBackToIPv4(), allocation.fallBackToIPv4()]
    #expect(begun == [true, false] && six == [true, false] && allocation.isOpen)
    let results = [
      allocation.apply(SocketAddress(IPAddress(ipv4: 0), port: 1), lifetime: 600, at: .zero),
      allocation.apply(SocketAddress(IPAddress(ipv4: 1), port: 0), lifetime: 600, at: .zero),
      allocation.apply(peer, lifetime: nil, at: .zero),
    ]
    #expect(results == [false, false, true] && allocation.isThere)
    #expect(allocation.refreshAt == at(540))
    let due = [allocation.consumeDue(at: at(539)), allocation.consumeDue(at: at(540))]
    #expect(due == [false, true] && allocation.refreshAt == nil)
    var times: [Instant?] = []
    for lifetime: UInt32 in [0, 100, 1_000_000] {
      allocation.prolong(lifetime, at: .zero)
      times.append(allocation.refreshAt)
    }
    #expect(times == [at(1), at(50), at(3540)])
    allocation.end()
    #expect(allocation.isOver && allocation.relayed == nil && allocation.refreshAt == nil)
  }

  // MARK: Permissions

  @Test func dataWaitsForThePermissionUpToALimit() {
    var permissions = Permissions()
    #expect(permissions.send([1], to: peer, at: .zero) == .refused)
    let isAdded = permissions.add(peer.ip, at: .zero)
    let passages = (0..<10).map { permissions.send([UInt8($0)], to: peer, at: .zero) }
    #expect(isAdded && passages.allSatisfy { $0 == .waiting })
    #expect(permissions.grant(peer.ip, at: .zero).map(\.bytes) == (0..<8).map { [UInt8($0)] })
    #expect(permissions.grant(peer.ip, at: .zero).isEmpty)
    #expect(permissions.send([1], to: peer, at: .zero) == .granted)
    let refusals = [permissions.refuse(peer.ip), permissions.refuse(other.ip)]
    #expect(refusals == [true, false])
    #expect(permissions.send([1], to: peer, at: .zero) == .refused)
    #expect(permissions.receive(from: peer.ip, at: .zero) == false && permissions.deadline == nil)
  }

  @Test func onlyPermissionsInUseAreRefreshed() {
    var permissions = Permissions()
    let ips = (1...4).map { IPAddress(ipv4: $0) }
    for ip in ips {
      _ = permissions.add(ip, at: .zero)
      _ = permissions.grant(ip, at: at(10))
    }
    permissions.use(ips[1], at: at(11))
    _ = permissions.receive(from: ips[2], at: at(12))
    #expect(permissions.deadline == at(250))
    let early = permissions.refreshDue(at: at(249)) { _ in false }
    let due = permissions.refreshDue(at: at(250)) { $0 == ips[3] }
    #expect(early.isEmpty && due == [ips[1], ips[2], ips[3]])
    #expect(!permissions.has(ips[0]) && permissions.deadline == nil)
    let added = (0..<200).count { permissions.add(IPAddress(ipv4: 100 + $0), at: .zero) }
    #expect(added == Permissions.maximum - 3)
  }

  // MARK: Channels

  @Test func aChannelNumberBelongsToOnePeer() {
    var channels = Channels()
    #expect(channels.mayAdd(peer))
    let first = channels.add(peer)
    let second = channels.add(other)
    #expect(first == ChannelData.numbers.lowerBound && second == first + 1)
    #expect(!channels.mayAdd(peer) && channels.bound(to: peer) == nil)
    #expect(channels.bind(first, at: .zero) == peer && channels.bind(9, at: .zero) == nil)
    #expect(channels.bound(to: peer) == first && channels.deadline == at(240))
    #expect(channels.refreshDue(at: at(240)) == [first] && channels.refreshDue(at: at(300)).isEmpty)
    // A channel that was never bound is removed; one that cannot be refreshed keeps its number.
    channels.refuse(second)
    channels.refuse(first)
    #expect(channels.peer(of: second) == nil && channels.peer(of: first) == peer)
    #expect(channels.bound(to: peer) == nil && channels.reach(peer.ip))
    #expect(!channels.reach(other.ip) && channels.mayAdd(other))
  }

  // MARK: Mapping

  @Test func keepalivesAreSentOnlyWhenIdle() {
    var mapping = MappingKeeper(isReliable: false)
    mapping.begin(at: .zero)
    mapping.recordSent(at: at(10))
    #expect(!mapping.isDue(at: at(24)) && mapping.isDue(at: at(25)))
    #expect(!mapping.isSilent(at: at(25)))
    mapping.settle()
    #expect(mapping.deadline == at(35) && mapping.isSilent(at: at(35)))
    mapping.end()
    #expect(mapping.deadline == nil)
    var reliable = MappingKeeper(isReliable: true)
    reliable.begin(at: .zero)
    #expect(reliable.deadline == nil)
  }
}
