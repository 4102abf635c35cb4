import CFiles
import CZlib
import Crypto
import Dispatch
import FoundationEssentials
import Synchronization
package import Tape

/// A take as a self-contained web page: the output of `retake page`.
///
/// It contains states, paths, speakers and curves on one clock; findings; all events with the text
/// of each signaling message; and media up to a limit. It contains no keys, but its descriptions
/// have addresses and ICE passwords: it is as private as the take.
package struct TakePage: Sendable {
  /// The parts of the take that a page includes.
  package struct Options: Sendable {
    /// Whether to include the text of signaling messages.
    package var keepsMessages = true
    /// Whether to include IP addresses; otherwise consistent names replace them.
    package var keepsAddresses = true
    /// Whether to include audio and video, up to `mediaMaximum`.
    package var keepsMedia = true

    package init() {}
  }

  /// The media limit in bytes: larger files are hard to send to others, and `retake open` plays
  /// larger media.
  package static let mediaMaximum = 24_000_000

  package private(set) var html = ""
  /// The number of media bytes omitted because of `mediaMaximum`.
  package private(set) var omittedMediaBytes = 0

  /// Reads everything that a page draws.
  ///
  /// - Parameter tell: called with the name of each part before work on it begins.
  package init(
    path: String, options: Options = Options(),
    tell: @escaping @Sendable (String) -> Void = { _ in }
  ) throws(TapeError) {
    // Findings take as long as the rest, so they are computed in parallel on another connection.
    let examined = Aside { () throws(TapeError) in try PageContent.examine(path: path) }
    var content = PageContent(path: path)
    let reading = try content.read(keepsMessages: options.keepsMessages, tell: tell)
    tell("findings")
    let media = try media(path, isWanted: options.keepsMedia, tell: tell)
    let examination = try examined.value()
    var data = reading.object(
      with: examination.members + [
        ("form", "\"file\""), ("media", "[" + media.map(\.facts).joined(separator: ",") + "]"),
      ])
    var (title, summary) = (reading.title, examination.text)
    if !options.keepsAddresses {
      var cover = AddressCover()
      data = cover.covered(data)
      title = cover.covered(title)
      summary = cover.covered(summary)
    }
    tell("the page")
    let columns = Deflate.compressed(reading.columns) ?? []
    html = PageDocument.html(
      title: title, summary: summary, data: data, series: Data(columns).base64EncodedString(),
      media: media.map { Data($0.bytes).base64EncodedString() }, isServed: false)
  }

  private mutating func media(_ path: String, isWanted: Bool, tell: (String) -> Void)
    throws(TapeError) -> [PageMedia]
  {
    guard isWanted else { return [] }
    tell("media")
    let connection = try TakeFile.openForQueries(path, largestValue: TakeFile.largestOnPage)
    do throws(SQLiteError) {
      let bytes = try PageMedia.byteCount(connection)
      guard bytes <= Self.mediaMaximum else {
        omittedMediaBytes = bytes
        return []
      }
      var found: [PageMedia] = []
      for place in try PageMedia.places(connection) {
        if let media = try PageMedia(place, connection) { found.append(media) }
      }
      return found
    } catch {
      throw TapeError(path: path, error)
    }
  }
}

// MARK: - PageDocument

/// The page without a take: markup, style and script; the content policy allows only these.
enum PageDocument {
  /// All modules joined into one script.
  static let script = PageScript.page.text

  private static let style = String(cString: cfiles_page_css())

  /// Returns the page's Content Security Policy (level 3): its own script and style, embedded
  /// images and media, and requests to its own server if it has one.
  static func policy(isServed: Bool) -> String {
    """
    default-src 'none'; script-src '\(hash(script))'; style-src '\(hash(style))'; \
    img-src data: blob:; media-src blob:; connect-src \(isServed ? "'self'" : "'none'"); \
    base-uri 'none'; form-action 'none'
    """
  }

  private static func hash(_ text: String) -> String {
    "sha256-" + Data(SHA256.hash(Array(text.utf8))).base64EncodedString()
  }

  /// Returns the complete page.
  ///
  /// - Parameters:
  ///   - summary: a description of the call, shown if the browser does not run scripts; empty if
  ///     there is none.
  ///   - data: JSON with arbitrary strings.
  ///   - series: the compressed columns in base64.
  ///   - media: files in base64.
  static func html(
    title: String, summary: String = "", data: String, series: String, media: [String] = [],
    isServed: Bool
  ) -> String {
    let values = [
      "title": escaped(title), "policy": policy(isServed: isServed), "style": style,
      "summary": summary.isEmpty ? "" : "<pre>\n\(escaped(summary))</pre>\n",
      "script": script, "data": inert(data), "series": series,
      "media": media.enumerated().map { index, file in
        "<script type=\"text/plain\" id=\"media-\(index)\">\(file)</script>\n"
      }.joined(),
    ]
    // The template is split once, so that no value is mistaken for a placeholder.
    var html = ""
    for (index, piece) in String(cString: cfiles_page_html())
      .split(separator: "{{", omittingEmptySubsequences: false).enumerated()
    {
      guard index > 0, let end = piece.firstRange(of: "}}") else {
        html += piece
        continue
      }
      html += values[String(piece[..<end.lowerBound])] ?? ""
      html += piece[end.upperBound...]
    }
    return html
  }

