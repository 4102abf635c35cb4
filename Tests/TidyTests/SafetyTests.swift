import Testing

struct SafetyTests {
  /// Expressions that may end the program.
  static let unsafe: [(expression: String, meaning: String)] = [
    (#"\btry!"#, "ends the program on an error"),
    (#"\bas!"#, "ends the program on another type"),
    (#"[\w)\]?>]!(?![=\w])"#, "ends the program on nil"),
    (#"\b(?:fatalError|preconditionFailure|unsafelyUnwrapped)\b"#, "ends the program"),
  ]

  static let unfinished = #"\b(?:TODO|FIXME|XXX|HACK)\b|\b(?:not implemented|unimplemented)\b"#

  @Test func nothingEndsTheProgram() throws {
    let patterns = try Self.unsafe.map { try Pattern($0.expression, $0.meaning) }
    let files = SourceTree.sources.filter { $0.ending == "swift" }
    let findings = files.flatMap { file in patterns.flatMap { $0.findings(in: file) } }
    expectNone(findings)
  }

  @Test func nothingIsLeftUnfinished() throws {
    let mark = try Pattern(Self.unfinished, "unfinished")
    let findings = SourceTree.sources.flatMap { mark.findings(in: $0, text: \.text) }
    expectNone(findings)
  }

  /// Excludes the calls of `make soak`, which run in real time.
  @Test func testsNeitherSleepNorStandAside() throws {
    let patterns = try [
      Pattern(#"(?<![\w.])(?:u|nano)?sleep\(|\bTask\.sleep\b|\bThread\.sleep\b"#, "sleeps"),
      Pattern(#"\.disabled\(|\bwithKnownIssue\b"#, "is not run"),
    ]
    let files = SourceTree.tests.filter {
      $0.ending == "swift" && !["TidyTests", "Soak"].contains($0.target)
    }
    let findings = files.flatMap { file in patterns.flatMap { $0.findings(in: file) } }
    expectNone(findings)
  }

  @Test(arguments: [
    "let a = try! b()", "let c = d as! E", "let f = g!.h", "list[0]! + 1", "call()!", "var i: Int!",
    "fatalError(\"no\")", "x.unsafelyUnwrapped",
  ])
  func trapsAreFound(line: String) throws {
    let file = SourceFile(path: "Sources/Wire/A.swift", text: line)
    let patterns = try Self.unsafe.map { try Pattern($0.expression, $0.meaning) }
    #expect(patterns.contains { !$0.findings(in: file).isEmpty })
  }

  @Test(arguments: [
    "if a != b { }", "guard !isEmpty else { return }",
    "let text = \"stop!\"", "// as! is wrong", "let c = d as? E", "x = (!a) || !b[0]",
  ])
  func harmlessCodeIsLeftAlone(line: String) throws {
    let file = SourceFile(path: "Sources/Wire/A.swift", text: line)
    let patterns = try Self.unsafe.map { try Pattern($0.expression, $0.meaning) }
    #expect(patterns.flatMap { $0.findings(in: file) } == [])
  }
}
