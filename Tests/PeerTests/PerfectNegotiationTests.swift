import JSEP
import Lab
import Media
import Peer
import Testing
import Wire

struct PerfectNegotiationTests {
  private func transceivers(_ call: VirtualCall, _ peer: Int) -> [TransceiverInfo] {
    guard case .transceivers(let all) = call.call(peer, .transceivers) else { return [] }
    return all
  }

  /// Returns one peer's directions by mid; if `turned`, as the other peer sees them.
  private func agreed(_ call: VirtualCall, _ peer: Int, turned: Bool) -> [String] {
    transceivers(call, peer)
      .filter { $0.currentDirection != nil && $0.currentDirection != .stopped }
      .map { info in
        var direction = info.currentDirection ?? .inactive
        if turned, direction == .sendonly || direction == .recvonly {
          direction = direction == .sendonly ? .recvonly : .sendonly
        }
        return "\(info.mid ?? "-") \(info.kind.rawValue) \(direction.rawValue)"
      }.sorted()
  }

  private func check(_ negotiation: PerfectNegotiation) {
    let call = negotiation.call
    #expect(negotiation.failures.isEmpty)
    for peer in 0..<2 {
      #expect((call.state("signaling", of: peer) ?? "stable") == "stable")
      #expect(call.state("connection", of: peer) == "connected")
    }
    #expect(agreed(call, 0, turned: false) == agreed(call, 1, turned: true))
  }

  @Test func offersThatCrossEndInOneCall() {
    let call = VirtualCall(seed: 70)
    let negotiation = PerfectNegotiation(call)
    for peer in 0..<2 {
      call.call(
        peer,
        .addTrack(kind: .audio, streamIDs: ["s"], source: .tone(hertz: 300, pauseSeconds: 0)))
      call.call(
        peer,
        .addTrack(
          kind: .video, streamIDs: ["s"],
          source: .pattern(width: 64, height: 48, framesPerSecond: 10)))
    }
    // Both offer before either receives the other's offer.
    for peer in 0..<2 { negotiation.react(peer) }
    negotiation.settle()
    call.run(for: .seconds(2))
    #expect(negotiation.glares >= 2)
    check(negotiation)
    #expect(agreed(call, 0, turned: false) == ["0 audio sendrecv", "1 video sendrecv"])
    for peer in 0..<2 {
      #expect(call.frames(of: peer, kind: .video, isInbound: true).count > 10)
      #expect(call.frames(of: peer, kind: .audio, isInbound: true).count > 50)
    }
  }

  @Test func anICERestartThatCrossesAnOfferKeepsTheCall() {
    for restarting in 0..<2 {
      let call = CallTests.call(seed: 71, seconds: 1)
      let negotiation = PerfectNegotiation(call)
      negotiation.settle()
      call.call(restarting, .restartICE)
      call.call(
        1 - restarting,
        .addTrack(
          kind: .video, streamIDs: ["t"],
          source: .pattern(width: 32, height: 32, framesPerSecond: 10)))
      for peer in 0..<2 { negotiation.react(peer) }
      negotiation.settle()
      let before = (0..<2).map { call.frames(of: $0, kind: .audio, isInbound: true).count }
      call.run(for: .seconds(12))
      check(negotiation)
      for peer in 0..<2 {
        let frames = call.frames(of: peer, kind: .audio, isInbound: true)
        #expect(frames.suffix(100).allSatisfy { $0.outcome == "decoded" }, "\(restarting) \(peer)")
        #expect(frames.count > before[peer] + 500)
      }
    }
  }

  /// Both sides add, stop and reverse transceivers at any moment while messages are in transit.
  @Test(arguments: UInt64(0)..<24) func anyInterleavingEndsInAgreement(seed: UInt64) {
    let call = VirtualCall(seed: 100 + seed)
    let negotiation = PerfectNegotiation(call)
    let random = Entropy(seed: [UInt8(seed), 7]).stream("test")
    for peer in 0..<2 {
      call.call(
        peer,
        .addTrack(kind: .audio, streamIDs: ["s"], source: .tone(hertz: 300, pauseSeconds: 0)))
    }
    for _ in 0..<80 {
      let peer = Int(random.integer(below: 2))
      switch random.integer(below: 12) {
      case 0..<4: negotiation.deliver(to: peer)
      case 4..<7: negotiation.react(peer)
      case 7..<10: call.run(for: .milliseconds(Int64(random.integer(below: 20))))
      case 10: change(call, peer, random)
      default:
        negotiation.react(peer)
        negotiation.deliver(to: 1 - peer)
      }
    }
    negotiation.settle()
    call.run(for: .seconds(2))
    check(negotiation)
  }

  private func change(_ call: VirtualCall, _ peer: Int, _ random: EntropyStream) {
    let all = transceivers(call, peer).filter { $0.direction != .stopped }
    switch random.integer(below: 4) {
    case 0 where all.count < 6:
      call.call(peer, .addTrack(kind: .video, streamIDs: ["v"], source: .application))
    case 1 where all.count < 6:
      call.call(
        peer,
        .addTransceiver(kind: .audio, direction: .recvonly, streamIDs: [], source: nil))
    case 2 where all.count > 1:
      call.call(peer, .stopTransceiver(all[Int(random.integer(below: UInt64(all.count)))].id))
    default:
      let directions: [TransceiverDirection] = [.sendrecv, .sendonly, .recvonly, .inactive]
      guard !all.isEmpty else { return }
      call.call(
        peer,
        .setDirection(
          transceiver: all[Int(random.integer(below: UInt64(all.count)))].id,
          directions[Int(random.integer(below: 4))]))
    }
  }
}
