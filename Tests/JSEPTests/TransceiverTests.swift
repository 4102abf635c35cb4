import SDP
import Testing
import Wire

@testable import JSEP

struct TransceiverTests {
  @Test func tracksAddedBeforeTheOfferServeItsSections() throws {
    var offerer = Side("a")
    var answerer = Side("b")
    _ = try offerer.add(.audio)
    _ = try offerer.add(.video)
    let video = try answerer.add(.video, byAddTrack: true)
    try exchange(&offerer, &answerer)
    #expect(answerer.agreed == ["0 audio recvonly", "1 video sendrecv"])
    #expect(answerer.transceiver(video)?.mid == "1")
    #expect(answerer.negotiation.transceivers.count == 2)
  }

  @Test func transceiversAddedExplicitlyDoNotServeTheOffer() throws {
    var offerer = Side("a")
    var answerer = Side("b")
    _ = try offerer.add(.audio)
    let local = try answerer.add(.audio)
    try exchange(&offerer, &answerer)
    #expect(answerer.transceiver(local)?.mid == nil)
    #expect(answerer.agreed == ["0 audio recvonly"])
    #expect(answerer.negotiation.negotiationIsNeeded)
  }

  @Test func aSendOnlySectionUsesNoTrack() throws {
    var offerer = Side("a")
    var answerer = Side("b")
    _ = try offerer.add(.audio, .sendonly)
    let local = try answerer.add(.audio, byAddTrack: true)
    try exchange(&offerer, &answerer)
    #expect(answerer.transceiver(local)?.mid == nil)
  }

  @Test func tracksAddedAfterTheOfferUseItsTransceivers() throws {
    var offerer = Side("a")
    var answerer = Side("b")
    _ = try offerer.add(.audio)
    _ = try offerer.add(.video)
    try answerer.apply(try offerer.offer())
    #expect(try answerer.add(.video, byAddTrack: true) == 2)
    #expect(try answerer.add(.audio, byAddTrack: true) == 1)
    #expect(try answerer.add(.audio, byAddTrack: true) == 3)
    try offerer.apply(try answerer.answer())
    #expect(offerer.agreed == ["0 audio sendrecv", "1 video sendrecv"])
    #expect(answerer.transceiver(1)?.streamIDs == ["stream"])
    #expect(answerer.negotiation.negotiationIsNeeded)
  }

  @Test func aTransceiverThatSentIsNotReused() throws {
    var offerer = Side("a")
    var answerer = Side("b")
    let first = try offerer.add(.audio, byAddTrack: true)
    try exchange(&offerer, &answerer)
    try offerer.negotiation.removeTrack(from: first)
    #expect(offerer.transceiver(first)?.direction == .recvonly)
    #expect(offerer.negotiation.negotiationIsNeeded)
    #expect(try offerer.add(.audio, byAddTrack: true) != first)
    let idle = try offerer.add(.video, .recvonly)
    #expect(try offerer.add(.video, byAddTrack: true) == idle)
    #expect(offerer.transceiver(idle)?.direction == .sendrecv)
  }

  @Test func aStoppedTransceiverIsRemovedFromTheSession() throws {
    var offerer = Side("a")
    var answerer = Side("b")
    let audio = try offerer.add(.audio)
    let video = try offerer.add(.video)
    try exchange(&offerer, &answerer)
    for id in [audio, video] { try answerer.negotiation.setDirection(.sendrecv, of: id) }
    try exchange(&answerer, &offerer)
    offerer.changes = []
    answerer.changes = []
    try offerer.negotiation.stop(transceiver: audio)
    #expect(offerer.transceiver(audio)?.direction == .stopped)
    #expect(offerer.negotiation.negotiationIsNeeded)
    try exchange(&offerer, &answerer)
    #expect(offerer.agreed == ["1 video sendrecv"])
    #expect(answerer.agreed == ["1 video sendrecv"])
    #expect(offerer.transceiver(audio) == nil && answerer.transceiver(1) == nil)
    #expect(offerer.changes.contains(.transceiverStopped(id: audio)))
    #expect(answerer.changes.contains(.transceiverStopped(id: 1)))
    #expect(answerer.changes.contains(.trackRemoved(transceiver: 1)))
    let offer = try document(offerer.negotiation.currentLocal)
    #expect(offer.sections.map(\.port) == [0, 9])
    #expect(offer.sections[0].connection == .unknown)
    #expect(offer.bundles == [["1"]])
    #expect(!offerer.negotiation.negotiationIsNeeded && !answerer.negotiation.negotiationIsNeeded)
  }

  @Test func theAnswererMayStopToo() throws {
    var offerer = Side("a")
    var answerer = Side("b")
    _ = try offerer.add(.audio)
    _ = try offerer.add(.video)
    try answerer.apply(try offerer.offer())
    try answerer.negotiation.stop(transceiver: 1)
    try offerer.apply(try answerer.answer())
    #expect(offerer.agreed == ["1 video sendonly"])
    #expect(offerer.negotiation.transceivers.map(\.id) == [2])
    #expect(offerer.changes.contains(.transceiverStopped(id: 1)))
    #expect(try document(answerer.negotiation.currentLocal).bundles == [["1"]])
  }

