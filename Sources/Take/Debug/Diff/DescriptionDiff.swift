import Wire

/// How two session descriptions differ, section by section, without what is new in every session.
struct DescriptionDiff {
  /// Lines that only one side has, with the section they stand in.
  private(set) var lines: [String] = []

  /// Compares two messages of a signaling channel: SDP, or JSON around it.
  init(_ left: String, _ right: String) {
    let (before, after) = (Self.sections(Self.sdp(left)), Self.sections(Self.sdp(right)))
    for index in 0..<max(before.count, after.count) {
      let old = index < before.count ? before[index] : (name: "", lines: [])
      let new = index < after.count ? after[index] : (name: "", lines: [])
      let name = old.name.isEmpty ? new.name : old.name
      lines += Self.only(old.lines, new.lines).map { "\(name): - \($0)" }
      lines += Self.only(new.lines, old.lines).map { "\(name): + \($0)" }
      if lines.isEmpty, old.lines != new.lines { lines.append("\(name): the order of its lines") }
    }
  }

  private static func sdp(_ message: String) -> String {
    guard message.hasPrefix("{"),
      let sdp = try? JSONValue(parsing: message)["sdp"]?.text
    else { return message }
    return sdp
  }

  /// The session part and the m-sections, named by their kind and mid.
  private static func sections(_ sdp: String) -> [(name: String, lines: [String])] {
    var sections: [(name: String, lines: [String])] = [("session", [])]
    var sources: [Substring] = []
    for line in sdp.split(whereSeparator: \.isNewline) {
      if line.hasPrefix("m=") {
        sections.append((String(line.dropFirst(2).prefix { $0 != " " }), []))
      }
      if line.hasPrefix("a=mid:"), sections.count > 1 {
        sections[sections.count - 1].name += " " + line.dropFirst(6)
      }
      if let kept = normalised(line, &sources) { sections[sections.count - 1].lines.append(kept) }
    }
    return sections
  }

  /// A line without values that every session draws anew; nil when nothing of it is left.
  private static func normalised(_ line: Substring, _ sources: inout [Substring]) -> String? {
    for (prefix, text) in [
      ("o=", "o=..."), ("a=ice-ufrag:", "a=ice-ufrag:..."), ("a=ice-pwd:", "a=ice-pwd:..."),
      ("c=", "c=..."), ("a=rtcp:", "a=rtcp:..."), ("a=msid:", "a=msid:..."),
    ] where line.hasPrefix(prefix) {
      return text
    }
    if line.hasPrefix("m=") {
      // The port says where, not what.
      let words = line.split(separator: " ")
      let port = words.count > 1 && words[1] == "0" ? "0" : "port"
      return ([words[0], Substring(port)] + words.dropFirst(2)).joined(separator: " ")
    }
    if line.hasPrefix("a=fingerprint:") { return String(line.prefix { $0 != " " }) + " ..." }
    if line.hasPrefix("a=candidate:") {
      // Foundation, priority and port differ; what it is, and by which way, counts.
      let words = line.split(separator: " ")
      guard words.count > 7 else { return String(line) }
      return "a=candidate: \(words[2]) typ \(words[7])"
    }
    if line.hasPrefix("a=ssrc:") {
      let number = line.dropFirst(7).prefix { $0.isNumber }
      return "a=ssrc:\(ordinal(number, &sources))"
        + String(line.dropFirst(7 + number.count)).prefix { $0 != ":" }
    }
    if line.hasPrefix("a=ssrc-group:") {
      let words = line.split(separator: " ")
      return ([String(words[0])] + words.dropFirst().map { ordinal($0, &sources) })
        .joined(separator: " ")
    }
    return String(line)
  }

  /// A name for an SSRC that is the same in both descriptions: the order of its appearance.
  private static func ordinal(_ source: Substring, _ sources: inout [Substring]) -> String {
    if let index = sources.firstIndex(of: source) { return "#\(index + 1)" }
    sources.append(source)
    return "#\(sources.count)"
  }

  /// Lines of one side that the other one lacks, counting those that stand there several times.
  private static func only(_ lines: [String], _ others: [String]) -> [String] {
    var left = others
    return lines.filter { line in
      guard let index = left.firstIndex(of: line) else { return true }
      left.remove(at: index)
      return false
    }
  }
}
