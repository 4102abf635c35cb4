import SDP
import Testing
import Wire

@testable import JSEP

struct NegotiationNeedTests {
  @Test func anEmptySessionNeedsNoNegotiation() throws {
    var side = Side("a")
    #expect(!side.negotiation.negotiationIsNeeded)
    let id = try side.add(.audio)
    #expect(side.negotiation.negotiationIsNeeded)
    try side.negotiation.stop(transceiver: id)
    #expect(!side.negotiation.negotiationIsNeeded)
  }

  @Test func negotiationIsNotRequestedDuringAnExchange() throws {
    var side = Side("a")
    _ = try side.add(.audio)
    _ = try side.offer()
    _ = try side.add(.video)
    #expect(!side.negotiation.negotiationIsNeeded)
  }

  @Test func anAnsweredOfferEndsTheNeed() throws {
    // The offer says sendrecv and the answer recvonly, so offering again would change nothing.
    var left = Side("a")
    var right = Side("b")
    _ = try left.add(.audio)
    try exchange(&left, &right)
    #expect(left.agreed == ["0 audio sendonly"])
    #expect(!left.negotiation.negotiationIsNeeded)
    // Setting the direction that was negotiated needs no negotiation either.
    try left.negotiation.setDirection(.sendonly, of: 1)
    #expect(!left.negotiation.negotiationIsNeeded)
    try left.negotiation.setDirection(.inactive, of: 1)
    #expect(left.negotiation.negotiationIsNeeded)
  }

  @Test func theAnswererNeedsNegotiationToSend() throws {
    var left = Side("a")
    var right = Side("b")
    _ = try left.add(.audio)
    try exchange(&left, &right)
    #expect(!right.negotiation.negotiationIsNeeded)
    #expect(try right.add(.audio, byAddTrack: true) == 1)
    #expect(right.negotiation.negotiationIsNeeded)
    try exchange(&right, &left)
    #expect(!right.negotiation.negotiationIsNeeded)
    #expect(left.agreed == ["0 audio sendrecv"])
  }

  @Test func aSectionEndedByThePeerNeedsNothing() throws {
    var (left, right) = try RenegotiationTests.call()
    try right.negotiation.stop(transceiver: 1)
    #expect(right.negotiation.negotiationIsNeeded && !left.negotiation.negotiationIsNeeded)
    try exchange(&right, &left)
    #expect(!right.negotiation.negotiationIsNeeded && !left.negotiation.negotiationIsNeeded)
    #expect(left.negotiation.transceivers.isEmpty)
  }

  @Test func twoSendOnlySidesDoNotOfferForever() throws {
    var left = Side("a")
    var right = Side("b")
    _ = try left.add(.audio, byAddTrack: true)
    _ = try right.add(.audio, byAddTrack: true)
    try exchange(&left, &right)
    try left.negotiation.setDirection(.sendonly, of: 1)
    try exchange(&left, &right)
    try right.negotiation.setDirection(.sendonly, of: 1)
    try exchange(&right, &left)
    #expect(left.agreed == ["0 audio inactive"])
    #expect(right.agreed == ["0 audio inactive"])
    #expect(!left.negotiation.negotiationIsNeeded && !right.negotiation.negotiationIsNeeded)
  }
}
