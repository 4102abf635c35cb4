import Testing
import Wire

/// Tests how untrusted text is printed.
struct PrintableTextTests {
  /// U+FDD0 and U+FFFF, which a literal cannot contain.
  private static let noncharacters = String(
    decoding: [0xef, 0xb7, 0x90, 0xef, 0xbf, 0xbf], as: UTF8.self)

  /// Strings, and how each appears on a line and in JSON.
  private static let table: [(text: String, line: String, json: String)] = [
    ("plain, ünïcödé, 日本, 🎧", "plain, ünïcödé, 日本, 🎧", "plain, ünïcödé, 日本, 🎧"),
    ("\u{1b}]0;title\u{7}", "\\u{1b}]0;title\\u{7}", "\\u001b]0;title\\u0007"),
    ("\u{1b}[31m", "\\u{1b}[31m", "\\u001b[31m"),
    ("\u{9b}31m\u{85}\u{7f}", "\\u{9b}31m\\u{85}\\u{7f}", "\\u009b31m\\u0085\\u007f"),
    ("a\u{202e}b\u{2066}c\u{200f}", "a\\u{202e}b\\u{2066}c\\u{200f}", "a\\u202eb\\u2066c\\u200f"),
    ("\u{200b}\u{feff}\u{2060}", "\\u{200b}\\u{feff}\\u{2060}", "\\u200b\\ufeff\\u2060"),
    ("\u{2028}\u{2029}", "\\u{2028}\\u{2029}", "\\u2028\\u2029"),
    (noncharacters, "\\u{fdd0}\\u{ffff}", "\\ufdd0\\uffff"),
    ("\u{e0041}", "\\u{e0041}", "\\udb40\\udc41"),
    ("\u{10fee9}", "\\xe9", "\\\\xe9"),
  ]

  @Test(arguments: table) func invisibleCharactersAreEscaped(
    entry: (text: String, line: String, json: String)
  ) {
    #expect(PrintableText.line(entry.text) == entry.line)
    #expect(PrintableText.lines(entry.text) == entry.line)
    #expect(PrintableText.json(entry.text) == entry.json)
  }

  @Test func onlyLineBreaksAreKept() {
    #expect(PrintableText.line("a\nb\r\nc\td\re") == "a\\nb\\r\\nc\\td\\re")
    #expect(PrintableText.lines("a\nb\r\nc\td\re\r") == "a\nb\r\nc\td\\re\\r")
    #expect(PrintableText.lines("ü\n\r\n\r\r\nü\r") == "ü\n\r\n\\r\r\nü\\r")
    #expect(PrintableText.json("{\r\n\t\"ü\"}") == "{\r\n\t\"ü\"}")
    let marked = "a\(Self.noncharacters)b"
    #expect(PrintableText.lines(marked) { $0.value == 0xfdd0 ? "<" : nil } == "a<\\u{ffff}b")
  }

  @Test func everyCharacterIsEitherPlainOrWrittenInASCII() {
    for value in UInt32(0)...0x10ffff {
      guard let scalar = Unicode.Scalar(value) else { continue }
      let line = PrintableText.line(String(scalar))
      if PrintableText.isPlain(scalar) {
        if line != String(scalar) { Issue.record("\(value) is changed") }
      } else if !line.utf8.allSatisfy({ (0x20..<0x7f).contains($0) }) {
        Issue.record("\(value) is printed as it is")
      }
    }
  }

  @Test func shellWordsAreQuotedWhereNecessary() {
    #expect(ShellText.word("/tmp/a-b_c.take") == "/tmp/a-b_c.take")
    #expect(ShellText.word("") == "''")
    #expect(ShellText.word("a b") == "'a b'")
    #expect(ShellText.word("it's") == "'it'\\''s'")
    #expect(ShellText.word("$(rm -rf ~);`x`") == "'$(rm -rf ~);`x`'")
    #expect(ShellText.word("a\u{1b}'9") == "$'a\\033\\'9'")
    #expect(ShellText.word("caf\u{10fee9}") == "$'caf\\351'")
    #expect(ShellText.command("retake", "replay", "a b") == "retake replay 'a b'")
  }
}

/// Tests file names, which may contain any bytes.
struct SystemPathTests {
  @Test func anyBytesRoundTrip() {
    let names: [[UInt8]] = [
      Array("plain/é.take".utf8), [0x63, 0xe9, 0x2e], [0xff, 0xfe, 0x80], [0xc3], [0xe2, 0x82],
      [0xed, 0xa0, 0x80], Array("\u{10fee9}".utf8), Array("\u{10fe00}\u{10ffff}".utf8),
      [0xf4, 0x8f, 0xba], Array(0x01...0xff), [],
    ]
    for bytes in names {
      let name = SystemPath.name(bytes)
      #expect(SystemPath.bytes(of: name) == bytes, "\(bytes)")
      #expect(name.systemPath.map { UInt8(bitPattern: $0) } == bytes + [0])
    }
    #expect(SystemPath.name("é".utf8) == "é")
    var state: UInt64 = 7
    for _ in 0..<2_000 {
      let bytes = (0..<12).map { _ in
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return UInt8(truncatingIfNeeded: state >> 56)
      }
      let back = SystemPath.bytes(of: SystemPath.name(bytes))
      if back != bytes { Issue.record("\(bytes) became \(back)") }
    }
  }
}

/// Tests that secrets are hidden in printed text.
struct SecretTextTests {
  @Test func secretValuesAreHidden() {
    let table: [(String, String?)] = [
      (#"{"credential":"pass","username":"u"}"#, #"{"credential":"(hidden)","username":"u"}"#),
      (#"{"credential" : "a\"b\\", "x":1}"#, #"{"credential" : "(hidden)", "x":1}"#),
      (#""{\"apisecret\":\"pa\\\"ss\",\"a\":1}""#, #""{\"apisecret\":\"(hidden)\",\"a\":1}""#),
      (#"<turn:t>; credential="pass"; x="y""#, #"<turn:t>; credential="(hidden)"; x="y""#),
      ("Authorization: Bearer abc.DEF-1~ next", "Authorization: Bearer (hidden) next"),
      (#"{"Password":"cut short"#, #"{"Password":"(hidden)"#),
      (#"{"credential":""}"#, nil),
      (#"{"credentials":"one","spin":"two","pin":3}"#, nil),
      ("the credential is told; no secret here", nil),
    ]
    for (text, hidden) in table { #expect(SecretText.hidden(in: text) == hidden ?? text) }
  }
}
