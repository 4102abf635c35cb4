import Testing
import Wire

@testable import SDP

struct RoundTripTests {
  @Test(arguments: Samples.names)
  func sectionsBeginWhereTheirLineNumbersSay(name: String) throws {
    let lines = try Samples.lines(name)
    let document = try SDPDocument(parsing: try Samples.text(name))
    for index in document.sections.indices {
      let number = document.line(ofSection: index)
      #expect(lines[number - 1].hasPrefix("m=\(document.sections[index].kind.rawValue)"))
    }
    #expect(document.line(ofSection: document.sections.count) == lines.count)
  }

  @Test(arguments: Samples.names)
  func printingGivesTheSameText(name: String) throws {
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

  /// Typed values must print what they were read from, or answers would garble what they repeat.
  @Test(arguments: Samples.names)
  func typedValuesPrintWhatTheyWereReadFrom(name: String) throws {
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

  @Test func unknownLinesStayInTheirPlaces() throws {
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
