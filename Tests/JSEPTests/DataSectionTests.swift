import SDP
import Testing
import Wire

@testable import JSEP

struct DataSectionTests {
  @Test(arguments: [
    ("chromium-offer", "2", UInt16(5000), UInt64(262_144)),
    ("chromium-datachannel-offer", "0", 5000, 262_144),
    ("firefox-offer", "2", 5000, 1_073_741_823),
    ("aiortc-offer", "2", 5000, 262_144),
  ])
  func otherStacksOffersAreAnswered(name: String, mid: String, port: UInt16, size: UInt64) throws {
    var side = Side("a")
    try side.apply(.offer, try sample(name))
    let answer = try document(try side.answer())
    #expect(
      side.negotiation.data
        == NegotiatedData(mid: mid, remotePort: port, remoteMaximumMessageSize: size))
    let section = try #require(answer.sections.last)
    #expect(section.kind == .application && section.mid == mid && !section.isRejected)
    #expect(section.formats == ["webrtc-datachannel"] && section.transport == "UDP/DTLS/SCTP")
    #expect(section.sctpPort == 5000 && section.maximumMessageSize == 1_048_576)
    #expect(section.setup == .passive && section.fingerprints.count == 1)
    #expect(!side.negotiation.negotiationIsNeeded)
  }

  @Test func aDataOnlyOfferDeterminesTheTransport() throws {
    let (side, answer) = try RemoteOfferTests.answer(try sample("chromium-datachannel-offer"))
    #expect(side.negotiation.sections.isEmpty)
    #expect(side.negotiation.remoteTransport?.usernameFragment != nil)
    #expect(side.negotiation.remoteTransport?.localIsDTLSClient == false)
    #expect(side.negotiation.mid(ofTransport: 0) == "0" && answer.bundles == [["0"]])
  }

  /// Offers in the formats from before RFC 8841, which browsers used until 2018, are answered in
  /// the same format.
  @Test(arguments: [
    ("DTLS/SCTP 5001", ["a=sctpmap:5001 webrtc-datachannel 1024"], "DTLS/SCTP"),
    ("DTLS/SCTP 5001", [], "DTLS/SCTP"),
    ("UDP/DTLS/SCTP 5001", ["a=sctpmap:5001 webrtc-datachannel 256"], "UDP/DTLS/SCTP"),
  ])
  func anOfferInTheOldFormatIsAnsweredInIt(
    head: String, lines: [String], profile: String
  ) throws {
    let text = try sample("chromium-datachannel-offer")
    let former = text.replacing("UDP/DTLS/SCTP webrtc-datachannel", with: head)
      .replacing("a=sctp-port:5000\r\n", with: lines.map { $0 + "\r\n" }.joined())
      .replacing("a=max-message-size:262144\r\n", with: "")
    try #require(former.contains(head) && !former.contains("a=sctp-port"))
    var side = Side("a")
    try side.apply(.offer, former)
    let answer = try document(try side.answer())
    #expect(
      side.negotiation.data
        == NegotiatedData(mid: "0", remotePort: 5001, remoteMaximumMessageSize: 65_536))
    let section = try #require(answer.sections.first)
    #expect(!section.isRejected && section.transport == profile && section.formats == ["5000"])
    #expect(section.text.contains("a=sctpmap:5000 webrtc-datachannel 1024\r\n"))
    #expect(section.sctpPort == nil && section.setup == .passive)
    // The next local offer keeps the format, and its answer is understood.
    let again = try document(try side.offer())
    #expect(again.sections.first?.formats == ["5000"])
    #expect(again.sections.first?.transport == profile)
    try side.apply(.answer, former.replacing("a=setup:actpass", with: "a=setup:active"))
    #expect(side.negotiation.data?.remotePort == 5001)
  }

  @Test(arguments: ["DTLS/SCTP 0", "DTLS/SCTP x", "UDP/DTLS/SCTP 5000", "DTLS/SCTP 5000"])
  func otherApplicationSectionsAreRefused(head: String) throws {
    let other = head == "DTLS/SCTP 5000" ? "a=sctpmap:5000 t38 16\r\n" : ""
    let text = try sample("chromium-datachannel-offer")
      .replacing("UDP/DTLS/SCTP webrtc-datachannel", with: head)
      .replacing("a=sctp-port:5000\r\n", with: other)
    var side = Side("a")
    try side.apply(.offer, text)
    let answer = try document(try side.answer())
    #expect(answer.sections.map(\.isRejected) == [true] && side.negotiation.data == nil)
    #expect(
      OfferRemarks.sentences(about: SessionDescription(type: .offer, sdp: text)).contains {
        $0.contains("m-section 0 (application, mid 0) is refused") && $0.contains(head)
      })
  }

  @Test func channelsRequestASection() throws {
    var left = Side("a")
    var right = Side("b")
    _ = try left.add(.audio)
    try exchange(&left, &right)
    #expect(!left.negotiation.negotiationIsNeeded && !left.negotiation.mayHaveData)
    left.negotiation.wantData()
    #expect(left.negotiation.negotiationIsNeeded)
    let offer = try document(try left.offer())
    #expect(offer.sections.map(\.kind) == [.audio, .application])
    #expect(offer.bundles == [["0", "1"]] && offer.sections[1].sctpPort == 5000)
    try right.apply(try #require(left.negotiation.pendingLocal))
    try left.apply(try right.answer())
    for side in [left, right] {
      #expect(
        side.negotiation.data
          == NegotiatedData(mid: "1", remotePort: 5000, remoteMaximumMessageSize: 1_048_576))
      #expect(side.negotiation.mid(ofTransport: 0) == "0" && !side.negotiation.negotiationIsNeeded)
    }
    // Later offers keep the section.
    _ = try right.add(.video)
    try exchange(&right, &left)
    #expect(left.negotiation.data?.mid == "1" && right.negotiation.sections.count == 2)
  }

  @Test func anAnswerMayOmitTheSizeAndThePort() throws {
    // Janus omits the maximum message size; the usual SCTP port may be omitted as well.
    let side = try DataSectionTests.answered { section in
      section.lines.removeAll { line in
        ["a=max-message-size", "a=sctp-port"].contains { line.text.hasPrefix($0) }
      }
    }
    #expect(
      side.negotiation.data
        == NegotiatedData(mid: "0", remotePort: 5000, remoteMaximumMessageSize: 65_536))
  }

  @Test func aRefusedSectionIsOfferedAgainInItsPlace() throws {
    var side = try DataSectionTests.answered { section in section.port = 0 }
    #expect(side.negotiation.data == nil && !side.negotiation.mayHaveData)
    #expect(!side.negotiation.negotiationIsNeeded && !side.negotiation.wantsData)
    _ = try side.add(.audio)
    side.negotiation.wantData()
    #expect(side.negotiation.negotiationIsNeeded)
    let again = try document(try side.offer())
    #expect(again.sections.map(\.port) == [9, 9])
    #expect(again.sections.map(\.mid) == ["2", "1"])
    #expect(again.sections.map(\.kind) == [.application, .audio])
  }

  @Test func aPeerMayEndTheAssociation() throws {
    var side = Side("a")
    try side.apply(.offer, try sample("chromium-offer"))
    _ = try side.answer()
    side.negotiation.wantData()
    let without = try sample("chromium-offer").with("m=application 56847", "m=application 0")
    #expect(without.contains("m=application 0"))
    try side.apply(.offer, without)
    let answer = try document(try side.answer())
    #expect(side.negotiation.data == nil && !side.negotiation.wantsData)
    #expect(answer.sections[2].isRejected && !side.negotiation.negotiationIsNeeded)
  }

  @Test func aRollbackUndoesTheOfferButDataStaysWanted() throws {
    var side = Side("a")
    _ = try side.add(.audio)
    side.negotiation.wantData()
    _ = try side.offer()
    #expect(side.negotiation.mayHaveData)
    try side.apply(.rollback, "")
    #expect(!side.negotiation.mayHaveData && side.negotiation.negotiationIsNeeded)
  }

  @Test(arguments: [
    ("UDP/DTLS/SCTP", "DTLS/SCTP"), ("webrtc-datachannel", "5000"),
    ("a=sctp-port:5000", "a=sctp-port:0"),
  ])
  func unsupportedApplicationSectionsAreRejected(part: String, replacement: String) throws {
    let offer = try sample("chromium-offer").with(part, replacement)
    let (side, answer) = try RemoteOfferTests.answer(offer)
    #expect(side.negotiation.data == nil && answer.sections[2].isRejected)
    #expect(side.negotiation.sections.count == 2)
  }

  @Test func onlyOneAssociationIsAccepted() throws {
    var offer = try SDPDocument(parsing: try sample("chromium-offer"))
    var second = offer.sections[2]
    second.lines = second.lines.map { $0.text == "a=mid:2" ? SDPLine(.mid, "3") : $0 }
    offer.sections.append(second)
    offer.lines = offer.lines.map {
      $0.text.hasPrefix("a=group") ? SDPLine(.group, "BUNDLE 0 1 2 3") : $0
    }
    let (side, answer) = try RemoteOfferTests.answer(offer.text)
    #expect(side.negotiation.data?.mid == "2")
    #expect(answer.sections.map(\.isRejected) == [false, false, false, true])
  }

  @Test func anAnswerWithAnotherFormatIsRefused() throws {
    #expect(throws: JSEPError.self) {
      _ = try DataSectionTests.answered { section in section.formats = ["t38"] }
    }
  }

  /// Returns a side that offered data and audio and received an answer changed by the test.
  private static func answered(_ change: (inout SDPSection) -> Void) throws -> Side {
    var side = Side("a")
    var other = Side("b")
    side.negotiation.wantData()
    try other.apply(try side.offer())
    var first = try document(try other.answer())
    change(&first.sections[0])
    if first.sections[0].port == 0 { first.lines.removeAll { $0.text.hasPrefix("a=group") } }
    try side.apply(.answer, first.text)
    return side
  }
}
