import FoundationEssentials
import Tape
import Wire

// Redacts JSON, session descriptions, hosts, URLs and HTTP without changing their form.
extension RedactedText {
  // MARK: JSON

  /// Redacts the strings in JSON, and leaves numbers, order and spaces as they are.
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

  /// Redacts a member's name unless it looks like a fixed key of a JSON format.
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
      if let list = addressList(text) { return list }
      // Names may contain spaces, at signs and letters beyond ASCII, which fixed keys of formats do
      // not.
      let isChosen = text.utf8.contains { $0 >= 0x80 || $0 == 32 || $0 == UInt8(ascii: "@") }
      return isChosen ? standIns.word(text, .names) : free(text)
    }
    return text.contains(".") ? free(text) : text
  }

  // MARK: Descriptions

  /// Redacts a session description or a part of one, line by line.
  func sdp(_ text: String) -> String {
    // Lines are split by bytes, because Swift treats CR LF as a single character.
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

  /// Redacts the addresses and names among the fields of a line; numbers are kept.
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

  /// Redacts fields that contain secrets or certificate fingerprints.
  private func secretFields(_ text: String) -> String {
    text.split(separator: " ", omittingEmptySubsequences: false).map { field in
      standIns.word(String(field), .keys, isSecret: RedactedText.isFingerprint(String(field)))
    }.joined(separator: " ")
  }

  /// Redacts the keys in a crypto attribute, and keeps its suite and parameters (RFC 4568 section
  /// 9.1).
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

  /// Redacts an SRTP key in the form that users type: `[WHICH=][SUITE:]KEY[|MKI:LENGTH]`.
  func srtpKey(_ text: String) -> String {
    var rest = text[...]
    var made = ""
    // Base64 may end with equals signs, but the equals sign after WHICH is followed by more text.
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

  /// Redacts a candidate attribute (RFC 8839 section 5.1), with or without `a=` before it.
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

  // MARK: Hosts

  /// Redacts one or more addresses, separated by spaces and with or without ports; nil for anything
  /// else.
  func addressList(_ text: String) -> String? {
    var found: [String] = []
    for part in text.split(separator: " ", omittingEmptySubsequences: false) {
      if let end = SocketAddress(part) {
        found.append(standIns.address(end).description)
      } else if let ip = IPAddress(part) {
        found.append(standIns.address(ip).description)
      } else {
        return nil
      }
    }
    return found.joined(separator: " ")
  }

  /// Redacts host names and addresses, separated by spaces and with or without ports.
  func hosts(_ text: String) -> String {
    text.split(separator: " ", omittingEmptySubsequences: false)
      .map { host(String($0)) }.joined(separator: " ")
  }

  /// Redacts a host name or address, with or without a port.
  func host(_ text: String) -> String {
    if let list = addressList(text) { return list }
    if text.hasPrefix("["), text.hasSuffix("]"), let ip = IPAddress(text.dropFirst().dropLast()) {
      return "[\(standIns.address(ip))]"
    }
    if let colon = text.lastIndex(of: ":"), UInt16(text[text.index(after: colon)...]) != nil {
      return name(text[..<colon]) + text[colon...]
    }
    return name(text[...])
  }

  private func name(_ text: Substring) -> String {
    if text == "localhost" { return String(text) }
    // The top-level domain `local` means multicast DNS, so it is kept.
    let labels = text.split(separator: ".", omittingEmptySubsequences: false)
    return labels.enumerated().map { index, label in
      label == "local" && index == labels.count - 1
        ? "local" : standIns.word(String(label), .addresses)
    }.joined(separator: ".")
  }

  /// Redacts a URL, which may be the URL of a STUN or TURN server.
  func url(_ text: String) -> String {
    let isServer = Self.schemes.contains(where: text.hasPrefix)
    let site = text.firstRange(of: "://").map { text[$0.upperBound...] } ?? ""
    let isNumber = site.utf8.first.map { $0 < UInt8(ascii: "A") || $0 == UInt8(ascii: "[") }
    if Vocabulary.isCommon(text), !isServer, isNumber == false { return text }
    var rest = text[...]
    var made = ""
    if let slashes = rest.firstRange(of: "://") {
      made += rest[..<slashes.upperBound]
      rest = rest[slashes.upperBound...]
    } else if let colon = rest.firstIndex(of: ":") {
      made += rest[...colon]
      rest = rest[rest.index(after: colon)...]
    }
    let end = rest.firstIndex { "/?#".contains($0) } ?? rest.endIndex
    var authority = rest[..<end]
    if let at = authority.lastIndex(of: "@") {
      made += pieces(authority[..<at], .keys) + "@"
      authority = authority[authority.index(after: at)...]
    }
    made += host(String(authority))
    rest = rest[end...]
    let query = rest.firstIndex(of: "?") ?? rest.endIndex
    made += pieces(rest[..<query], .names)
    return made + pieces(rest[query...], .keys)
  }

  /// Redacts the words between a URL's separators.
  private func pieces(_ text: Substring, _ part: Redaction.Parts) -> String {
    var made = ""
    var word = ""
    for character in text {
      if "/?#&=:;".contains(character) {
        made += standIns.word(word, part) + String(character)
        word = ""
      } else {
        word.append(character)
      }
    }
    return made + standIns.word(word, part)
  }

  // MARK: HTTP

  func http(_ text: String, _ depth: Int) -> String {
    guard let gap = text.firstRange(of: "\r\n\r\n") else {
      return text.components(separatedBy: "\r\n").map { header($0, depth) }.joined(
        separator: "\r\n")
    }
    let head = text[..<gap.lowerBound].components(separatedBy: "\r\n").map { header($0, depth) }
    return head.joined(separator: "\r\n") + "\r\n\r\n"
      + value(String(text[gap.upperBound...]), depth: depth + 1)
  }

  private func header(_ line: String, _ depth: Int) -> String {
    if line.hasPrefix("HTTP/") { return line }
    if line.hasSuffix(" HTTP/1.1") || line.hasSuffix(" HTTP/1.0") {
      let words = line.split(separator: " ", omittingEmptySubsequences: false)
      return words.enumerated().map { index, word in
        guard index == 1 else { return String(word) }
        return word.contains("://") ? url(String(word)) : path(word)
      }.joined(separator: " ")
    }
    guard let colon = line.firstIndex(of: ":") else { return standIns.word(line, .names) }
    let name = line[..<colon].lowercased()
    let content = line[line.index(after: colon)...].drop { $0 == " " }
    let made: String
    switch name {
    case "authorization", "cookie", "set-cookie", "etag", "if-match", "sec-websocket-key",
      "sec-websocket-accept", "proxy-authorization":
      made = pieces(content, .keys)
    case "host": made = host(String(content))
    case "location", "link", "origin", "referer":
      made = content.contains("://") ? url(String(content)) : path(content)
    default: made = value(String(content), key: name, depth: depth + 1)
    }
    return "\(line[...colon]) \(made)"
  }

  private func path(_ text: Substring) -> String {
    let query = text.firstIndex(of: "?") ?? text.endIndex
    return pieces(text[..<query], .names) + pieces(text[query...], .keys)
  }
}

/// Reads JSON strings without decoding the document around them.
enum JSONLiteral {
  /// Returns the index of the quotation mark that closes the string beginning at `start`; nil if
  /// there is none.
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

  /// Decodes a JSON string literal, which includes its quotation marks.
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
