import JSEP
package import SDP
import Wire

/// A part of a signaling message that concerns a peer connection.
package enum SignalingPart: Hashable, Sendable {
  /// A description; its type is nil if the message does not state it.
  case description(SDPType?, String)
  /// A candidate, as for `addIceCandidate`; an empty one ends the candidates.
  case candidate(CandidateInit)
  /// A fragment of a description with candidates and credentials (RFC 8840).
  case fragment(String)
}

/// The text that replaces a part in the forwarded message.
package struct SignalingReplacement: Hashable, Sendable {
  package var text: String
  /// The ICE username fragment for a candidate; nil leaves the message's own.
  package var usernameFragment: String?
  /// The type of a description that the message then states; nil leaves the message's own.
  package var type: SDPType?

  package init(_ text: String, usernameFragment: String? = nil, type: SDPType? = nil) {
    self.text = text
    self.usernameFragment = usernameFragment
    self.type = type
  }
}

/// Replaces the descriptions and candidates in a signaling message of any protocol, and leaves
/// every other byte unchanged.
///
/// It searches JSON (also JSON inside strings), forms, event streams, and entire bodies
/// (`application/sdp`, `application/trickle-ice-sdpfrag`, plain text). Rules name further places
/// and encodings. Signaling that is recognised but cannot be replaced is refused.
package struct SignalingText {
  /// Returns the replacement for a part; nil leaves the part unchanged.
  package typealias Replace =
    (SignalingPart) async throws(SignalingRefusal) -> SignalingReplacement?

  /// The maximum nesting depth of JSON in strings.
  private static let depthMaximum = 4
  /// The maximum size of a description in bytes.
  package static let descriptionMaximum = 256 << 10

  private let rules: SDPRules
  private let replace: Replace
  /// The number of parts found.
  private(set) package var count = 0
  /// Whether the message states the type of its description in a value of its own.
  private(set) package var statesType = false
  /// The type that the message has to state; nil leaves its own.
  private var newType: SDPType?

  package init(rules: SDPRules = SDPRules(), replace: @escaping Replace) {
    self.rules = rules
    self.replace = replace
  }

  /// Returns the message with its parts replaced.
  ///
  /// - Parameter type: the media type; nil if it has none.
  package mutating func replacing(
    in text: String, type: String? = nil
  ) async throws(SignalingRefusal) -> String {
    let type = type?.prefix { $0 != ";" }.lowercased() ?? ""
    let result: String
    if type == "application/trickle-ice-sdpfrag" {
      count += 1
      result = try await replace(.fragment(text))?.text ?? text
    } else if type == "application/x-www-form-urlencoded" {
      result = try await form(text)
    } else if type == "text/event-stream" {
      result = try await events(text)
    } else {
      result = try await value(text, depth: 0) ?? text
    }
    if count == 0, let obstacle = SignalingObstacle.find(in: result) {
      throw SignalingRefusal(obstacle)
    }
    return result
  }

  /// Returns whether a string is a session description (RFC 8866 section 5).
  package static func isDescription(_ text: String) -> Bool {
    text.hasPrefix("v=0\r\n") || text.hasPrefix("v=0\n")
  }

  /// Returns the replacement for text that is a description or JSON; nil if nothing changes.
  private mutating func value(
    _ text: String, depth: Int
  ) async throws(SignalingRefusal) -> String? {
    if SignalingText.isDescription(text) { return try await description(nil, text) }
    let start = text.utf8.first { $0 != 0x20 && $0 != 0x0a && $0 != 0x0d && $0 != 0x09 }
    guard start == UInt8(ascii: "{") || start == UInt8(ascii: "[") else { return nil }
    return try await json(text, depth: depth)
  }

  private mutating func description(
    _ type: SDPType?, _ text: String
  ) async throws(SignalingRefusal) -> String? {
    guard text.utf8.count <= SignalingText.descriptionMaximum else {
      throw SignalingRefusal(
        "a description of \(text.utf8.count) bytes exceeds the relay's limit of "
          + "\(SignalingText.descriptionMaximum)")
    }
    count += 1
    let new = try await replace(.description(type, text))
    if let type = new?.type { newType = type }
    return new?.text
  }

  /// Replaces parts in the values of `name=value` pairs.
  private mutating func form(_ text: String) async throws(SignalingRefusal) -> String {
    var parts: [String] = []
    for part in text.split(separator: "&", omittingEmptySubsequences: false) {
      let sides = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      guard sides.count == 2 else {
        parts.append(String(part))
        continue
      }
      let decoded = FormText.decoded(sides[1])
      let new = try await value(decoded, depth: 1)
      parts.append(new.map { "\(sides[0])=\(FormText.encoded($0))" } ?? String(part))
    }
    return parts.joined(separator: "&")
  }

  /// Replaces parts in lines of `data: value` (HTML, server-sent events).
  private mutating func events(_ text: String) async throws(SignalingRefusal) -> String {
    var lines: [String] = []
    for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
      guard line.hasPrefix("data:") else {
        lines.append(String(line))
        continue
      }
      let content = line.dropFirst(5).drop { $0 == " " }
      let new = try await value(String(content), depth: 0)
      lines.append(new.map { "data: " + $0 } ?? String(line))
    }
    return lines.joined(separator: "\n")
  }

  // MARK: JSON

  private mutating func json(
    _ text: String, depth: Int
  ) async throws(SignalingRefusal) -> String? {
    var scanner = JSONStringScanner(text)
    guard let strings = scanner.strings() else { return nil }
    var edits: [Int: String] = [:]
    for (index, string) in strings.enumerated() where string.value != nil {
      guard let new = try await replacement(of: string, depth: depth) else { continue }
      edits[index] = new.text
      guard let fragment = new.usernameFragment else { continue }
      // Other members of a candidate's object may state its username fragment as well.
      for (other, beside) in strings.enumerated()
      where beside.object == string.object && SignalingText.isFragmentName(beside.name) {
        edits[other] = fragment
      }
    }
    guard !edits.isEmpty else { return nil }
    if let newType {
      // Applications state the type in different places, some outside the description's object.
      for (index, string) in strings.enumerated() where edits[index] == nil {
        guard let word = string.value, SDPType(rawValue: word.lowercased()) != nil else { continue }
        statesType = true
        let isUpper = word == word.uppercased()
        edits[index] = isUpper ? newType.rawValue.uppercased() : newType.rawValue
      }
    }
    var result: [UInt8] = []
    var end = 0
    let bytes = Array(text.utf8)
    for (index, string) in strings.enumerated() {
      guard let new = edits[index] else { continue }
      result += bytes[end..<string.range.lowerBound]
      result += JSONText.text(new).text.utf8
      end = string.range.upperBound
    }
    result += bytes[end...]
    return String(decoding: result, as: UTF8.self)
  }

  private static func isFragmentName(_ name: String?) -> Bool {
    name == "usernameFragment" || name == "ufrag"
  }

  /// Returns the replacement for a string; nil if it stays unchanged.
  private mutating func replacement(
    of string: JSONStringScanner.Found, depth: Int
  ) async throws(SignalingRefusal) -> SignalingReplacement? {
    guard let value = string.value else { return nil }
    if let rule = rules.rule(for: string) { return try await named(string, value, by: rule) }
    if SignalingText.isDescription(value) {
      let type = (string.siblings["type"] ?? string.siblings["sdpType"])
        .flatMap { SDPType(rawValue: $0.lowercased()) }
      return try await description(type, value).map { SignalingReplacement($0) }
    }
    if SignalingText.isCandidate(string, value) {
      return try await candidate(
        value,
        mid: string.siblings["sdpMid"] ?? string.siblings["mid"] ?? string.siblings["id"],
        index: string.siblings["sdpMLineIndex"] ?? string.siblings["sdpMlineIndex"]
          ?? string.siblings["label"],
        string)
    }
    let first = value.utf8.first
    guard depth < SignalingText.depthMaximum,
      first == UInt8(ascii: "{") || first == UInt8(ascii: "[")
    else { return nil }
    return try await json(value, depth: depth + 1).map { SignalingReplacement($0) }
  }

  /// Returns whether a string is a candidate, judging by its prefix.
  ///
  /// An empty `candidate` is one too, if its object names a section.
  private static func isCandidate(_ string: JSONStringScanner.Found, _ value: String) -> Bool {
    if value.hasPrefix("candidate:") || value.hasPrefix("a=candidate:") { return true }
    return string.name == "candidate" && value.isEmpty
      && (string.siblings["sdpMid"] != nil || string.siblings["sdpMLineIndex"] != nil)
  }

  private mutating func candidate(
    _ value: String, mid: String?, index: String?, _ string: JSONStringScanner.Found
  ) async throws(SignalingRefusal) -> SignalingReplacement? {
    count += 1
    let hasPrefix = value.hasPrefix("a=")
    let candidate = CandidateInit(
      candidate: hasPrefix ? String(value.dropFirst(2)) : value, sdpMid: mid,
      sdpMLineIndex: index.flatMap { Int($0) },
      usernameFragment: string.siblings["usernameFragment"] ?? string.siblings["ufrag"])
    guard var new = try await replace(.candidate(candidate)) else { return nil }
    if hasPrefix, !new.text.isEmpty { new.text = "a=" + new.text }
    return new
  }

  /// Replaces a string that a rule selects by its path.
  private mutating func named(
    _ string: JSONStringScanner.Found, _ value: String, by rule: SDPRules.Rule
  ) async throws(SignalingRefusal) -> SignalingReplacement? {
    guard let plain = rule.decoded(value) else {
      throw SignalingRefusal(
        "\(string.path) is not in \(rule.encoding?.rawValue ?? "text"), as the rules say")
    }
    switch rule.kind {
    case .description:
      guard SignalingText.isDescription(plain) else { return nil }
      let type = rule.type(beside: string)
      let new = try await description(type, plain)
      if let newType, let fixed = rule.type.flatMap({ SDPType(rawValue: $0) }), fixed != newType {
        throw SignalingRefusal("\(string.path) is the place of an \(fixed.rawValue) only")
      }
      return new.map { SignalingReplacement(rule.encoded($0)) }
    case .candidate:
      let isBare = !plain.isEmpty && !plain.hasPrefix("candidate:") && !plain.hasPrefix("a=")
      var new = try await candidate(
        isBare ? "candidate:" + plain : plain, mid: rule.mid.flatMap { string.siblings[$0] },
        index: rule.index.flatMap { string.siblings[$0] }, string)
      if isBare, let text = new?.text, text.hasPrefix("candidate:") {
        new?.text = String(text.dropFirst("candidate:".utf8.count))
      }
      if let text = new?.text { new?.text = rule.encoded(text) }
      return new
    }
  }
}

