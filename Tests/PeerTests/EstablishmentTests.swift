import Lab
import Media
import Peer
import Testing
import Wire

struct EstablishmentTests {
  private func states(_ call: VirtualCall, _ peer: Int) -> [(at: Instant, state: String)] {
    call.events[peer].compactMap { entry in
      guard case .state(let transition) = entry.event, transition.machine == "establishment" else {
        return nil
      }
      return (entry.at, transition.to)
    }
  }

  @Test func aCallThatConnectsIsEstablishedOnce() {
    let call = CallTests.call(seed: 60, seconds: 1, videoFrames: nil)
    call.call(0, .restartICE)
    #expect(call.negotiate() == nil)
    call.run(for: .seconds(40))
    for peer in 0..<2 {
      #expect(states(call, peer).map(\.state) == ["establishing", "established"])
    }
    call.call(0, .close)
    #expect(states(call, 0).last?.state == "closed")
  }

  @Test func aCallThatIsNotAnsweredTimesOut() {
    var configuration = PeerConfiguration()
    configuration.establishmentTimeoutMilliseconds = 5_000
    let call = VirtualCall(seed: 61, configurations: [configuration, configuration])
    call.call(0, .addTrack(kind: .audio, streamIDs: [], source: .echo))
    call.run(for: .seconds(3))
    #expect(states(call, 0).isEmpty)
    call.call(0, .setLocalDescription(nil))
    let begin = call.now
    call.run(for: .seconds(20))
    #expect(states(call, 0).map(\.state) == ["establishing", "timed-out"])
    #expect(states(call, 0).last?.at == begin + .seconds(5))
  }

  @Test func aCallThatConnectsLateIsStillEstablished() {
    var configuration = PeerConfiguration()
    configuration.establishmentTimeoutMilliseconds = 2_000
    let call = VirtualCall(seed: 62, configurations: [configuration, configuration])
    call.call(0, .addTrack(kind: .audio, streamIDs: [], source: .echo))
    call.network.links[0].lossPerMille = 1000
    #expect(call.negotiate() == nil)
    call.run(for: .seconds(4))
    #expect(states(call, 0).map(\.state) == ["establishing", "timed-out"])
    call.network.links[0].lossPerMille = 0
    call.run(for: .seconds(8))
    #expect(states(call, 0).map(\.state) == ["establishing", "timed-out", "established"])
  }

  @Test func withoutALimitNothingTimesOut() {
    var configuration = PeerConfiguration()
    configuration.establishmentTimeoutMilliseconds = 0
    let call = VirtualCall(seed: 63, configurations: [configuration, configuration])
    call.call(0, .addTrack(kind: .audio, streamIDs: [], source: .echo))
    call.call(0, .setLocalDescription(nil))
    call.run(for: .seconds(100))
    #expect(states(call, 0).map(\.state) == ["establishing"])
  }
}
