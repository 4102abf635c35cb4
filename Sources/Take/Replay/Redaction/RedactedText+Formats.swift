import FoundationEssentials
import Tape
import Wire

// Redacts JSON and session descriptions; everything else in them stays as written.
extension RedactedText {
  // MARK: JSON

  /// Redacts JSON strings; numbers, order and spaces stay.
  func json(_ text: String, depth: Int = 0) -> String {
    let bytes = Array(text.utf8)
    var made: [UInt8] = []
    made.reserveCapacity(bytes.count)
    var key = ""
    var outer: [String] = []
    var index = 0
    while index < bytes.count {
      switch bytes[index] {
      case UInt8(ascii: "{"), UInt8(ascii: "["): outer.append(key)
      case UInt8(ascii: "}"), UInt8(ascii: "]"): key = outer.popLast() ?? ""
      case UInt8(ascii: "\""):
        guard let end = JSONLiteral.end(bytes, from: index) else {
          return String(decoding: made, as: UTF8.self) + "\""
        }
        let literal = bytes[index...end]
        let old = JSONLiteral.text(literal)
        let next = bytes[(end + 1)...].first { $0 > 32 }
        let isKey = next == UInt8(ascii: ":")
        let new = isKey ? self.key(old) : value(old, key: key, depth: depth)
        if isKey { key = old }
        if new == old {
          made += literal
        } else {
          made += Array(JSONText.text(new).text.utf8)
        }
        index = end + 1
        continue
      default: break
      }
      made.append(bytes[index])
      index += 1
    }
    return String(decoding: made, as: UTF8.self)
  }

