import Foundation
import Testing

/// The tables in SourceLayout.md name types and files: each exists and cites its RFC.
struct SourceLayoutTests {
  private static let article = SourceTree.file(
    "Sources/Products/Retake/Retake.docc/SourceLayout.md")

  /// The files that declare or extend each type.
  private static let declarations: [String: [SourceFile]] = {
    guard
      let declaration = try? Pattern(
        #"\b(?:struct|class|enum|actor|protocol|typealias|extension)\s+(?:\w+\.)*(\w+)"#, "type")
    else { return [:] }
    var files: [String: [SourceFile]] = [:]
    for file in SourceTree.sources + SourceTree.tests where file.ending == "swift" {
      for match in declaration.matches(in: file.code) {
        files[match.groups[1], default: []] += [file]
      }
    }
    return files
  }()

  /// Every file and folder, with all suffixes of its path: `ICE/Checks`, `Checks/Consent.swift`.
  private static let places: Set<String> = {
    var places: Set<String> = []
    for top in ["Sources", "Tests", "Schema"] {
      let walk = FileManager.default.enumerator(
        atPath: SourceTree.root.appendingPathComponent(top).path)
      while let path = walk?.nextObject() as? String {
        let parts = (top + "/" + path).split(separator: "/")
        for start in parts.indices { places.insert(parts[start...].joined(separator: "/")) }
      }
    }
    return places.union(["Sources", "Tests", "Schema"])
  }()

  @Test func everyTypeAndFileOfTheTablesExists() throws {
    let quoted = try Pattern(#"(?<!`)`([\w/+.]+)`(?!`)"#, "name")
    let type = try Pattern(#"^[A-Z]\w+$"#, "type")
    var missing: [String] = []
    for name in quoted.matches(in: Self.article.text).map({ $0.groups[1] }) {
      let isFile = name.contains("/") || name.hasSuffix(".swift")
      guard isFile || !type.matches(in: name).isEmpty else { continue }
      let path = name.hasSuffix("/") ? String(name.dropLast()) : name
      let isThere =
        Self.places.contains(path) || Self.places.contains(path + ".swift")
        || Self.declarations[name] != nil
      if !isThere { missing.append(name) }
    }
    #expect(missing == [])
  }

  /// The tables of rules name an owner's file, unless it is called like one of the row's types.
  @Test func theFileOfEachOwnerIsKnown() throws {
    let type = try Pattern(#"`([A-Z]\w+)"#, "type")
    let file = try Pattern(#"`(?:[\w/]+/)?([\w+]+\.swift)`"#, "file")
    let rows = Self.article.lines.drop { !$0.hasPrefix("## Takes and replay") }
    var unknown: [String] = []
    for row in rows where row.hasPrefix("| ") {
      guard let owners = row.split(separator: "|").dropFirst().first.map(String.init) else {
        continue
      }
      let named = Set(file.matches(in: owners).map { $0.groups[1] })
      let names = type.matches(in: owners).map { $0.groups[1] }
      // Targets, such as `Peer`, are folders.
      for name in names where !Self.places.contains(name) {
        guard let files = Self.declarations[name] else { continue }
        let isKnown = files.contains { file in
          let own = URL(filePath: file.path).lastPathComponent
          return named.contains(own)
            || names.contains { own == $0 + ".swift" || own.hasPrefix($0 + "+") }
        }
        if !isKnown { unknown.append(name) }
      }
    }
    #expect(unknown == [])
  }

  @Test func theOwnerOfARuleNamesItsRFC() throws {
    let number = try Pattern(#"RFC\s+(\d+)"#, "RFC")
    let name = try Pattern(#"`(\w+)`"#, "name")
    for row in Self.article.lines where row.hasPrefix("| ") {
      let cells = row.split(separator: "|", maxSplits: 1)
      guard cells.count == 2 else { continue }
      let wanted = Set(number.matches(in: String(cells[0])).map { $0.groups[1] })
      let owners = name.matches(in: String(cells[1])).flatMap {
        Self.declarations[$0.groups[1]] ?? []
      }
      guard !owners.isEmpty else { continue }
      // Finds names also where a line ends between the word and the number.
      let named = Set(
        owners.flatMap { file in
          number.matches(
            in: file.text.replacing("\n/// ", with: " ").replacing("\n  /// ", with: " ")
          )
          .map { $0.groups[1] }
        })
      #expect(wanted.subtracting(named).sorted() == [], "\(row)")
    }
  }
}
