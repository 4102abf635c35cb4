import SDP
import Testing
import Wire

@testable import JSEP

struct ExchangeTests {
  static let directions: [TransceiverDirection] = [.sendrecv, .sendonly, .recvonly, .inactive]

  /// The directions that the two sides want, and the resulting direction as each side sees it.
  static let table: [(TransceiverDirection, TransceiverDirection, String, String)] =
    directions.flatMap { offered in
      directions.map { wanted in
        let sends = offered.sends && wanted.receives
        let receives = offered.receives && wanted.sends
        return (
          offered, wanted, MediaDirection(sends: sends, receives: receives).rawValue,
          MediaDirection(sends: receives, receives: sends).rawValue
        )
      }
    }

  @Test(arguments: table, [[MediaKind.audio], [.video], [.audio, .video], [.video, .audio]])
  func directionsIntersect(
    row: (TransceiverDirection, TransceiverDirection, String, String), kinds: [MediaKind]
  ) throws {
    var offerer = Side("a")
    var answerer = Side("b")
    for kind in kinds { _ = try offerer.add(kind, row.0) }
    try answerer.apply(try offerer.offer())
    for transceiver in answerer.negotiation.transceivers {
      #expect(transceiver.direction == .recvonly)
      try answerer.negotiation.setDirection(row.1, of: transceiver.id)
    }
    try offerer.apply(try answerer.answer())
    let mids = kinds.indices.map { "\($0) \(kinds[$0].rawValue) " }
    #expect(offerer.agreed == mids.map { $0 + row.2 })
    #expect(answerer.agreed == mids.map { $0 + row.3 })
    for side in [offerer, answerer] {
      #expect(side.negotiation.signalingState == .stable)
      for section in side.negotiation.sections {
        let transceiver = try #require(side.transceiver(section.transceiverID))
        #expect(transceiver.currentDirection == section.direction)
        #expect(transceiver.mid == section.mid)
        #expect(transceiver.remoteTrackIsLive == section.direction.receives)
      }
      #expect(!side.negotiation.negotiationIsNeeded || row.0.sends || row.1.sends)
    }
    try checkThatSidesMatch(offerer, answerer)
  }

  /// Expects both sides to agree on every section.
  private func checkThatSidesMatch(_ offerer: Side, _ answerer: Side) throws {
    for (left, right) in zip(offerer.negotiation.sections, answerer.negotiation.sections) {
      #expect(left.codecs == right.codecs)
      #expect(left.extensions.elementsEqual(right.extensions, by: ==))
      #expect(left.reducedSizeRTCP && right.reducedSizeRTCP)
      let sender = try #require(offerer.transceiver(left.transceiverID))
      #expect(right.remoteSSRCs == (left.direction.sends ? [sender.ssrc] : []))
      if left.direction.sends, left.kind == .video {
        #expect(right.remoteRTXSSRCs == [sender.rtxSSRC])
      }
    }
    #expect(offerer.negotiation.remoteTransport?.localIsDTLSClient == true)
    #expect(answerer.negotiation.remoteTransport?.localIsDTLSClient == false)
    #expect(offerer.negotiation.remoteTransport?.usernameFragment == "bFrag")
    #expect(answerer.negotiation.remoteTransport?.usernameFragment == "aFrag")
  }