  /// Redacts a member's name: format keys stay, keys that identify a person or host do not.
  private func key(_ text: String) -> String {
    let isName = text.utf8.allSatisfy { byte in
      switch byte {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "-"),
        UInt8(ascii: "."):
        true
      default: false
      }
    }
    if let object = object(text) { return object }
    if let known = standIns.known(text), !Vocabulary.isCommon(text) { return known }
    guard isName, text.utf8.count < 32 else {
      return addressList(text) ?? (text.contains("@") ? standIns.word(text, .names) : free(text))
    }
    return text.contains(".") ? free(text) : text
  }

  // MARK: Descriptions

  /// Redacts a session description, or some of its lines.
  func sdp(_ text: String) -> String {
    // By bytes, because Swift treats CR LF as a single character.
    text.utf8.split(separator: 10, omittingEmptySubsequences: false).map { line in
      let isReturned = line.last == UInt8(ascii: "\r")
      let bare = String(decoding: isReturned ? line.dropLast() : line, as: UTF8.self)
      return sdpLine(bare) + (isReturned ? "\r" : "")
    }.joined(separator: "\n")
  }

  private func sdpLine(_ line: String) -> String {
    guard line.utf8.count > 2, let type = line.utf8.first,
      line.utf8[line.utf8.index(after: line.utf8.startIndex)] == UInt8(ascii: "=")
    else { return value(line, depth: 7) }
    let content = String(line.dropFirst(2))
    let made: String
    switch type {
    case UInt8(ascii: "a"): made = attribute(content)
    case UInt8(ascii: "c"), UInt8(ascii: "o"): made = fields(content, .names)
    case UInt8(ascii: "k"): made = standIns.word(content, .keys)
    case UInt8(ascii: "v"), UInt8(ascii: "t"), UInt8(ascii: "m"), UInt8(ascii: "b"),
      UInt8(ascii: "r"), UInt8(ascii: "z"):
      made = content
    default: made = content == "-" ? content : standIns.word(content, .names)
    }
    return String(line.prefix(2)) + made
  }

  /// Redacts fields separated by spaces, some of which are addresses or names; numbers stay.
  private func fields(_ text: String, _ part: Redaction.Parts) -> String {
    text.split(separator: " ", omittingEmptySubsequences: false).map { field in
      if let list = addressList(String(field)) { return list }
      let isNumber = field.utf8.allSatisfy { (48...57).contains($0) }
      if isNumber { return String(field) }
      return field.contains(".") ? host(String(field)) : standIns.word(String(field), part)
    }.joined(separator: " ")
  }

  private func attribute(_ text: String) -> String {
    guard let colon = text.firstIndex(of: ":") else { return text }
    let name = text[..<colon].lowercased()
    let content = String(text[text.index(after: colon)...])
    switch name {
    case "candidate": return candidate(text)
    case "ice-ufrag", "ice-pwd": return "\(name):\(standIns.word(content, .keys))"
    case "fingerprint", "tls-id":
      return "\(name):" + secretFields(content)
    case "crypto": return "\(name):" + crypto(content)
    case "msid", "msid-semantic", "label", "mslabel":
      return "\(name):" + fields(content, .names)
    case "ssrc":
      guard let second = content.firstRange(of: ":") else { return text }
      return "\(name):\(content[..<second.upperBound])"
        + fields(String(content[second.upperBound...]), .names)
    case "rtcp", "remote-candidates": return "\(name):" + fields(content, .names)
    case "rtpmap", "fmtp", "rtcp-fb", "extmap", "setup", "mid", "group", "ssrc-group", "rid",
      "simulcast", "sctp-port", "sctpmap", "max-message-size", "ptime", "maxptime", "ice-options",
      "framerate", "imageattr", "rtcp-xr", "ice-pacing", "connection", "x-google-flag", "framesize",
      "content", "quality", "orient", "depend":
      return text
    default: return "\(text[...colon])" + value(content, depth: 7)
    }
  }

  /// Redacts fields with secrets; a fingerprint counts as one.
  private func secretFields(_ text: String) -> String {
    text.split(separator: " ", omittingEmptySubsequences: false).map { field in
      standIns.word(String(field), .keys, isSecret: RedactedText.isFingerprint(String(field)))
    }.joined(separator: " ")
  }

  /// Redacts the keys of a crypto attribute (RFC 4568 section 9.1); suite and parameters stay.
  func crypto(_ text: String) -> String {
    text.split(separator: " ", omittingEmptySubsequences: false).map { field in
      guard field.hasPrefix("inline:") else { return String(field) }
      return field.split(separator: ";", omittingEmptySubsequences: false).map { part in
        guard part.hasPrefix("inline:") else { return String(part) }
        let key = part.dropFirst(7)
        let end = key.firstIndex(of: "|") ?? key.endIndex
        return "inline:" + standIns.word(String(key[..<end]), .keys, isSecret: true) + key[end...]
      }.joined(separator: ";")
    }.joined(separator: " ")
  }

  /// Redacts an SRTP key as users give it: `[WHICH=][SUITE:]KEY[|MKI:LENGTH]`.
  func srtpKey(_ text: String) -> String {
    var rest = text[...]
    var made = ""
    // Base64 may end with equals signs; a separator is followed by something else.
    if let sign = rest.firstIndex(of: "="), rest[sign...].contains(where: { $0 != "=" }) {
      let which = String(rest[..<sign])
      made = (which.hasPrefix("ssrc:") ? which : host(which)) + "="
      rest = rest[rest.index(after: sign)...]
    }
    let end = rest.firstIndex(of: "|") ?? rest.endIndex
    let identifier = rest[end...]
    rest = rest[..<end]
    if let colon = rest.firstIndex(of: ":") {
      made += rest[...colon]
      rest = rest[rest.index(after: colon)...]
    }
    return made + standIns.word(String(rest), .keys, isSecret: true) + identifier
  }

  /// Redacts a candidate attribute (RFC 8839 section 5.1), with or without `a=` in front.
  func candidate(_ text: String) -> String {
    var fields = text.split(separator: " ", omittingEmptySubsequences: false).map(String.init)
    guard fields.count >= 6 else { return free(text) }
    fields[4] = host(fields[4])
    var index = 6
    while index + 1 < fields.count {
      switch fields[index] {
      case "raddr": fields[index + 1] = host(fields[index + 1])
      case "ufrag", "pwd": fields[index + 1] = standIns.word(fields[index + 1], .keys)
      default: fields[index + 1] = free(fields[index + 1])
      }
      index += 2
    }
    return fields.joined(separator: " ")
  }
}

/// A JSON string as written.
enum JSONLiteral {
  /// Returns the end of the string that begins at a quotation mark.
  static func end(_ bytes: [UInt8], from start: Int) -> Int? {
    var index = start + 1
    while index < bytes.count {
      if bytes[index] == UInt8(ascii: "\\") {
        index += 2
        continue
      }
      if bytes[index] == UInt8(ascii: "\"") { return index }
      index += 1
    }
    return nil
  }

  /// Returns the text that a string, with its quotation marks, stands for.
  static func text(_ literal: ArraySlice<UInt8>) -> String {
    let inner = literal.dropFirst().dropLast()
    guard inner.contains(UInt8(ascii: "\\")) else { return String(decoding: inner, as: UTF8.self) }
    if let value = CanonicalJSON.value(String.self, from: String(decoding: literal, as: UTF8.self))
    {
      return value
    }
    return String(decoding: inner, as: UTF8.self)
  }
}
