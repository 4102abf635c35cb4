import SDP
import Testing
import Wire

@testable import JSEP

/// Tests which codecs are chosen from real peers' offers, and by which rules.
struct CodecChoiceTests {
  /// Returns the codecs negotiated in the first video section: payload types and formats.
  private func choice(_ offer: String) throws -> [String] {
    let (side, answer) = try RemoteOfferTests.answer(offer)
    guard let section = side.negotiation.sections.first(where: { $0.kind == .video }) else {
      return []
    }
    let answered = try #require(answer.sections.first { $0.kind == .video })
    return section.codecs.map { codec in
      let rtx = codec.rtxPayloadType.map { "/\($0)" } ?? ""
      let parametersLine = answered.formatParameters.first { $0.format == "\(codec.payloadType)" }
      return "\(codec.payloadType)\(rtx) \(codec.displayName)"
        + (parametersLine.map { " " + $0.parameters } ?? "")
    }
  }

  /// Returns a negotiated H.264 format: its payload types, then the fmtp parameters of an answer.
  private static func h264(_ types: String, _ id: String, _ mode: Int) -> String {
    "\(types) H264 level-asymmetry-allowed=1;packetization-mode=\(mode);profile-level-id=\(id)"
  }

  private static let chromium = [
    "96/97 VP8", "98/99 VP9 profile-id=0", h264("102/103", "42001f", 1),
    h264("104/107", "42001f", 0), h264("108/109", "42e01f", 1), h264("114/115", "42e01f", 0),
    h264("116/117", "4d001f", 1), h264("39/40", "4d001f", 0),
  ]

  @Test(arguments: [
    ("chromium-offer", chromium),
    ("chromium-simulcast-offer", chromium),
    (
      "chromium-recvonly-offer",
      chromium + [h264("41/42", "f4001f", 1), h264("43/44", "f4001f", 0)]
    ),
    ("firefox-offer", ["120/124 VP8", "121/125 VP9 profile-id=0"]),
    (
      "aiortc-offer",
      ["97/98 VP8", h264("99/100", "42001f", 1), h264("101/102", "42e01f", 1)]
    ),
    ("libwebrtc-offer", ["96/97 VP8", "98/99 VP9 profile-id=0"]),
    ("gstreamer-offer", ["96 VP8"]),
    ("janus-offer", ["96/97 VP8"]),
    ("janus-recording-offer", ["100/101 VP8"]),
    ("janus-bridge-offer", []),
    ("chromium-datachannel-offer", []),
  ])
  func realOffersGiveTheExpectedCodecs(name: String, expected: [String]) throws {
    #expect(try choice(try sample(name)) == expected)
  }

  /// Returns a publisher's section as OBS and others write it.
  private func publisher(_ lines: [String]) -> String {
    var text = "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\na=group:BUNDLE 0\r\n"
    let types = lines.compactMap { $0.hasPrefix("a=rtpmap:") ? $0.dropFirst(9).prefix(2) : nil }
    text += "m=video 9 UDP/TLS/RTP/SAVPF \(types.joined(separator: " "))\r\n"
    text += "c=IN IP4 0.0.0.0\r\na=mid:0\r\na=sendonly\r\na=rtcp-mux\r\na=ice-ufrag:abcd\r\n"
    text += "a=ice-pwd:0123456789abcdefghijklmn\r\na=setup:actpass\r\na=fingerprint:sha-256 "
    text += Array(repeating: "AB", count: 32).joined(separator: ":") + "\r\n"
    return text + lines.map { $0 + "\r\n" }.joined()
  }

  @Test(arguments: [
    // Without an fmtp line: single NAL units, and the profile that browsers assume.
    (["a=rtpmap:96 H264/90000"], [h264("96", "42e01f", 0)]),
    // The answer repeats the offered level, whatever it is.
    (
      ["a=rtpmap:96 h264/90000", "a=fmtp:96 packetization-mode=1; profile-level-id=640C34"],
      [h264("96", "640c34", 1)]
    ),
    // Different spellings of one profile are one format.
    (
      [
        "a=rtpmap:96 H264/90000", "a=fmtp:96 packetization-mode=1;profile-level-id=42e01f",
        "a=rtpmap:97 H264/90000", "a=fmtp:97 packetization-mode=1;profile-level-id=42c00a",
      ], [h264("96", "42e01f", 1)]
    ),
    // Decodable video formats precede undecodable ones.
    (
      [
        "a=rtpmap:96 H264/90000", "a=fmtp:96 packetization-mode=1;profile-level-id=42e01f",
        "a=rtpmap:97 rtx/90000", "a=fmtp:97 apt=96", "a=rtpmap:98 VP8/90000",
      ], ["98 VP8", h264("96/97", "42e01f", 1)]
    ),
    // Interleaved mode and depths above 8 bits are rejected.
    (
      [
        "a=rtpmap:96 H264/90000", "a=fmtp:96 packetization-mode=2;profile-level-id=42e01f",
        "a=rtpmap:97 VP9/90000", "a=fmtp:97 profile-id=2", "a=rtpmap:98 H264/90000",
        "a=fmtp:98 profile-level-id=xyz", "a=rtpmap:99 VP9/90000",
      ], ["99 VP9 profile-id=0"]
    ),
  ])
  func formatsAreDistinguishedByTheirParameters(lines: [String], expected: [String]) throws {
    #expect(try choice(publisher(lines)) == expected)
  }

  @Test func thePeersVariantStaysInLaterOffers() throws {
    let offer = publisher([
      "a=rtpmap:96 H264/90000", "a=fmtp:96 packetization-mode=0;profile-level-id=64001f",
    ])
    var (side, _) = try RemoteOfferTests.answer(offer)
    let again = try document(try side.offer()).sections[0]
    #expect(again.formatParameters.contains { $0.format == "96" && $0.text.contains("64001f") })
    #expect(Set(again.formats).count == again.formats.count)
  }

  /// Answers name the answerer's level, which may differ from the offer's.
  @Test func anAnswerMayNameAnotherLevel() throws {
    var offerer = Side("a")
    _ = try offerer.add(.video)
    var answerer = Side("b")
    _ = try answerer.add(.video, byAddTrack: true)
    try answerer.apply(try offerer.offer())
    let answer = try answerer.answer()
    let text = answer.sdp.with("a=fmtp:102 level-asymmetry-allowed=1;", "a=fmtp:102 ")
    try offerer.apply(.answer, text.with("profile-level-id=42e01f", "profile-level-id=42C034"))
    let codec = offerer.negotiation.sections[0].codecs.first { $0.payloadType == 102 }
    #expect(codec?.parameters == "packetization-mode=1;profile-level-id=42C034")
    // The encodable codec is sent, even if the peer prefers H.264.
    #expect(offerer.negotiation.sections[0].sentCodec?.name == "vp8")
  }
}
