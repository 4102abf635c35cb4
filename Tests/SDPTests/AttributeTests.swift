import Testing
import Wire

@testable import SDP

struct AttributeTests {
  @Test func aChromiumOfferIsRead() throws {
    let offer = try SDPDocument(parsing: try Samples.text("chromium-offer"))
    #expect(offer.origin.sessionID == "6605313123107541320")
    #expect(offer.bundles == [["0", "1", "2"]])
    #expect(offer.allowsMixedExtensions)
    #expect(offer.sections.map(\.kind) == [.audio, .video, .application])
    let audio = offer.sections[0]
    #expect(audio.mid == "0")
    #expect(audio.port == 44341)
    #expect(audio.iceUsernameFragment == "LF2V")
    #expect(audio.icePassword == "PCupXEajzdevPm3LmuEcZw8J")
    #expect(audio.iceOptions == ["trickle"])
    #expect(offer.trickles)
    let other = try Samples.text("chromium-offer").replacing("a=ice-options:trickle", with: "a=x")
    #expect(try !SDPDocument(parsing: other).trickles)
    #expect(audio.candidates.count == 2)
    #expect(audio.candidates[0].hasPrefix("candidate:502091156 1 udp"))
    #expect(audio.setup == .actpass)
    #expect(audio.direction == .sendrecv)
    #expect(audio.multiplexesRTCP && audio.reducesRTCPSize)
    #expect(audio.rtcp?.port == 9)
    #expect(
      audio.rtpMaps.first
        == RTPMap(payloadType: 111, name: "opus", clockRate: 48000, channels: 2))
    #expect(audio.formatParameters.first?[name: "useinbandfec"] == "1")
    #expect(audio.extensionMaps.map(\.id) == [1, 2, 3, 4])
    #expect(audio.msids.map(\.trackID) == ["2750951b-ac46-427d-b656-d9db6b32e76b"])
    let video = offer.sections[1]
    #expect(video.rtcpFeedback.filter { $0.payloadType == 96 }.count == 5)
    #expect(video.formatParameters.first { $0.format == "97" }?[name: "apt"] == "96")
    #expect(video.ssrcGroups.map(\.semantics) == ["FID"])
    #expect(video.ssrcGroups[0].ssrcs.first == video.ssrcs.first?.ssrc)
    let data = offer.sections[2]
    #expect(data.sctpPort == 5000)
    #expect(data.maximumMessageSize == 262_144)
    #expect(data.formats == ["webrtc-datachannel"])
  }

  @Test func aFirefoxOfferKeepsItsFingerprintAtTheSessionLevel() throws {
    let offer = try SDPDocument(parsing: try Samples.text("firefox-offer"))
    #expect(offer.fingerprints.map(\.algorithm) == ["sha-256"])
    #expect(offer.iceOptions == ["trickle"])
    #expect(offer.trickles)
    #expect(offer.direction == .sendrecv)
    #expect(offer.sections.allSatisfy { $0.fingerprints.isEmpty })
    #expect(offer.sections[0].endOfCandidates)
    #expect(offer.sections[0].extensionMaps[1].direction == .recvonly)
    #expect(offer.sections[1].formatParameters[0][name: "max-fs"] == "12288")
  }

  @Test func simulcastIsRead() throws {
    let offer = try SDPDocument(parsing: try Samples.text("chromium-simulcast-offer"))
    #expect(offer.sections[0].rids.map(\.id) == ["q", "h", "f"])
    #expect(offer.sections[0].rids.allSatisfy { $0.isSent })
    #expect(offer.sections[0].simulcast?.sent == "q;h;f")
    #expect(offer.sections[0].msids.map(\.streamID) == ["-"])
  }

  @Test(arguments: [
    ("0 PCMU/8000", "0 PCMU/8000", true), ("96  opus/48000/2", "96 opus/48000/2", true),
    ("128 x/1", "", false), ("+9 x/1", "", false), ("9 x", "", false), ("9 x/0", "", false),
    ("9 x/8000/2/1", "", false), ("9 x/8000/999", "", false), ("", "", false),
    ("9 x/99999999999", "", false),
  ])
  func rtpMaps(input: String, printed: String, isValid: Bool) {
    #expect(RTPMap(input)?.text == (isValid ? printed : nil))
  }

  @Test(arguments: [
    ("96 nack pli", UInt8?(96), "nack pli"), ("* transport-cc", nil, "transport-cc"),
    ("96  ccm   fir", 96, "ccm fir"),
  ])
  func feedback(input: String, payloadType: UInt8?, message: String) throws {
    let feedback = try #require(RTCPFeedback(input))
    #expect(feedback.payloadType == payloadType)
    #expect(feedback.feedback == message)
  }

  @Test(arguments: [
    ("111 minptime=10; useinbandfec=1", "useinbandfec", String?("1")),
    ("111 MinPTime=10;x", "minptime", "10"), ("63 111/111", "apt", nil),
    ("97 apt=96 ", "apt", "96"),
    ("97", "apt", nil),
  ])
  func parameters(input: String, name: String, value: String?) throws {
    #expect(try #require(FormatParameters(input))[name: name] == value)
  }

  @Test(arguments: [
    ("sha-256 AA:0b:FF", "sha-256 AA:0B:FF", true), ("SHA-1 00", "sha-1 00", true),
    ("sha-256 AA:", "", false), ("sha-256 A:AA", "", false), ("sha-256 GG", "", false),
    ("sha-256", "", false), ("sha-256 AA BB", "", false), ("sha-256 :AA:A", "", false),
  ])
  func fingerprints(input: String, printed: String, isValid: Bool) {
    #expect(CertificateFingerprint(input)?.text == (isValid ? printed : nil))
  }

  @Test(arguments: [
    ("send q;h;f", String?("q;h;f"), String?.none), ("recv a send b,~c", "b,~c", "a"),
    (" send q", "q", nil),
    // The syntax of drafts of RFC 8853, as Firefox and Janus wrote it.
    (" send rid=q;h;f", "q;h;f", nil), ("recv rid=hi,lo;mid send rid=~x", "~x", "hi,lo;mid"),
    (" send rid=1;2 recv 3", "1;2", "3"), (" send pt=97;98 recv pt=99", "", ""),
  ])
  func simulcast(input: String, sent: String?, received: String?) throws {
    let simulcast = try #require(Simulcast(input))
    #expect(simulcast.sent == sent)
    #expect(simulcast.received == received)
  }

  @Test(arguments: ["send", "send a send b", "both a", "send a recv"])
  func brokenSimulcastIsRefused(text: String) { #expect(Simulcast(text) == nil) }

  @Test(arguments: [
    ("1 cname:x", UInt32(1), "cname", String?("x")), ("2 msid:a b", 2, "msid", "a b"),
    ("3", 3, "", nil), ("4 flag", 4, "flag", nil),
  ])
  func sources(input: String, ssrc: UInt32, name: String, value: String?) throws {
    let source = try #require(SSRCAttribute(input))
    #expect(source == SSRCAttribute(ssrc: ssrc, name: name, value: value))
    #expect(source.text == input)
  }

  @Test func directionsCombine() {
    for direction in MediaDirection.allCases {
      #expect(direction.reversed.reversed == direction)
      #expect(direction.intersected(with: .sendrecv) == direction)
      #expect(direction.intersected(with: .inactive) == .inactive)
    }
    #expect(MediaDirection.sendonly.reversed == .recvonly)
    #expect(MediaDirection.sendonly.intersected(with: .recvonly) == .inactive)
  }

  @Test func theConnectionLineCanBeChanged() throws {
    var section = SDPSection(kind: .audio, port: 9, transport: "X", formats: ["0"])
    section.append(.rtcpMux)
    section.connection = .unknown
    #expect(section.text == "m=audio 9 X 0\r\nc=IN IP4 0.0.0.0\r\na=rtcp-mux\r\n")
    section.connection = ConnectionData(try #require(IPAddress("2001:db8::1")))
    #expect(section.text == "m=audio 9 X 0\r\nc=IN IP6 2001:db8::1\r\na=rtcp-mux\r\n")
    section.connection = nil
    #expect(section.text == "m=audio 9 X 0\r\na=rtcp-mux\r\n")
  }

  private static let bandwidths: [(String, UInt64?)] = [
    ("", nil), ("b=TIAS:500000", 500_000), ("b=AS:500", 459_000), ("b=AS:16", 0), ("b=AS:0", 0),
    ("b=AS:500\r\nb=TIAS:100", 100), ("b=CT:500", nil), ("b=RS:0\r\nb=AS:100", 79_000),
    ("b=AS:-1", nil), ("b=AS:", nil), ("b=AS", nil), ("b=AS:18446744073709551615", nil),
    ("b=X-YZ:1", nil), ("b=as:500", nil), ("b=TIAS:18446744073709551615", .max),
  ]

  @Test(arguments: bandwidths)
  func aSectionLimitsTheReceiveBitRate(lines: String, limit: UInt64?) throws {
    let sections = ["m=audio 9 RTP/AVP 0", "m=video 9 RTP/AVP 96"]
    // Neither the session's bandwidth nor the other section's limits this section.
    let text = ["v=0", "o=- 1 1 IN IP4 127.0.0.1", "s=-", "b=AS:7", "t=0 0"] + sections
    let document = try SDPDocument(
      parsing: (text + [lines, ""]).joined(separator: "\r\n").replacing("\r\n\r\n", with: "\r\n"))
    #expect(document.sections[1].receiveBitrateLimit == limit)
    #expect(document.sections[0].receiveBitrateLimit == nil)
  }
}
