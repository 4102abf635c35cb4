import SDP
import Testing
import Wire

@testable import JSEP

/// Tests offers of several layers, and their answers (RFC 8851, 8852, 8853).
struct SimulcastTests {
  private let extensions = ["rtp-stream-id", "repaired-rtp-stream-id"].map {
    "urn:ietf:params:rtp-hdrext:sdes:" + $0
  }

  private func side(_ rids: [String] = ["q", "h", "f"]) throws -> Side {
    var side = Side("left")
    _ = try side.negotiation.addTransceiver(
      kind: .video, direction: .sendonly, streamIDs: ["s"], byAddTrack: false, rids: rids)
    return side
  }

  /// Offers, lets another side answer, and adds lines to the answer's section.
  private func layers(_ side: inout Side, _ lines: String) throws -> [NegotiatedLayer] {
    var peer = Side("right")
    try peer.apply(try side.offer())
    var answer = try peer.answer()
    answer.sdp += lines.split(separator: "\n").map { $0 + "\r\n" }.joined()
    try side.apply(answer)
    return try #require(side.negotiation.sections.first).sentLayers
  }

  @Test func anOfferNamesItsLayersAndTheExtensionsThatPacketsNeed() throws {
    var side = try side()
    let section = try #require(try document(side.offer()).sections.first)
    #expect(section.rids.map(\.text) == ["q send", "h send", "f send"])
    #expect(section.simulcast?.text == "send q;h;f")
    #expect(section.ssrcs.isEmpty && section.ssrcGroups.isEmpty)
    let uris = section.extensionMaps.map(\.uri)
    #expect(extensions.allSatisfy(uris.contains))
    let ssrcs = side.negotiation.transceivers[0].layers.flatMap { [$0.ssrc, $0.rtxSSRC] }
    #expect(Set(ssrcs).count == 6 && ssrcs[0] == side.negotiation.transceivers[0].ssrc)
  }

  @Test func anOfferOfOneEncodingHasNoSimulcast() throws {
    var (one, none) = (try side(["q"]), try side([]))
    let sdp = try none.offer().sdp
    #expect(try one.offer().sdp == sdp)
    #expect(!sdp.contains("rid") && !extensions.contains(where: sdp.contains))
  }

  @Test func acceptedLayersAreSentInTheOrderOfTheOffer() throws {
    var side = try side()
    let layers = try layers(
      &side,
      """
      a=rid:f recv max-width=1280;max-fps=15;max-br=900000
      a=rid:q recv
      a=simulcast:recv f;~q;x
      """)
    #expect(layers.map(\.rid) == ["q", "f"])
    #expect(layers.map(\.isPaused) == [true, false])
    #expect(layers[1].maxBitrate == 900_000 && layers[1].maxFramerate == 15)
    #expect(side.negotiation.transceivers[0].layers.map(\.rid) == ["q", "f"])
    #expect(try document(side.offer()).sections[0].simulcast?.sent == "q;f")
  }

  @Test(arguments: [
    "", "a=simulcast:recv q;h;f", "a=rid:q recv\na=rid:h recv", "a=rid:q send\na=simulcast:recv q",
    "a=rid:q recv\na=simulcast:send q", "a=simulcast:recv ;~;,~,\na=rid:~ recv",
  ])
  func withoutSimulcastInTheAnswerTheFirstLayerIsSent(lines: String) throws {
    var side = try side()
    let first = side.negotiation.transceivers[0].layers[0]
    #expect(try layers(&side, lines).isEmpty)
    let transceiver = side.negotiation.transceivers[0]
    #expect(transceiver.layers == [first] && transceiver.onlySource.ssrc == first.ssrc)
    let next = try document(side.offer()).sections[0]
    #expect(next.simulcast == nil && next.ssrcs.first?.ssrc == first.ssrc)
  }

  @Test func theFirstCommonAlternativeIsSelected() throws {
    var side = try side()
    let layers = try layers(&side, "a=rid:h recv\na=rid:f recv\na=simulcast:recv f,h")
    #expect(layers.map(\.rid) == ["h", "f"])
  }

  @Test func aPeerThatOffersToReceiveLayersIsAnsweredWithThem() throws {
    var side = try side()
    _ = try layers(
      &side, "a=rid:q recv\na=rid:h recv\na=rid:f recv\na=simulcast:recv q;h;f")
    var offer = try #require(side.negotiation.currentRemote)
    offer.type = .offer
    offer.sdp = offer.sdp.with("a=setup:passive", "a=setup:actpass")
      .with("a=simulcast:recv q;h;f", "a=simulcast:recv q;f")
    try side.apply(offer)
    let section = try #require(try document(side.answer()).sections.first)
    #expect(section.rids.map(\.text) == ["q send", "f send"])
    #expect(section.simulcast?.sent == "q;f")
    #expect(side.negotiation.sections[0].sentLayers.map(\.rid) == ["q", "f"])
  }

