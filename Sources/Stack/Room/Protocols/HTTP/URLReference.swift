/// A URL or relative reference in parts (RFC 3986), not percent-decoded.
package struct URLReference: Hashable, Sendable {
  /// In lower case; nil for a relative reference.
  package var scheme: String?
  /// The host with its port; nil if there is none.
  package var authority: String?
  package var path: String
  /// With its question mark, or empty.
  package var query: String

  /// Splits a text into its parts, without the fragment.
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

  /// Resolves a reference against this URL (RFC 3986 section 5.2); nil if the result is no HTTP
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

  /// RFC 3986 section 5.2.4.
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

  /// Whether two URLs have the same scheme, host and port.
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
  /// The beginning through the last such character; empty if there is none.
  fileprivate func prefix(through character: Character) -> Substring {
    lastIndex(of: character).map { self[...$0] } ?? ""
  }
}
