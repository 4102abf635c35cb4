import JSEP
import Lab
import Media
import Peer
import SDP
import Testing
import Wire

/// Tests when restartIce makes a negotiation necessary, and for how long (webrtc-pc sections
/// 4.4.1.6 and 4.7.3).
struct RestartCallTests {
  private func needs(_ call: VirtualCall, _ peer: Int = 0) -> Int {
    call.events[peer].count { entry in
      if case .negotiationNeeded = entry.event { return true }
      return false
    }
  }

  private func audio(seed: UInt64) -> VirtualCall {
    let call = VirtualCall(seed: seed)
    call.addMedia()
    return call
  }

  private func fragments(_ call: VirtualCall, _ peer: Int = 0) -> Set<Substring> {
    guard case .description(let description) = call.call(peer, .localDescription) else { return [] }
    return Set(description.sdp.split(separator: "\r\n").filter { $0.hasPrefix("a=ice-ufrag") })
  }

  @Test func withoutAnOfferThereIsNothingToRestart() {
    let call = VirtualCall(seed: 51)
    #expect(call.call(0, .restartICE).error == nil)
    #expect(needs(call) == 0)
    call.addMedia()
    #expect(call.negotiate() == nil)
    call.run(for: .seconds(1))
    let before = fragments(call)
    #expect(call.negotiate() == nil)
    #expect(fragments(call) == before)
  }

  @Test func aWantedRestartIsReportedOnce() {
    let call = audio(seed: 52)
    #expect(call.negotiate() == nil)
    call.run(for: .seconds(1))
    let (needsBefore, before) = (needs(call), fragments(call))
    for _ in 0..<2 { call.call(0, .restartICE) }
    #expect(needs(call) == needsBefore + 1)
    #expect(call.negotiate() == nil)
    call.run(for: .seconds(1))
    #expect(fragments(call).isDisjoint(with: before))
    #expect(needs(call) == needsBefore + 1)
    for peer in 0..<2 { #expect(call.state("connection", of: peer) == "connected") }
  }

  @Test func aRestartWaitsForTheStableState() {
    let call = audio(seed: 53)
    #expect(call.negotiate() == nil)
    call.run(for: .seconds(1))
    call.call(0, .setLocalDescription(nil))
    let needsBefore = needs(call)
    call.call(0, .restartICE)
    #expect(needs(call) == needsBefore)
    call.call(0, .setLocalDescription(SessionDescription(type: .rollback, sdp: "")))
    #expect(needs(call) == needsBefore + 1)
  }

  @Test func aRestartStaysWantedAfterAnExchangeWithoutOne() {
    let call = audio(seed: 54)
    #expect(call.negotiate() == nil)
    call.run(for: .seconds(1))
    call.call(0, .restartICE)
    let needsBefore = needs(call)
    #expect(call.negotiate(from: 1, to: 0) == nil)
    #expect(needs(call) == needsBefore + 1)
    #expect(call.negotiate() == nil)
    #expect(needs(call) == needsBefore + 1)
  }

  @Test func aRemoteRestartSatisfiesTheLocalOne() {
    let call = audio(seed: 55)
    #expect(call.negotiate() == nil)
    call.run(for: .seconds(1))
    for peer in 0..<2 { call.call(peer, .restartICE) }
    let (needsBefore, before) = (needs(call), fragments(call))
    #expect(call.negotiate(from: 1, to: 0) == nil)
    call.run(for: .seconds(1))
    let after = fragments(call)
    #expect(after.isDisjoint(with: before))
    #expect(needs(call) == needsBefore)
    // The next local offer starts no further generation.
    #expect(call.negotiate() == nil)
    #expect(fragments(call) == after)
  }

  @Test func aCallThatNeverConnectedCanBeRestarted() {
    let call = audio(seed: 56)
    #expect(call.negotiate { $0.replacing(" 10.0.0.", with: " 10.9.9.") } == nil)
    call.run(for: .seconds(60))
    for peer in 0..<2 { #expect(call.state("connection", of: peer) == "failed") }
    let needsBefore = needs(call)
    call.call(0, .restartICE)
    #expect(needs(call) == needsBefore + 1)
    #expect(call.negotiate() == nil)
    call.run(for: .seconds(2))
    for peer in 0..<2 { #expect(call.state("connection", of: peer) == "connected") }
    #expect(needs(call) == needsBefore + 1)
  }

  @Test func anUnusedOfferRemovesNoCandidates() {
    let call = audio(seed: 57)
    #expect(call.negotiate() == nil)
    call.run(for: .seconds(1))
    let before = call.call(0, .localDescription)
    guard case .description(let description) = before else {
      Issue.record("no description")
      return
    }
    #expect(description.sdp.contains("a=candidate"))
    call.call(0, .createOffer(iceRestart: true))
    #expect(call.call(0, .localDescription) == before)
  }

  @Test func addTrackReusesAnIdleSender() {
    let call = VirtualCall(seed: 58)
    func add(_ source: MediaSource?) -> UInt32? {
      let reply = call.call(
        0, .addTransceiver(kind: .audio, direction: .sendrecv, streamIDs: [], source: source))
      guard case .transceiver(let info) = reply else { return nil }
      return info.id
    }
    func track() -> UInt32? {
      let reply = call.call(0, .addTrack(kind: .audio, streamIDs: [], source: .application))
      guard case .transceiver(let info) = reply else { return nil }
      return info.id
    }
    #expect(add(nil) == 1)
    #expect(track() == 1 && track() == 2)
    #expect(add(.application) == 3)
    #expect(track() == 4)
    call.call(0, .replaceSource(transceiver: 3, nil))
    #expect(track() == 3)
    call.call(0, .stopTransceiver(3))
    let refused = call.call(0, .replaceSource(transceiver: 3, .application))
    #expect(refused.error?.name == "InvalidStateError")
  }
}
