import Testing
import Wire

@testable import SCTP

/// Tests packets that end the association but contain more chunks, which must be ignored.
struct BrokenPeerTests {
  private func connected(_ change: (inout SCTPParameters) -> Void = { _ in }) -> Link {
    var link = Link()
    link.connect {
      $1.offersInterleaving = false
      change(&$1)
    }
    return link
  }

  /// Returns the number of the next DATA chunk to a side.
  private func next(_ side: SCTPAssociation) -> UInt32 {
    side.receiver.numbers.acknowledged &+ 1
  }

  /// Returns the number of the last DATA chunk that a side sent.
  private func last(_ side: SCTPAssociation) -> UInt32 { side.sender.sent.nextNumber &- 1 }

  /// Delivers chunks to the second side in one packet.
  private func deliver(_ chunks: [Crafted.Chunk], to link: inout Link) {
    link.step(1, .packet(Crafted.packet(tag: link.sides[1].handshake.localTag, chunks)))
  }

  @Test func anOversizedMessageBehindAForwardTSNEndsTheAssociation() {
    var link = connected { $0.localMaximumMessageSize = 1500 }
    let first = next(link.sides[1])
    let open = ChannelMessage.open(DataChannelInit(label: "a")).bytes
    let part = [UInt8](repeating: 7, count: 1000)
    deliver([Crafted.data(first, stream: 0, kind: 50, open)], to: &link)
    // Leaves a gap before two parts of a message that together exceed the limit. On a stream that
    // is checked later, leaves another gap before a channel's announcement.
    for (offset, stream, sequence) in [(2, 0, 2), (3, 0, 3)] as [(UInt32, UInt16, UInt16)] {
      deliver(
        [Crafted.data(first &+ offset, stream: stream, sequence: sequence, kind: 52, part)],
        to: &link)
    }
    deliver([Crafted.data(first &+ 5, stream: 2, sequence: 1, kind: 50, open)], to: &link)
    #expect(link.seen[1].announced.count == 1 && link.sides[1].state == .connected)
    let body = Crafted.words(long: first &+ 4) + Crafted.words(0, 1, 2, 0)
    deliver([.init(type: .forward, body: body)], to: &link)
    #expect(link.seen[1].failures == ["the peer sent too large a message"])
    #expect(link.seen[1].states.last == .closed)
    #expect(link.seen[1].announced.count == 1 && link.seen[1].closed.count == 1)
    #expect(link.sides[1].deadline == nil && link.sides[1].channelNumbers.isEmpty)
    // Chunks after the end are counted.
    #expect(link.sides[1].statistics.dropped == 1)
  }

  @Test func aShutdownAcknowledgingUnsentDataEndsTheAssociation() {
    var link = connected()
    let number = last(link.sides[1]) &+ 1
    let answers = Crafted.answer(
      &link.sides[1], to: [.init(type: .shutdown, body: Crafted.words(long: number))],
      at: link.now)
    #expect(answers.map(\.type) == [.abort] && answers.first?.body.prefix(2) == [0, 13])
    #expect(link.sides[1].handshake.phase == .ended && link.sides[1].deadline == nil)
  }

  @Test func aWaitingResetIsNotAnsweredAfterAnAbort() {
    var link = connected()
    let number = next(link.sides[1])
    let request =
      Crafted.words(13, 18)
      + Crafted.words(long: link.sides[1].channels.resets.expectedRequest, 0, number)
      + Crafted.words(0, 0)
    let deferred = Crafted.answer(
      &link.sides[1], to: [.init(type: .reconfiguration, body: request)], at: link.now)
    // The answer is "in progress", because the data has not arrived.
    #expect(deferred.map(\.type) == [.reconfiguration])
    #expect(deferred.first?.body.suffix(4) == [0, 0, 0, 6])
    let answers = Crafted.answer(
      &link.sides[1], to: [Crafted.data(number, stream: 0, [1]), .init(type: .abort)],
      at: link.now)
    #expect(answers == [] && link.sides[1].state == .closed && link.sides[1].deadline == nil)
  }

  @Test(arguments: [true, false])
  func aPendingAcknowledgementIsDroppedAtTheEndOfData(isAnswered: Bool) {
    var link = connected()
    let number = next(link.sides[1])
    // The first packet with data is acknowledged at once; the next acknowledgement waits for a
    // second packet.
    for offset in 0..<2 as Range<UInt32> {
      deliver([Crafted.data(number &+ offset, stream: 0, [1])], to: &link)
    }
    let delay = link.sides[1].deadline
    #expect(delay == link.now + SCTPLimits.acknowledgementDelay)
    if !isAnswered { link.step(1, .shutdown) }
    let body = Crafted.words(long: last(link.sides[1]))
    let answers = Crafted.answer(
      &link.sides[1], to: [.init(type: .shutdown, body: body)], at: link.now)
    #expect(answers.map(\.type) == [.shutdownAcknowledgement])
    // From here on, the side only repeats its SHUTDOWN ACK (RFC 9260 section 9.2), at its next
    // deadline.
    let now = delay ?? link.now
    var outbox = Outbox<SCTPAssociation.Output>()
    link.sides[1].step(.deadline, at: now, into: &outbox)
    #expect(link.sides[1].deadline.map { $0 > now } == true)
  }
}
