import Testing
import Wire

@testable import SCTP

/// Tests rules about an association's start and end that well-behaved peers never violate.
struct HandshakeRuleTests {
  private func initiation(
    tag: UInt32 = 7, window: UInt32 = 65536, out: UInt16 = 10, into: UInt16 = 10
  ) -> Initiation {
    var offer = Initiation()
    offer.tag = tag
    offer.window = window
    offer.outgoingStreams = out
    offer.incomingStreams = into
    return offer
  }

  /// Returns a side that has sent its INIT and waits.
  private func waiting() -> SCTPAssociation {
    var link = Link()
    link.step(0, .start(SCTPParameters(isClient: true)))
    return link.sides[0]
  }

  @Test func anUnacceptableInitIsRefusedAndChangesNothing() {
    let offers = [initiation(window: 1499), initiation(out: 0), initiation(into: 0)]
    for offer in offers {
      var link = Link()
      link.connect()
      let answers = Crafted.answer(
        &link.sides[1],
        to: Crafted.packet(tag: 0, [.init(type: .initiation, body: offer.body())]), at: link.now)
      #expect(answers.map(\.chunk.type) == [.abort] && answers.map(\.tag) == [7])
      #expect(answers.first?.chunk.body == Crafted.words(7, 4))
      #expect(link.sides[1].state == .connected)
    }
  }

  @Test func anInitWithoutATagIsIgnored() {
    var side = waiting()
    let offer = initiation(tag: 0)
    let packet = Crafted.packet(tag: 0, [.init(type: .initiation, body: offer.body())])
    let answers = Crafted.answer(&side, to: packet, at: .zero)
    #expect(answers.isEmpty)
  }

  @Test func anInitBundledWithOtherChunksIsIgnored() {
    for others in [[Crafted.Chunk(type: .heartbeat)], []] {
      var side = waiting()
      let offer = Crafted.Chunk(type: .initiation, body: initiation().body())
      let answers = Crafted.answer(
        &side, to: Crafted.packet(tag: 0, [offer] + others), at: .zero)
      #expect(answers.map(\.chunk.type) == (others.isEmpty ? [.initiationAcknowledgement] : []))
    }
  }

  @Test func anUnacceptableInitAckEndsTheAttempt() {
    let cookie: [UInt8] = [1, 2, 3, 4]
    let cases: [(Initiation, cookie: [UInt8], flags: UInt8, isOver: Bool)] = [
      (initiation(tag: 0), cookie, 1, true), (initiation(out: 0), cookie, 0, true),
      (initiation(into: 0), cookie, 0, true), (initiation(), [], 0, true),
      (initiation(window: 1000), cookie, 0, false),
    ]
    for (answer, cookie, flags, isOver) in cases {
      var side = waiting()
      let chunk = Crafted.Chunk(
        type: .initiationAcknowledgement, body: answer.body(cookie: cookie))
      let replies = Crafted.answer(&side, to: [chunk], at: .zero)
      #expect(replies.map(\.type) == [.abort] && replies.map(\.flags) == [flags])
      #expect((side.state == .closed) == isOver)
    }
  }

  @Test func unknownParametersAreReportedWithTheCookie() {
    var side = waiting()
    let body = initiation().body(cookie: [1, 2, 3, 4]) + Crafted.words(0xc123, 6, 0xabcd, 0)
    let replies = Crafted.answer(
      &side, to: [.init(type: .initiationAcknowledgement, body: body)], at: .zero)
    #expect(replies.map(\.type) == [.cookieEcho, .error])
    #expect(replies.last?.body == Crafted.words(8, 12, 0xc123, 6, 0xabcd, 0))
  }

  @Test func packetsAfterTheAssociationEndedAreAnsweredWithAnAbort() {
    var link = Link()
    link.connect()
    link.step(1, .abort)
    let cases: [([Crafted.Chunk], [ChunkType])] = [
      ([Crafted.data(1, stream: 0, [1])], [.abort]),
      ([.init(type: .shutdownAcknowledgement)], [.shutdownComplete]),
      ([.init(type: .abort)], []), ([.init(type: .shutdownComplete)], []),
      ([.init(type: .cookieAcknowledgement)], []), ([.init(type: .error)], []),
      ([Crafted.data(1, stream: 0, [1]), .init(type: .abort)], []),
    ]
    for (chunks, expected) in cases {
      let packet = Crafted.packet(tag: 99, chunks)
      let replies = Crafted.answer(&link.sides[1], to: packet, at: link.now)
      #expect(replies.map(\.chunk.type) == expected)
      // The response has the received packet's tag, as its T bit indicates (RFC 9260 section
      // 8.5.1).
      #expect(replies.allSatisfy { $0.tag == 99 && $0.chunk.flags == 1 })
    }
  }

  @Test func aShutdownAckFromAnOlderAssociationIsAnsweredDuringTheHandshake() {
    var side = waiting()
    let packet = Crafted.packet(tag: 99, [.init(type: .shutdownAcknowledgement)])
    let replies = Crafted.answer(&side, to: packet, at: .zero)
    #expect(replies.map(\.chunk.type) == [.shutdownComplete] && replies.map(\.tag) == [99])
  }

  @Test func anInitDuringShutdownRepeatsTheShutdownAck() {
    var link = Link()
    link.connect()
    // The peer has received everything and ends the association.
    let last = link.sides[1].sender.sent.nextNumber &- 1
    let end = Crafted.answer(
      &link.sides[1], to: [.init(type: .shutdown, body: Crafted.words(long: last))], at: link.now)
    #expect(end.map(\.type) == [.shutdownAcknowledgement])
    #expect(link.sides[1].handshake.phase == .shutdownAcknowledgementSent)
    let packet = Crafted.packet(tag: 0, [.init(type: .initiation, body: initiation().body())])
    let replies = Crafted.answer(&link.sides[1], to: packet, at: link.now)
    #expect(replies.map(\.chunk.type) == [.shutdownAcknowledgement])
  }

  @Test func anAssociationShuttingDownAcceptsNoMoreData() {
    var link = Link()
    link.connect()
    let channel = link.open(0)
    for _ in 0..<30 { link.send(0, channel, "before") }
    link.step(0, .shutdown)
    #expect(link.sides[0].refusal(ofSending: 5, on: channel) == .notOpen)
    link.send(0, channel, "after")
    link.run { $0.sides.allSatisfy { $0.state == .closed } }
    #expect(link.seen[1].messages.count == 30)
  }
}
