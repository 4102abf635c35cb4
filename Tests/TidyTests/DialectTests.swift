import Testing

/// Words that names and comments no longer use, because the field has its own terms.
///
/// A machine receives, records, reports, requests and returns; it does not take, note, tell, hear
/// and give. This side is local, the other side remote.
enum Dialect {
  private static let verbs =
    "takes?|took|taking|notes?|tells?|telling|told|hears?|heard|gives?|keeps?|says?"
  private static let adjectives = "told|heard|tells|notes|hears|foreign|stranger|own"

  /// Declarations whose names start with one of the words: what they are, and a pattern.
  ///
  /// A local constant is not a declaration that other files read, so a property needs a modifier.
  static let declarations = [
    #"\bfunc[ \t]+(?:\#(verbs))(?=[A-Z(<])\w*"#,
    #"^[ \t]*(?:(?:public|package|private|fileprivate|static|final|weak|lazy|nonisolated"#
      + #"|(?:private|package)\(set\))[ \t]+)+(?:let|var)[ \t]+"#
      + #"(?:told\b|heard\b|(?:\#(adjectives))[A-Z])\w*"#,
    #"^[ \t]*case[ \t]+(?:told\b|heard\b|(?:tell|note|hear|\#(adjectives))[A-Z])\w*"#,
    #"\b(?:struct|class|enum|protocol|actor)[ \t]+(?:Foreign|Stranger|Told)\w*"#,
  ]

  /// Test functions, whose names are sentences.
  static let testNames = #"\bfunc[ \t]+\w+(?:Foreign|Stranger|Told(?!Apart))\w*"#

  /// Correct names that start with such a word, each with the reason.
  static let rightNames: [String: String] = [
    "keepAlive": "the field's word",
    "take": "the noun: a recorded file",
    "takes": "the noun: recorded files",
    "notes": "the noun",
    "noteSignaling": "the deprecated alias of recordSignaling",
    "noteCapture": "a key of the recorded calls",
    "ownCodecs": "a key of the recorded configuration",
    "ownMedia": "a path of `debug show`",
    "foreignFragment": "a username fragment of another agent: a counter of takes",
    "tellsTransports": "a key of the recorded input",
  ]

  /// Targets whose names are not checked yet; this may only get shorter.
  static let pendingNames: Set<String> = []

  /// Phrases that are not idiomatic in a comment.
  static let phrases = [
    "were made up", "was made up", "did not come", "becomes of", "became of", "as people write",
    "takes note of", "of late.", "the like of", "it comes to", "who is told", "is not kept alive",
    "takes a name", "somebody else's", "what is told", "gives back",
  ]

  /// Targets whose comments are not checked yet; this may only get shorter.
  static let pendingComments: Set<String> = []
}

struct DialectTests {
  @Test func namesAreTheFieldsWords() throws {
    let done = SourceTree.sources.filter { !Dialect.pendingNames.contains($0.target) }
    expectNone(try names(in: done))
  }

  @Test func testsAreNamedInTheFieldsWords() throws {
    let pattern = try Pattern(Dialect.testNames, "a name in the dialect")
    let tests = SourceTree.tests.filter { $0.ending == "swift" }
    expectNone(tests.flatMap { pattern.findings(in: $0) })
  }

  @Test func commentsSayWhatPeopleSay() {
    let done = SourceTree.sources.filter { !Dialect.pendingComments.contains($0.target) }
    expectNone(done.flatMap(phrases))
  }

  @Test(arguments: [
    "func tellStates() {}", "  package func take(_ bytes: [UInt8]) {}", "func note<T>(_ t: T) {}",
    "  private var toldState: State", "  case told(Int)", "  case ownOffer",
    "struct ForeignNumbers {}",
  ])
  func aNameInTheDialectIsFound(line: String) throws {
    let file = SourceFile(path: "Sources/Stack/Wire/A.swift", text: "\n" + line)
    #expect(try names(in: [file], besides: ["take"]).map(\.line) == [2])
  }

  @Test(arguments: [
    "func keepAlive() {}", "func taken() {}", "let told = 1", "func notify() {}", "case owner",
    "// func tellStates()",
  ])
  func aNameOfTheFieldIsNot(line: String) throws {
    let file = SourceFile(path: "Sources/Stack/Wire/A.swift", text: line)
    #expect(try names(in: [file]).isEmpty)
  }

  @Test func aPhraseIsFoundAcrossLines() {
    let text = """
      let a = 1
      /// Returns what
      /// became of it.
      let b = "what became of it"
      """
    let file = SourceFile(path: "Sources/Stack/Wire/A.swift", text: text)
    #expect(phrases(in: file).map(\.line) == [2])
  }

  /// - Parameter besides: correct names that count as wrong ones here.
  private func names(in files: [SourceFile], besides: Set<String> = []) throws -> [Finding] {
    let patterns = try Dialect.declarations.map { try Pattern($0, "a name in the dialect") }
    return files.filter { $0.ending == "swift" }.flatMap { file in
      patterns.flatMap { $0.findings(in: file) }.filter { finding in
        let name = finding.what.split { $0 == " " || $0 == "\t" }.last.map(String.init) ?? ""
        return besides.contains(name) || Dialect.rightNames[name] == nil
      }
    }
  }

  /// Returns the phrases in a file's comments; lines of one comment are joined.
  private func phrases(in file: SourceFile) -> [Finding] {
    var findings: [Finding] = []
    var comment = ""
    var begin = 0
    for (number, line) in (file.lines + [""]).enumerated() {
      let text = line.drop { $0 == " " }
      if text.hasPrefix("//") {
        if comment.isEmpty { begin = number + 1 }
        comment += " " + text.drop { $0 == "/" || $0 == " " }.lowercased()
      } else {
        for phrase in Dialect.phrases where comment.contains(phrase) {
          findings.append(
            Finding(path: file.path, line: begin, what: "nobody says \"\(phrase)\""))
        }
        comment = ""
      }
    }
    return findings
  }
}