  @Test func anOfferToSendSimulcastIsAnsweredWithoutItAsInBrowsers() throws {
    var side = Side("right")
    try side.apply(.offer, try sample("chromium-simulcast-offer"))
    let section = try #require(try document(side.answer()).sections.first)
    #expect(section.simulcast == nil && section.rids.isEmpty && !section.isRejected)
    #expect(extensions.allSatisfy(section.extensionMaps.map(\.uri).contains))
  }

  @Test(arguments: [
    ("q", true), ("0aZ", true), (String(repeating: "a", count: 16), true), ("", false),
    (String(repeating: "a", count: 17), false), ("a b", false), ("a;b", false), ("~a", false),
    ("ä", false), ("a-b", false),
  ])
  func namesOfLayersAreLettersAndDigits(text: String, isName: Bool) {
    #expect(SimulcastLayer.isName(text) == isName)
  }

  // MARK: Offers that request layers

  private static let wish = """
    a=rid:r0 recv
    a=rid:r1 recv
    a=rid:r2 recv
    a=simulcast:recv r0;~r1,x;r2
    """

  /// Returns a side that sends one stream.
  ///
  /// - Parameter acceptsLayers: whether it sends the layers that an offer requests.
  private func sender(acceptsLayers: Bool = true) throws -> Side {
    var side = Side("right")
    side.negotiation = Negotiation(
      entropy: Entropy(seed: [5]).stream("sdp"), cname: "c",
      capabilities: Capabilities(acceptsOfferedLayers: acceptsLayers))
    _ = try side.add(.video, byAddTrack: true)
    return side
  }

  private func offer(_ lines: String) throws -> SessionDescription {
    var peer = Side("left")
    _ = try peer.add(.video, .recvonly)
    var offer = try peer.offer()
    offer.sdp += lines.split(separator: "\n").map { $0 + "\r\n" }.joined()
    return offer
  }

  @Test func aSenderOfOneStreamSendsTheLayersInAnOffer() throws {
    var side = try sender()
    let ssrc = side.negotiation.transceivers[0].ssrc
    try side.apply(try offer(Self.wish))
    let section = try #require(try document(side.answer()).sections.first)
    #expect(section.rids.map(\.text) == ["r0 send", "r1 send", "r2 send"])
    #expect(section.simulcast?.text == "send r0;r1;r2" && section.ssrcs.isEmpty)
    let agreed = try #require(side.negotiation.sections.first)
    #expect(agreed.sentLayers.map(\.rid) == ["r0", "r1", "r2"])
    #expect(agreed.sentLayers.map(\.isPaused) == [false, true, false])
    let layers = side.negotiation.transceivers[0].layers
    #expect(layers[0].ssrc == ssrc && Set(layers.flatMap { [$0.ssrc, $0.rtxSSRC] }).count == 6)
  }

  @Test(arguments: [
    "", "a=simulcast:recv r0;r1", "a=rid:r0 recv\na=simulcast:recv r0",
    "a=rid:r0 send\na=rid:r1 send\na=simulcast:send r0;r1",
    "a=rid:r0 recv\na=rid:r1 recv\na=simulcast:recv r0,r1;r0", "a=simulcast:recv ;~;,~,",
  ])
  func anOfferWithoutLayersGetsOneStream(lines: String) throws {
    var side = try sender()
    try side.apply(try offer(lines))
    let sdp = try side.answer().sdp
    #expect(!sdp.contains("simulcast") && sdp.contains("a=ssrc:"))
    #expect(side.negotiation.transceivers[0].layers.isEmpty)
  }

  @Test func olderTakesSendOneStreamForAnyOffer() throws {
    var side = try sender(acceptsLayers: false)
    try side.apply(try offer(Self.wish))
    #expect(try !side.answer().sdp.contains("simulcast"))
  }

  @Test func layersAreRemovedWithTheirOffer() throws {
    var side = try sender()
    try side.apply(try offer(Self.wish))
    #expect(side.negotiation.transceivers[0].layers.count == 3)
    try side.apply(.rollback, "")
    #expect(side.negotiation.transceivers[0].layers.isEmpty)
    // If two offers are unanswered, the last one applies.
    try side.apply(try offer(Self.wish))
    try side.apply(try offer("a=rid:a recv\na=rid:b recv\na=simulcast:recv a;b"))
    #expect(side.negotiation.transceivers[0].layers.map(\.rid) == ["a", "b"])
    try side.apply(try offer(""))
    _ = try side.answer()
    #expect(side.negotiation.transceivers[0].layers.isEmpty)
  }

  @Test func aReceiveOnlyTransceiverKeepsOneStream() throws {
    var side = try sender()
    try side.negotiation.setDirection(.recvonly, of: 1)
    try side.apply(try offer(Self.wish))
    #expect(try !side.answer().sdp.contains("simulcast"))
    #expect(side.negotiation.transceivers[0].layers.isEmpty)
  }
}
