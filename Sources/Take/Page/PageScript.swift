import CFiles

/// ES modules joined into one script, which needs no server to be loaded from.
///
/// Each module stays a scope of its own: a function that is called once and returns what the module
/// exports; its imports become constants. Modules keep to forms that are simple to join: imports of
/// names from relative paths, and exports where a function, a class or a constant is declared.
/// Constants do not follow an export that changes, and no module imports one that imports it.
/// Lines of comments alone are left out: whoever reads them reads the modules.
struct PageScript {
  /// The texts of modules by their paths, such as `board/strip.js`.
  private let texts: [String: String]
  /// The number of each module that stands in the script already.
  private var numbers: [String: Int] = [:]
  private var isUnderWay: Set<String> = []
  private(set) var text = ""
  /// What cannot be joined: a person who changes modules reads it in a test.
  private(set) var problems: [String] = []

  /// Joins a module with all that it imports, in the order in which they need each other.
  init(of entry: String, in texts: [String: String]) {
    self.texts = texts
    add(entry)
  }

  /// The script of the page.
  static let page = PageScript(of: "main.js", in: modules)

  /// All modules of the page.
  static let modules: [String: String] = {
    var found: [String: String] = [:]
    var index: UInt32 = 0
    while let name = cfiles_page_module_name(index), let text = cfiles_page_module(index) {
      found[String(cString: name)] = String(cString: text)
      index += 1
    }
    return found
  }()

  private mutating func add(_ path: String) {
    guard numbers[path] == nil else { return }
    guard let source = texts[path] else { return problems.append("there is no module \(path)") }
    guard isUnderWay.insert(path).inserted else {
      return problems.append("\(path) imports what imports it")
    }
    var body = ""
    var exports: [String] = []
    var statement = ""
    var isComment = false
    for line in source.split(separator: "\n", omittingEmptySubsequences: false) {
      let words = line.drop { $0 == " " }
      // What a comment in the middle of a line is about stands behind it.
      let isWhole = !line.contains("*/") || line.hasSuffix("*/")
      isComment = isComment || (words.hasPrefix("/*") && isWhole)
      if isComment || words.hasPrefix("//") || words.isEmpty {
        if line.hasSuffix("*/") { isComment = false }
      } else if !statement.isEmpty || line.hasPrefix("import ") {
        statement += line
        guard line.hasSuffix(";") else { continue }
        body += imported(by: statement, in: path)
        statement = ""
      } else if line.hasPrefix("export ") {
        let declaration = line.dropFirst("export ".count)
        if let name = Self.name(declaredBy: declaration) {
          exports.append(name)
        } else {
          problems.append("\(path) exports in another form: \(line)")
        }
        body += declaration + "\n"
      } else {
        body += line + "\n"
      }
    }
    let number = numbers.count
    numbers[path] = number
    let result = exports.isEmpty ? "" : "return { \(exports.joined(separator: ", ")) };\n"
    text += "const module\(number) = (() => {\n\(body)\(result)})();\n"
  }

  /// An import as a constant: `import { a, b as c } from "../x.js";`.
  private mutating func imported(by statement: String, in path: String) -> String {
    let parts = statement.split(separator: "\"", omittingEmptySubsequences: false)
    guard parts.count == 3, let begin = parts[0].firstIndex(of: "{"),
      let end = parts[0].lastIndex(of: "}")
    else {
      problems.append("\(path) imports in another form: \(statement)")
      return ""
    }
    let target = Self.path(String(parts[1]), from: path)
    add(target)
    guard let number = numbers[target] else { return "" }
    let names = parts[0][begin...end].split(separator: " as ").joined(separator: ": ")
    return "const \(names) = module\(number);\n"
  }

  /// The name after `function`, `const` or `class`; nil for a variable: its changes would be lost.
  private static func name(declaredBy declaration: Substring) -> String? {
    let words = declaration.split { !($0.isLetter || $0.isNumber || $0 == "_" || $0 == "$") }
    let place = words.first == "async" ? 1 : 0
    guard words.count > place + 1, ["function", "const", "class"].contains(words[place]) else {
      return nil
    }
    let name = String(words[place + 1])
    // A list of names in brackets is not one name.
    return declaration.contains("\(words[place])* \(name)")
      || declaration.contains("\(words[place]) \(name)") ? name : nil
  }

  /// A path as it is seen from a module.
  private static func path(_ relative: String, from module: String) -> String {
    var folders = module.split(separator: "/").dropLast()
    for part in relative.split(separator: "/") where part != "." {
      if part == ".." { folders = folders.dropLast() } else { folders.append(part) }
    }
    return folders.joined(separator: "/")
  }
}
