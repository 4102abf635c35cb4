import FoundationEssentials
import SDP
import Wire

/// Finds the strings in a JSON text, with the other members of their objects.
struct JSONStringScanner {
  /// A string that is a value rather than a member's name.
  struct Found {
    /// The range of the string's bytes, including the quotes.
    var range: Range<Int>
    /// The decoded string; nil if its escapes are invalid.
    var value: String?
    /// The name of the member with this value; nil in a list.
    var name: String?
    /// The names of the members that lead to the string, as in `body.jsep.sdp`; list elements are
    /// `*`.
    var path: String
    /// Identifies the object that contains the string.
    var object: Int
    /// The string and number members of that object by name, except values of 300 bytes or more.
    var siblings: [String: String] = [:]
  }

  private struct Container {
    var isList: Bool
    var number: Int
    var path: String
    var members: [String: String] = [:]
    var found: [Int] = []
    var name: String?

    /// The path of the container's next value.
    var nextPath: String {
      let own = isList ? "*" : name ?? ""
      return path.isEmpty ? own : "\(path).\(own)"
    }
  }

  private static let depthMaximum = 64
  private static let stringsMaximum = 20_000
  private static let memberMaximum = 4096

  private let bytes: [UInt8]
  private var index = 0
  private var containers = 0
  private var found: [Found] = []
  private var stack: [Container] = []

  init(_ text: String) { bytes = Array(text.utf8) }

  /// Returns all strings in order; nil if the text is not JSON or exceeds the limits.
  ///
  /// Several consecutive values, as in a stream, are scanned as one text.
  mutating func strings() -> [Found]? {
    while index < bytes.count {
      switch bytes[index] {
      case UInt8(ascii: "{"), UInt8(ascii: "["):
        guard open(isList: bytes[index] == UInt8(ascii: "[")) else { return nil }
      case UInt8(ascii: "}"), UInt8(ascii: "]"):
        guard let container = stack.popLast() else { return nil }
        for place in container.found { found[place].siblings = container.members }
        endValue()
        index += 1
      case UInt8(ascii: "\""): guard readString() else { return nil }
      case UInt8(ascii: ","):
        endValue()
        index += 1
      case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): readNumber()
      default: index += 1
      }
    }
    return stack.isEmpty ? found : nil
  }

  private mutating func open(isList: Bool) -> Bool {
    guard stack.count < JSONStringScanner.depthMaximum else { return false }
    containers += 1
    stack.append(
      Container(isList: isList, number: containers, path: stack.last?.nextPath ?? ""))
    index += 1
    return true
  }

  private mutating func endValue() {
    if !stack.isEmpty { stack[stack.count - 1].name = nil }
  }

  private mutating func readString() -> Bool {
    guard let string = string() else { return false }
    guard let last = stack.indices.last else { return true }
    if !stack[last].isList, stack[last].name == nil, isName() {
      stack[last].name = string.value ?? ""
      return true
    }
    guard found.count < JSONStringScanner.stringsMaximum else { return false }
    found.append(
      Found(
        range: string.range, value: string.value, name: stack[last].name,
        path: stack[last].nextPath, object: stack[last].number))
    guard !stack[last].isList else { return true }
    stack[last].found.append(found.count - 1)
    if let name = stack[last].name, let value = string.value { store(value, as: name, in: last) }
    return true
  }

  private mutating func readNumber() {
    let start = index
    while index < bytes.count, isOfNumber(bytes[index]) { index += 1 }
    guard let last = stack.indices.last, let name = stack[last].name else { return }
    store(String(decoding: bytes[start..<index], as: UTF8.self), as: name, in: last)
  }

  private mutating func store(_ value: String, as name: String, in place: Int) {
    guard value.utf8.count < 300,
      stack[place].members.count < JSONStringScanner.memberMaximum
    else { return }
    stack[place].members[name] = value
  }

  private func isOfNumber(_ byte: UInt8) -> Bool {
    (0x30...0x39).contains(byte) || [0x2b, 0x2d, 0x2e, 0x45, 0x65].contains(byte)
  }

  /// Returns whether a colon follows.
  private func isName() -> Bool {
    var next = index
    while next < bytes.count, [0x20, 0x09, 0x0a, 0x0d].contains(bytes[next]) { next += 1 }
    return next < bytes.count && bytes[next] == UInt8(ascii: ":")
  }

  private mutating func string() -> (range: Range<Int>, value: String?)? {
    let start = index
    index += 1
    while index < bytes.count, bytes[index] != UInt8(ascii: "\"") {
      index += bytes[index] == UInt8(ascii: "\\") ? 2 : 1
    }
    guard index < bytes.count else { return nil }
    index += 1
    let text = String(decoding: bytes[start..<index], as: UTF8.self)
    return (start..<index, (try? JSONValue(parsing: text))?.text)
  }
}

