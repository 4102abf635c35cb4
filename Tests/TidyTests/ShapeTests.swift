import Testing

struct ShapeTests {
  static let longestFile = 500
  static let longestLine = 100
  static let longestFunction = 70

  @Test func filesAreShort() {
    let findings = (SourceTree.sources + SourceTree.tests)
      .filter { $0.lines.count > Self.longestFile + 1 }
      .map { Finding(path: $0.path, line: $0.lines.count, what: "longer than 500 lines") }
    expectNone(findings)
  }

  @Test func linesAreShort() {
    var findings: [Finding] = []
    for file in SourceTree.sources + SourceTree.tests {
      for (number, line) in file.lines.enumerated()
      where line.utf8.count > Self.longestLine && line.count > Self.longestLine {
        findings.append(Finding(path: file.path, line: number + 1, what: "\(line.count) columns"))
      }
    }
    expectNone(findings)
  }

  @Test func functionsAreShort() throws {
    let findings = try SourceTree.sources.filter { $0.ending == "swift" }.flatMap(longFunctions)
    expectNone(findings, allowing: Exceptions.longFunctions)
  }

  @Test func aLongFunctionIsFound() throws {
    let body = String(repeating: "    work()\n", count: Self.longestFunction)
    let text = """
      protocol Shape {
        func area() -> Int
        init(name: String)
      }
      struct Square: Shape {
        func area() -> Int { side * side }
        func draw<T>(on canvas: T, with options: [String: Int] = [:])
          throws(DrawingError) -> [Int] where T: Canvas {
      \(body)  }
      }
      """
    let file = SourceFile(path: "Sources/Wire/A.swift", text: text)
    #expect(try longFunctions(in: file).map(\.line) == [7])
  }

  @Test func namesSayWhatThingsAre() throws {
    let vague = try Pattern(
      #"\b(?:class|struct|enum|actor|protocol)\s+\w*(?:Manager|Helper|Utils?|Utility)\b"#,
      "a name that says nothing")
    expectNone(SourceTree.sources.flatMap { vague.findings(in: $0) })
  }

  @Test func typesThatCrossModulesAreDocumented() throws {
    let type = try Pattern(
      #"^[ \t]*(?:public|package)[ \t]+(?:final[ \t]+|indirect[ \t]+)*"#
        // A machine's inputs and outputs are documented by its protocol.
        + #"(?:class|struct|enum|protocol|actor)[ \t]+(?!Input\b|Output\b)\w+"#,
      "no summary")
    var findings: [Finding] = []
    for file in SourceTree.sources where file.ending == "swift" {
      for finding in type.findings(in: file) where !isDocumented(finding.line, in: file.lines) {
        findings.append(finding)
      }
    }
    expectNone(findings)
  }

  /// Returns whether a documentation comment precedes a line, with only attributes between.
  private func isDocumented(_ line: Int, in lines: [Substring]) -> Bool {
    for above in lines[..<(line - 1)].reversed() {
      let text = above.drop { $0 == " " }
      if !text.hasPrefix("@") { return text.hasPrefix("///") }
    }
    return false
  }

  /// Returns functions and initialisers with too many lines, from the name to the last brace.
  private func longFunctions(in file: SourceFile) throws -> [Finding] {
    let start = try Pattern(#"\b(?:func\s+[^\s(<]+|init[?!]?)\s*(?=[(<])"#, "a function")
    let code = Array(file.code.utf8)
    var offsets = [0]
    for (index, byte) in code.enumerated() where byte == UInt8(ascii: "\n") {
      offsets.append(index + 1)
    }
    return start.matches(in: file.code).compactMap { match in
      let beginning = offsets[match.line - 1]
      guard let end = lastLine(of: code, from: beginning, on: match.line) else { return nil }
      let lines = end - match.line + 1
      guard lines > Self.longestFunction else { return nil }
      return Finding(path: file.path, line: match.line, what: "\(lines) lines in a function")
    }
  }

  /// Returns the line where a body ends, searching after an offset on a line.
  ///
  /// - Returns: nil for a requirement, which has no body.
  private func lastLine(of code: [UInt8], from start: Int, on first: Int) -> Int? {
    var line = first
    var parentheses = 0
    var braces = 0
    var hasParameters = false
    for index in start..<code.count {
      switch code[index] {
      case UInt8(ascii: "("), UInt8(ascii: "["): parentheses += 1
      case UInt8(ascii: ")"), UInt8(ascii: "]"):
        parentheses -= 1
        hasParameters = true
      case UInt8(ascii: "{"): braces += 1
      case UInt8(ascii: "}"):
        braces -= 1
        if braces < 0 { return nil }
        if braces == 0, parentheses == 0, hasParameters { return line }
      case UInt8(ascii: "\n"):
        line += 1
        guard braces == 0, parentheses == 0, hasParameters else { break }
        let rest = code[(index + 1)...].drop { $0 == UInt8(ascii: " ") }
        if Self.declarations.contains(where: { rest.starts(with: $0.utf8) }) { return nil }
      default: break
      }
    }
    return nil
  }

  /// The possible starts of a declaration that follows a requirement without a body.
  private static let declarations = [
    "func ", "init", "var ", "let ", "static ", "mutating ", "package ", "public ", "@", "case ",
    "associatedtype ", "subscript", "typealias ", "struct ", "enum ",
  ]
}
