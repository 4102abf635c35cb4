import Lab
import Testing
import Wire

@testable import ICE

/// A client and a server, joined without loss or delay.
private struct Bench {
  var client: TURNClient
  var server: VirtualTURNServer
  var now = Instant.zero
  /// The client's outputs, without messages to the server.
  var outputs: [TURNClient.Output] = []
  /// The datagrams that left the server for peers.
  var departed: [VirtualTURNServer.Departure] = []
  /// The methods of the client's messages; nil for channel data.
  var methods: [STUNMethod?] = []
  var isCut = false
  private let local = SocketAddress(IPAddress(ipv4: 0xc000_0201), port: 4000)

  init(password: String = "password", isReliable: Bool = false, wantsIPv6: Bool = false) {
    client = TURNClient(
      credentials: TURNCredentials(username: "user", password: password), isReliable: isReliable,
      wantsIPv6: wantsIPv6, entropy: Entropy(seed: [7]).stream("ice"))
    server = VirtualTURNServer(
      address: SocketAddress(IPAddress(ipv4: 0xcb00_7101), port: 3478))
  }

  mutating func step(_ input: TURNClient.Input) {
    var outbox = Outbox<TURNClient.Output>()
    client.step(input, at: now, into: &outbox)
    for output in outbox.drain() {
      guard case .send(let bytes) = output else {
        outputs.append(output)
        continue
      }
      methods.append((try? STUNMessage(bytes))?.method)
      guard !isCut else { continue }
      deliver(server.receive(bytes, from: local, to: server.address, at: now))
    }
  }

  mutating func arrive(_ bytes: [UInt8], from peer: SocketAddress) {
    guard let relayed = client.relayed else { return }
    deliver(server.receive(bytes, from: peer, to: relayed, at: now))
  }

  mutating func run(for interval: Interval) {
    let end = now + interval
    while let due = client.deadline, due <= end {
      now = max(now, due)
      step(.deadline)
    }
    now = end
  }

  private mutating func deliver(_ departures: [VirtualTURNServer.Departure]) {
    for departure in departures {
      if departure.destination == local {
        step(.received(departure.bytes))
      } else {
        departed.append(departure)
      }
    }
  }

  var failures: [UInt16] {
    outputs.compactMap { if case .failed(let code, _) = $0 { code } else { nil } }
  }
  var received: [[UInt8]] {
    outputs.compactMap { if case .received(let bytes, _) = $0 { bytes } else { nil } }
  }
}

struct TURNClientTests {
  private let peer = SocketAddress(IPAddress(ipv4: 0xc633_6401), port: 5000)
  private let other = SocketAddress(IPAddress(ipv4: 0xc633_6402), port: 5000)

  @Test func anAllocationAnswersAChallengeAndReturnsAnAddress() {
    var bench = Bench()
    bench.step(.begin)
    #expect(bench.client.isAllocated)
    #expect(bench.methods == [.allocate, .allocate])
    #expect(bench.client.relayed == bench.server.allocations.first?.relayed)
    guard case .allocated(_, let mapped) = bench.outputs.first else {
      Issue.record("there is no output")
      return
    }
    #expect(mapped == bench.server.allocations.first?.client)
  }

  @Test func aWrongPasswordEndsTheClient() {
    var bench = Bench(password: "guess")
    bench.step(.begin)
    #expect(bench.failures == [401])
    #expect(bench.methods.count == 2)
    #expect(!bench.client.isAllocating && bench.client.deadline == nil)
  }

  @Test(arguments: [STUNErrorCode(code: 486, reason: "quota"), .forbidden, .badRequest])
  func aRefusedAllocationEndsTheClient(error: STUNErrorCode) {
    var bench = Bench()
    bench.server.refusal = error
    bench.step(.begin)
    #expect(bench.failures == [error.code])
  }

  @Test func anotherFamilyIsUsedWhenTheServerHasNoIPv6() {
    var bench = Bench(wantsIPv6: true)
    bench.step(.begin)
    #expect(bench.client.relayed?.ip.isIPv4 == true)
  }

  @Test func anAlternateServerIsReported() {
    var bench = Bench()
    bench.server.alternate = peer
    bench.step(.begin)
    guard case .redirected(let server) = bench.outputs.last else {
      Issue.record("no redirection was reported")
      return
    }
    #expect(server == peer && !bench.client.isAllocated)
  }

  @Test func anAllocationTheServerForgotIsReportedLost() {
    for input in [TURNClient.Input.verify, .permit(peer.ip), .bind(peer)] {
      var bench = Bench()
      bench.step(.begin)
      bench.server.restart()
      bench.step(input)
      #expect(bench.failures == [437])
      #expect(bench.client.relayed == nil && bench.client.deadline == nil)
    }
  }

  @Test func silenceIsRetriedThenFails() {
    for (isReliable, count) in [(false, 7), (true, 1)] {
      var bench = Bench(isReliable: isReliable)
      bench.isCut = true
      bench.step(.begin)
      bench.run(for: .seconds(20))
      #expect(bench.methods.count == count)
      #expect(bench.failures == [0])
    }
  }