// MARK: - SDPRules

/// The places of descriptions and candidates that are not recognised by their content.
///
///     [
///       {"description": "body.offer", "type": "kind", "encoding": "base64"},
///       {"candidate": "body.ice.*.line", "mid": "section", "index": "number"}
///     ]
///
/// A place lists the names of the members that lead to a string; `*` matches any name and any list
/// element. `type`, `mid` and `index` name other members of the string's object; `type` may also be
/// `offer` or `answer` itself.
package struct SDPRules: Hashable, Sendable {
  /// The place of a description or a candidate.
  package struct Rule: Hashable, Sendable {
    enum Kind { case description, candidate }
    enum Encoding: String { case base64, text }

    var kind: Kind
    var place: [Substring]
    var type: String?
    var mid: String?
    var index: String?
    var encoding: Encoding?
  }

  private var rules: [Rule] = []
  private static let rulesMaximum = 100
  private static let names: Set<String> = [
    "description", "candidate", "type", "mid", "index", "encoding",
  ]

  /// Creates an empty set of rules.
  package init() {}

  /// Parses rules from JSON.
  ///
  /// - Throws: `SignalingRefusal` with the reason as a sentence, without the file's name.
  package init(parsing text: String) throws(SignalingRefusal) {
    guard let json = try? JSONValue(parsing: text), case .list(let list) = json else {
      throw SignalingRefusal(
        "the rules must be a JSON list, as in [{\"description\": \"body.sdp\"}]")
    }
    guard list.count <= SDPRules.rulesMaximum else {
      throw SignalingRefusal("there are more than \(SDPRules.rulesMaximum) rules")
    }
    for (number, entry) in list.enumerated() { rules.append(try SDPRules.rule(entry, number + 1)) }
  }

  private static func rule(
    _ entry: JSONValue, _ number: Int
  ) throws(SignalingRefusal) -> Rule {
    guard case .object(let members) = entry else {
      throw SignalingRefusal("rule \(number) is not an object")
    }
    for member in members where !names.contains(member.name) || member.value.text == nil {
      throw SignalingRefusal(
        "rule \(number): \(member.name) is not one of \(names.sorted().joined(separator: ", ")) "
          + "with a text")
    }
    let (description, candidate) = (entry["description"]?.text, entry["candidate"]?.text)
    guard (description == nil) != (candidate == nil),
      let place = description ?? candidate, !place.isEmpty
    else {
      throw SignalingRefusal(
        "rule \(number) must name the place of either a description or a candidate")
    }
    var encoding: Rule.Encoding?
    if let text = entry["encoding"]?.text {
      encoding = Rule.Encoding(rawValue: text)
      guard encoding != nil else {
        throw SignalingRefusal("rule \(number): the encoding must be base64 or text")
      }
    }
    return Rule(
      kind: description == nil ? .candidate : .description,
      place: place.split(separator: ".", omittingEmptySubsequences: false),
      type: entry["type"]?.text, mid: entry["mid"]?.text, index: entry["index"]?.text,
      encoding: encoding)
  }

  /// Returns the first rule that matches a string's path; nil if there is none.
  func rule(for string: JSONStringScanner.Found) -> Rule? {
    guard !rules.isEmpty else { return nil }
    let path = string.path.split(separator: ".", omittingEmptySubsequences: false)
    return rules.first { rule in
      rule.place.count == path.count && zip(rule.place, path).allSatisfy { $0 == "*" || $0 == $1 }
    }
  }
}

extension SDPRules.Rule {
  /// Decodes a string; returns nil if it does not have the rule's encoding.
  func decoded(_ text: String) -> String? {
    guard encoding == .base64 else { return text }
    return Data(base64Encoded: text).map { String(decoding: $0, as: UTF8.self) }
  }

  func encoded(_ text: String) -> String {
    encoding == .base64 ? Data(text.utf8).base64EncodedString() : text
  }

  /// Returns a description's type, from the rule itself or from the member that it names; nil if
  /// unknown.
  func type(beside string: JSONStringScanner.Found) -> SDPType? {
    guard let type else { return nil }
    return SDPType(rawValue: type)
      ?? string.siblings[type].flatMap {
        SDPType(rawValue: $0.lowercased())
      }
  }
}
