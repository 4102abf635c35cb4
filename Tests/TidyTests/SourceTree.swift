import Foundation

/// A file of the project, as the rules read it.
struct SourceFile: Sendable {
  /// The path below the root, with slashes.
  let path: String
  /// The file's content.
  let text: String
  /// The text without comments and string contents; line numbers are unchanged.
  let code: String

  /// - Parameter isRead: whether to extract the code, which takes a while.
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
  /// and `Observer` are targets as well as groups.
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
  /// The folder with `Package.swift`, searched upwards from this file.
  static let root: URL = {
    var folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    while folder.path != "/" {
      let manifest = folder.appendingPathComponent("Package.swift").path
      if FileManager.default.fileExists(atPath: manifest) { return folder }
      folder.deleteLastPathComponent()
    }
    return folder
  }()

  /// The product's sources.
  static let sources = files(below: "Sources", ending: ["swift", "c", "h"])

  static let tests = files(below: "Tests", ending: ["swift", "py", "js"])

  static let manifest = file("Package.swift")

  /// The migrations.
  static let schema = files(below: "Schema", ending: ["sql"])

  static func swift(of target: String) -> [SourceFile] {
    sources.filter { $0.target == target && $0.ending == "swift" }
  }

  /// Returns a file by its path, empty if it is missing.
  static func file(_ path: String, isRead: Bool = true) -> SourceFile {
    let data = FileManager.default.contents(atPath: root.appendingPathComponent(path).path)
    return SourceFile(
      path: path, text: String(decoding: data ?? Data(), as: UTF8.self), isRead: isRead)
  }

  /// Returns all files below a folder with some endings, sorted by path.
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
