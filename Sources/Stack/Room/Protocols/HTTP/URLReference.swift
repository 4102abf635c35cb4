package import Peer

/// The parts of a URL or relative reference (RFC 3986), still percent-encoded.
package struct URLReference: Hashable, Sendable {
  /// The scheme in lower case; nil for a relative reference.
  package var scheme: String?
  /// The host with its port; nil if there is none.
  package var authority: String?
  package var path: String
  /// The query including its question mark; empty if there is none.
  package var query: String

  /// Splits a reference into its parts; drops the fragment.
  package init(_ text: String) {
    var rest = text.prefix { $0 != "#" }
    if let colon = rest.firstIndex(of: ":"), colon > rest.startIndex,
      rest[..<colon].utf8.allSatisfy(URLReference.isSchemeByte),
      rest.first?.isLetter == true
    {
      scheme = rest[..<colon].lowercased()
      rest = rest[rest.index(after: colon)...]
    }
    if rest.hasPrefix("//") {
      let after = rest.dropFirst(2)
      let end = after.firstIndex { $0 == "/" || $0 == "?" } ?? after.endIndex
      authority = String(after[..<end])
      rest = after[end...]
    }
    let mark = rest.firstIndex(of: "?") ?? rest.endIndex
    path = String(rest[..<mark])
    query = String(rest[mark...])
  }

  private static func isSchemeByte(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x30...0x39, 0x41...0x5a, 0x61...0x7a, 0x2b, 0x2d, 0x2e: true
    default: false
    }
  }

  package var text: String {
    (scheme.map { $0 + ":" } ?? "") + (authority.map { "//" + $0 } ?? "") + path + query
  }

  /// Resolves a reference against this URL (RFC 3986 section 5.2); nil if the result is not an HTTP
  /// URL.
  package func resolving(_ reference: String) -> URLReference? {
    let isPlain = reference.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7f }
    guard isPlain, !reference.isEmpty else { return nil }
    var target = URLReference(reference)
    if target.scheme == nil {
      target.scheme = scheme
      if target.authority == nil {
        target.authority = authority
        if target.path.isEmpty {
          target.path = path
          if target.query.isEmpty { target.query = query }
        } else if !target.path.hasPrefix("/") {
          target.path = path.prefix(through: "/") + target.path
          if !target.path.hasPrefix("/") { target.path = "/" + target.path }
        }
      }
    }
    target.path = URLReference.withoutDots(target.path)
    guard ["http", "https"].contains(target.scheme), target.authority?.isEmpty == false else {
      return nil
    }
    return target
  }

  /// Removes dot segments (RFC 3986 section 5.2.4).
  private static func withoutDots(_ path: String) -> String {
    var segments: [Substring] = []
    let all = path.split(separator: "/", omittingEmptySubsequences: false)
    for (index, segment) in all.enumerated() {
      let isLast = index == all.count - 1
      switch segment {
      case ".": if isLast { segments.append("") }
      case "..":
        if segments.count > 1 { segments.removeLast() }
        if isLast { segments.append("") }
      default: segments.append(segment)
      }
    }
    return segments.joined(separator: "/")
  }

  /// Returns whether two URLs have the same scheme, host and port.
  package static func haveSameOrigin(_ one: String, _ other: String) -> Bool {
    guard let one = URLReference(one).origin, let other = URLReference(other).origin else {
      return false
    }
    return one == other
  }

  private var origin: String? {
    guard let scheme, let authority, !authority.isEmpty else { return nil }
    let usual = scheme == "https" ? ":443" : ":80"
    let host = authority.lowercased()
    return scheme + "://" + (host.hasSuffix(usual) ? String(host.dropLast(usual.count)) : host)
  }
}

extension String {
  /// Returns the text up to and including the last occurrence of a character; empty if there is
  /// none.
  fileprivate func prefix(through character: Character) -> Substring {
    lastIndex(of: character).map { self[...$0] } ?? ""
  }
}

// MARK: - LinkField

/// Parses ICE servers from `Link` fields (RFC 8288, RFC 9725 section 4.6).
package enum LinkField {
  /// The maximum number of servers accepted from a response.
  private static let countMaximum = 32

  /// Parses the ICE servers among a field's links: `<uri>; rel="ice-server"; ...`.
  package static func iceServers(_ field: String) -> [ICEServerConfiguration] {
    var reader = FieldReader(field)
    var servers: [ICEServerConfiguration] = []
    while servers.count < countMaximum, let link = reader.nextLink() {
      let relations = link.parameters["rel"]?.lowercased().split(separator: " ") ?? []
      guard relations.contains("ice-server"), !link.target.isEmpty else { continue }
      servers.append(
        ICEServerConfiguration(
          urls: [link.target], username: link.parameters["username"],
          credential: link.parameters["credential"]))
    }
    return servers
  }
}

/// Reads the links of a `Link` field one by one.
private struct FieldReader {
  private let bytes: [UInt8]
  private var index = 0

  init(_ field: String) { bytes = Array(field.utf8) }

  /// Returns the next link; nil at the end of the field or at a syntax error.
  mutating func nextLink() -> (target: String, parameters: [String: String])? {
    skip { $0 == UInt8(ascii: ",") || FieldReader.isBlank($0) }
    guard consume(UInt8(ascii: "<")) else { return nil }
    let target = text { $0 != UInt8(ascii: ">") }
    guard consume(UInt8(ascii: ">")) else { return nil }
    var parameters: [String: String] = [:]
    while true {
      skip(FieldReader.isBlank)
      guard consume(UInt8(ascii: ";")) else { break }
      skip(FieldReader.isBlank)
      let name = text(FieldReader.isName).lowercased()
      skip(FieldReader.isBlank)
      var value = ""
      if consume(UInt8(ascii: "=")) {
        skip(FieldReader.isBlank)
        value = consume(UInt8(ascii: "\"")) ? quoted() : text(FieldReader.isName)
      }
      // Of several parameters with the same name, only the first is used (RFC 8288 section 3.3).
      if !name.isEmpty, parameters[name] == nil { parameters[name] = value }
    }
    return (target, parameters)
  }

  private static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }

  private static func isName(_ byte: UInt8) -> Bool {
    byte > 0x20 && byte < 0x7f && !"=;,\"<>".utf8.contains(byte)
  }

  private mutating func consume(_ byte: UInt8) -> Bool {
    guard index < bytes.count, bytes[index] == byte else { return false }
    index += 1
    return true
  }

  private mutating func skip(_ belongs: (UInt8) -> Bool) {
    while index < bytes.count, belongs(bytes[index]) { index += 1 }
  }

  private mutating func text(_ belongs: (UInt8) -> Bool) -> String {
    let start = index
    skip(belongs)
    return String(decoding: bytes[start..<index], as: UTF8.self)
  }

  /// Parses the rest of a quoted string, removing backslashes.
  private mutating func quoted() -> String {
    var value: [UInt8] = []
    while index < bytes.count, !consume(UInt8(ascii: "\"")) {
      if bytes[index] == UInt8(ascii: "\\"), index + 1 < bytes.count { index += 1 }
      value.append(bytes[index])
      index += 1
    }
    return String(decoding: value, as: UTF8.self)
  }
}
