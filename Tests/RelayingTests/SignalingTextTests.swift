import Peer
import SDP
import Testing
import Wire

@testable import Relaying

/// Descriptions and candidates are found in messages, and nothing else changes.
struct SignalingTextTests {
  private static let sdp = "v=0\r\no=- 1 1 IN IP4 0.0.0.0\r\ns=-\r\nt=0 0\r\n"
  private static let candidate = "candidate:1 1 udp 2122260223 192.0.2.7 5000 typ host ufrag abcd"

  private static func replaced(
    _ text: String, type: String? = nil, rules: SDPRules = SDPRules()
  ) async throws -> (text: String, parts: [SignalingPart]) {
    let parts = Parts()
    var signaling = SignalingText(rules: rules) {
      (part) async throws(SignalingRefusal) -> SignalingReplacement? in
      await parts.append(part)
      switch part {
      case .description: return SignalingReplacement("v=0\r\nrelay\r\n")
      case .candidate(let candidate):
        return SignalingReplacement(
          candidate.candidate.isEmpty ? "" : "candidate:relay", usernameFragment: "wxyz")
      case .fragment: return SignalingReplacement("a=mid:0\r\n")
      }
    }
    let new = try await signaling.replacing(in: text, type: type)
    return (new, await parts.all)
  }

  private actor Parts {
    var all: [SignalingPart] = []
    func append(_ part: SignalingPart) { all.append(part) }
  }

  private static func json(_ text: String) -> String { JSONText.text(text).text }

  @Test func descriptionsAreFoundInJSONHoweverDeep() async throws {
    // Spaces, numbers that doubles cannot represent, and the members' order are kept.
    let before = "{ \"a\": 12345678901234567890,\t\"jsep\" : {\"type\":\"offer\", \"sdp\":"
    let after = "} ,\"z\":[1.0e5, null,true] }\n"
    let (text, parts) = try await Self.replaced(before + Self.json(Self.sdp) + after)
    #expect(text == before + Self.json("v=0\r\nrelay\r\n") + after)
    #expect(parts == [.description(.offer, Self.sdp)])
  }

  @Test func jsonInsideOfStringsIsLookedInto() async throws {
    let inner = "{\"type\":\"answer\",\"sdp\":\(Self.json(Self.sdp))}"
    let outer = "[\"msg\",{\"data\":\(Self.json(inner))}]"
    let (text, parts) = try await Self.replaced(outer)
    #expect(parts == [.description(.answer, Self.sdp)])
    let new = "{\"type\":\"answer\",\"sdp\":\(Self.json("v=0\r\nrelay\r\n"))}"
    #expect(text == "[\"msg\",{\"data\":\(Self.json(new))}]")
  }

  @Test func slashesAndUnicodeMayBeEscaped() async throws {
    let escaped =
      "{\"sdp\":\"v=0\\u000d\\u000ao=- 1 1 IN IP4 0.0.0.0\\r\\ns=\\u2014\\/\\r\\nt=0 0\\r\\n\"}"
    let (_, parts) = try await Self.replaced(escaped)
    let wanted = "v=0\r\no=- 1 1 IN IP4 0.0.0.0\r\ns=\u{2014}/\r\nt=0 0\r\n"
    #expect(parts == [.description(nil, wanted)])
  }