  /// Returns two sides that negotiated audio and video, after which the offerer stopped the audio.
  private func sidesWithStoppedAudio() throws -> (offerer: Side, answerer: Side) {
    var (offerer, answerer) = (Side("a"), Side("b"))
    let audio = try offerer.add(.audio)
    _ = try offerer.add(.video)
    try exchange(&offerer, &answerer)
    try offerer.negotiation.stop(transceiver: audio)
    return (offerer, answerer)
  }

  @Test func aRejectedSectionIsReusedByTheSameKind() throws {
    var (offerer, answerer) = try sidesWithStoppedAudio()
    _ = try offerer.add(.audio)
    try exchange(&offerer, &answerer)
    // The old section was still being stopped, so the new transceiver got another section.
    #expect(offerer.agreed == ["1 video sendonly", "2 audio sendonly"])
    _ = try answerer.add(.video)
    _ = try answerer.add(.audio)
    try exchange(&answerer, &offerer)
    #expect(
      offerer.agreed == [
        "4 audio recvonly", "1 video sendonly", "2 audio sendonly", "3 video recvonly",
      ])
    #expect(try document(answerer.negotiation.currentLocal).sections.count == 4)
  }

  @Test func aRejectedSectionIsReusedByAnotherKind() throws {
    var (offerer, answerer) = try sidesWithStoppedAudio()
    try exchange(&offerer, &answerer)
    // The next transceiver added reuses the stopped section (RFC 9429 section 5.2.2).
    _ = try offerer.add(.video)
    try exchange(&offerer, &answerer)
    #expect(offerer.agreed == ["2 video sendonly", "1 video sendonly"])
    #expect(answerer.agreed == ["2 video recvonly", "1 video recvonly"])
    #expect(try document(offerer.negotiation.currentLocal).bundles == [["2", "1"]])
  }

  @Test func withoutATrackTheDirectionIsKeptAndAddTrackReusesIt() throws {
    var side = Side("a")
    let id = try side.negotiation.addTransceiver(
      kind: .audio, direction: .sendrecv, streamIDs: [], byAddTrack: false, hasTrack: false)
    try side.negotiation.removeTrack(from: id)
    #expect(side.transceiver(id)?.direction == .sendrecv)
    #expect(try side.add(.audio, byAddTrack: true) == id)
    #expect(side.transceiver(id)?.direction == .sendrecv)
    #expect(side.transceiver(id)?.streamIDs == ["stream"])
    // replaceTrack removes and adds a track without negotiation (W3C).
    try side.negotiation.replaceTrack(of: id, hasTrack: false)
    try side.negotiation.removeTrack(from: id)
    #expect(side.transceiver(id)?.direction == .sendrecv)
    let idle = try side.add(.video, .recvonly)
    try side.negotiation.replaceTrack(of: idle, hasTrack: true)
    #expect(try side.add(.video, byAddTrack: true) != idle)
    #expect(side.transceiver(idle)?.direction == .recvonly)
    try side.negotiation.stop(transceiver: idle)
    let error = #expect(throws: JSEPError.self) {
      try side.negotiation.replaceTrack(of: idle, hasTrack: false)
    }
    #expect(error?.kind == .invalidState)
  }

  @Test func aTransceiverStoppedBeforeItsOfferIsRemoved() throws {
    var offerer = Side("a")
    var answerer = Side("b")
    let audio = try offerer.add(.audio)
    _ = try offerer.add(.video)
    try offerer.negotiation.stop(transceiver: audio)
    try exchange(&offerer, &answerer)
    #expect(offerer.agreed == ["0 video sendonly"])
    #expect(offerer.transceiver(audio) == nil)
    #expect(offerer.changes.contains(.transceiverStopped(id: audio)))
  }

  @Test func callsOnStoppedOrUnknownTransceiversAreRefused() throws {
    var side = Side("a")
    let id = try side.add(.audio)
    func kind(_ call: (inout Side) throws -> Void) -> JSEPError.Kind? {
      #expect(throws: JSEPError.self) { try call(&side) }?.kind
    }
    #expect(kind { try $0.negotiation.setDirection(.stopped, of: id) } == .type)
    #expect(kind { try $0.negotiation.setDirection(.inactive, of: 9) } == .invalidAccess)
    #expect(kind { try $0.negotiation.stop(transceiver: 9) } == .invalidAccess)
    #expect(kind { _ = try $0.add(.audio, .stopped) } == .type)
    #expect(kind { _ = try $0.add(.audio, streams: ["a b"]) } == .invalidAccess)
    #expect(kind { try $0.negotiation.setStreams(["a\r\na=x"], of: id) } == .invalidAccess)
    #expect(kind { try $0.negotiation.setStreams([""], of: id) } == .invalidAccess)
    try side.negotiation.stop(transceiver: id)
    try side.negotiation.stop(transceiver: id)
    #expect(kind { try $0.negotiation.setDirection(.inactive, of: id) } == .invalidState)
    #expect(side.negotiation.close() == [.signalingState(from: .stable, to: .closed)])
    #expect(side.negotiation.close().isEmpty)
    #expect(kind { _ = try $0.add(.audio) } == .invalidState)
    #expect(kind { _ = try $0.offer() } == .invalidState)
    #expect(kind { try $0.apply(.offer, "") } == .invalidState)
  }
}
