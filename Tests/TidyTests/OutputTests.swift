import Testing

struct OutputTests {
  /// Output that cannot be written must not be lost silently, so one type writes all of it.
  @Test func commandsPrintThroughOneType() throws {
    let pattern = try Pattern(
      #"(?<![\w.])(?:print|fputs|puts|printf)\(|\bFileHandle\.standard(?:Output|Error)\b"#,
      "prints beside Output")
    let files = SourceTree.sources.filter {
      $0.ending == "swift" && $0.path.hasPrefix("Sources/Command/RetakeCommand/")
    }
    #expect(files.count > 30)
    expectNone(files.flatMap { pattern.findings(in: $0) })
  }
}
