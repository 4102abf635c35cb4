import Foundation
import Testing

/// Tests the README, and the articles in the documentation catalogue of the umbrella module.
struct DocumentationTests {
  private static let catalogue = "Sources/Products/Retake/Retake.docc"

  private static func names(in folder: String) -> [String] {
    let url = SourceTree.root.appendingPathComponent(folder)
    return ((try? FileManager.default.contentsOfDirectory(atPath: url.path)) ?? []).sorted()
  }

  private static let articles = names(in: catalogue).filter { $0.hasSuffix(".md") }
    .map { SourceTree.file("\(catalogue)/\($0)") }
  private static let readme = SourceTree.file("README.md")

  @Test func theReadmeIsShortAndSaysFirstWhatItIs() throws {
    #expect(Self.readme.lines.count <= 201, "at most 200 lines and the end of the last one")
    let text = Self.readme.text.replacingOccurrences(of: "\n", with: " ")
    let sentences = text.components(separatedBy: ". ").prefix(3).joined(separator: ". ")
    #expect(sentences.contains("one end of the call") && sentences.contains("on the wire"))
  }

  @Test func theReadmesLinksLeadToFiles() throws {
    let link = try Pattern(#"\]\(([^)#]+)\)"#, "link")
    let targets = link.matches(in: Self.readme.text).map { $0.groups[1] }
    #expect(targets.count > 10)
    for target in targets where !target.hasPrefix("https://") {
      let path = SourceTree.root.appendingPathComponent(target).path
      #expect(FileManager.default.fileExists(atPath: path), "\(target)")
    }
    for article in Self.articles where !article.path.hasSuffix("/Retake.md") {
      #expect(targets.contains(article.path), "the README does not lead to \(article.path)")
    }
  }

  @Test(arguments: ["CONTRIBUTING.md", "Tests/README.md", "Captures/README.md"])
  func theGuidesLinksLeadToFiles(_ path: String) throws {
    let link = try Pattern(#"\]\(([^)#:]+)\)"#, "link")
    let folder = SourceTree.root.appendingPathComponent(path).deletingLastPathComponent()
    for target in link.matches(in: SourceTree.file(path).text).map({ $0.groups[1] }) {
      let file = folder.appendingPathComponent(target).standardizedFileURL.path
      #expect(FileManager.default.fileExists(atPath: file), "\(path): \(target)")
    }
  }

  @Test func everyFolderOfTestsIsNamedAfterItsModuleOrDescribed() throws {
    let guide = SourceTree.file("Tests/README.md").text
    let modules = Set(SourceTree.sources.map(\.target))
    for folder in Self.names(in: "Tests") where folder != "README.md" {
      let module = folder.hasSuffix("Tests") ? String(folder.dropLast(5)) : folder
      #expect(modules.contains(module) || guide.contains("`\(folder)`"), "\(folder)")
    }
  }

  @Test func videoFramesAreSmall() throws {
    let folder = Self.catalogue + "/Resources"
    let names = Self.names(in: folder)
    #expect(!names.isEmpty)
    for name in names {
      let path = SourceTree.root.appendingPathComponent("\(folder)/\(name)").path
      let size = try FileManager.default.attributesOfItem(atPath: path)[.size] as? Int
      #expect((size ?? .max) < 200_000, "\(name)")
    }
  }

  // MARK: Code

  /// The compiled files whose code the articles show.
  private static let compiled =
    SourceTree.tests.filter {
      $0.path.hasPrefix("Tests/RetakeTestingTests/Articles/")
        || $0.path == "Tests/Sample/Package.swift"
    }.map { $0.lines.map(String.init) }

  /// Returns the Swift code blocks in a document, without fences.
  private static func blocks(in text: String) -> [[String]] {
    var blocks: [[String]] = []
    var open: [String]?
    for line in text.components(separatedBy: "\n") {
      if line == "```swift" {
        open = []
      } else if line == "```" {
        if let block = open { blocks.append(block) }
        open = nil
      } else {
        open?.append(line)
      }
    }
    return blocks
  }

  /// Returns whether a file contains the lines consecutively, all indented equally.
  private static func stands(_ block: [String], in file: [String]) -> Bool {
    guard let first = block.first else { return false }
    return file.indices.contains { start in
      guard file[start].hasSuffix(first), start + block.count <= file.count else { return false }
      let margin = file[start].dropLast(first.count)
      guard margin.allSatisfy({ $0 == " " }) else { return false }
      return zip(file[start...], block).allSatisfy { line, wanted in
        wanted.isEmpty ? line.isEmpty : line == margin + wanted
      }
    }
  }

  @Test func theCodeOfTheArticlesIsCompiled() {
    #expect(Self.compiled.count >= 4)
    let texts = Self.articles + [Self.readme]
    let blocks = texts.flatMap { text in Self.blocks(in: text.text).map { (text.path, $0) } }
    #expect(blocks.count >= 14)
    for (path, block) in blocks {
      let isThere = Self.compiled.contains { Self.stands(block, in: $0) }
      #expect(isThere, "\(path): this code is in no file that is compiled: \(block.first ?? "")")
    }
  }

  @Test func codeThatDiffersIsFound() {
    let file = ["struct A {", "  let b = 1", "", "  let c = 2", "}"]
    #expect(Self.stands(["let b = 1", "", "let c = 2"], in: file))
    #expect(!Self.stands(["let b = 1", "", "  let c = 2"], in: file))
    #expect(!Self.stands(["let b = 1", "let c = 2"], in: file))
    #expect(!Self.stands(["let b = 1", "", "let c = 2", "}", ""], in: file))
    #expect(!Self.stands([], in: file))
  }
}
