import Seeded
import Testing

@testable import SDP

struct FragmentTests {
  static let trickled = [
    "a=ice-ufrag:EsAw", "a=ice-pwd:P2uYro0UCOQ4zxjKXaWCBui1", "m=audio 9 RTP/AVP 0", "a=mid:0",
    "a=candidate:1387637174 1 udp 2122260223 192.0.2.1 61764 typ host generation 0 ufrag EsAw",
    "a=candidate:3471623853 1 udp 2122194687 198.51.100.2 61765 typ host generation 0 ufrag EsAw",
    "a=end-of-candidates",
  ]

  @Test func candidatesAreReadWithTheirSection() throws {
    let fragment = try SDPFragment(parsing: joined(Self.trickled))
    #expect(fragment.credentials?.usernameFragment == "EsAw")
    #expect(fragment.credentials?.password == "P2uYro0UCOQ4zxjKXaWCBui1")
    #expect(fragment.candidates.map(\.mid) == ["0", "0"])
    #expect(fragment.candidates[1].text.hasPrefix("candidate:3471623853 1 udp"))
    #expect(fragment.hasEnded)
    #expect(fragment.text == joined(Self.trickled))
  }

  struct Refusal: Sendable, CustomTestStringConvertible {
    var lines: [String]
    var line: Int
    var reason: String
    var testDescription: String { reason }
  }

  @Test(arguments: [
    Refusal(lines: ["v=0"], line: 1, reason: "v= does not belong into a fragment"),
    Refusal(lines: ["a=mid:0", "c=IN IP4 1.2.3.4"], line: 2, reason: "c= does not belong"),
    Refusal(lines: ["m=audio 9 RTP/AVP 0"], line: 0, reason: "the m-section audio has no a=mid"),
    Refusal(
      lines: ["m=audio 9 RTP/AVP 0", "a=mid:0", "m=video 9 RTP/AVP 0", "a=mid:0"], line: 4,
      reason: "another m-section has the mid 0"),
    Refusal(lines: ["m=audio"], line: 1, reason: "m= must read"),
    Refusal(lines: ["a=ice-ufrag:x"], line: 1, reason: "a=ice-ufrag must have 4 to 256 characters"),
    Refusal(lines: ["a=candidate"], line: 1, reason: "a=candidate must describe a candidate"),
    Refusal(lines: ["{}"], line: 1, reason: "the line does not begin like x="),
    Refusal(lines: ["a=ice-lite", "", "a=candidate"], line: 3, reason: "a=candidate must"),
  ])
  func invalidFragmentsAreRefusedWithTheirLine(_ row: Refusal) throws {
    let error = #expect(throws: SDPError.self) { try SDPFragment(parsing: joined(row.lines)) }
    #expect(error?.line == row.line)
    #expect(error?.reason.contains(row.reason) == true, "\(error?.reason ?? "")")
  }

  @Test func anEmptyFragmentHasNoContent() throws {
    let fragment = try SDPFragment(parsing: "")
    #expect(fragment.credentials == nil && fragment.candidates.isEmpty && !fragment.hasEnded)
  }

  @Test(arguments: Samples.names)
  func aFragmentRestartsAnotherDescription(name: String) throws {
    let document = try SDPDocument(parsing: Samples.text(name))
    let localCredentials = try #require(document.credentials)
    let candidates = ["candidate:1 1 udp 2130706431 192.0.2.9 4000 typ host"]
    let written = document.fragment(candidates: candidates, hasEnded: true)
    let fragment = try SDPFragment(parsing: written.text)
    #expect(fragment.credentials == localCredentials)
    #expect(fragment.candidates.map(\.text) == candidates && fragment.hasEnded)

    var renewed = fragment
    renewed.sections[0].lines.removeAll {
      $0.text.hasPrefix("a=ice-ufrag") || $0.text.hasPrefix("a=ice-pwd")
    }
    #expect(document.restarted(by: renewed) == nil, "there is nothing to restart with")
    let password = "0123456789abcdefghijkl"
    renewed.lines += [SDPLine(.iceUsernameFragment, "renewed"), SDPLine(.icePassword, password)]
    let restarted = try #require(document.restarted(by: renewed))
    #expect(restarted.credentials?.usernameFragment == "renewed")
    #expect(restarted.origin.sessionID == document.origin.sessionID)
    #expect(restarted.origin.sessionVersion != document.origin.sessionVersion)
    #expect(restarted.sections.flatMap(\.candidates) == candidates)
    // Everything else is unchanged, so the media is the same; and the text can be parsed.
    let before = document.sections.map { $0.lines.filter { !Self.isOfICE($0) } }
    #expect(restarted.sections.map { $0.lines.filter { !Self.isOfICE($0) } } == before)
    #expect(try SDPDocument(parsing: restarted.text) == restarted)
  }

  private static func isOfICE(_ line: SDPLine) -> Bool {
    let starts = ["a=ice-ufrag", "a=ice-pwd", "a=candidate", "a=end-of-candidates", "c="]
    return starts.contains { line.text.hasPrefix($0) }
  }

  @Test(arguments: [("9", "10"), ("18446744073709551615", "18446744073709551616"), ("0", "1")])
  func theVersionIncreasesAtAnyLength(before: String, after: String) throws {
    let lines = [
      "v=0", "o=- 1 \(before) IN IP4 127.0.0.1", "s=-", "t=0 0", "a=ice-ufrag:abcd",
      "a=ice-pwd:0123456789abcdefghijkl",
    ]
    let document = try SDPDocument(parsing: joined(lines))
    let fragment = try SDPFragment(parsing: joined(Array(lines.suffix(2))))
    #expect(document.restarted(by: fragment)?.origin.sessionVersion == after)
  }

  @Test(arguments: 0..<4)
  func randomDamageDoesNoHarm(seed: Int) throws {
    var random = SeededGenerator(seed: UInt64(seed))
    let sample = Array(joined(Self.trickled).utf8)
    let document = try SDPDocument(parsing: Samples.text("firefox-offer"))
    let tokens = ["\r\n", "\n", "=", ":", " ", "a=", "m=", "a=mid:0\r\n", "\u{0}", "é", "a=group:"]
    var readable = 0
    for _ in 0..<4000 {
      let bytes = random.mutated(sample, tokens: tokens, most: 5)
      do {
        let fragment = try SDPFragment(parsing: String(decoding: bytes, as: UTF8.self))
        readable += 1
        #expect(try SDPFragment(parsing: fragment.text) == fragment)
        if let restarted = document.restarted(by: fragment) {
          #expect(throws: Never.self) { try SDPDocument(parsing: restarted.text) }
        }
      } catch {
        #expect((0...bytes.count).contains(error.line) && !error.reason.isEmpty)
      }
    }
    #expect(readable > 200, "the damage must leave something to look at")
  }
}
