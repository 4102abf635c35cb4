import Foundation
import SDP
import Testing
import Wire

@testable import JSEP

struct RemoteOfferTests {
  /// Answers an offer with a side that has audio and video.
  static func answer(_ offer: String) throws -> (side: Side, answer: SDPDocument) {
    var side = Side("a")
    _ = try side.add(.audio, byAddTrack: true)
    _ = try side.add(.video, byAddTrack: true)
    try side.apply(.offer, offer)
    let answer = try document(try side.answer())
    return (side, answer)
  }

  @Test(arguments: [
    ("chromium-offer", ["0 audio sendrecv", "1 video sendrecv"], [["111"], ["96", "97"]]),
    ("firefox-offer", ["0 audio sendrecv", "1 video sendrecv"], [["109"], ["120", "124"]]),
    ("aiortc-offer", ["0 audio sendrecv", "1 video sendrecv"], [["96"], ["97", "98"]]),
    ("janus-offer", ["0 audio recvonly", "1 video recvonly"], [["111"], ["96", "97"]]),
    (
      "chromium-recvonly-offer", ["0 audio sendonly", "1 video sendonly"], [["111"], ["96", "97"]]
    ),
    ("chromium-simulcast-offer", ["0 video recvonly"], [["96", "97"]]),
    ("chromium-datachannel-offer", [], []),
  ])
  func otherStacksOffersAreAnswered(name: String, agreed: [String], formats: [[String]]) throws {
    let offer = try SDPDocument(parsing: try sample(name))
    let (side, answer) = try RemoteOfferTests.answer(offer.text)
    #expect(side.agreed == agreed)
    #expect(answer.sections.count == offer.sections.count)
    for (answered, offered) in zip(answer.sections, offer.sections) {
      #expect(answered.kind == offered.kind && answered.mid == offered.mid)
      #expect(answered.transport == offered.transport)
      #expect(answered.connection != nil)
      #expect(!answered.isRejected)
      #expect(answered.setup == .passive)
      if offered.kind == .application { continue }
      let offeredMaps = offered.extensionMaps
      #expect(answered.extensionMaps.allSatisfy { offeredMaps.contains($0) })
      let feedback = offered.rtcpFeedback
      #expect(answered.rtcpFeedback.allSatisfy { feedback.contains($0) })
      #expect(answered.reducesRTCPSize == offered.reducesRTCPSize)
      #expect(answered.simulcast == nil && answered.rids.isEmpty)
    }
    // Each section begins with the formats of the preferred codec; CodecChoiceTests covers the
    // others.
    let media = answer.sections.filter { $0.kind != .application }
    #expect(zip(media, formats).allSatisfy { Array($0.formats.prefix($1.count)) == $1 })
    #expect(media.count == formats.count)
    #expect(answer.bundles == offer.bundles)
    #expect(answer.allowsMixedExtensions == offer.allowsMixedExtensions)
  }

  @Test func thePeersSourcesAreFound() throws {
    let (side, _) = try RemoteOfferTests.answer(try sample("chromium-offer"))
    #expect(side.negotiation.sections[0].remoteSSRCs == [3_828_838_000])
    #expect(side.negotiation.sections[0].remoteRTXSSRCs == [nil])
    #expect(side.negotiation.sections[1].remoteSSRCs == [3_733_737_351])
    #expect(side.negotiation.sections[1].remoteRTXSSRCs == [2_505_831_596])
    #expect(side.negotiation.sections[1].codecs[0].name == "vp8")
    #expect(side.transceiver(2)?.remoteTrackID == "34a652ee-ceb2-4d7f-8303-ab2c5c1fa5b6")
  }

  @Test func thePeersReceiveParametersAreKept() throws {
    let (side, answer) = try RemoteOfferTests.answer(try sample("firefox-offer"))
    let audio = side.negotiation.sections[0].codecs[0]
    #expect(audio.parameters == "maxplaybackrate=48000;stereo=1;useinbandfec=1")
    #expect(audio.feedback == ["transport-cc"])
    #expect(side.negotiation.sections[1].codecs[0].parameters == "max-fs=12288;max-fr=60")
    #expect(answer.sections[0].formatParameters[0].parameters == "minptime=10;useinbandfec=1")
  }

  @Test func onlyBundledSectionsShareATransport() throws {
    let offer = try sample("chromium-offer")
    let table: [(String, [Int], [[String]])] = [
      ("a=group:BUNDLE 0 1 2", [0, 0, 0], [["0", "1", "2"]]),
      ("a=group:BUNDLE 0 2", [0, 1, 0], [["0", "2"]]),
      ("a=group:BUNDLE 1 2", [0, 1, 1], [["1", "2"]]), ("a=group:LS 0 1", [0, 1, 2], []),
      ("a=group:BUNDLE 1\r\na=group:BUNDLE 0 1", [0, 0, 1], [["0", "1"]]),
      ("a=x", [0, 1, 2], []), ("a=group:BUNDLE 0 1 7", [0, 0, 1], [["0", "1"]]),
    ]
    for (group, transports, bundles) in table {
      let (side, answer) = try RemoteOfferTests.answer(offer.with("a=group:BUNDLE 0 1 2", group))
      let numbers = side.negotiation.sections.map(\.transport)
      #expect(numbers + [side.negotiation.data?.transport ?? -1] == transports, "\(group)")
      #expect(answer.bundles == bundles, "\(group)")
      #expect(answer.sections.allSatisfy { !$0.isRejected })
    }
  }

  @Test func sectionsLeftToTheBundleAreAccepted() throws {
    let offer = try sample("chromium-offer").with("m=video 50707 ", "m=video 0 ")
    #expect(try RemoteOfferTests.answer(offer).side.negotiation.sections.count == 1)
    let bundled = offer.with("a=mid:1\r\n", "a=mid:1\r\na=bundle-only\r\n")
    #expect(try RemoteOfferTests.answer(bundled).side.negotiation.sections.count == 2)
  }

