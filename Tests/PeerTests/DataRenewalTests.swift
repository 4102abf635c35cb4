import Lab
import Media
import Peer
import SCTP
import SDP
import Testing
import Wire

/// Tests data channels whose transport or section changes during a call.
struct DataRenewalTests {
  /// Makes a connected call with audio and a channel.
  private func call(seed: UInt64, peers: Int = 2) -> VirtualCall {
    let call = VirtualCall(
      seed: seed, links: [LinkSettings](repeating: LinkSettings(), count: peers))
    call.call(
      0, .addTrack(kind: .audio, streamIDs: [], source: .tone(hertz: 300, pauseSeconds: 0)))
    call.call(0, .createDataChannel(DataChannelInit(label: "chat")))
    #expect(call.negotiate() == nil)
    call.run(for: .seconds(1))
    #expect(call.state("sctp", of: 0) == "connected")
    return call
  }

  private func description(_ call: VirtualCall, _ peer: Int) -> SessionDescription? {
    if case .description(let description) = call.call(peer, .localDescription) {
      return description
    }
    return nil
  }

  @Test func aLaterExchangeChangesTheLargestMessage() throws {
    let call = call(seed: 31)
    #expect(call.send(0, channel: 0, bytes: [UInt8](repeating: 1, count: 2000)) == nil)
    for (size, largest) in [(1000, 1000), (3000, 3000), (0, 1 << 20)] {
      #expect(call.call(0, .setLocalDescription(nil)).error == nil)
      #expect(call.call(1, .setRemoteDescription(try #require(description(call, 0)))).error == nil)
      #expect(call.call(1, .setLocalDescription(nil)).error == nil)
      var answer = try #require(description(call, 1))
      answer.sdp = answer.sdp.replacing(
        "a=max-message-size:1048576", with: "a=max-message-size:\(size)")
      #expect(call.call(0, .setRemoteDescription(answer)).error == nil)
      #expect(call.send(0, channel: 0, bytes: [UInt8](repeating: 1, count: largest)) == nil)
      let refusal = call.send(0, channel: 0, bytes: [UInt8](repeating: 1, count: largest + 1))
      #expect(refusal?.name == (size == 0 ? nil : "TypeError"))
      call.run(for: .seconds(1))
    }
    call.run(for: .seconds(10))
    #expect(call.state("sctp", of: 0) == "closed", "too large a message ends the association")
  }

  @Test func aRejectedSectionMayReturnWithAnotherAssociation() throws {
    let call = call(seed: 32)
    // The second peer offers without the section.
    #expect(call.call(1, .setLocalDescription(nil)).error == nil)
    var offer = try #require(description(call, 1))
    let range = try #require(offer.sdp.firstRange(of: "m=application "))
    let end = offer.sdp[range.upperBound...].firstIndex(of: " ") ?? offer.sdp.endIndex
    offer.sdp.replaceSubrange(range.upperBound..<end, with: "0")
    offer.sdp = offer.sdp.replacing("BUNDLE 0 1", with: "BUNDLE 0")
    #expect(call.call(0, .setRemoteDescription(offer)).error == nil)
    #expect(call.call(0, .setLocalDescription(nil)).error == nil)
    #expect(call.call(1, .setRemoteDescription(try #require(description(call, 0)))).error == nil)
    call.run(for: .seconds(1))
    for peer in 0..<2 {
      #expect(call.state("sctp", of: peer) == "closed")
      #expect(call.channelStates(of: peer, 0).last == .closed)
    }
    // Another channel requests the section again.
    #expect(call.call(0, .createDataChannel(DataChannelInit(label: "again"))).error == nil)
    #expect(call.negotiate() == nil)
    call.run(for: .seconds(1))
    #expect(call.channelStates(of: 0, 1) == [.connecting, .open])
    #expect(call.channelStates(of: 1, 1) == [.open])
    call.send(0, channel: 1, text: "back")
    call.run(for: .seconds(1))
    #expect(call.messages(of: 1).map(\.channel) == [1])
  }

  @Test func anotherHandshakeMeansAnotherAssociation() {
    let call = call(seed: 33, peers: 3)
    // The third peer replaces the second: other credentials, another fingerprint.
    #expect(call.call(0, .restartICE).error == nil)
    #expect(call.negotiate(from: 0, to: 2) == nil)
    call.run(for: .seconds(3))
    #expect(call.channelStates(of: 0, 0).last == .closed)
    #expect(call.state("sctp", of: 2) == "connected")
    #expect(call.call(0, .createDataChannel(DataChannelInit(label: "new"))).error == nil)
    call.run(for: .seconds(1))
    call.send(0, channel: 1, text: "hello")
    call.run(for: .seconds(1))
    #expect(call.messages(of: 2).count == 1 && call.messages(of: 1).isEmpty)
  }

  @Test(arguments: [[0], [1], [0, 1]])
  func dataNeedsNoSRTPProfile(peersWithout: [Int]) {
    var configurations = [PeerConfiguration(), PeerConfiguration()]
    for peer in peersWithout { configurations[peer].srtpProtections = [] }
    let call = VirtualCall(seed: 34, configurations: configurations)
    call.call(0, .createDataChannel(DataChannelInit(label: "chat")))
    #expect(call.negotiate() == nil)
    call.run(for: .seconds(1))
    call.send(0, channel: 0, text: "hello")
    call.run(for: .seconds(1))
    #expect(call.messages(of: 1).count == 1)
    for peer in 0..<2 {
      #expect(call.state("connection", of: peer) == "connected")
      #expect(call.secured(peer)?.profile == "")
    }
  }

  @Test func mediaWithoutACommonProfileIsReportedAndNotSent() {
    var configurations = [PeerConfiguration(), PeerConfiguration()]
    configurations[1].srtpProtections = []
    let call = VirtualCall(seed: 35, configurations: configurations)
    call.call(
      0, .addTrack(kind: .audio, streamIDs: [], source: .tone(hertz: 300, pauseSeconds: 0)))
    #expect(call.negotiate() == nil)
    call.run(for: .seconds(2))
    let isTold = call.events[0].contains { entry in
      if case .refused("srtp", "the peer supports none of our SRTP profiles") = entry.event {
        return true
      }
      return false
    }
    #expect(isTold)
    #expect(call.frames(of: 1, kind: .audio, isInbound: true).isEmpty)
  }
}
