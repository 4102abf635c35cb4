import SDP
import Testing
import Wire

@testable import JSEP

struct RemoteTransportTests {
  static func transport(_ offer: String) throws -> RemoteTransport? {
    var side = Side("a")
    try side.apply(.offer, offer)
    return side.negotiation.remoteTransport
  }

  @Test func theTransportIsThatOfTheFirstAcceptedSection() throws {
    let transport = try #require(try RemoteTransportTests.transport(try sample("chromium-offer")))
    #expect(transport.usernameFragment == "LF2V")
    #expect(transport.password == "PCupXEajzdevPm3LmuEcZw8J")
    #expect(transport.candidates.map { $0.split(separator: " ")[5] } == ["44341", "9"])
    #expect(!transport.endOfCandidates && !transport.isLite)
    #expect(transport.fingerprints.map(\.algorithm) == ["sha-256"])
    #expect(transport.localIsDTLSClient == nil)
  }

  @Test func sessionLevelAttributesApply() throws {
    let firefox = try #require(try RemoteTransportTests.transport(try sample("firefox-offer")))
    #expect(firefox.fingerprints.count == 1)
    #expect(firefox.endOfCandidates)
    #expect(firefox.candidates.count == 8)
    let bare = try sample("firefox-offer")
      .with("a=ice-pwd:ed6f4232c0e36e0aa1ce65d19f9015ac\r\n", "")
      .with("a=ice-ufrag:13f0e9eb\r\n", "").with("a=setup:actpass\r\n", "")
    let session = bare.with(
      "a=group",
      "a=ice-lite\r\na=ice-ufrag:sess\r\na=ice-pwd:0123456789012345678901\r\n"
        + "a=setup:passive\r\na=group"
    )
    var side = Side("a")
    try side.apply(.offer, session)
    #expect(side.negotiation.remoteTransport?.usernameFragment == "sess")
    #expect(side.negotiation.remoteTransport?.isLite == true)
    _ = try side.answer()
    #expect(side.negotiation.remoteTransport?.localIsDTLSClient == true)
    #expect(throws: JSEPError.self) { try RemoteTransportTests.transport(bare) }
  }

  @Test func allFingerprintsAreKept() throws {
    let aiortc = try sample("aiortc-offer")
    let transport = try #require(try RemoteTransportTests.transport(aiortc))
    #expect(transport.fingerprints.map(\.algorithm) == ["sha-256", "sha-384", "sha-512"])
    let more = aiortc.with("t=0 0\r\n", "t=0 0\r\na=fingerprint:SHA-1 ab:cd\r\n")
    let all = try #require(try RemoteTransportTests.transport(more))
    #expect(all.fingerprints.map(\.algorithm) == ["sha-256", "sha-384", "sha-512", "sha-1"])
    #expect(all.fingerprints.last?.value == "AB:CD")
  }

  @Test func aBundledSectionNeedNotRepeatTheTransport() throws {
    var offer = try SDPDocument(parsing: try sample("chromium-offer"))
    // The data section is first and states the transport; the other sections say nothing about it.
    offer.sections = [offer.sections[2], offer.sections[0], offer.sections[1]]
    let shared: [AttributeName] = [
      .iceUsernameFragment, .icePassword, .candidate, .fingerprint, .setup, .iceOptions,
    ]
    for index in 1...2 {
      offer.sections[index].lines.removeAll {
        if case .attribute(let attribute) = $0 { shared.contains(attribute.name) } else { false }
      }
    }
    let transport = try #require(try RemoteTransportTests.transport(offer.text))
    #expect(transport.usernameFragment == "LF2V")
    #expect(transport.candidates.count == offer.sections[0].candidates.count)
    #expect(transport.fingerprints.count == 1)
  }

  @Test(arguments: [
    ("actpass", "passive", Bool?(false)), ("active", "passive", false), ("passive", "active", true),
    ("holdconn", "", nil),
  ])
  func theOfferDeterminesTheRole(offered: String, answered: String, isClient: Bool?) throws {
    let offer = try sample("chromium-offer").with("a=setup:actpass", "a=setup:" + offered)
    var side = Side("a")
    guard let isClient else {
      #expect(throws: JSEPError.self) { try side.apply(.offer, offer) }
      return
    }
    try side.apply(.offer, offer)
    let answer = try document(try side.answer())
    #expect(answer.sections[0].setup?.rawValue == answered)
    #expect(side.negotiation.remoteTransport?.localIsDTLSClient == isClient)
  }

  @Test(arguments: [
    ("a=setup:active", Bool?(false)), ("a=setup:passive", true), ("a=x", false),
    ("a=setup:actpass", nil), ("a=setup:holdconn", nil),
  ])
  func remoteAnswersDetermineTheRole(setup: String, isClient: Bool?) throws {
    var side = Side("a")
    _ = try side.add(.audio)
    var other = Side("b")
    try other.apply(try side.offer())
    let answer = try other.answer().sdp.with("a=setup:passive", setup)
    guard let isClient else {
      #expect(throws: JSEPError.self) { try side.apply(.answer, answer) }
      return
    }
    try side.apply(.answer, answer)
    #expect(side.negotiation.remoteTransport?.localIsDTLSClient == isClient)
  }
}