  @Test func anOfferWithoutMidsHasATransportForEachSection() throws {
    let offer = try sample("chromium-offer").with("a=mid:0\r\n", "").with("a=mid:1\r\n", "")
      .with("a=mid:2\r\n", "")
    var (side, answer) = try RemoteOfferTests.answer(offer)
    #expect(side.negotiation.sections.map(\.transport) == [0, 1])
    #expect(answer.sections.allSatisfy { $0.mid == nil } && answer.bundles.isEmpty)
    #expect(side.negotiation.remoteMLineIndex(ofMID: "0") == 0)
    try side.apply(.offer, offer)
    _ = try side.answer()
    #expect(side.negotiation.sections.map(\.transport) == [0, 1])
    #expect(side.agreed == ["0 audio sendrecv", "1 video sendrecv"])
  }

  @Test(arguments: [
    ("UDP/TLS/RTP/SAVPF", "UDP/BFCP"), (" opus/48000/2", " opus/48000"),
    (" 111 63", " 63"), ("m=audio 44341", "m=audio 0"), ("m=audio", "m=text"),
  ])
  func aSectionThatCannotBeUsedIsRejected(part: String, replacement: String) throws {
    var offer = try SDPDocument(parsing: try sample("chromium-offer"))
    let audio = try SDPDocument(
      parsing: try sample("chromium-offer").with(part, replacement)
    ).sections[0]
    offer.sections[0] = audio
    let (side, answer) = try RemoteOfferTests.answer(offer.text)
    #expect(side.agreed == ["1 video sendrecv"])
    #expect(answer.sections[0].port == 0 && answer.sections[0].kind == audio.kind)
    #expect(answer.bundles == [["1", "2"]])
    #expect(side.negotiation.remoteTransport?.candidates.count == 2)
    // The rejected section's track has no mid and waits for another exchange.
    #expect(side.transceiver(1)?.mid == nil)
  }

  @Test func theOrderOfPreferenceAndWildcardsAreRespected() throws {
    let offer = try sample("aiortc-offer")
      .with("a=rtcp-fb:97 nack\r\n", "a=rtcp-fb:* ccm fir\r\na=rtcp-fb:97 x\r\n")
      .with("a=rtpmap:98 rtx/90000", "a=rtpmap:98 RTX/90000")
      .with("a=rtpmap:97 VP8", "a=rtpmap:97 vp8")
    let (side, answer) = try RemoteOfferTests.answer(offer)
    let codec = side.negotiation.sections[1].codecs[0]
    #expect(codec.feedback == ["goog-remb", "ccm fir", "nack pli"])
    #expect(codec.rtxPayloadType == 98)
    #expect(answer.sections[1].rtpMaps.prefix(2).map(\.text) == ["97 VP8/90000", "98 rtx/90000"])
  }

  @Test func extensionIdentifiersMustFitAndAgree() throws {
    let offer = try sample("chromium-offer")
      .with(
        "a=extmap:4 urn:ietf:params:rtp-hdrext:sdes:mid\r\na=extmap:10",
        "a=extmap:2 urn:ietf:params:rtp-hdrext:sdes:mid\r\na=extmap:10"
      )
      .with("a=extmap:10 ", "a=extmap:15 ").with("a=extmap:11 ", "a=extmap:9/recvonly ")
    let (side, _) = try RemoteOfferTests.answer(offer)
    let audio = side.negotiation.sections[0].extensions
    #expect(audio.map(\.id) == [1, 2, 3, 4])
    let video = side.negotiation.sections[1].extensions
    #expect(video.map(\.id) == [2, 3])
    #expect(video[0].uri.hasSuffix("abs-send-time"))
  }

  @Test func laterSectionsOfAnOfferMustKeepTheirPlaces() throws {
    let offer = try sample("chromium-offer")
    let table = [
      offer.with("a=mid:0", "a=mid:x"), offer.with("m=video", "m=audio"),
      String(offer.split(separator: "m=video")[0]),
    ]
    for changed in table {
      var (side, _) = try RemoteOfferTests.answer(offer)
      let before = side.negotiation
      let error = try #require(throws: JSEPError.self) { try side.apply(.offer, changed) }
      #expect(error.kind == .invalidAccess)
      #expect(side.negotiation.transceivers == before.transceivers)
      #expect(side.negotiation.signalingState == .stable)
    }
  }

  @Test func manySectionsAreHandled() throws {
    var offer = try SDPDocument(parsing: try sample("chromium-answer"))
    let section = offer.sections[0]
    offer.sections = (0..<200).map { index in
      var copy = section
      copy.lines = copy.lines.map {
        if case .attribute(let attribute) = $0, attribute.name == .mid {
          return SDPLine(.mid, "m\(index)")
        }
        return $0
      }
      return copy
    }
    offer.lines = offer.lines.filter { !$0.text.hasPrefix("a=group") }
    offer.append(SectionGroup(semantics: "BUNDLE", mids: (0..<200).map { "m\($0)" }))
    let (side, _) = try RemoteOfferTests.answer(offer.text)
    #expect(side.negotiation.sections.count == 200)
  }

  @Test func anAnswerAllowsTrickleWhereTheOfferDoes() throws {
    let offer = try sample("chromium-offer")
    for (options, answered) in [("trickle", "trickle ice2"), ("renomination", "ice2")] {
      let (_, answer) = try RemoteOfferTests.answer(
        offer.with("a=ice-options:trickle", "a=ice-options:\(options)"))
      for section in answer.sections {
        #expect(section.iceOptions.joined(separator: " ") == answered)
      }
    }
  }
}
