import SDP
import Testing
import Wire

@testable import JSEP

struct RollbackTests {
  @Test func rollingBackALocalOfferLeavesNoTrace() throws {
    var side = Side("a")
    _ = try side.add(.audio)
    let offer = try side.offer()
    #expect(side.transceiver(1)?.mid == "0")
    side.changes += try side.negotiation.setLocal(SessionDescription(type: .rollback, sdp: ""))
    #expect(side.transceiver(1)?.mid == nil && side.transceiver(1)?.mLineIndex == nil)
    #expect(side.negotiation.pendingLocal == nil)
    #expect(side.negotiation.negotiationIsNeeded)
    let again = try document(try side.offer())
    #expect(again.origin.sessionVersion == "2")
    #expect(try document(offer).origin.sessionID == again.origin.sessionID)
  }

  @Test func rollingBackARemoteOfferRemovesItsTransceivers() throws {
    var side = Side("a")
    var other = Side("b")
    _ = try other.add(.audio)
    _ = try other.add(.video)
    try side.apply(try other.offer())
    _ = try side.add(.video, byAddTrack: true)
    side.changes = []
    try side.apply(.rollback, "")
    #expect(side.negotiation.transceivers.map(\.id) == [2])
    #expect(side.negotiation.remoteTransport == nil)
    #expect(
      side.changes == [
        .signalingState(from: .haveRemoteOffer, to: .stable), .remoteTransport(0),
        .trackRemoved(transceiver: 1), .trackRemoved(transceiver: 2), .transceiverStopped(id: 1),
      ])
    // The transceiver that now has a track is used in the next offer.
    try side.apply(try other.offer())
    #expect(side.transceiver(2)?.mid == "1")
    #expect(side.negotiation.transceivers.map(\.kind) == [.video, .audio])
  }

  @Test func onlyAddTrackKeepsATransceiverOfTheOffer() throws {
    var side = Side("a")
    var other = Side("b")
    _ = try other.add(.audio)
    _ = try other.add(.video)
    try side.apply(try other.offer())
    try side.negotiation.replaceTrack(of: 1, hasTrack: true)
    _ = try side.add(.video, byAddTrack: true)
    try side.negotiation.removeTrack(from: 2)
    try side.apply(.rollback, "")
    // A transceiver to which addTrack attached a track stays (W3C).
    #expect(side.negotiation.transceivers.map(\.id) == [2])
  }

  @Test func crossingOffersAreResolvedForTheImpolitePeer() throws {
    var polite = Side("a")
    var impolite = Side("b")
    _ = try polite.add(.audio, byAddTrack: true)
    _ = try impolite.add(.video, byAddTrack: true)
    _ = try impolite.add(.audio, byAddTrack: true)
    _ = try polite.offer()
    try polite.apply(try impolite.offer())
    #expect(polite.negotiation.pendingLocal == nil)
    try impolite.apply(try polite.answer())
    #expect(polite.agreed == ["0 video recvonly", "1 audio sendrecv"])
    #expect(impolite.agreed == ["0 video sendonly", "1 audio sendrecv"])
    #expect(polite.negotiation.transceivers.map(\.mid) == ["1", "0"])
    #expect(!polite.negotiation.negotiationIsNeeded)
  }

  @Test func aRefusedCrossingOfferChangesNothing() throws {
    var side = Side("a")
    _ = try side.add(.audio)
    let offer = try side.offer()
    #expect(throws: JSEPError.self) { try side.apply(.offer, "v=0\r\n") }
    #expect(side.negotiation.signalingState == .haveLocalOffer)
    #expect(side.negotiation.pendingLocal == offer)
  }

  @Test func theRunningSessionIsRestored() throws {
    var left = Side("a")
    var right = Side("b")
    _ = try left.add(.audio, byAddTrack: true)
    _ = try right.add(.audio, byAddTrack: true)
    try exchange(&left, &right)
    let before = right.negotiation
    _ = try left.add(.video)
    try left.negotiation.setDirection(.recvonly, of: 1)
    left.transport.usernameFragment = "newFrag"
    try right.apply(try left.offer())
    #expect(right.negotiation.remoteTransport?.usernameFragment == "newFrag")
    right.changes = []
    try right.apply(.rollback, "")
    #expect(right.negotiation.transceivers == before.transceivers)
    #expect(right.negotiation.remoteTransport == before.remoteTransport)
    #expect(right.negotiation.sections == before.sections)
    #expect(right.negotiation.currentRemote == before.currentRemote)
    // The rollback restores the track that the offer removed, and removes the new one.
    #expect(
      right.changes == [
        .signalingState(from: .haveRemoteOffer, to: .stable), .remoteTransport(0),
        .trackAdded(transceiver: 1, streamIDs: ["stream"]), .trackRemoved(transceiver: 2),
        .transceiverStopped(id: 2),
      ])
  }

  @Test func anOfferMayReplaceAnother() throws {
    var side = Side("a")
    var other = Side("b")
    _ = try other.add(.audio)
    let first = try other.offer()
    var third = Side("c")
    _ = try third.add(.video)
    let second = try third.offer()
    try side.apply(first)
    #expect(side.negotiation.transceivers.map(\.kind) == [.audio])
    try side.apply(second)
    #expect(side.negotiation.transceivers.map(\.kind) == [.video])
    #expect(side.negotiation.transceivers.map(\.mid) == ["0"])
    try third.apply(try side.answer())
    #expect(third.agreed == ["0 video sendonly"])
  }
}
