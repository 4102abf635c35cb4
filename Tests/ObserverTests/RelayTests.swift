import ICE
import Observer
import Testing
import Wire

struct RelayTests {
  private let toServer = FiveTuple(from: Messages.a, to: Messages.server)
  private let inner = FiveTuple(from: Messages.relayed, to: Messages.b)

  /// Sends the messages with which a client gets a relayed address and a channel.
  private func allocate(_ call: inout SyntheticCall, _ observer: inout Observer) {
    for (index, message) in RelayMessages.allocation.enumerated() {
      call.send(message, index % 2 == 0 ? toServer : toServer.reversed, to: &observer)
    }
  }

  /// Makes a Send indication, or the server's Data indication.
  private func indication(_ method: STUNMethod, _ bytes: [UInt8]) -> [UInt8] {
    var writer = STUNWriter(
      .indication, method: method, transactionID: Messages.transaction(902))
    writer.xorPeerAddress(Messages.b)
    writer.attribute(.data, bytes)
    return writer.finish()
  }

  @Test func relayedPacketsAreRead() throws {
    var observer = Observer()
    var call = SyntheticCall()
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
    // Each packet is reported without the relay's framing, with the candidates' addresses.
    #expect(call.seen.carried.count == 22)
    #expect(Set(call.seen.carried.map(\.tuple)) == [inner, inner.reversed])
    #expect(call.seen.carried.first?.bytes == check)
    let last = try #require(call.seen.pairs.last)
    #expect(last.types == [.relayed, .host] && last.bases == [Messages.a, Messages.b])
    #expect(call.seen.calls.map(\.addresses) == [[Messages.relayed, Messages.b]])
  }

  @Test func packetsSeenOnBothSidesOfARelayCountOnce() {
    var observer = Observer()
    var call = SyntheticCall()
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
    // Once an end is also seen outside the relay, its relayed packets need no rows of their own.
    #expect(call.seen.carried.count == 1)
  }

  @Test func aChannelBoundBeforeTheCaptureIsReadAndMarked() {
    var observer = Observer()
    var call = SyntheticCall()
    for number in 0..<10 {
      call.send(
        ChannelData.frame(Messages.rtp(number), channel: 0x4001), toServer, to: &observer)
    }
    #expect(call.seen.packets.count == 10)
    #expect(call.seen.coverage.contains { $0.kind == .unknownPeer })
  }

  /// A relay may be at any port, and is recognized by its data.
  ///
  /// The peer's address appears in answers to consent checks, or when the channel is bound again.
  @Test(arguments: [true, false], [UInt16(4_000), 60_000])
  func aRelayIsRecognizedMidCallAtAnyPort(_ showsInAnswers: Bool, _ port: UInt16) throws {
    var observer = Observer()
    var call = SyntheticCall()
    var toServer = toServer
    // Without other evidence, the observer assumes that the lower of two ports is the server's.
    toServer.destination.port = port
    func send(_ bytes: [UInt8], isBack: Bool = false) {
      call.send(
        ChannelData.frame(bytes, channel: 0x4001), isBack ? toServer.reversed : toServer,
        to: &observer)
    }
    for number in 0..<10 {
      send(Messages.rtp(number))
      send(Messages.rtp(number, ssrc: 5), isBack: true)
    }
    #expect(call.seen.packets.count == 20 && call.seen.carried.count == 20)
    if showsInAnswers {
      send(Messages.check(1, from: "aaaa", to: "bbbb"))
      send(Messages.success(1, mapped: Messages.relayed), isBack: true)
      send(Messages.check(2, from: "bbbb", to: "aaaa", controlling: false), isBack: true)
      send(Messages.success(2, mapped: Messages.b))
    } else {
      call.send(RelayMessages.allocation[2], toServer, to: &observer)
      call.send(RelayMessages.allocation[3], toServer.reversed, to: &observer)
    }
    for number in 10..<20 { send(Messages.rtp(number)) }
    #expect(call.seen.packets.count == 30 && observer.streams.count == 2)
    let pair = try #require(call.seen.pairs.last)
    #expect(pair.number == 1 && pair.isSelected && pair.bases[0] == Messages.a)
    #expect(pair.addresses == [showsInAnswers ? Messages.relayed : Messages.a, Messages.b])
    #expect(pair.types == [.relayed, .host])
    #expect(call.seen.carried.last?.tuple.destination == Messages.b)
  }

  @Test func noiseThatResemblesChannelDataIsNotARelay() {
    var observer = Observer()
    var call = SyntheticCall()
    var other = toServer
    other.destination.port = 55_000
    for number in 0..<40 {
      // The length and the RTP version are right, but the sequence numbers are not consecutive.
      let noise = (0..<60).map { UInt8(truncatingIfNeeded: $0 &* 37 &+ number &* 101) }
      call.send(
        ChannelData.frame([0x80, 0] + noise, channel: 0x4001), other, to: &observer)
    }
    #expect(call.seen.calls.isEmpty && call.seen.carried.isEmpty)
  }
}
