import Testing

struct LayerTests {
  private let declared: [(name: String, needs: [String])]

  init() throws {
    declared = try Layers.declared(in: SourceTree.manifest)
  }

  @Test func everyTargetHasItsPlace() {
    let folders = Set(SourceTree.sources.map(\.target))
    let names = Set(declared.map(\.name))
    #expect(folders.subtracting(names).sorted() == [], "sources that are no target")
    #expect(names.subtracting(Layers.order).sorted() == [], "targets without a place in the order")
  }

  @Test func noTargetIsDeclaredTwice() {
    let names = declared.map(\.name).sorted()
    #expect(zip(names, names.dropFirst()).filter { $0 == $1 }.map(\.0) == [])
  }

  @Test func targetsStandOnlyOnLowerOnes() {
    for (name, needs) in declared {
      let below = Layers.order.prefix { $0 != name }
      #expect(needs.filter { !below.contains($0) } == [], "\(name) stands on what is above it")
    }
  }

  @Test func filesImportOnlyWhatTheirTargetDeclares() throws {
    let needs = Dictionary(declared.map { ($0.name, $0.needs) }, uniquingKeysWith: +)
    var findings: [Finding] = []
    for file in SourceTree.sources where file.ending == "swift" {
      for (line, module) in try imports(of: file)
      where Layers.order.contains(module) && !(needs[file.target] ?? []).contains(module) {
        findings.append(Finding(path: file.path, line: line, what: "imports \(module)"))
      }
    }
    expectNone(findings)
  }

  @Test func theCoreImportsNothingFromOutside() throws {
    var findings: [Finding] = []
    for target in Layers.core {
      for file in SourceTree.swift(of: target) {
        for (line, module) in try imports(of: file) where !Layers.order.contains(module) {
          findings.append(Finding(path: file.path, line: line, what: "imports \(module)"))
        }
      }
    }
    expectNone(findings, allowing: Exceptions.outsideImports)
  }

  @Test func importsAreSeenInEveryForm() throws {
    let file = SourceFile(
      path: "Sources/Wire/A.swift",
      text: """
        // import Glibc
        import Foundation
        package import RTP
        @_exported public import struct Wire.Instant
        #if canImport(Musl)
          @preconcurrency import Musl
        #endif
        """)
    #expect(try imports(of: file).map(\.module) == ["Foundation", "RTP", "Wire", "Musl"])
    #expect(try imports(of: file).map(\.line) == [2, 3, 4, 6])
  }

  private func imports(of file: SourceFile) throws -> [(line: Int, module: String)] {
    let statement = try Pattern(
      #"^[ \t]*(?:@\w+(?:\([^)]*\))?[ \t]+)*"#
        + #"(?:(?:public|package|internal|fileprivate|private)[ \t]+)?"#
        + #"import[ \t]+(?:(?:struct|class|enum|protocol|func|var|let|typealias)[ \t]+)?(\w+)"#,
      "import")
    return statement.matches(in: file.code).map { ($0.line, $0.groups[1]) }
  }
}
