import RTP
import SDP
import Testing
import Wire

@testable import JSEP

/// Tests Opus, G.711 and telephone events in offers and answers, and the order of audio codecs.
struct AudioCodecTests {
  private static let transport = """
    a=ice-ufrag:abcd\r
    a=ice-pwd:0123456789012345678901\r
    a=fingerprint:sha-256 00:11:22:33:44:55:66:77:88:99:AA:BB:CC:DD:EE:FF:00:11:22:33:44:55:66:77:\
    88:99:AA:BB:CC:DD:EE:FF\r
    a=setup:actpass\r
    a=rtcp-mux\r\n
    """

  private static func offer(_ section: String) -> String {
    "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\n" + section + "\r\n" + transport
  }

  private static let audio = RTPCodec.capabilities(.audio)

  private static func named(_ name: String) -> [RTPCodec] {
    audio.filter { $0.mimeType == "audio/\(name)" }
  }

  @Test func theCapabilitiesAreWhatANewConnectionOffers() throws {
    #expect(
      Self.audio.map(\.mimeType) == [
        "audio/opus", "audio/PCMU", "audio/PCMA", "audio/telephone-event", "audio/telephone-event",
      ])
    #expect(Self.audio.map(\.clockRate) == [48_000, 8_000, 8_000, 48_000, 8_000])
    var side = Side("a", capabilities: .offered)
    _ = try side.add(.audio)
    let section = try document(try side.offer()).sections[0]
    #expect(section.formats == ["111", "0", "8", "110", "126"])
    #expect(
      section.rtpMaps.map { "\($0.name)/\($0.clockRate)" } == [
        "opus/48000", "PCMU/8000", "PCMA/8000", "telephone-event/48000", "telephone-event/8000",
      ])
    // Without capabilities, as in older takes, only Opus is offered.
    var older = Side("a")
    _ = try older.add(.audio)
    #expect(try document(try older.offer()).sections[0].formats == ["111"])
  }

  /// Static payload types need no line of their own (RFC 3551 section 6).
  @Test(arguments: [
    ("0 8", "", ["0", "8"], "pcmu"), ("8 0 13", "", ["8", "0"], "pcma"),
    ("0 101", "a=rtpmap:101 telephone-event/8000\r\na=fmtp:101 0-16\r\n", ["0", "101"], "pcmu"),
    ("101 8", "a=rtpmap:101 telephone-event/8000\r\n", ["101", "8"], "pcma"),
    ("96", "a=rtpmap:96 pcmu/8000/1\r\n", ["96"], "pcmu"),
    ("9 0", "a=rtpmap:9 G722/8000\r\n", ["0"], "pcmu"),
    ("111 0", "a=rtpmap:111 opus/48000/2\r\n", ["111", "0"], "opus"),
  ])
  func offersOfTelephonesAreAnswered(
    formats: String, lines: String, answered: [String], sent: String
  ) throws {
    let offer = Self.offer("m=audio 9 UDP/TLS/RTP/SAVPF \(formats)\r\na=mid:0\r\n" + lines)
    var side = Side("a", capabilities: .offered)
    _ = try side.add(.audio, byAddTrack: true)
    try side.apply(.offer, offer.replacing("\r\n\r\n", with: "\r\n"))
    let answer = try document(try side.answer())
    #expect(answer.sections[0].formats == answered && !answer.sections[0].isRejected)
    let section = try #require(side.negotiation.sections.first)
    #expect(section.sentCodec?.name == sent && section.receivedCodec?.name == sent)
    #expect(
      OfferRemarks.sentences(
        about: SessionDescription(type: .offer, sdp: offer), codecs: Codec.offeredNames
      ).isEmpty)
  }

  @Test func eventsAloneAreNotAudio() throws {
    let offer = Self.offer(
      "m=audio 9 UDP/TLS/RTP/SAVPF 101\r\na=mid:0\r\na=rtpmap:101 telephone-event/8000")
    var side = Side("a", capabilities: .offered)
    try side.apply(.offer, offer)
    #expect(try document(try side.answer()).sections[0].isRejected)
    let id = try side.add(.audio)
    let error = #expect(throws: JSEPError.self) {
      try side.negotiation.setCodecPreferences(Self.named("telephone-event"), of: id)
    }
    #expect(error?.kind == .invalidModification)
  }

  /// Offers and answers follow the preferences' order, and the first codec is sent.
  @Test func audioCodecsAreOrdered() throws {
    let order =
      Self.named("PCMA") + Self.named("telephone-event").suffix(1) + Self.named("opus")
    var offerer = Side("a", capabilities: .offered)
    var answerer = Side("b", capabilities: .offered)
    let id = try offerer.add(.audio)
    try offerer.negotiation.setCodecPreferences(order, of: id)
    let offer = try offerer.offer()
    #expect(try document(offer).sections[0].formats == ["8", "126", "111"])
    _ = try answerer.add(.audio, byAddTrack: true)
    try answerer.negotiation.setCodecPreferences(Self.named("opus") + Self.named("PCMA"), of: 1)
    try answerer.apply(offer)
    let answer = try answerer.answer()
    #expect(try document(answer).sections[0].formats == ["111", "8"])
    try offerer.apply(answer)
    for side in [offerer, answerer] {
      #expect(side.negotiation.sections[0].sentCodec?.name == "opus")
      #expect(side.negotiation.sections[0].sentCodec?.payloadType == 111)
    }
    // A further offer keeps the payload types, and static payload types keep their standard
    // meaning.
    try offerer.negotiation.setCodecPreferences([], of: id)
    let next = try document(try offerer.offer()).sections[0].formats
    #expect(next == ["111", "8", "0", "110", "126"])
  }
}
