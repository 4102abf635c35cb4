import Lab
import Testing
import Wire

@testable import ICE

struct ChoiceTests {
  @Test func aMuchBetterLaterPathIsSelectedOnce() throws {
    let meeting = VirtualMeeting.nearby(seed: 1)
    let stun = ICEServer(host: .address(try #require(IPAddress("203.0.113.1"))), port: 3478)
    meeting.serve("203.0.113.1:3478")
    // Each end has one address at first, and the second end does not signal its candidates.
    let a = meeting.addEnd(["192.0.2.1"], servers: [stun])
    let b = meeting.addEnd(["198.51.100.1"], servers: [stun])
    meeting.introduce(a, b)
    b.signals = false
    a.learnPeer()
    b.learnPeer()
    b.gather()
    a.gather()
    // The peer's checks arrive from an unannounced address.
    #expect(meeting.run(for: .seconds(1)) { _ in a.agent.selectedPair?.nominated == true })
    #expect(a.agent.selectedPair?.remote.kind == .peerReflexive)
    meeting.run(for: .seconds(5))

    // Announcing a direct address adds one pair, which is the only pair of a better kind.
    let host = try #require(IPAddress("198.51.100.2"))
    b.addAddress(host)
    meeting.run(for: .milliseconds(10))
    let direct = try #require(b.candidates.last)
    a.step(.remoteCandidate(direct))
    #expect(meeting.run(for: .seconds(2)) { _ in a.agent.selectedPair?.remote == direct })
    meeting.run(for: .seconds(60))
    #expect(a.selections.count == 2 && b.selections.count == 2)
    #expect(b.agent.selectedPair?.base == direct.address)
    #expect(b.agent.selectedPair?.nominated == true)
  }

  @Test func aSlightlyBetterLaterPathChangesNothing() throws {
    let meeting = VirtualMeeting.nearby(seed: 7)
    let (a, b) = meeting.addPair(["192.0.2.1"], ["192.0.2.2"])
    meeting.start(a, b)
    meeting.run(for: .seconds(3))
    b.signals = false
    b.addAddress(try #require(IPAddress("192.0.2.3")))
    meeting.run(for: .milliseconds(10))
    var better = try #require(b.candidates.last)
    better.priority = .max
    a.step(.remoteCandidate(better))
    meeting.run(for: .seconds(60))
    #expect(a.agent.pairs.allSatisfy { $0.state == .succeeded })
    #expect(a.agent.pairs.count == 2)
    #expect(a.selections.count == 1 && b.selections.count == 1)
  }

  @Test func aNominationWaitsBrieflyForABetterPair() throws {
    for (delay, expected) in [(40, "192.0.2.1"), (900, "10.0.0.1")] {
      let meeting = VirtualMeeting.nearby(seed: 8)
      let (a, b) = meeting.addPair(["192.0.2.1", "10.0.0.1"], ["192.0.2.2", "10.0.0.2"])
      meeting.network.passes = { from, to in (from.ip.bytes[0] == 10) == (to.ip.bytes[0] == 10) }
      meeting.network.extraDelay = { from, _ in
        from.ip.bytes[0] == 10 ? .zero : .milliseconds(Int64(delay))
      }
      meeting.start(a, b)
      #expect(meeting.run(for: .seconds(1)) { _ in b.agent.selectedPair?.nominated == true })
      #expect(a.agent.selectedPair?.base.ip.description == expected)
      meeting.run(for: .seconds(20))
      // The late pair is not of a better kind, so it is not selected.
      #expect(a.agent.selectedPair?.base.ip.description == expected)
    }
  }

  @Test func pairsWithTheSameFoundationWaitOnlyForTheFirstRetry() throws {
    let meeting = VirtualMeeting.nearby(seed: 9)
    let node = meeting.addEnd(["192.0.2.1"])
    node.gather()
    let peer = Peer(meeting, node, ["192.0.2.2:5000"], isControlling: false)
    meeting.network.responders[try #require(SocketAddress("192.0.2.2:5003"))] =
      meeting.network.responders[peer.addresses[0]]
    meeting.network.responders[peer.addresses[0]] = { _, _ in nil }
    for port in 5001...5003 {
      node.step(
        .remoteCandidate(
          try ICECandidate(
            attribute: "candidate:0 1 udp \(20_000 - port) 192.0.2.2 \(port) typ host")))
    }
    meeting.run(for: .milliseconds(49))
    #expect(node.agent.pairs.map(\.state) == [.inProgress, .frozen, .frozen, .frozen])
    #expect(meeting.run(for: .seconds(2)) { _ in node.isConnected })
  }

  @Test func aDeadPathIsReplacedByAWorkingOne() throws {
    let (meeting, a, b) = VirtualMeeting.connected(
      ["192.0.2.1", "10.0.0.1"], ["192.0.2.2", "10.0.0.2"])
    let first = try #require(a.agent.selectedPair)
    let dead = first.base.ip.bytes[0]
    meeting.network.passes = { from, to in from.ip.bytes[0] != dead && to.ip.bytes[0] != dead }
    let cut = meeting.now
    #expect(
      meeting.run(for: .seconds(20)) { _ in
        a.isConnected && b.isConnected && a.agent.selectedPair?.id != first.id
          && a.agent.selectedPair?.nominated == true && b.agent.selectedPair?.nominated == true
      })
    #expect(meeting.now - cut < .seconds(10))
    meeting.run(for: .seconds(60))
    #expect(a.isConnected && b.isConnected)
    #expect(a.selections.count == 2)
    #expect(a.selections.last?.local == b.selections.last?.remote)
  }

  @Test func mediaMayBeSentBeforeNomination() throws {
    let meeting = VirtualMeeting.nearby(seed: 2)
    let (a, b) = meeting.addPair(["192.0.2.1"], ["192.0.2.2"])
    // The controlling side does not know the answer yet.
    b.learnPeer()
    a.gather()
    b.gather()
    meeting.run(for: .seconds(1))
    #expect(b.selections.count == 1)
    #expect(b.agent.selectedPair?.nominated == false)
    a.learnPeer()
    meeting.run(for: .seconds(1))
    #expect(b.agent.selectedPair?.nominated == true)
    #expect(b.selections.count == 1)
  }

  /// A controlling peer that sends plain messages from several addresses.
  private struct Peer {
    let node: MeetingEnd
    let meeting: VirtualMeeting
    let credentials = ICECredentials(usernameFragment: "peer", password: "password-of-the-peer-22")
    let addresses: [SocketAddress]

    init(
      _ meeting: VirtualMeeting, _ node: MeetingEnd, _ addresses: [String],
      isControlling: Bool = true
    ) {
      self.meeting = meeting
      self.node = node
      self.addresses = addresses.compactMap { SocketAddress($0) }
      let key = Array(credentials.password.utf8)
      for address in self.addresses {
        meeting.network.responders[address] = { from, bytes in
          guard let request = try? STUNMessage(bytes), request.messageClass == .request,
            request.verifiesIntegrity(key: key)
          else { return nil }
          var writer = STUNWriter(.success, transactionID: request.transactionID)
          writer.xorMappedAddress(from)
          return writer.finish(key: key)
        }
      }
      node.step(.role(isControlling ? .controlled : .controlling))
      node.step(.remoteCredentials(credentials, lite: false))
      for (index, address) in self.addresses.enumerated() {
        node.step(
          .remoteCandidate(
            ICECandidate(
              foundation: "\(index)", priority: 2_000_000_000 - UInt32(index),
              host: .address(address.ip), port: address.port, kind: .host)))
      }
    }

    func check(from address: SocketAddress, nominates: Bool) throws {
      let entropy = meeting.chance
      var writer = STUNWriter(.request, transactionID: STUNTransactionID(from: entropy))
      let local = node.agent.localCredentials
      writer.username("\(local.usernameFragment):\(credentials.usernameFragment)")
      writer.priority(1_853_824_767)
      writer.iceControlling(1)
      if nominates { writer.useCandidate() }
      // Other stacks' extra attributes have no effect.
      writer.attribute(STUNAttributeType(rawValue: 0xc057), [0, 1, 0, 50])
      writer.attribute(STUNAttributeType(rawValue: 0xc001), [0, 0, 0, 1])
      let base = try #require(node.sockets.first)
      meeting.network.inject(
        writer.finish(key: Array(local.password.utf8)), from: address, to: base, at: meeting.now)
    }
  }

  @Test func thePeersLatestNominationIsFollowed() throws {
    let meeting = VirtualMeeting.nearby(seed: 3)
    let node = meeting.addEnd(["192.0.2.1"])
    node.gather()
    meeting.run(for: .milliseconds(10))
    let peer = Peer(meeting, node, ["192.0.2.2:5000", "192.0.2.2:5001", "192.0.2.2:5002"])
    meeting.run(for: .seconds(1))
    let (best, lower) = (peer.addresses[0], peer.addresses[1])
    #expect(node.selections.last?.remote == best)
    #expect(node.agent.selectedPair?.nominated == false)
    // The first nomination counts, whichever pair this side would have chosen.
    try peer.check(from: lower, nominates: true)
    meeting.run(for: .milliseconds(10))
    #expect(node.selections.last?.remote == lower)
    #expect(node.agent.selectedPair?.nominated == true)
    // The nomination of a pair with a higher priority is followed immediately.
    try peer.check(from: best, nominates: true)
    meeting.run(for: .milliseconds(10))
    #expect(node.selections.last?.remote == best)
    // The nomination of a pair with a lower priority is followed only if the peer repeats it.
    try peer.check(from: lower, nominates: true)
    meeting.run(for: .milliseconds(10))
    #expect(node.selections.last?.remote == best)
    try peer.check(from: lower, nominates: true)
    meeting.run(for: .milliseconds(10))
    #expect(node.selections.last?.remote == lower)
    // Two seconds later, a single nomination is enough, even of a pair with a lower priority.
    meeting.run(for: .seconds(2))
    try peer.check(from: peer.addresses[2], nominates: true)
    meeting.run(for: .milliseconds(10))
    #expect(node.selections.last?.remote == peer.addresses[2])
    // Every check was answered, whether or not its nomination was followed.
    #expect(node.sent.filter { $0.bytes.starts(with: [1, 1]) }.count == 5)
  }

  @Test func thePeersNominationAppliesAgainWhenItsPairRecovers() throws {
    let meeting = VirtualMeeting.nearby(seed: 10)
    let node = meeting.addEnd(["192.0.2.1"])
    node.gather()
    meeting.run(for: .milliseconds(10))
    let peer = Peer(meeting, node, ["192.0.2.2:5000", "192.0.2.2:5001"])
    meeting.run(for: .seconds(1))
    let (best, chosen) = (peer.addresses[0], peer.addresses[1])
    try peer.check(from: chosen, nominates: true)
    meeting.run(for: .milliseconds(10))
    #expect(node.selections.last?.remote == chosen)
    // The chosen pair falls silent, and another takes its place.
    meeting.network.passes = { from, to in from != chosen && to != chosen }
    meeting.run(for: .seconds(20))
    #expect(node.selections.last?.remote == best)
    #expect(node.agent.selectedPair?.nominated == false)
    // The peer never nominated another pair; its next check shows that this one is back.
    meeting.network.passes = { _, _ in true }
    try peer.check(from: chosen, nominates: false)
    meeting.run(for: .milliseconds(100))
    #expect(node.selections.last?.remote == chosen)
    meeting.run(for: .seconds(20))
    #expect(node.selections.last?.remote == chosen && node.isConnected)
  }

  @Test func nominatingEveryPairCausesNoFlapping() throws {
    let meeting = VirtualMeeting.nearby(seed: 4)
    let node = meeting.addEnd(["192.0.2.1"])
    node.gather()
    meeting.run(for: .milliseconds(10))
    let peer = Peer(meeting, node, ["192.0.2.2:5000", "192.0.2.2:5001", "192.0.2.2:5002"])
    for _ in 0..<50 {
      for address in peer.addresses.reversed() {
        try peer.check(from: address, nominates: true)
        meeting.run(for: .milliseconds(20))
      }
    }
    #expect(node.selections.count <= 3)
    #expect(node.selections.last?.remote == peer.addresses[0])
  }

  @Test func aNominationBeforeThePairWorksIsRemembered() throws {
    let meeting = VirtualMeeting.nearby(seed: 5)
    let node = meeting.addEnd(["192.0.2.1"])
    node.gather()
    meeting.run(for: .milliseconds(10))
    let peer = Peer(meeting, node, ["192.0.2.2:5000"])
    let hidden = try #require(SocketAddress("192.0.2.3:6000"))
    meeting.network.responders[hidden] = meeting.network.responders[peer.addresses[0]]
    meeting.run(for: .milliseconds(100))
    try peer.check(from: hidden, nominates: true)
    meeting.run(for: .milliseconds(100))
    #expect(node.selections.last?.remote == hidden)
    let pair = try #require(node.agent.selectedPair)
    #expect(pair.nominated && pair.remote.kind == .peerReflexive)
    #expect(pair.remote.priority == 1_853_824_767)
  }

  @Test func aLitePeerIsAlwaysControlled() throws {
    let meeting = VirtualMeeting.nearby(seed: 6)
    let node = meeting.addEnd(["192.0.2.1"])
    node.step(.role(.controlled))
    let address = try #require(SocketAddress("192.0.2.2:5000"))
    let credentials = ICECredentials(usernameFragment: "lite", password: "password-of-the-lite-22")
    var nominations = 0
    meeting.network.responders[address] = { from, bytes in
      guard let request = try? STUNMessage(bytes), request.messageClass == .request,
        request.verifiesIntegrity(key: Array(credentials.password.utf8))
      else { return nil }
      #expect(request.iceControlling != nil)
      if request.usesCandidate { nominations += 1 }
      var writer = STUNWriter(.success, transactionID: request.transactionID)
      writer.xorMappedAddress(from)
      return writer.finish(key: Array(credentials.password.utf8))
    }
    node.gather()
    node.step(.remoteCredentials(credentials, lite: true))
    #expect(node.roles == [.controlling])
    node.step(.role(.controlled))
    #expect(node.agent.role == .controlling)
    node.step(
      .remoteCandidate(
        ICECandidate(
          foundation: "1", priority: 2_130_706_431, host: .address(address.ip),
          port: address.port, kind: .host)))
    node.step(.remoteEndOfCandidates)
    #expect(meeting.run(for: .seconds(1)) { _ in node.agent.connectionState == .completed })
    #expect(nominations == 1)
    meeting.run(for: .seconds(120))
    #expect(node.agent.connectionState == .completed)
  }
}
