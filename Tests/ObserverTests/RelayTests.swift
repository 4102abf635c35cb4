import ICE
import Observer
import STUN
import TURN
import Testing
import Wire

struct RelayTests {
  private let toServer = FiveTuple(from: Messages.a, to: Messages.server)
  private let inner = FiveTuple(from: Messages.relayed, to: Messages.b)

  /// Gets a relayed address and a channel.
  private func allocate(_ call: inout MadeUpCall, _ observer: inout Observer) {
    for (index, message) in RelayMessages.allocation.enumerated() {
      call.send(message, index % 2 == 0 ? toServer : toServer.reversed, to: &observer)
    }
  }

  /// A Send indication, or a Data indication of the server.
  private func indication(_ method: STUNMethod, _ bytes: [UInt8]) -> [UInt8] {
    var writer = STUNWriter(
      .indication, method: method, transactionID: Messages.transaction(902))
    writer.xorPeerAddress(Messages.b)
    writer.attribute(.data, bytes)
    return writer.finish()
  }

  @Test func whatARelayCarriesIsRead() throws {
    var observer = Observer()
    var call = MadeUpCall()
    allocate(&call, &observer)
    let check = Messages.check(1, from: "aaaa", to: "bbbb", nominates: true)
    call.send(indication(.send, check), toServer, to: &observer)
    let answer = Messages.success(1, mapped: Messages.relayed)
    call.send(indication(.data, answer), toServer.reversed, to: &observer)
    for number in 0..<10 {
      call.send(
        ChannelData.frame(Messages.rtp(number), channel: 0x4001), toServer, to: &observer)
      call.send(
        ChannelData.frame(Messages.rtp(number, ssrc: 5), channel: 0x4001), toServer.reversed,
        to: &observer)
    }
    let pair = try #require(observer.pairs.first)
    #expect(pair.isRelayed && pair.isSelected)
    #expect(pair.addresses == [Messages.relayed, Messages.b])
    #expect(call.seen.packets.count == 20)
    #expect(Set(call.seen.packets.map(\.from)) == [0, 1])
    #expect(call.seen.candidates.first?.kind == .relayed)
  }

  @Test func whatIsSeenOnBothSidesOfARelayCountsOnce() {
    var observer = Observer()
    var call = MadeUpCall()
    allocate(&call, &observer)
    for (number, message) in [
      Messages.check(1, from: "aaaa", to: "bbbb"), Messages.rtp(0), Messages.rtp(1),
      Messages.rtp(2), Messages.rtp(3),
    ].enumerated() {
      call.send(ChannelData.frame(message, channel: 0x4001), toServer, to: &observer)
      call.send(message, inner, to: &observer, after: Int64(number % 2))
    }
    #expect(call.seen.calls.count == 1)
    #expect(call.seen.packets.count == 4)
    #expect(observer.coverage(.relayedTwice, transport: 1) == 5)
  }

  @Test func aChannelThatWasBoundBeforeTheCaptureIsReadAndMarked() {
    var observer = Observer()
    var call = MadeUpCall()
    for number in 0..<10 {
      call.send(
        ChannelData.frame(Messages.rtp(number), channel: 0x4001), toServer, to: &observer)
    }
    #expect(call.seen.packets.count == 10)
    #expect(call.seen.coverage.contains { $0.kind == .unknownPeer })
  }
}
