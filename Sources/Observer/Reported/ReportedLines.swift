package import Wire

/// Parses logs with one JSON value per line: rtcstats dumps, and files from Jitsi's services.
///
/// Lines must be parsed in file order, because each builds on earlier ones.
package struct ReportedLines: Sendable {
  /// The software that wrote the log.
  package enum Dialect: Hashable, Sendable {
    /// rtcstats, file formats 2 and 3: times are relative to the previous line, unless they are
    /// dates or Unix times.
    case rtcstats
    /// Jitsi clients: each line has an absolute time.
    case jitsi
  }

  package let dialect: Dialect
  /// The description of the file in its first lines; nil if there is none.
  package private(set) var head: JSONValue?
  /// The number of lines skipped because they are not events.
  package private(set) var strangeLines: UInt64 = 0
  private var lastMilliseconds = 0.0
  /// Each connection's last offer and answer, which abbreviated descriptions refer to.
  private var created: [String: [String: String]] = [:]

  package init(_ dialect: Dialect) { self.dialect = dialect }

  /// The limits on one JSON value: in conferences with many streams, lines are long.
  package static let limits: JSONValue.Limits = {
    var limits = JSONValue.Limits()
    limits.depth = 64
    limits.values = 2_000_000
    return limits
  }()

  /// Parses a line; returns nil if it does not contain an event.
  package mutating func event(ofLine line: String) -> ReportedEvent? {
    // Lines cut out of an array still have its commas.
    let end = line.last { !$0.isWhitespace }
    let text = end == "," ? String(line.trimmed.dropLast()) : line
    guard let value = try? JSONValue(parsing: text, limits: Self.limits) else {
      let words = line.trimmed
      if !words.isEmpty, words != "RTCStatsDump" { strangeLines += 1 }
      return nil
    }
    return event(of: value)
  }

  /// Parses a line's value; returns nil if it is not an event.
  mutating func event(of value: JSONValue) -> ReportedEvent? {
    switch value {
    case .list(let items): return event(items)
    case .object: return event(ofObject: value)
    default:
      strangeLines += 1
      return nil
    }
  }

  /// Parses `[method, connection, value, ...extra, time]`; nil for other lists.
  private mutating func event(_ items: [JSONValue]) -> ReportedEvent? {
    guard items.count >= 3, let key = items[0].identifier,
      let milliseconds = unixMilliseconds(of: items)
    else {
      strangeLines += 1
      return nil
    }
    lastMilliseconds = milliseconds
    let method = dialect == .rtcstats ? ReportedNames.methods[key] ?? key : key
    let value = items.count > 3 ? items[2].unlessNull?.opened(ifStateOf: method) : nil
    var connection = items[1].identifier
    // Chromium logs device calls with ids that look like connections.
    if method.hasPrefix("navigator.") || method.hasPrefix("MediaStreamTrack.") { connection = nil }
    let extra = items.count > 4 ? items[3].text : nil
    return ReportedEvent(
      connection: connection, unixMilliseconds: milliseconds,
      content: content(method, connection, value), correlation: extra)
  }

  /// Returns when a line was logged, as Unix time in milliseconds; nil if it has no time.
  private func unixMilliseconds(of items: [JSONValue]) -> Double? {
    guard dialect == .rtcstats, let time = items.last?.number else {
      return items.last?.unixMilliseconds
    }
    // Consecutive lines are never years apart, so two large times in a row are Unix times.
    let isAbsolute = lastMilliseconds > 1e11 && time > 1e11
    return isAbsolute ? items.last?.unixMilliseconds : lastMilliseconds + time
  }

  private mutating func content(
    _ method: String, _ connection: String?, _ value: JSONValue?
  ) -> ReportedEvent.Content {
    switch method {
    case "getStats", "getstats": return .stats(stats(value ?? .object([])))
    case "create" where connection != nil: return .connection(configuration: value)
    default: break
    }
    guard let connection, let value, let description = Self.description(value) else {
      return ReportedNames.content(method, value)
    }
    switch method {
    case "createOfferOnSuccess", "createAnswerOnSuccess":
      created[connection, default: [:]][description.type] = description.sdp
      return ReportedNames.content(method, value)
    case "setLocalDescription", "setLocalDescriptionOnSuccess":
      let base = created[connection]?[description.type]
      let sdp = base.map { Self.expand(description.sdp, from: $0) } ?? description.sdp
      return ReportedNames.content(
        method, .members(("type", .text(description.type)), ("sdp", .text(sdp))))
    default: return ReportedNames.content(method, value)
    }
  }

  private static func description(_ value: JSONValue) -> (type: String, sdp: String)? {
    guard let type = value["type"]?.text, let sdp = value["sdp"]?.text else { return nil }
    return (type, sdp)
  }

  /// Expands abbreviated sections (a bare `v=` or `m=`) from a base description.
  private static func expand(_ sdp: String, from base: String) -> String {
    let known = sections(base)
    let parts = sections(sdp)
    guard parts.enumerated().contains(where: { $1 == ($0 == 0 ? "v=" : "m=") }) else { return sdp }
    let whole = parts.enumerated().map { place, part in
      part == (place == 0 ? "v=" : "m=") && place < known.count ? known[place] : part
    }
    return whole.joined(separator: "\r\n") + "\r\n"
  }

  /// Returns the session part and the m-sections, each without its last line break.
  private static func sections(_ sdp: String) -> [String] {
    var sections: [[Substring]] = [[]]
    for line in sdp.split(omittingEmptySubsequences: true, whereSeparator: \.isNewline) {
      if line.hasPrefix("m=") { sections.append([]) }
      sections[sections.count - 1].append(line)
    }
    return sections.map { $0.joined(separator: "\r\n") }
  }

  // MARK: Statistics

  private func stats(_ value: JSONValue) -> ReportedStats {
    dialect == .rtcstats ? numberedStats(value) : factoredStats(value)
  }

  /// Parses rtcstats reports: numeric names, the common time as `t`, and null for removed objects.
  ///
  /// Chromium writes complete reports in the same file format, with ids inside the objects.
  private func numberedStats(_ value: JSONValue) -> ReportedStats {
    var report = ReportedStats(form: .changes, timestamp: nil, objects: [])
    var isWhole = !value.members.isEmpty
    for member in value.members {
      switch member.value {
      case .object(let members):
        isWhole = isWhole && members.contains { $0.name == "id" }
        report.objects.append(
          ReportedStats.Object(id: member.name, members: members.compactMap(Self.named)))
      case .null: report.objects.append(ReportedStats.Object(id: member.name, members: nil))
      default:
        if ReportedNames.memberNames[member.name] == "timestamp" || member.name == "timestamp" {
          report.timestamp = member.value.number
        }
      }
    }
    if isWhole { report.form = .whole }
    return report
  }

  private static func named(_ member: JSONValue.Member) -> JSONValue.Member? {
    var member = member
    if member.name == "id" { return nil }
    if member.name == "type", let number = member.value.integer,
      (1...Int64(ReportedNames.types.count)).contains(number)
    {
      member.value = .text(ReportedNames.types[Int(number) - 1])
    }
    if let name = ReportedNames.memberNames[member.name] { member.name = name }
    return member
  }

  /// Parses a Jitsi report, which has the changed members of all current objects; an object's
  /// timestamp is 0 if it equals the report's.
  private func factoredStats(_ value: JSONValue) -> ReportedStats {
    var report = ReportedStats(
      map: value, form: .changedMembers, timestamp: value["timestamp"]?.unixMilliseconds)
    for place in report.objects.indices {
      report.objects[place].members?.removeAll { $0.name == "timestamp" && $0.value.number == 0 }
    }
    return report
  }

  // MARK: Object lines

  /// Parses an entry from a bridge, Jicofo or Jigasi; keeps the head of a file and counts other
  /// objects, returning nil for them.
  private mutating func event(ofObject value: JSONValue) -> ReportedEvent? {
    guard let type = value["type"]?.text, value["statsSessionId"] != nil else {
      if head == nil { head = value } else { strangeLines += 1 }
      return nil
    }
    var data = value["data"]
    if case .text(let text)? = data, let inner = try? JSONValue(parsing: text, limits: Self.limits)
    {
      data = inner
    }
    let time = data?["timestamp"]?.unixMilliseconds ?? value["timestamp"]?.unixMilliseconds
    if let time { lastMilliseconds = time }
    return ReportedEvent(
      connection: nil, unixMilliseconds: lastMilliseconds > 0 ? lastMilliseconds : nil,
      content: .event(name: type, detail: data))
  }
}

extension JSONValue {
  /// Unwraps a state in Chromium's logs, which is JSON inside a string: `"\"stable\""`.
  func opened(ifStateOf method: String) -> JSONValue {
    guard method.hasSuffix("statechange"), case .text(let text) = self, text.hasPrefix("\""),
      let inner = try? JSONValue(parsing: text)
    else { return self }
    return inner
  }

  /// The value; nil for null and for an empty string.
  var unlessNull: JSONValue? { self == .null || self == .text("") ? nil : self }
}
