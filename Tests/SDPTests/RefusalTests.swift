import Testing

@testable import SDP

struct RefusalTests {
  static let head = ["v=0", "o=- 1 1 IN IP4 127.0.0.1", "s=-", "t=0 0"]

  @Test(arguments: [
    ([], 0, "the description ends before its s= line"),
    (["v=0", "o=- 1 1 IN IP4 0.0.0.0"], 2, "the description ends before its s= line"),
    (["v=1", "o=- 1 1 IN IP4 0.0.0.0", "s=-"], 1, "v=0 must stand here"),
    (["v=0", "s=-", "t=0 0"], 2, "o=... must stand here"),
    (["v=0", "o=- 1 1 IN IP4", "s=-"], 2, "o= must read"),
    (["v=0", "o=- one 1 IN IP4 0.0.0.0", "s=-"], 2, "o= must read"),
    (["v=0", "o=- 1 1 IN IP4 0.0.0.0", "s=-", "m=audio 9 X 0"], 0, "no t= line"),
    (head + ["s=again"], 5, "s= stands a second time"),
    (head + ["m=audio 9 X"], 5, "m= must read"),
    (head + ["m=audio nine X 0"], 5, "the port of m= is not a port"),
    (head + ["m=audio 65536 X 0"], 5, "the port of m= is not a port"),
    (head + ["m=audio 9/0 X 0"], 5, "the number of ports"),
    (
      head + ["m=audio 9 X 0", "a=mid:0", "m=audio 9 X 0", "a=mid:0"], 8,
      "another m-section has the mid 0"
    ),
  ])
  func theWrongLineIsNamed(lines: [String], line: Int, reason: String) throws {
    let error = try #require(throws: SDPError.self) { try SDPDocument(parsing: joined(lines)) }
    #expect(error.line == line)
    #expect(error.reason.contains(reason), "\(error)")
  }

  /// Unreadable lines, each of which is skipped without affecting the others.
  @Test(arguments: [
    ("nonsense", "does not begin like x="), ("A=upper", "does not begin like x="),
    ("a=x\u{0}y", "control character"), ("a=:x", "the attribute has no name"),
    ("a=", "the attribute has no name"), ("c=IN IP4", "c= must read"),
    ("a=fingerprint:sha-256 XY", "a=fingerprint must read"), ("a=mid:", "a=mid must name"),
    ("a=mid:1", "a second, different a=mid"), ("a=inactive", "a second, different direction"),
    ("a=ice-ufrag:abc", "a=ice-ufrag must have 4 to 256"),
    ("a=ice-pwd:short", "a=ice-pwd must have 22 to 256"),
    ("a=setup:sometimes", "a=setup must read"), ("a=rtpmap:0", "a=rtpmap must read"),
    ("a=rtcp-fb:x nack", "a=rtcp-fb must read"), ("a=extmap:0 urn:x", "a=extmap must read"),
    ("a=ssrc:-1 cname:x", "a=ssrc must read"), ("a=ssrc-group:FID 1 x", "a=ssrc-group must read"),
    ("a=candidate:", "a=candidate must describe"), ("a=sctp-port:70000", "a=sctp-port must be"),
    ("a=max-message-size:-1", "a=max-message-size must be"),
    ("a=simulcast:send", "a=simulcast must read"), ("a=sctpmap:x y", "a=sctpmap must read"),
  ])
  func anUnreadableLineLosesOnlyItself(line: String, reason: String) throws {
    let before = RefusalTests.head + ["m=audio 9 X 0", "a=mid:0", "a=sendrecv"]
    let after = ["a=rtpmap:0 PCMU/8000", "m=video 9 X 96", "a=mid:v"]
    let document = try SDPDocument(parsing: joined(before + [line] + after))
    #expect(try document == SDPDocument(parsing: joined(before + after)))
    #expect(document.remarks.map(\.line) == [before.count + 1])
    #expect(document.remarks.first?.reason.contains(reason) == true, "\(document.remarks)")
    // Sections keep their line numbers in the text.
    #expect(document.line(ofSection: 1) == before.count + 3)
    #expect(document.sections[0].mid == "0" && document.sections[1].mid == "v")
  }

  @Test func remarksAreLimited() throws {
    let lines = RefusalTests.head + [String](repeating: "a=setup:sometimes", count: 5000)
    #expect(try SDPDocument(parsing: joined(lines)).remarks.count == SDPDocument.remarksLimit)
    let blank = RefusalTests.head + [String](repeating: "", count: SDPDocument.lineLimit)
    #expect(throws: SDPError.self) { try SDPDocument(parsing: joined(blank)) }
  }

  @Test func theSameLineTwiceIsTolerated() throws {
    let lines =
      RefusalTests.head + ["m=audio 9 X 0", "a=mid:0", "a=mid:0", "a=sendrecv", "a=sendrecv"]
    #expect(try SDPDocument(parsing: joined(lines)).sections[0].mid == "0")
  }

  @Test func sizesAreLimited() throws {
    let head = RefusalTests.head
    let long = head + ["a=x:" + String(repeating: "y", count: SDPDocument.byteLimit)]
    #expect(throws: SDPError.self) { try SDPDocument(parsing: joined(long)) }
    let many = head + [String](repeating: "a=x", count: SDPDocument.lineLimit)
    let error = try #require(throws: SDPError.self) { try SDPDocument(parsing: joined(many)) }
    #expect(error.line == SDPDocument.lineLimit + 1)
    let sections = head + [String](repeating: "m=a 0 X 0", count: SDPDocument.sectionLimit)
    #expect(try SDPDocument(parsing: joined(sections)).sections.count == SDPDocument.sectionLimit)
    #expect(throws: SDPError.self) { try SDPDocument(parsing: joined(sections + ["m=a 0 X 0"])) }
    let formats = "m=a 9 X" + String(repeating: " 0", count: SDPDocument.formatLimit)
    #expect(try SDPDocument(parsing: joined(head + [formats])).sections[0].formats.count == 128)
    #expect(throws: SDPError.self) { try SDPDocument(parsing: joined(head + [formats + " 0"])) }
  }
}
