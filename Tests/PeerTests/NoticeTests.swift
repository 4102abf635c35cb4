import ICE
import JSEP
import Lab
import Media
import SDP
import Testing
import Wire

@testable import Peer

/// Reports on candidates, servers and pairs, if genesis enables them.
struct NoticeTests {
  private func call(seed: UInt64, servers: [ICEServerConfiguration] = []) -> VirtualCall {
    var configuration = PeerConfiguration()
    configuration.notices = PeerNotice.all
    configuration.iceServers = servers
    let call = VirtualCall(seed: seed, configurations: [configuration, configuration])
    call.addMedia()
    return call
  }

  private func pairs(_ call: VirtualCall, _ peer: Int) -> [SelectedPairChange] {
    call.events[peer].compactMap {
      if case .selectedPair(let change) = $0.event { change } else { nil }
    }
  }

  @Test func candidatesOfARemovedAddressAreRemoved() throws {
    let call = call(seed: 80)
    #expect(call.negotiate() == nil)
    call.run(for: .milliseconds(500))
    let signaled = call.events[0].compactMap {
      if case .localCandidate(let candidate?) = $0.event { candidate } else { nil }
    }
    call.step(0, .interfaces([IPAddress(ipv4: 0x0a00_0009)]))
    let removed = call.events[0].compactMap {
      if case .candidatesRemoved(let candidates) = $0.event { candidates } else { nil }
    }
    #expect(removed == [signaled])
    #expect(signaled.count == 1 && signaled[0].sdpMid == "0")
  }

  @Test func aServerThatDoesNotAnswerIsAnErrorWithItsAddress() throws {
    let call = call(
      seed: 81,
      servers: [
        ICEServerConfiguration(urls: ["stun:10.9.9.9:3478", "stun:nowhere.example"])
      ])
    #expect(call.negotiate(gatheringTime: .seconds(30)) == nil)
    let errors = call.events[0].compactMap {
      if case .gatheringError(let error) = $0.event { error } else { nil }
    }
    let urls = errors.map(\.url)
    #expect(urls == ["stun:nowhere.example:3478", "stun:10.9.9.9:3478"])
    #expect(errors.allSatisfy { $0.errorCode == 701 })
    #expect(errors[0].address == nil && errors[0].errorText.contains("name"))
    #expect(errors[1].address == "10.0.0.1" && errors[1].port == 40_000)
  }

  @Test func theFirstPairAndTheOneAfterARestartAreReportedWithReasons() throws {
    let call = call(seed: 82)
    #expect(call.negotiate() == nil)
    call.run(for: .seconds(1))
    #expect(pairs(call, 0).map(\.reason) == [.first])
    let first = try #require(pairs(call, 0).first)
    #expect(first.local.contains("10.0.0.1") && first.remote.contains("10.0.0.2"))
    #expect(first.lastReceivedMilliseconds == nil)
    call.call(0, .restartICE)
    #expect(call.negotiate() == nil)
    call.run(for: .seconds(1))
    #expect(pairs(call, 0).map(\.reason) == [.first, .restart])
  }
}
