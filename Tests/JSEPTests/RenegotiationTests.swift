import SDP
import Seeded
import Testing
import Wire

@testable import JSEP

struct RenegotiationTests {
  /// Returns two sides with audio in both directions.
  static func call() throws -> (Side, Side) {
    var left = Side("a")
    var right = Side("b")
    _ = try left.add(.audio, byAddTrack: true)
    _ = try right.add(.audio, byAddTrack: true)
    try exchange(&left, &right)
    left.changes = []
    right.changes = []
    return (left, right)
  }

  @Test(arguments: [false, true])
  func aSectionIsAddedByEitherSide(bySecond: Bool) throws {
    var (left, right) = try RenegotiationTests.call()
    if bySecond { swap(&left, &right) }
    _ = try left.add(.video)
    try exchange(&left, &right)
    #expect(left.agreed == ["0 audio sendrecv", "1 video sendonly"])
    #expect(right.agreed == ["0 audio sendrecv", "1 video recvonly"])
    #expect(right.changes.contains(.trackAdded(transceiver: 2, streamIDs: ["stream"])))
    #expect(!right.changes.contains(.trackAdded(transceiver: 1, streamIDs: ["stream"])))
    // Neither the transport nor its DTLS roles changed.
    #expect(
      !left.changes.contains(.remoteTransport(0)) && !right.changes.contains(.remoteTransport(0)))
    let isClient = left.negotiation.remoteTransport?.localIsDTLSClient
    #expect(isClient == !bySecond)
    #expect(right.negotiation.remoteTransport?.localIsDTLSClient == bySecond)
    let setups = try document(right.negotiation.currentLocal).sections.map(\.setup)
    #expect(setups == [bySecond ? .active : .passive, bySecond ? .active : .passive])
  }

  @Test func directionsFollowTheTransceivers() throws {
    var (left, right) = try RenegotiationTests.call()
    let steps: [(TransceiverDirection, String, [Negotiation.Change])] = [
      (.sendonly, "0 audio recvonly", []),
      (.recvonly, "0 audio sendonly", [.trackRemoved(transceiver: 1)]),
      (.inactive, "0 audio inactive", []),
      (.sendrecv, "0 audio sendrecv", [.trackAdded(transceiver: 1, streamIDs: ["stream"])]),
    ]
    for (direction, agreed, tracks) in steps {
      try left.negotiation.setDirection(direction, of: 1)
      #expect(left.negotiation.negotiationIsNeeded)
      right.changes = []
      try exchange(&left, &right)
      #expect(right.agreed == [agreed])
      let reported = right.changes.filter {
        switch $0 {
        case .trackAdded, .trackRemoved: true
        default: false
        }
      }
      #expect(reported == tracks, "\(direction)")
      #expect(!left.negotiation.negotiationIsNeeded)
    }
  }

  @Test func streamsMayChange() throws {
    var (left, right) = try RenegotiationTests.call()
    try left.negotiation.setStreams(["one", "two"], of: 1)
    #expect(left.negotiation.negotiationIsNeeded)
    try exchange(&left, &right)
    #expect(right.transceiver(1)?.remoteStreamIDs == ["one", "two"])
    #expect(right.transceiver(1)?.remoteTrackID == left.transceiver(1)?.trackID)
    #expect(!left.negotiation.negotiationIsNeeded)
  }

  @Test func versionsGrowOnlyWithChanges() throws {
    var (left, right) = try RenegotiationTests.call()
    func version(_ description: SessionDescription?) throws -> String {
      try document(description).origin.sessionVersion
    }
    #expect(try version(left.negotiation.currentLocal) == "1")
    // Further offers omit the lines that only new sections need.
    try exchange(&left, &right)
    #expect(try version(left.negotiation.currentLocal) == "2")
    left.transport.candidates = ["candidate:1 1 udp 1 192.0.2.1 1 typ host"]
    try exchange(&left, &right)
    #expect(try version(left.negotiation.currentLocal) == "2")
    #expect(try version(right.negotiation.currentLocal) == "1")
    _ = try left.add(.video)
    _ = try left.negotiation.createOffer(left.transport)
    try exchange(&left, &right)
    #expect(try version(left.negotiation.currentLocal) == "3")
    #expect(try version(right.negotiation.currentLocal) == "2")
    try exchange(&right, &left)
    // The roles of offerer and answerer are visible in the text, so exchanging them is a change.
    #expect(try version(right.negotiation.currentLocal) == "3")
  }

  @Test func offersThatDifferHaveDifferentVersions() throws {
    var side = Side("a")
    _ = try side.add(.audio)
    func version() throws -> String {
      try document(try side.negotiation.createOffer(side.transport)).origin.sessionVersion
    }
    // Even descriptions that were never set increase the version (RFC 9429 section 5.2.2).
    #expect(try version() == "1" && version() == "1")
    _ = try side.add(.video)
    #expect(try version() == "2")
    try side.negotiation.stop(transceiver: 2)
    #expect(try version() == "3")
  }

  @Test func laterOffersKeepTheAnswersChoices() throws {
    var left = Side("a")
    var right = Side("b")
    _ = try left.add(.video)
    _ = try right.add(.video, byAddTrack: true)
    try right.apply(try left.offer())
    let vp9 = RTPCodec.capabilities(.video).filter { $0.mimeType == "video/VP9" }
    let vp8 = RTPCodec.capabilities(.video).filter { $0.mimeType == "video/VP8" }
    try right.negotiation.setCodecPreferences(vp9 + vp8, of: 1)
    let answer = try right.answer().sdp.with("a=rtcp-rsize\r\n", "")
    try left.apply(.answer, answer)
    let again = try document(try left.offer()).sections[0]
    // The formats are in the answer's order, followed by the others (RFC 9429 section 5.2.2).
    #expect(again.formats.filter { ["96", "98", "102"].contains($0) } == ["98", "96", "102"])
    #expect(again.has(.rtcpMux) && !again.has(.rtcpMuxOnly) && !again.has(.rtcpReducedSize))
  }

  @Test func aTrackThatJoinsAStreamIsReportedAgain() throws {
    var (left, right) = try RenegotiationTests.call()
    func added(_ streams: [String]) throws -> [Negotiation.Change] {
      try left.negotiation.setStreams(streams, of: 1)
      right.changes = []
      try exchange(&left, &right)
      #expect(right.transceiver(1)?.remoteStreamIDs == streams)
      return right.changes.filter {
        if case .trackAdded = $0 { return true }
        return false
      }
    }
    #expect(try added(["one"]) == [.trackAdded(transceiver: 1, streamIDs: ["one"])])
    #expect(try added(["one"]) == [])
    #expect(try added(["two", "one"]) == [.trackAdded(transceiver: 1, streamIDs: ["two", "one"])])
    #expect(try added(["one"]) == [])
    // A different order of streams needs no negotiation.
    #expect(try added(["two", "one"]).count == 1)
    try left.negotiation.setStreams(["one", "two"], of: 1)
    #expect(!left.negotiation.negotiationIsNeeded)
  }

  @Test func anICERestartIsReportedAsANewTransport() throws {
    var (left, right) = try RenegotiationTests.call()
    left.transport.usernameFragment = "other"
    left.transport.password = "other0123456789abcdefghijkl"
    try exchange(&left, &right)
    #expect(right.changes.contains(.remoteTransport(0)))
    #expect(right.negotiation.remoteTransport?.usernameFragment == "other")
    #expect(right.negotiation.remoteTransport?.localIsDTLSClient == false)
    #expect(!left.changes.contains(.remoteTransport(0)))
  }

  @Test func anotherCertificateMeansANewAssociation() throws {
    var (left, right) = try RenegotiationTests.call()
    right.transport.fingerprints[0].value = "AA:BB"
    // So far, left was the DTLS client; as the offerer, right lets left choose again.
    try exchange(&right, &left)
    #expect(left.negotiation.remoteTransport?.fingerprints.map(\.value) == ["AA:BB"])
    #expect(left.negotiation.remoteTransport?.localIsDTLSClient == false)
  }

  @Test func theFirstOfferersPayloadTypesAreKept() throws {
    let offer = try sample("firefox-offer")
    var side = Side("a")
    try side.apply(.offer, offer)
    _ = try side.answer()
    _ = try side.add(.audio)
    _ = try side.add(.video)
    let again = try document(try side.offer())
    // New formats get unused numbers, the same ones in both sections.
    let video = ["120", "124", "121", "125"] + (102...108).map { String($0) } + ["96"]
    #expect(
      again.sections.map(\.formats) == [
        ["109"], video, ["webrtc-datachannel"], ["109"], video,
      ])
    for section in again.sections where section.kind != .application {
      let ids = section.extensionMaps
      #expect(ids.first { $0.uri == "urn:ietf:params:rtp-hdrext:sdes:mid" }?.id == 3)
      #expect(ids.first { $0.uri.hasSuffix("transport-wide-cc-extensions-01") }?.id == 7)
      #expect(ids.first { $0.uri.hasSuffix("abs-send-time") }?.id == 4)
      #expect(Set(ids.map(\.id)).count == ids.count)
    }
    #expect(again.sections.map(\.mid) == ["0", "1", "2", "3", "4"])
    #expect(again.bundles == [["0", "1", "2", "3", "4"]])
  }

  @Test func newPayloadTypesAvoidThePeers() throws {
    // The peer uses 111 and the identifier 1 for something unknown here.
    let offer = try sample("aiortc-offer").with(" 97 98 ", " 97 98 111 ")
      .with(
        "a=extmap:3 http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time", "a=extmap:2 urn:x")
    let video = try SDPDocument(parsing: offer)
    var only = video
    only.sections = [video.sections[1]]
    var side = Side("a")
    try side.apply(.offer, only.text)
    _ = try side.answer()
    _ = try side.add(.audio)
    let audio = try document(try side.offer()).sections[1]
    #expect(audio.formats == ["110"])
    let ids = audio.extensionMaps.map(\.id)
    #expect(Set(ids).count == ids.count && !ids.contains(2))
    #expect(audio.extensionMaps.first { $0.uri.hasSuffix(":mid") }?.id == 1)
  }

  @Test(arguments: 0..<24)
  func anySequenceOfChangesKeepsBothSidesConsistent(seed: Int) throws {
    var random = SeededGenerator(seed: UInt64(seed))
    var left = Side("a")
    var right = Side("b")
    for step in 0..<12 {
      if Bool.random(using: &random) { swap(&left, &right) }
      for _ in 0..<Int.random(in: 0...2, using: &random) {
        try change(&left, &random)
        try change(&right, &random)
      }
      if Int.random(in: 0..<4, using: &random) == 0 { _ = try right.offer() }
      try exchange(&left, &right)
      try check(left, right, "seed \(seed), step \(step)")
    }
  }

  private func change(_ side: inout Side, _ random: inout SeededGenerator) throws {
    let live = side.negotiation.transceivers.filter { !$0.isStopping }.map(\.id)
    let kind: MediaKind = Bool.random(using: &random) ? .audio : .video
    switch (Int.random(in: 0..<4, using: &random), live.randomElement(using: &random)) {
    case (0, let id?):
      let direction = ExchangeTests.directions.randomElement(using: &random) ?? .inactive
      try side.negotiation.setDirection(direction, of: id)
    case (1, let id?): try side.negotiation.stop(transceiver: id)
    case (2, _): _ = try side.add(kind, byAddTrack: true)
    default: _ = try side.add(kind)
    }
  }

  private func check(_ left: Side, _ right: Side, _ comment: String) throws {
    let (ours, theirs) = (left.negotiation.sections, right.negotiation.sections)
    #expect(ours.map(\.mid) == theirs.map(\.mid), "\(comment)")
    for (one, other) in zip(ours, theirs) {
      #expect(one.codecs == other.codecs && one.kind == other.kind, "\(comment)")
      #expect(one.extensions.elementsEqual(other.extensions, by: ==), "\(comment)")
      #expect(one.direction.media == other.direction.media.reversed, "\(comment)")
      let sender = try #require(left.transceiver(one.transceiverID))
      if one.direction.sends { #expect(other.remoteSSRCs == [sender.ssrc], "\(comment)") }
      let receiver = try #require(right.transceiver(other.transceiverID))
      #expect(receiver.remoteTrackIsLive == other.direction.receives, "\(comment)")
    }
    for side in [left, right] {
      let mids = side.negotiation.transceivers.compactMap(\.mid)
      #expect(Set(mids).count == mids.count, "\(comment)")
      #expect(mids.count == side.negotiation.sections.count, "\(comment)")
      let sections = try document(side.negotiation.currentLocal).sections
      #expect(sections.allSatisfy { $0.connection != nil && $0.mid != nil }, "\(comment)")
    }
  }
}
