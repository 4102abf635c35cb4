import SDP
import Testing
import Wire

@testable import JSEP

struct LocalDescriptionTests {
  static let candidates = [
    "candidate:1 1 udp 2130706431 2001:db8::1 50000 typ host",
    "candidate:2 1 udp 2130706430 192.0.2.1 50000 typ host",
  ]

  @Test func candidatesAreFilledInLater() throws {
    var side = Side("a")
    #expect(side.negotiation.localDescription(side.transport) == nil)
    _ = try side.add(.audio)
    _ = try side.add(.video)
    let offer = try side.offer()
    #expect(side.negotiation.localDescription(side.transport) == offer)
    side.transport.candidates = LocalDescriptionTests.candidates
    side.transport.defaultAddress = SocketAddress("[2001:db8::1]:50000")
    var filled = try document(side.negotiation.localDescription(side.transport))
    #expect(filled.sections.map(\.port) == [50000, 50000])
    #expect(filled.sections.allSatisfy { $0.connection?.text == "IN IP6 2001:db8::1" })
    #expect(filled.sections.map(\.candidates) == [LocalDescriptionTests.candidates, []])
    #expect(filled.sections.allSatisfy { !$0.endOfCandidates })
    side.transport.gatheringIsComplete = true
    filled = try document(side.negotiation.localDescription(side.transport))
    #expect(filled.sections.map(\.endOfCandidates) == [true, false])
    #expect(try document(offer).origin == filled.origin)
    // A description created with candidates can be set.
    #expect(try document(try side.offer()) == filled)
  }

  @Test func candidatesAreInTheFirstActiveSection() throws {
    var left = Side("a")
    var right = Side("b")
    _ = try left.add(.audio)
    _ = try left.add(.video)
    try exchange(&left, &right)
    try left.negotiation.stop(transceiver: 1)
    left.transport.candidates = LocalDescriptionTests.candidates
    left.transport.defaultAddress = SocketAddress("192.0.2.1:50000")
    let offer = try document(try left.offer())
    #expect(offer.sections.map(\.port) == [0, 50000])
    #expect(offer.sections.map(\.candidates.count) == [0, 2])
  }

  @Test func candidatesOfAnotherGenerationAreOmitted() throws {
    var side = Side("a")
    _ = try side.add(.audio)
    let offer = try side.offer()
    side.transport.candidates = LocalDescriptionTests.candidates
    side.transport.usernameFragment = "next"
    #expect(side.negotiation.localDescription(side.transport) == offer)
  }

  @Test func thePendingDescriptionComesFirst() throws {
    var (left, right) = try RenegotiationTests.call()
    #expect(left.negotiation.localDescription(left.transport)?.type == .offer)
    #expect(right.negotiation.localDescription(right.transport)?.type == .answer)
    _ = try left.add(.video)
    let offer = try left.offer()
    #expect(left.negotiation.localDescription(left.transport) == offer)
    #expect(left.negotiation.currentLocal != offer)
    try right.apply(offer)
    #expect(right.negotiation.remoteMLineIndex(ofMID: "1") == 1)
    #expect(right.negotiation.remoteMLineIndex(ofMID: "7") == nil)
  }
}
