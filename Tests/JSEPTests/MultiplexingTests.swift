import SDP
import Testing
import Wire

@testable import JSEP

/// RTCP on RTP's port: the W3C rtcpMuxPolicy is `require` (RFC 9429 section 5.8.3).
struct MultiplexingTests {
  private static let line = "a=rtcp-mux\r\n"

  private func offer(_ group: Bool = true) throws -> SDPDocument {
    var offerer = Side("a")
    _ = try offerer.add(.audio)
    _ = try offerer.add(.video)
    var offer = try document(try offerer.offer())
    if !group { offer.lines.removeAll { $0.text.hasPrefix("a=group") } }
    return offer
  }

  private func unmultiplexed(_ document: SDPDocument, _ sections: [Int]) -> String {
    var document = document
    for index in sections {
      document.sections[index].lines.removeAll { $0.text.hasPrefix("a=rtcp-mux") }
    }
    return document.text
  }

  @Test func anOfferWithRTCPOnASeparatePortIsRefused() throws {
    var side = Side("b")
    let text = unmultiplexed(try offer(false), [1])
    let error = #expect(throws: JSEPError.self) { try side.apply(.offer, text) }
    #expect(error?.kind == .invalidAccess)
    let line = try SDPDocument(parsing: text).line(ofSection: 1)
    #expect(
      error?.reason
        == "line \(line), m-section 1 (video, mid 1) has no a=rtcp-mux: RTCP on a port of its own"
        + " is not supported (rtcpMuxPolicy is require)")
    #expect(side.negotiation.signalingState == .stable)
    #expect(side.negotiation.transceivers.isEmpty)
    // A bundle without any rtcp-mux is rejected as well.
    let bundled = unmultiplexed(try offer(), [0, 1])
    let again = #expect(throws: JSEPError.self) { try side.apply(.offer, bundled) }
    #expect(again?.kind == .invalidAccess)
  }

  @Test func bundledSectionsNeedNotRepeatRTCPMux() throws {
    var side = Side("b")
    try side.apply(.offer, unmultiplexed(try offer(), [1]))
    _ = try side.answer()
    #expect(side.agreed == ["0 audio recvonly", "1 video recvonly"])
  }

  @Test func rejectedSectionsNeedNoRTCPMux() throws {
    var text = try offer(false)
    text.sections[1].port = 0
    var side = Side("b")
    try side.apply(.offer, unmultiplexed(text, [1]))
    _ = try side.answer()
    #expect(side.agreed == ["0 audio recvonly"])
  }

  @Test(arguments: [[1], [0, 1]]) func answersAreReadTheSameWay(sections: [Int]) throws {
    var offerer = Side("a")
    var answerer = Side("b")
    _ = try offerer.add(.audio)
    _ = try offerer.add(.video)
    try answerer.apply(try offerer.offer())
    let answer = unmultiplexed(try document(try answerer.answer()), sections)
    guard sections.count == 2 else {
      try offerer.apply(.answer, answer)
      #expect(offerer.agreed == ["0 audio sendonly", "1 video sendonly"])
      return
    }
    let error = #expect(throws: JSEPError.self) { try offerer.apply(.answer, answer) }
    #expect(error?.kind == .invalidAccess)
    #expect(error?.reason.contains("m-section 0 (audio, mid 0) has no a=rtcp-mux") == true)
  }
}
