import Testing
import Wire

@testable import SDP

struct RoundTripTests {
  @Test(arguments: Samples.names)
  func sectionsBeginAtTheirLineNumbers(name: String) throws {
    let lines = try Samples.lines(name)
    let document = try SDPDocument(parsing: try Samples.text(name))
    for index in document.sections.indices {
      let number = document.line(ofSection: index)
      #expect(lines[number - 1].hasPrefix("m=\(document.sections[index].kind.rawValue)"))
    }
    #expect(document.line(ofSection: document.sections.count) == lines.count)
  }

  @Test(arguments: Samples.names)
  func printingRoundTrips(name: String) throws {
    let text = try Samples.text(name)
    let document = try SDPDocument(parsing: text)
    #expect(document.text == text)
    #expect(try SDPDocument(parsing: document.text) == document)
  }

  @Test(arguments: Samples.names)
  func lineEndsDoNotMatter(name: String) throws {
    let lines = try Samples.lines(name)
    let document = try SDPDocument(parsing: joined(lines))
    #expect(try SDPDocument(parsing: lines.joined(separator: "\n")) == document)
    #expect(try SDPDocument(parsing: lines.joined(separator: "\r\n")) == document)
    #expect(try SDPDocument(parsing: lines.joined(separator: "\n") + "\n\n\r\n") == document)
  }

  /// Changes that people, forms and templates make to a description: other line ends, blank lines,
  /// comments, indentation, trailing spaces, a byte order mark.
  @Test(arguments: Samples.names)
  func artifactsOfCopyingAreIgnored(name: String) throws {
    let lines = try Samples.lines(name)
    let document = try SDPDocument(parsing: joined(lines))
    let texts = [
      lines.joined(separator: "\r"), lines.joined(separator: "\n\n"), "\u{feff}" + joined(lines),
      "\r\n\n  \r\n" + lines.map { "    " + $0 }.joined(separator: "\n"),
      (["# offer", "// of a browser", "; "] + lines + ["#"]).joined(separator: "\n"),
      lines.joined(separator: "\r\r\n"),
    ]
    for (number, text) in texts.enumerated() {
      let read = try SDPDocument(parsing: text)
      #expect(read == document && read.remarks.isEmpty, "\(number)")
      // Splitting text into its lines takes long, so line numbers are checked for two changes only.
      guard number == 1 || number == 4 else { continue }
      let place = read.line(ofSection: 0)
      let at = text.replacing("\r\n", with: "\n").split(
        omittingEmptySubsequences: false, whereSeparator: \.isNewline)
      #expect(at[place - 1].contains("m="), "\(number)")
    }
    let spaced = try SDPDocument(
      parsing: lines.map { $0.hasPrefix("a=") ? $0 + "  " : $0 }.joined(separator: "\r\n"))
    #expect(spaced.remarks.isEmpty)
    #expect(spaced.sections.map(\.mid) == document.sections.map(\.mid))
    #expect(spaced.sections.map(\.direction) == document.sections.map(\.direction))
    #expect(
      spaced.sections.map(\.iceUsernameFragment) == document.sections.map(\.iceUsernameFragment))
  }

  /// Typed values must print as they were parsed, or answers would garble the lines that they copy
  /// from an offer.
  @Test(arguments: Samples.names)
  func typedValuesRoundTrip(name: String) throws {
    let document = try SDPDocument(parsing: try Samples.text(name))
    for section in document.sections {
      try check(section, RTPMap.self)
      try check(section, FormatParameters.self)
      try check(section, RTCPFeedback.self)
      try check(section, ExtensionMap.self)
      try check(section, SSRCAttribute.self)
      try check(section, SSRCGroup.self)
      try check(section, MSID.self)
      try check(section, RestrictionID.self)
      try check(section, Simulcast.self)
      try check(section, CertificateFingerprint.self)
      try check(section, SetupRole.self)
      try check(section, RTCPAddress.self)
    }
    try check(document, SectionGroup.self)
  }

  private func check<Value: AttributeValue>(_ scope: some AttributeScope, _: Value.Type) throws {
    let raw = scope.attributes.filter { $0.name == Value.attributeName }.compactMap(\.value)
    #expect(scope.values(Value.self).map(\.text) == raw)
  }

  @Test func unknownLinesKeepTheirPlaces() throws {
    let text = joined([
      "v=0", "o=- 1 2 IN IP4 127.0.0.1", "s=a name with spaces", "i=info", "b=AS:100", "t=0 0",
      "z=0 0", "a=tool:x y", "a=flag", "a=empty:", "m=audio 9/2 UDP/TLS/RTP/SAVPF 0 telephone",
      "i=title", "c=IN IP6 ::", "b=TIAS:1", "k=prompt", "a=x-new:1:2:3", "a=mid:0", "y=strange",
    ])
    let document = try SDPDocument(parsing: text)
    #expect(document.text == text)
    #expect(document.sections[0].portCount == 2)
    #expect(document.sections[0].connection == ConnectionData(addressType: "IP6", address: "::"))
    #expect(document.sections[0].value(AttributeName(rawValue: "x-new")) == "1:2:3")
    #expect(document.value(AttributeName(rawValue: "empty"))?.isEmpty == true)
    #expect(document.value(AttributeName(rawValue: "flag")) == nil)
    #expect(document.has(AttributeName(rawValue: "flag")))
  }
}