  @Test func dataWaitsForThePermissionAndGoesAsAnIndication() {
    var bench = Bench()
    bench.step(.begin)
    bench.step(.send([1, 2, 3], to: peer))
    #expect(bench.departed.map(\.bytes) == [[1, 2, 3]])
    #expect(bench.departed.first?.destination == peer)
    #expect(bench.methods.suffix(2) == [.createPermission, .send])
    bench.arrive([4, 5], from: peer)
    bench.arrive([6], from: other)
    #expect(bench.received == [[4, 5]])
  }

  @Test func aChannelAddsFourBytesToItsData() {
    var bench = Bench()
    bench.step(.begin)
    bench.step(.bind(peer))
    bench.step(.bind(peer))
    bench.step(.bind(other))
    #expect(bench.server.allocations.first?.channels.map(\.number) == [0x4000, 0x4001])
    bench.step(.send([0x80, 2, 3], to: peer))
    bench.step(.send([0x81], to: other))
    #expect(bench.departed.map(\.bytes) == [[0x80, 2, 3], [0x81]])
    #expect(bench.server.relayedByChannel == 2 && bench.server.relayedByIndication == 0)
    bench.arrive([9], from: other)
    #expect(bench.received == [[9]])
  }

  @Test func aForbiddenPeerIsReported() {
    var bench = Bench()
    bench.server.forbidden = [peer.ip]
    bench.step(.begin)
    bench.step(.send([1], to: peer))
    bench.step(.send([1], to: peer))
    #expect(bench.departed.isEmpty)
    #expect(bench.methods.filter { $0 == .createPermission }.count == 1)
    let refused = bench.outputs.contains { if case .refused(peer.ip) = $0 { true } else { false } }
    #expect(refused && bench.client.isAllocated)
  }

  @Test func everythingIsKeptAliveForHoursWithStaleNonces() {
    var bench = Bench()
    bench.server.nonceLifetime = .seconds(77)
    bench.step(.begin)
    bench.step(.bind(peer))
    for _ in 0..<120 {
      bench.run(for: .seconds(60))
      bench.step(.send([1], to: peer))
    }
    #expect(bench.departed.count == 120)
    #expect(bench.client.isAllocated && bench.server.allocations.count == 1)
    #expect(bench.failures.isEmpty)
  }

  @Test func anUnusedPermissionExpiresAndIsRenewedOnUse() {
    var bench = Bench()
    bench.step(.begin)
    bench.step(.permit(peer.ip))
    bench.run(for: .seconds(1000))
    #expect(bench.methods.filter { $0 == .createPermission }.count == 1)
    bench.step(.send([1], to: peer))
    #expect(bench.departed.count == 1)
  }

  @Test func aLostAllocationIsReported() {
    var bench = Bench()
    bench.step(.begin)
    bench.server = VirtualTURNServer(address: bench.server.address)
    bench.run(for: .seconds(600))
    #expect(bench.failures == [437])
  }

  @Test func closingEndsTheAllocation() {
    var bench = Bench()
    bench.step(.begin)
    bench.step(.close)
    #expect(bench.server.allocations.isEmpty)
    #expect(bench.methods.last == .refresh)
    bench.step(.send([1], to: peer))
    #expect(bench.departed.isEmpty)
  }

  @Test func unauthenticatedResponsesAreIgnored() throws {
    var bench = Bench()
    bench.isCut = true
    bench.step(.begin)
    // A response that matches no request, and an unauthenticated success response although the
    // server requires a password.
    var writer = STUNWriter(
      .success, method: .allocate, transactionID: STUNTransactionID(high: 1, low: 2))
    writer.xorRelayedAddress(peer)
    bench.step(.received(writer.finish()))
    #expect(bench.client.isAllocating && bench.outputs.isEmpty)
  }

  @Test func hostileServersDoNoHarm() {
    let entropy = Entropy(seed: [3]).stream("mutate")
    for round in 0..<300 {
      var bench = Bench()
      bench.step(.begin)
      bench.step(.bind(peer))
      let good = STUNWriter(
        .indication, method: .data, transactionID: STUNTransactionID(from: entropy))
      var indication = good
      indication.xorPeerAddress(peer)
      indication.attribute(.data, [1, 2, 3, 4])
      let samples = [
        indication.finish(), ChannelData.frame([1, 2, 3], channel: 0x4000),
        ChannelData.frame([], channel: 0x4fff), [],
      ]
      for _ in 0..<20 {
        var bytes = samples[Int(entropy.integer(below: 4))]
        for _ in 0...entropy.integer(below: 3) where !bytes.isEmpty {
          bytes[Int(entropy.integer(below: UInt64(bytes.count)))] = entropy.byte()
        }
        bytes = Array(bytes.prefix(Int(entropy.integer(below: 60))))
        bench.step(.received(bytes))
      }
      #expect(bench.client.isAllocated, "round \(round)")
      #expect(bench.received.allSatisfy { $0.count <= 8 }, "round \(round)")
    }
  }
}
