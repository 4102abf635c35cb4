package import JSEP
package import SDP
import Wire

/// What a signaling message says to a peer connection.
package enum SignalingPart: Hashable, Sendable {
  /// A description; without a type where the message states none.
  case description(SDPType?, String)
  /// A candidate, as `addIceCandidate` takes it; an empty one means that there are no more.
  case candidate(CandidateInit)
}

/// A signaling message of any protocol in which descriptions and candidates are replaced; every
/// other byte stays as it was.
///
/// They are found in JSON, also in JSON inside of strings, in forms, and as bodies of their own
/// (`application/sdp`, `application/trickle-ice-sdpfrag`, plain text). What is encoded otherwise,
/// such as protobuf or base64, is not found.
package struct SignalingText {
  /// Replaces a part; nil leaves it as it is.
  package typealias Replace = (SignalingPart) async throws(SignalingRefusal) -> String?

  /// How deep JSON inside of strings is looked into.
  private static let depthMaximum = 4

  /// The message with its parts replaced, and how many there were.
  package static func replacing(
    in text: String, _ replace: Replace
  ) async throws(SignalingRefusal) -> (text: String, count: Int) {
    let start = text.utf8.first { $0 != 0x20 && $0 != 0x0a && $0 != 0x0d && $0 != 0x09 }
    if start == UInt8(ascii: "{") || start == UInt8(ascii: "[") {
      return try await json(text, depth: 0, replace)
    }
    if isDescription(text) {
      guard let new = try await replace(.description(nil, text)) else { return (text, 1) }
      return (new, 1)
    }
    return (text, 0)
  }

  /// Whether a text is a session description (RFC 8866 section 5).
  package static func isDescription(_ text: String) -> Bool {
    text.hasPrefix("v=0\r\n") || text.hasPrefix("v=0\n")
  }

  private static func json(
    _ text: String, depth: Int, _ replace: Replace
  ) async throws(SignalingRefusal) -> (text: String, count: Int) {
    var scanner = JSONStringScanner(text)
    guard let strings = scanner.strings() else { return (text, 0) }
    var result: [UInt8] = []
    var end = 0
    var count = 0
    let bytes = Array(text.utf8)
    for string in strings where string.value != nil {
      guard let new = try await replacement(of: string, depth: depth, &count, replace) else {
        continue
      }
      result += bytes[end..<string.range.lowerBound]
      result += JSONText.text(new).text.utf8
      end = string.range.upperBound
    }
    guard end > 0 else { return (text, count) }
    result += bytes[end...]
    return (String(decoding: result, as: UTF8.self), count)
  }

  /// What stands in the place of a string; nil when it stays.
  private static func replacement(
    of string: JSONStringScanner.Found, depth: Int, _ count: inout Int, _ replace: Replace
  ) async throws(SignalingRefusal) -> String? {
    guard let value = string.value else { return nil }
    if isDescription(value) {
      count += 1
      let type = string.siblings["type"].flatMap { SDPType(rawValue: $0) }
      return try await replace(.description(type, value))
    }
    let isNamed = string.name == "candidate"
    if value.hasPrefix("candidate:") || value.hasPrefix("a=candidate:") || isNamed && value.isEmpty {
      count += 1
      let hasPrefix = value.hasPrefix("a=")
      let candidate = CandidateInit(
        candidate: hasPrefix ? String(value.dropFirst(2)) : value,
        sdpMid: string.siblings["sdpMid"] ?? string.siblings["id"],
        sdpMLineIndex: (string.siblings["sdpMLineIndex"] ?? string.siblings["label"])
          .flatMap { Int($0) },
        usernameFragment: string.siblings["usernameFragment"])
      guard let new = try await replace(.candidate(candidate)) else { return nil }
      return hasPrefix && !new.isEmpty ? "a=" + new : new
    }
    let first = value.utf8.first
    guard depth < depthMaximum, first == UInt8(ascii: "{") || first == UInt8(ascii: "[") else {
      return nil
    }
    let inner = try await json(value, depth: depth + 1, replace)
    count += inner.count
    return inner.text == value ? nil : inner.text
  }
}

/// Why a message cannot pass, as a sentence.
package struct SignalingRefusal: Error, Hashable, Sendable, CustomStringConvertible {
  package var reason: String
  package init(_ reason: String) { self.reason = reason }
  package var description: String { reason }
}

/// Finds the strings of a JSON text with the members beside them, without changing the text.
struct JSONStringScanner {
  /// A string that is no name of a member.
  struct Found {
    /// Its place, with the quotes.
    var range: Range<Int>
    /// The string without escapes; nil where it is not valid.
    var value: String?
    /// The name of the member that it is.
    var name: String?
    /// Strings and numbers that are members of the same object.
    var siblings: [String: String] = [:]
  }

  private struct Object {
    var isList: Bool
    var members: [String: String] = [:]
    var found: [Int] = []
    var name: String?
  }

  private static let depthMaximum = 64
  private static let stringsMaximum = 20_000

  private let bytes: [UInt8]
  private var index = 0

  init(_ text: String) { bytes = Array(text.utf8) }

  /// All strings in order; nil if the text is no JSON that can be scanned.
  mutating func strings() -> [Found]? {
    var found: [Found] = []
    var stack: [Object] = []
    while index < bytes.count {
      switch bytes[index] {
      case UInt8(ascii: "{"), UInt8(ascii: "["):
        guard stack.count < JSONStringScanner.depthMaximum else { return nil }
        stack.append(Object(isList: bytes[index] == UInt8(ascii: "[")))
        index += 1
      case UInt8(ascii: "}"), UInt8(ascii: "]"):
        guard let object = stack.popLast() else { return nil }
        for place in object.found { found[place].siblings = object.members }
        index += 1
      case UInt8(ascii: "\""):
        guard let string = string() else { return nil }
        guard var object = stack.popLast() else { return found }
        if !object.isList, object.name == nil, isName() {
          object.name = string.value ?? ""
        } else {
          guard found.count < JSONStringScanner.stringsMaximum else { return nil }
          found.append(Found(range: string.range, value: string.value, name: object.name))
          if let name = object.name, let value = string.value, value.utf8.count < 200 {
            object.members[name] = value
          }
          if !object.isList { object.found.append(found.count - 1) }
          object.name = nil
        }
        stack.append(object)
      case UInt8(ascii: ","):
        if !stack.isEmpty { stack[stack.count - 1].name = nil }
        index += 1
      case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"):
        let start = index
        while index < bytes.count, isOfNumber(bytes[index]) { index += 1 }
        let number = String(decoding: bytes[start..<index], as: UTF8.self)
        if let last = stack.indices.last, let name = stack[last].name {
          stack[last].members[name] = number
        }
      default: index += 1
      }
    }
    return stack.isEmpty ? found : nil
  }

  private func isOfNumber(_ byte: UInt8) -> Bool {
    (0x30...0x39).contains(byte) || [0x2b, 0x2d, 0x2e, 0x45, 0x65].contains(byte)
  }

  /// Whether a colon follows.
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
