import Testing

/// The order of a dictionary or set differs from process to process, so no output may depend on it.
struct OrderTests {
  @Test func theCoreNeverWalksThroughDictionariesAndSets() throws {
    var findings: [Finding] = []
    for target in Layers.core {
      findings += try unorderedLoops(in: SourceTree.swift(of: target))
    }
    expectNone(findings, allowing: Exceptions.unorderedLoops)
  }

  @Test func walksThroughDictionariesAndSetsAreFound() throws {
    let file = SourceFile(
      path: "Sources/Wire/A.swift",
      text: """
        var streams: [UInt32: Stream] = [:]
        var seen = Set<Int>()
        var pending: Set<Int>
        var list: [Stream] = []
        func run() {
          for (ssrc, stream) in streams { use(ssrc, stream) }
          for number in self.seen where number > 2 { use(number) }
          let first = streams.values.map(\\.size)
          pending.forEach { use($0) }
          for stream in streams.sorted(by: order) { use(stream) }
          for stream in list { use(stream) }
          let one = streams[3]
          let isEmpty = seen.isEmpty || streams.keys.contains(3)
        }
        """)
    #expect(try unorderedLoops(in: [file]).map(\.line) == [6, 7, 8, 9])
  }

  /// Finds loops over names that the files declare as dictionaries or sets.
  ///
  /// This checks spellings, not types: a name that is a list elsewhere in the target may be
  /// reported too, and a dictionary returned from a function is not found.
  private func unorderedLoops(in files: [SourceFile]) throws -> [Finding] {
    let declaration = try Pattern(
      #"\b(?:var|let)\s+(\w+)\s*"#
        + #"(?::\s*(?:\[[\w.<>?]+\s*:|Set<|Dictionary<)"#
        + #"|=\s*(?:\[[\w.<>?]+\s*:\s*[\w.<>?\[\]]+\]\(|Set<|Set\(|\[:\]))"#,
      "declaration")
    let names = Set(files.flatMap { declaration.matches(in: $0.code).map { $0.groups[1] } })
    guard !names.isEmpty else { return [] }
    let any = names.sorted().joined(separator: "|")
    let walks = [
      try Pattern(
        #"\bfor\s+(?:case\s+)?[^\n{]*?\bin\s+(?:self\.)?(?:\#(any))"#
          + #"(?:\.(?:keys|values))?\s*(?:\{|where\b)"#,
        "a loop in no order"),
      try Pattern(
        #"(?<![\w.])(?:self\.)?(?:\#(any))(?:\.(?:keys|values))?"#
          + #"\.(?:map|compactMap|flatMap|forEach|first|reduce|popFirst|filter|enumerated)\b(?!:)"#,
        "a walk in no order"),
    ]
    return files.flatMap { file in walks.flatMap { $0.findings(in: file) } }
      .sorted { ($0.path, $0.line) < ($1.path, $1.line) }
  }
}
