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
    (head + ["nonsense"], 5, "does not begin like x="),
    (head + ["A=upper"], 5, "does not begin like x="),
    (head + ["", "a=x"], 5, "the line is empty"),
    (head + ["a=x\u{0}y"], 5, "control character"),
    (head + ["a=:x"], 5, "the attribute has no name"),
    (head + ["a="], 5, "the attribute has no name"),
    (head + ["m=audio 9 X"], 5, "m= must read"),
    (head + ["m=audio nine X 0"], 5, "the port of m= is not a port"),
    (head + ["m=audio 65536 X 0"], 5, "the port of m= is not a port"),
    (head + ["m=audio 9/0 X 0"], 5, "the number of ports"),
    (head + ["c=IN IP4"], 5, "c= must read"),
    (head + ["a=fingerprint:sha-256 XY"], 5, "a=fingerprint must read"),
    (head + ["m=audio 9 X 0", "a=mid:"], 6, "a=mid must name"),
    (head + ["m=audio 9 X 0", "a=mid:0", "a=mid:1"], 7, "a second, different a=mid"),
    (
      head + ["m=audio 9 X 0", "a=mid:0", "m=audio 9 X 0", "a=mid:0"], 8,
      "another m-section has the mid 0"
    ),
    (head + ["m=audio 9 X 0", "a=sendrecv", "a=inactive"], 7, "a second, different direction"),
    (head + ["m=audio 9 X 0", "a=ice-ufrag:abc"], 6, "a=ice-ufrag must have 4 to 256"),
    (head + ["m=audio 9 X 0", "a=ice-pwd:short"], 6, "a=ice-pwd must have 22 to 256"),
    (head + ["m=audio 9 X 0", "a=setup:sometimes"], 6, "a=setup must read"),
    (head + ["m=audio 9 X 0", "a=rtpmap:0"], 6, "a=rtpmap must read"),
    (head + ["m=audio 9 X 0", "a=rtcp-fb:x nack"], 6, "a=rtcp-fb must read"),
    (head + ["m=audio 9 X 0", "a=extmap:0 urn:x"], 6, "a=extmap must read"),
    (head + ["m=audio 9 X 0", "a=ssrc:-1 cname:x"], 6, "a=ssrc must read"),
    (head + ["m=audio 9 X 0", "a=ssrc-group:FID 1 x"], 6, "a=ssrc-group must read"),
    (head + ["m=audio 9 X 0", "a=candidate:"], 6, "a=candidate must describe"),
    (head + ["m=application 9 X y", "a=sctp-port:70000"], 6, "a=sctp-port must be"),
    (head + ["m=application 9 X y", "a=max-message-size:-1"], 6, "a=max-message-size must be"),
  ])
  func theWrongLineIsNamed(lines: [String], line: Int, reason: String) throws {
    let error = try #require(throws: SDPError.self) { try SDPDocument(parsing: joined(lines)) }
    #expect(error.line == line)
    #expect(error.reason.contains(reason), "\(error)")
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
