import Foundation

/// A file of the project as the rules see it.
struct SourceFile: Sendable {
  /// The path below the root, with slashes.
  let path: String
  /// What the file holds.
  let text: String
  /// The text without comments and without what strings say; lines stay where they are.
  let code: String

  /// - Parameter isRead: whether the code is told apart, which takes a while.
  init(path: String, text: String, isRead: Bool = true) {
    self.path = path
    self.text = text
    code = isRead && path.hasSuffix(".swift") ? SwiftText.code(of: text) : text
  }

  /// The lines without their ends.
  var lines: [Substring] { text.split(separator: "\n", omittingEmptySubsequences: false) }

  /// The target that the file belongs to.
  ///
  /// Its folder below `Tests`, or below one of the folders of `Sources` that group targets. `Lab`
  /// and `Observer` are targets, and groups of one.
  var target: String {
    let parts = path.split(separator: "/").map(String.init)
    guard parts.count > 2 else { return "" }
    let isAlone = parts[0] != "Sources" || ["Lab", "Observer"].contains(parts[1])
    return isAlone || parts.count < 4 ? parts[1] : parts[2]
  }

  /// The name after the last dot.
  var ending: Substring { path.split(separator: ".").last ?? "" }
}

/// The project's own files, read once.
enum SourceTree {
  /// The folder with `Package.swift`, found upwards from this file.
  static let root: URL = {
    var folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    while folder.path != "/" {
      let manifest = folder.appendingPathComponent("Package.swift").path
      if FileManager.default.fileExists(atPath: manifest) { return folder }
      folder.deleteLastPathComponent()
    }
    return folder
  }()

  /// The sources of the product.
  static let sources = files(below: "Sources", ending: ["swift", "c", "h"])

  /// The sources of the tests.
  static let tests = files(below: "Tests", ending: ["swift", "py", "js"])

  /// The package manifest.
  static let manifest = file("Package.swift")

  /// The migrations.
  static let schema = files(below: "Schema", ending: ["sql"])

  /// The Swift files of one target.
  static func swift(of target: String) -> [SourceFile] {
    sources.filter { $0.target == target && $0.ending == "swift" }
  }

  /// A file by its path, empty when it is not there.
  static func file(_ path: String, isRead: Bool = true) -> SourceFile {
    let data = FileManager.default.contents(atPath: root.appendingPathComponent(path).path)
    return SourceFile(
      path: path, text: String(decoding: data ?? Data(), as: UTF8.self), isRead: isRead)
  }

  /// All files below a folder with one of some endings, in the order of their paths.
  private static func files(below folder: String, ending: Set<String>) -> [SourceFile] {
    let walk = FileManager.default.enumerator(atPath: root.appendingPathComponent(folder).path)
    var paths: [String] = []
    while let path = walk?.nextObject() as? String {
      let isHidden = path.split(separator: "/").contains { $0.hasPrefix(".") }
      if !isHidden, ending.contains((path as NSString).pathExtension) { paths.append(path) }
    }
    return paths.sorted().map { file(folder + "/" + $0) }
  }
}