  @Test func theOfferIsWrittenAsExpected() throws {
    var side = Side("a")
    _ = try side.add(.audio, streams: ["left", "right"])
    let id = try side.add(.video, streams: [])
    let codecs = RTPCodec.capabilities(.video)
    try side.negotiation.setCodecPreferences([codecs[0]] + codecs.suffix(1), of: id)
    side.transport.candidates = ["candidate:1 1 udp 2130706431 192.0.2.1 50000 typ host"]
    let offer = try document(try side.offer())
    let audio = side.negotiation.transceivers[0]
    let video = side.negotiation.transceivers[1]
    #expect(
      offer.text.split(separator: "\r\n").map { String($0) } == [
        "v=0", "o=- \(side.negotiation.created.sessionID) 1 IN IP4 127.0.0.1", "s=-", "t=0 0",
        "a=group:BUNDLE 0 1", "a=msid-semantic:WMS *",
        "m=audio 9 UDP/TLS/RTP/SAVPF 111", "c=IN IP4 0.0.0.0",
        "a=candidate:1 1 udp 2130706431 192.0.2.1 50000 typ host", "a=ice-ufrag:aFrag",
        "a=ice-pwd:a0123456789abcdefghijklmn", "a=ice-options:trickle ice2",
        "a=fingerprint:sha-256 61", "a=setup:actpass", "a=mid:0",
        "a=extmap:1 urn:ietf:params:rtp-hdrext:ssrc-audio-level",
        "a=extmap:2 http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time",
        "a=extmap:3 http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01",
        "a=extmap:4 urn:ietf:params:rtp-hdrext:sdes:mid",
        "a=extmap:5 urn:ietf:params:rtp-hdrext:csrc-audio-level", "a=sendrecv",
        "a=msid:left \(audio.trackID)", "a=msid:right \(audio.trackID)", "a=rtcp-mux",
        "a=rtcp-mux-only", "a=rtcp-rsize", "a=rtcp-xr:rcvr-rtt=all",
        "a=rtpmap:111 opus/48000/2", "a=rtcp-fb:111 transport-cc", "a=rtcp-fb:111 rrtr",
        "a=fmtp:111 minptime=10;useinbandfec=1",
        "a=ssrc:\(audio.ssrc) cname:cname-a", "m=video 9 UDP/TLS/RTP/SAVPF 96 97",
        "c=IN IP4 0.0.0.0", "a=ice-ufrag:aFrag", "a=ice-pwd:a0123456789abcdefghijklmn",
        "a=ice-options:trickle ice2", "a=fingerprint:sha-256 61", "a=setup:actpass", "a=mid:1",
        "a=extmap:2 http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time",
        "a=extmap:3 http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01",
        "a=extmap:4 urn:ietf:params:rtp-hdrext:sdes:mid", "a=sendrecv",
        "a=msid:- \(video.trackID)", "a=rtcp-mux", "a=rtcp-mux-only", "a=rtcp-rsize",
        "a=rtcp-xr:rcvr-rtt=all", "a=rtpmap:96 VP8/90000", "a=rtcp-fb:96 goog-remb",
        "a=rtcp-fb:96 transport-cc",
        "a=rtcp-fb:96 ccm fir", "a=rtcp-fb:96 nack", "a=rtcp-fb:96 nack pli",
        "a=rtcp-fb:96 rrtr", "a=rtpmap:97 rtx/90000", "a=fmtp:97 apt=96",
        "a=ssrc-group:FID \(video.ssrc) \(video.rtxSSRC)", "a=ssrc:\(video.ssrc) cname:cname-a",
        "a=ssrc:\(video.rtxSSRC) cname:cname-a",
      ])
  }

  @Test func anEmptyOfferGetsAnEmptyAnswer() throws {
    var offerer = Side("a")
    var answerer = Side("b")
    try exchange(&offerer, &answerer)
    #expect(offerer.negotiation.sections.isEmpty && answerer.negotiation.sections.isEmpty)
    #expect(offerer.negotiation.remoteTransport == nil)
    _ = try answerer.add(.audio)
    try exchange(&answerer, &offerer)
    #expect(offerer.agreed == ["0 audio recvonly"])
  }

  @Test func theSameSeedGivesTheSameDescriptions() throws {
    func make() throws -> SessionDescription {
      var side = Side("a")
      _ = try side.add(.video)
      _ = try side.add(.audio)
      return try side.offer()
    }
    #expect(try make() == make())
  }

  @Test func changesAreReportedInOrder() throws {
    var offerer = Side("a")
    var answerer = Side("b")
    _ = try offerer.add(.audio, streams: ["x", "y"])
    let offer = try offerer.offer()
    try answerer.apply(offer)
    #expect(
      offerer.changes == [
        .signalingState(from: .stable, to: .haveLocalOffer), .localDescriptionSet,
      ])
    #expect(
      answerer.changes == [
        .signalingState(from: .stable, to: .haveRemoteOffer), .transceiverAdded(id: 1),
        .remoteTransport(0), .trackAdded(transceiver: 1, streamIDs: ["x", "y"]),
      ])
    #expect(answerer.negotiation.remoteTransport?.localIsDTLSClient == nil)
    answerer.changes = []
    offerer.changes = []
    try offerer.apply(try answerer.answer())
    #expect(
      answerer.changes == [
        .signalingState(from: .haveRemoteOffer, to: .stable), .remoteTransport(0), .sectionsAgreed,
        .localDescriptionSet,
      ])
    #expect(
      offerer.changes == [
        .signalingState(from: .haveLocalOffer, to: .stable), .remoteTransport(0), .sectionsAgreed,
      ])
  }
}
