import SDP
import Testing

@testable import JSEP

/// Parts of an offer that have no effect are reported, section by section and line by line.
struct OfferRemarkTests {
  private static let transport = """
    a=ice-ufrag:abcd\r
    a=ice-pwd:0123456789012345678901\r
    a=fingerprint:sha-256 00:11:22:33:44:55:66:77:88:99:AA:BB:CC:DD:EE:FF:00:11:22:33:44:55:66:77:\
    88:99:AA:BB:CC:DD:EE:FF\r
    a=setup:actpass\r
    a=rtcp-mux\r\n
    """
  private static let head = "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\n"

  private func offer(_ sections: String...) -> SessionDescription {
    SessionDescription(
      type: .offer,
      sdp: Self.head + sections.map { $0 + "\r\n" + Self.transport }.joined())
  }

  @Test(arguments: [
    ("m=audio 9 UDP/TLS/RTP/SAVPF 0 8\r\na=mid:0", "(audio, mid 0)", "(PCMU/8000, PCMA/8000)"),
    (
      "m=audio 9 UDP/TLS/RTP/SAVPF 8 101\r\na=rtpmap:101 iLBC/8000", "(audio)",
      "(PCMA/8000, iLBC/8000)"
    ),
    (
      "m=video 9 UDP/TLS/RTP/SAVPF 98 99\r\na=rtpmap:98 H265/90000\r\na=rtpmap:99 rtx/90000\r\n"
        + "a=fmtp:99 apt=98\r\na=mid:v", "(video, mid v)", "(H265/90000)"
    ),
    ("m=audio 9 UDP/TLS/RTP/SAVPF 120\r\na=mid:0", "(audio, mid 0)", "it names no codec"),
    ("m=audio 9 ZRTP/X 111\r\na=rtpmap:111 opus/48000/2", "(audio)", "the profile ZRTP/X"),
    ("m=text 9 RTP/SAVPF 98", "(text)", "sections of text are not supported"),
  ])
  func aRefusedSectionIsReported(section: String, place: String, reason: String) throws {
    let offer = offer(
      section,
      section.hasPrefix("m=video")
        ? "m=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=rtpmap:111 opus/48000/2"
        : "m=video 9 UDP/TLS/RTP/SAVPF 96\r\na=rtpmap:96 VP8/90000")
    let remarks = OfferRemarks.sentences(about: offer, policy: .balanced)
    #expect(remarks.count == 1)
    #expect(remarks[0].hasPrefix("the offer's m-section 0 \(place) is refused: "), "\(remarks)")
    #expect(remarks[0].contains(reason), "\(remarks)")
    var side = Side("a")
    try side.apply(.offer, offer.sdp)
    let answer = try document(try side.answer())
    #expect(answer.sections.map(\.isRejected) == [true, false])
  }

  @Test func aSectionThePolicyRefusesIsReported() throws {
    let video = "m=video 9 UDP/TLS/RTP/SAVPF 96\r\na=rtpmap:96 VP8/90000"
    let remarks = OfferRemarks.sentences(about: offer(video, video), policy: .balanced)
    #expect(
      remarks == [
        "the offer's m-section 1 (video) is refused: it is not bundled with those before it, as "
          + "the policy balanced wants"
      ])
    #expect(OfferRemarks.sentences(about: offer(video, video), policy: .maxCompat).isEmpty)
  }

  @Test func acceptedAndInactiveSectionsAreNotReported() throws {
    let offer = offer(
      "m=audio 9 UDP/TLS/RTP/SAVPF 111 0\r\na=rtpmap:111 opus/48000/2", "m=audio 0 RTP/AVP 0")
    #expect(OfferRemarks.sentences(about: offer).isEmpty)
  }

  @Test func anIgnoredLineIsReported() throws {
    let offer = offer(
      "m=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=rtpmap:111 opus/48000/2\r\na=ssrc:x cname:y")
    #expect(
      OfferRemarks.sentences(about: offer) == [
        "line 7 of the peer's offer is left out: a=ssrc must read SSRC NAME[:VALUE]"
      ])
    var side = Side("a")
    try side.apply(.offer, offer.sdp)
    #expect(try document(try side.answer()).sections.map(\.isRejected) == [false])
  }

  /// A codec missing from the configuration is reported.
  @Test func anUnconfiguredCodecIsReported() {
    let offer = offer("m=video 9 UDP/TLS/RTP/SAVPF 96\r\na=rtpmap:96 VP8/90000")
    #expect(OfferRemarks.sentences(about: offer, codecs: ["opus", "vp9"]).count == 1)
    #expect(OfferRemarks.sentences(about: offer, codecs: ["opus", "vp8"]).isEmpty)
  }
}