  @Test func candidatesBringTheNamesOfTheirGeneration() async throws {
    let message =
      "{\"candidate\":{\"candidate\":\"\(Self.candidate)\",\"sdpMid\":\"0\",\"sdpMLineIndex\":0,"
      + "\"usernameFragment\":\"abcd\"}}"
    let (text, parts) = try await Self.replaced(message)
    #expect(
      parts == [
        .candidate(
          CandidateInit(
            candidate: Self.candidate, sdpMid: "0", sdpMLineIndex: 0, usernameFragment: "abcd"))
      ])
    #expect(
      text == "{\"candidate\":{\"candidate\":\"candidate:relay\",\"sdpMid\":\"0\","
        + "\"sdpMLineIndex\":0,\"usernameFragment\":\"wxyz\"}}")
    // An empty member of the same name is not a candidate.
    #expect(try await Self.replaced("{\"candidate\":\"\",\"vote\":3}").parts.isEmpty)
  }

  @Test func formsAndStreamsOfEventsAndBodiesAreFound() async throws {
    let form = "room=a%20b&sdp=v%3D0%0D%0Ao%3D-+1+1+IN+IP4+0.0.0.0%0D%0As%3D-%0D%0A&x"
    let (text, parts) = try await Self.replaced(form, type: "application/x-www-form-urlencoded")
    #expect(parts.count == 1)
    #expect(text == "room=a%20b&sdp=v%3D0%0D%0Arelay%0D%0A&x")
    let events = "event: offer\ndata: {\"sdp\":\(Self.json(Self.sdp))}\n\n"
    #expect(
      try await Self.replaced(events, type: "text/event-stream; charset=utf-8").text
        == "event: offer\ndata: {\"sdp\":\"v=0\\r\\nrelay\\r\\n\"}\n\n")
    #expect(
      try await Self.replaced(Self.sdp, type: "application/sdp").text == "v=0\r\nrelay\r\n")
    #expect(
      try await Self.replaced("a=mid:0\r\n", type: "application/trickle-ice-sdpfrag").parts
        == [.fragment("a=mid:0\r\n")])
  }

  @Test func rulesNameDescriptionsThatAreNotDetected() async throws {
    let rules = try SDPRules(
      parsing: """
        [{"description": "body.*.blob", "type": "kind", "encoding": "base64"},
         {"candidate": "ice.line", "mid": "section", "index": "number"}]
        """)
    let blob = Data64.encoded(Self.sdp)
    let message = "{\"body\":[{\"kind\":\"OFFER\",\"blob\":\"\(blob)\"}]}"
    let (text, parts) = try await Self.replaced(message, rules: rules)
    #expect(parts == [.description(.offer, Self.sdp)])
    #expect(
      text == "{\"body\":[{\"kind\":\"OFFER\",\"blob\":\"\(Data64.encoded("v=0\r\nrelay\r\n"))\"}]}"
    )
    let bare = "{\"ice\":{\"line\":\"1 1 udp 1 192.0.2.7 5 typ host\",\"section\":\"v\"}}"
    let (line, found) = try await Self.replaced(bare, rules: rules)
    #expect(
      found == [
        .candidate(
          CandidateInit(candidate: "candidate:1 1 udp 1 192.0.2.7 5 typ host", sdpMid: "v"))
      ])
    #expect(line == "{\"ice\":{\"line\":\"relay\",\"section\":\"v\"}}")
  }

  @Test(arguments: [
    "{}", "[1]", "[{}]", "[{\"description\": \"a\", \"candidate\": \"b\"}]",
    "[{\"description\": \"a\", \"encoding\": \"rot13\"}]", "[{\"description\": 5}]",
    "[{\"description\": \"a\", \"where\": \"b\"}]",
  ])
  func invalidRulesAreRefused(text: String) {
    #expect(throws: SignalingRefusal.self) { try SDPRules(parsing: text) }
  }

  @Test(arguments: [
    ("<jingle xmlns='urn:xmpp:jingle:1'/>", "Jingle"),
    ("{\"dtlsParameters\":{\"role\":\"auto\"}}", "mediasoup"),
    ("{\"sdp\":\"dj0wDQpvPS0=\"}", "base64"), ("<sdp>a=ice-ufrag:abcd</sdp>", "--sdp-rules"),
  ])
  func signalingThatCannotBeReplacedIsRefusedByName(text: String, name: String) async throws {
    let refusal = await #expect(throws: SignalingRefusal.self) { try await Self.replaced(text) }
    #expect(refusal?.reason.contains(name) == true)
  }

  @Test func hostileTextsPassOrAreRefused() async throws {
    let bomb = "{\"sdp\":\(Self.json("v=0\r\n" + String(repeating: "a=x\r\n", count: 60_000)))}"
    let refusal = await #expect(throws: SignalingRefusal.self) { try await Self.replaced(bomb) }
    #expect(refusal?.reason.contains("exceeds the relay's limit") == true)
    for text in [
      String(repeating: "[", count: 100_000), "{\"a\":\"\\", "{\"a\":\"\\ud800\"}", "{\"a\"}", "\"",
      "[" + String(repeating: "\"x\",", count: 30_000) + "1]", "{]}", "",
    ] {
      #expect(try await Self.replaced(text).text == text)
    }
  }
}

/// Encodes Base64 for the tests.
enum Data64 {
  static func encoded(_ text: String) -> String {
    let digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
    var result = ""
    var rest = Array(text.utf8)[...]
    while !rest.isEmpty {
      let group = Array(rest.prefix(3))
      rest = rest.dropFirst(3)
      let bits = (group + [0, 0, 0]).prefix(3).reduce(0) { $0 << 8 | Int($1) }
      for place in 0..<4 {
        result += place <= group.count ? String(digits[bits >> (18 - 6 * place) & 63]) : "="
      }
    }
    return result
  }
}

/// The faults of a relay, as its options name them.
struct RelayFaultTests {
  @Test func pathsByNameAreSeveralFaults() throws {
    for name in RelayFault.presets {
      let faults = try RelayFault.list(parsing: name)
      #expect(faults.count > 1)
      #expect(faults.allSatisfy { $0.description == name })
    }
  }

  @Test(arguments: [
    "drop rtp video 5%", "drop near rtp ssrc=7 every=3", "delay 80ms audio", "duplicate rtcp",
    "corrupt sctp 1%", "rate far 800kbps queue=300ms", "jitter 20ms",
    "drop packet rtp probability=2%",
    "drop 3% bursts", "far cellular",
  ])
  func theWordsOfFaultsAreRead(text: String) throws {
    #expect(try RelayFault.list(parsing: text).isEmpty == false)
  }

  @Test(arguments: [
    "", "drip", "delay", "delay 80", "rate", "rate 5bps", "drop 101%", "drop -1%", "drop nan%",
    "drop every=0", "drop ssrc=x", "drop type=300", "delay 61s", "wifi cellular", "wifi 5%",
  ])
  func invalidFaultsAreRefused(text: String) {
    #expect(throws: SignalingRefusal.self) { try RelayFault.list(parsing: text) }
  }
}
