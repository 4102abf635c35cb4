import Testing

struct SchemaTests {
  @Test func everyColumnIsExplained() throws {
    let findings = try SourceTree.schema.flatMap(unexplainedColumns)
    expectNone(findings)
  }

  @Test func anUnexplainedColumnIsFound() throws {
    let file = SourceFile(
      path: "Schema/0001.sql",
      text: """
        -- In every table `at_ns` is in nanoseconds.
        CREATE TABLE stream (
          row   INTEGER PRIMARY KEY,  -- its place
          at_ns INTEGER NOT NULL,
          ssrc  INTEGER NOT NULL,     -- its identifier (RFC 3550)
          -- What it carries.
          kind  TEXT NOT NULL CHECK (kind IN ('audio', 'video')),
          color TEXT,
          PRIMARY KEY (row, ssrc)
        );
        CREATE TABLE other (
          ssrc  INTEGER NOT NULL,
          shape TEXT
        );
        """)
    #expect(try unexplainedColumns(in: file).map(\.line) == [8, 13])
  }

  /// Returns columns of tables that no comment documents.
  ///
  /// A comment on a column's line or on the line above documents it; a name in backticks, or a
  /// comment on a column of the same name elsewhere in the file, documents all of them.
  private func unexplainedColumns(in file: SourceFile) throws -> [Finding] {
    var columns: [(name: String, line: Int, isExplained: Bool)] = []
    var explained = try Set(Pattern("`(\\w+)`", "").matches(in: file.text).map { $0.groups[1] })
    let view = try Pattern(#"\bAS (\w+),?[ \t]+--"#, "a column of a view")
    explained.formUnion(view.matches(in: file.text).map { $0.groups[1] })
    var isInTable = false
    var lineAbove: Substring = ""
    for (index, line) in file.lines.enumerated() {
      let text = line.drop { $0 == " " }
      if line.hasPrefix("CREATE TABLE") {
        isInTable = true
      } else if line.hasPrefix(")") {
        isInTable = false
      } else if isInTable, let name = columnName(text) {
        let isExplained = line.contains("--") || lineAbove.hasPrefix("--")
        columns.append((name, index + 1, isExplained))
        if isExplained { explained.insert(name) }
      }
      lineAbove = text
    }
    return columns.filter { !$0.isExplained && !explained.contains($0.name) }.map {
      Finding(path: file.path, line: $0.line, what: "nothing explains the column \($0.name)")
    }
  }

  /// Returns the column that a table's line declares; nil for comments and for constraints.
  private func columnName(_ line: Substring) -> String? {
    let word = line.prefix { $0.isLetter || $0.isNumber || $0 == "_" }
    let constraints = ["PRIMARY", "FOREIGN", "UNIQUE", "CHECK", "CONSTRAINT"]
    return word.isEmpty || constraints.contains(String(word)) ? nil : String(word)
  }
}