/// The reason that a message cannot be forwarded, as a sentence.
package struct SignalingRefusal: Error, Hashable, Sendable, CustomStringConvertible {
  package var reason: String
  package init(_ reason: String) { self.reason = reason }
  package var description: String { reason }
}

/// Signaling that cannot be replaced, with which the ends would bypass the relay or not connect at
/// all.
package enum SignalingObstacle {
  /// Strings that identify such signaling, each with a sentence about it.
  private static let marks: [(mark: String, sentence: String)] = [
    (
      "urn:xmpp:jingle:",
      "this is Jingle (XMPP), which has no descriptions that a relay can replace"
    ),
    (
      "\"dtlsParameters\"",
      "these are parameters of mediasoup, which has no descriptions that a relay can replace"
    ),
    ("dj0wDQ", "a description is encoded in base64; name its place with --sdp-rules"),
    ("dj0wCm", "a description is encoded in base64; name its place with --sdp-rules"),
    (
      "a=ice-ufrag:",
      "a description is in a place that the relay does not search; name it with --sdp-rules"
    ),
  ]

  /// Returns a sentence about signaling in text that has no replaceable parts; nil if it contains
  /// no signaling.
  package static func find(in text: String) -> String? {
    marks.first { text.contains($0.mark) }?.sentence
  }

  /// Returns a sentence about signaling in a binary message; nil if there is none.
  package static func find(inBinary bytes: [UInt8]) -> String? {
    let text = String(decoding: bytes, as: UTF8.self)
    guard text.contains("a=ice-ufrag:") || text.contains("candidate:") && text.contains(" typ ")
    else { return nil }
    return "signaling in a binary format, such as protobuf, cannot be replaced; configure the "
      + "application to use JSON"
  }
}

/// Encodes and decodes the values of forms (HTML, application/x-www-form-urlencoded).
enum FormText {
  static func decoded(_ text: some StringProtocol) -> String {
    var bytes: [UInt8] = []
    var rest = Array(text.utf8)[...]
    while let byte = rest.popFirst() {
      if byte == UInt8(ascii: "+") {
        bytes.append(0x20)
      } else if byte == UInt8(ascii: "%"), rest.count >= 2,
        let value = UInt8(String(decoding: rest.prefix(2), as: UTF8.self), radix: 16)
      {
        bytes.append(value)
        rest = rest.dropFirst(2)
      } else {
        bytes.append(byte)
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  static func encoded(_ text: String) -> String {
    var out = ""
    for byte in text.utf8 {
      switch byte {
      case 0x20: out += "+"
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), 0x2a, 0x2d, 0x2e, 0x5f:
        out.unicodeScalars.append(Unicode.Scalar(byte))
      default:
        let digits = String(byte, radix: 16, uppercase: true)
        out += digits.utf8.count == 1 ? "%0\(digits)" : "%\(digits)"
      }
    }
    return out
  }
}
