import SDP
import Testing
import Wire

@testable import JSEP

struct TrackIDTests {
  private func add(
    _ id: String?, _ kind: MediaKind = .audio, streams: [String] = ["s"], to side: inout Side
  ) throws(JSEPError) -> UInt32 {
    try side.negotiation.addTransceiver(
      kind: kind, direction: .sendrecv, streamIDs: streams, byAddTrack: true, trackID: id)
  }

  @Test func theGivenIdentifierIsInTheOffer() throws {
    var side = Side("a")
    _ = try add("microphone", streams: ["s", "t"], to: &side)
    let offer = try document(try side.offer())
    #expect(offer.sections[0].msids.map(\.text) == ["s microphone", "t microphone"])
  }

  @Test func anIdentifierIsRefusedWhileAnotherTrackHasIt() throws {
    var side = Side("a")
    let first = try add("x", to: &side)
    for kind in [MediaKind.audio, .video] {
      let error = #expect(throws: JSEPError.self) { try add("x", kind, to: &side) }
      #expect(error?.kind == .duplicateID)
    }
    #expect(side.negotiation.transceivers.count == 1)
    try side.negotiation.removeTrack(from: first)
    #expect(try add("x", to: &side) == first)
  }

  @Test func duplicateStreamIdentifiersAreRefused() throws {
    var side = Side("a")
    let error = #expect(throws: JSEPError.self) { try add("x", streams: ["s", "s"], to: &side) }
    #expect(error?.kind == .duplicateID)
    #expect(side.negotiation.transceivers.isEmpty)
  }

  @Test(arguments: ["", "a b", "a\r\nb", String(repeating: "a", count: 256)])
  func anIdentifierMustBeValidInSDP(id: String) throws {
    var side = Side("a")
    let error = #expect(throws: JSEPError.self) { try add(id, to: &side) }
    #expect(error?.kind == .invalidAccess)
  }
}