  /// Escapes JSON so that it cannot end the element that contains it.
  private static func inert(_ json: String) -> String {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(json.utf8.count + 1024)
    for byte in json.utf8 {
      if byte == UInt8(ascii: "<") {
        bytes += #"\u003c"#.utf8
      } else {
        bytes.append(byte)
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  private static func escaped(_ text: String) -> String {
    text.replacing("&", with: "&amp;").replacing("<", with: "&lt;")
  }
}

/// The page that `retake open` serves, which requests everything from its server.
package enum ServedPage {
  package static let html = PageDocument.html(
    title: "Retake", data: "{\"form\":\"served\"}", series: "", isServed: true)

  /// The content policy, which is also sent as a header.
  package static let policy = PageDocument.policy(isServed: true)
}

/// Work on another thread, whose result can be waited for.
final class Aside<Value: Sendable>: Sendable {
  private let work: @Sendable () throws(TapeError) -> Value
  private let group = DispatchGroup()
  private let result = Mutex<Result<Value, TapeError>?>(nil)

  init(_ work: @escaping @Sendable () throws(TapeError) -> Value) {
    self.work = work
    // A dedicated queue gets a thread even if the pool is exhausted.
    DispatchQueue(label: "aside").async(group: group) { [self] in
      let result = Result { () throws(TapeError) in try work() }
      self.result.withLock { $0 = result }
    }
  }

  /// Waits for the result and returns it.
  func value() throws(TapeError) -> Value {
    group.wait()
    guard let result = result.withLock({ $0 }) else { return try work() }
    return try result.get()
  }
}

/// Compression that every browser supports (RFC 1951).
package enum Deflate {
  /// Compresses to a raw stream; returns nil if memory runs out, or for 4 GiB and more.
  package static func compressed(_ bytes: [UInt8]) -> [UInt8]? {
    var stream = z_stream()
    // -15 is the largest window without a zlib header, and 8 the default memory level.
    guard
      deflateInit2_(
        &stream, 6, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY, ZLIB_VERSION,
        Int32(MemoryLayout<z_stream>.size)) == Z_OK
    else { return nil }
    defer { deflateEnd(&stream) }
    guard let length = UInt32(exactly: bytes.count) else { return nil }
    let room = Int(deflateBound(&stream, UInt(length)))
    var isWhole = false
    var input = bytes
    let output = [UInt8](unsafeUninitializedCapacity: room) { buffer, count in
      input.withUnsafeMutableBufferPointer { input in
        stream.next_in = input.baseAddress
        stream.avail_in = length
        stream.next_out = buffer.baseAddress
        stream.avail_out = UInt32(clamping: room)
        isWhole = deflate(&stream, Z_FINISH) == Z_STREAM_END
        count = buffer.count - Int(stream.avail_out)
      }
    }
    return isWhole ? output : nil
  }
}

// MARK: - PageScript

/// Joins ES modules into one script, which can be loaded without a server.
///
/// Each module becomes a function that is called once and returns the module's exports, so it keeps
/// its own scope. Imports become constants, so they do not follow later changes of an export.
/// Modules may only import names from relative paths, may export functions, classes and constants
/// only where they declare them, and must not import each other in a cycle. Comment lines are
/// omitted.
package struct PageScript: Sendable {
  /// The modules' source text by path, such as `board/strip.js`.
  private let texts: [String: String]
  /// The index of each module added so far.
  private var numbers: [String: Int] = [:]
  private var isUnderWay: Set<String> = []
  package private(set) var text = ""
  /// Errors in modules; a test checks that there are none.
  package private(set) var problems: [String] = []

  /// Joins a module with its imports, in dependency order.
  package init(of entry: String, in texts: [String: String]) {
    self.texts = texts
    add(entry)
  }

  static let page = PageScript(of: "main.js", in: modules)

  /// The page's modules by path.
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
      // If a comment ends in the middle of a line, code follows it on that line.
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

  /// Converts an import to a constant: `import { a, b as c } from "../x.js";`.
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

  /// Returns the name after `function`, `const` or `class`; nil for a variable, because its changes
  /// would be lost.
  private static func name(declaredBy declaration: Substring) -> String? {
    let words = declaration.split { !($0.isLetter || $0.isNumber || $0 == "_" || $0 == "$") }
    let place = words.first == "async" ? 1 : 0
    guard words.count > place + 1, ["function", "const", "class"].contains(words[place]) else {
      return nil
    }
    let name = String(words[place + 1])
    // A destructuring pattern is not a single name.
    return declaration.contains("\(words[place])* \(name)")
      || declaration.contains("\(words[place]) \(name)") ? name : nil
  }

  /// Resolves a relative path from a module.
  private static func path(_ relative: String, from module: String) -> String {
    var folders = module.split(separator: "/").dropLast()
    for part in relative.split(separator: "/") where part != "." {
      if part == ".." { folders = folders.dropLast() } else { folders.append(part) }
    }
    return folders.joined(separator: "/")
  }
}
