import SDP
import Testing
import Wire

@testable import JSEP

struct PranswerTests {
  @Test func mediaIsAgreedBeforeTheFinalAnswer() throws {
    var offerer = Side("a")
    var answerer = Side("b")
    _ = try offerer.add(.audio, byAddTrack: true)
    _ = try offerer.add(.video, byAddTrack: true)
    _ = try answerer.add(.audio, byAddTrack: true)
    try answerer.apply(try offerer.offer())
    try offerer.apply(try answerer.answer(.pranswer))
    #expect(offerer.negotiation.signalingState == .haveRemotePranswer)
    #expect(answerer.negotiation.signalingState == .haveLocalPranswer)
    #expect(offerer.agreed == ["0 audio sendrecv", "1 video sendonly"])
    #expect(answerer.agreed == ["0 audio sendrecv", "1 video recvonly"])
    #expect(offerer.changes.contains(.sectionsAgreed))
    #expect(offerer.changes.contains(.trackAdded(transceiver: 1, streamIDs: ["stream"])))
    // There is no current description before the final answer.
    #expect(offerer.negotiation.currentLocal == nil && offerer.negotiation.currentRemote == nil)

    try answerer.negotiation.setDirection(.inactive, of: 2)
    try offerer.apply(try answerer.answer())
    #expect(offerer.agreed == ["0 audio sendrecv", "1 video inactive"])
    #expect(offerer.negotiation.signalingState == .stable)
  }

  @Test func aRejectedSectionIsStoppedOnlyByTheFinalAnswer() throws {
    var offerer = Side("a")
    var answerer = Side("b")
    _ = try offerer.add(.audio)
    _ = try offerer.add(.video)
    try answerer.apply(try offerer.offer())
    try answerer.negotiation.stop(transceiver: 2)
    let answer = try answerer.answer(.pranswer)
    try offerer.apply(answer)
    #expect(offerer.agreed == ["0 audio sendonly"])
    #expect(offerer.negotiation.transceivers.count == 2)
    try offerer.apply(.answer, answer.sdp)
    #expect(offerer.negotiation.transceivers.count == 1)
    #expect(offerer.changes.contains(.transceiverStopped(id: 2)))
  }

  @Test func aProvisionalAnswerCannotBeRolledBack() throws {
    var offerer = Side("a")
    var answerer = Side("b")
    _ = try offerer.add(.audio)
    try answerer.apply(try offerer.offer())
    try offerer.apply(try answerer.answer(.pranswer))
    for isOfferer in [true, false] {
      var side = isOfferer ? offerer : answerer
      let error = #expect(throws: JSEPError.self) { try side.apply(.rollback, "") }
      #expect(error?.kind == .invalidState)
    }
  }
}
