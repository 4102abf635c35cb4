import Wire

/// A log collector's line, with the program's own line extracted from it.
///
/// `docker logs`, journald or the program's own logger put a time, a level and names before the
/// program's line, or wrap the line in their own JSON.
struct LoggedLine: Sendable {
  /// The program's own line, without additions.
  var text: Substring
  /// The collector's or logger's Unix time in milliseconds; nil if it states no time.
  var unixMilliseconds: Double?
  /// Whether the program's line continues in the next line; Docker and Kubernetes split long lines.
  var isSplit = false

  /// The JSON members in which collectors and loggers store the program's line.
  private static let textMembers = ["log", "MESSAGE", "message", "msg", "line", "textPayload"]
  private static let timeMembers = [
    "time", "timestamp", "@timestamp", "ts", "__REALTIME_TIMESTAMP",
  ]

  /// Removes one layer of additions from a line; fails if there is none.
  init?(_ line: Substring) {
    let line = line.drop { $0.isWhitespace }
    if line.first == "{" {
      guard let value = try? JSONValue(parsing: String(line), limits: ReportedLines.limits),
        let inner = Self.textMembers.lazy.compactMap({ value[$0]?.text }).first
      else { return nil }
      text = inner[...]
      unixMilliseconds =
        Self.timeMembers.lazy.compactMap { value[$0]?.unixMilliseconds }.first
      isSplit = value["log"] != nil && value["stream"] != nil && inner.last?.isNewline != true
      return
    }
    let words = line.split(separator: " ", maxSplits: 3, omittingEmptySubsequences: false)
    if words.count == 4, ["stdout", "stderr"].contains(words[1]), ["P", "F"].contains(words[2]) {
      // Kubernetes (CRI) prefixes a line with the time, the stream, and P or F: partial or full.
      text = words[3]
      unixMilliseconds = ReportedDate(words[0])?.unixMilliseconds
      isSplit = words[2] == "P"
      return
    }
    guard let start = Self.start(in: line) else { return nil }
    text = line[start...]
    unixMilliseconds = Self.time(in: line[..<start])
  }

  /// The maximum length in bytes of the text before the JSON, and the maximum number of possible
  /// beginnings to try.
  private static let leadMaximum = 1024
  private static let triesMaximum = 8

  /// Returns where an event's JSON begins after other text; nil if there is none.
  private static func start(in line: Substring) -> Substring.Index? {
    let lead = line.utf8.prefix(leadMaximum)
    var tries = 0
    for place in lead.indices where lead[place] == 0x5b || lead[place] == 0x7b {
      guard place > line.startIndex, tries < triesMaximum else { continue }
      // An element of a list or a member of an object is not an event by itself.
      let before = line[..<place].trimmed
      let isMember = before.last == ":" && before.dropLast().trimmed.last == "\""
      guard let last = before.last, last != ",", last != "[" || before.count > 1, !isMember else {
        continue
      }
      tries += 1
      if let event = LogUnwrapper.event(in: line[place...]), isCertain(event) { return place }
    }
    return nil
  }

  /// Returns whether a value is certainly an event; a list by itself may come from any other text.
  private static func isCertain(_ event: JSONValue) -> Bool {
    let items = event.elements
    return items.isEmpty || items.last?.unixMilliseconds != nil
      || items[0].identifier.map(ReportedNames.isKnown) == true
  }

  /// Returns the time of the date before the JSON, which has one to three words including the zone;
  /// nil if there is none.
  private static func time(in lead: Substring) -> Double? {
    let words = lead.split { $0 == " " || $0 == "=" || $0 == "|" || $0 == "\t" }.prefix(16).map {
      $0.drop { "[(\"'".contains($0) }
    }
    for place in words.indices {
      for count in [3, 2, 1] where place + count <= words.count {
        let text = words[place..<(place + count)].joined(separator: " ")
        if let date = ReportedDate(text), date.hasDay { return date.unixMilliseconds }
      }
    }
    return nil
  }
}

/// Extracts the lines that a program wrote from a log collector's lines.
package struct LogUnwrapper: Sendable {
  /// The number of lines skipped because they do not contain an event.
  package private(set) var strangeLines: UInt64 = 0
  /// The beginning of a line that the collector split.
  private var pending = ""

  /// The maximum length of a rejoined line, in bytes.
  private static let pendingMaximum = 64 << 20
  /// The number of lines examined to determine whether a log needs to be unwrapped.
  private static let linesMaximum = 50

  package init() {}

  /// Returns the event in a collector's line as JSON, with the collector's time if it has none; nil
  /// if there is no event, or if it continues in the next line.
  package mutating func line(in line: String) -> String? {
    var text = line[...]
    var milliseconds: Double?
    // A collector's line may contain the line of the program's logger, which contains the event.
    for depth in 0..<3 {
      if let event = Self.event(in: text) {
        return Self.stamped(event, milliseconds).json
      }
      guard let inner = LoggedLine(text) else { break }
      milliseconds = milliseconds ?? inner.unixMilliseconds
      text = inner.text
      guard depth == 0, inner.isSplit || !pending.isEmpty else { continue }
      // Some collectors remove the line breaks that mark complete lines, so each line looks split.
      let isWhole = Self.event(in: text) != nil
      if inner.isSplit, !isWhole {
        append(part: text)
        return nil
      }
      if !isWhole { text = (pending + text)[...] }
      pending = ""
    }
    if !text.trimmed.isEmpty { strangeLines += 1 }
    return nil
  }

  /// Keeps a part of the program's line until the collector's next line continues it.
  private mutating func append(part: Substring) {
    let mayBegin = part.contains("[") || part.contains("{")
    guard mayBegin || !pending.isEmpty else { return strangeLines += 1 }
    if pending.utf8.count + part.utf8.count > Self.pendingMaximum {
      pending = ""
      strangeLines += 1
    } else {
      pending += part
    }
  }

  /// Parses an event: `[method, connection, ...]`, or an object as in logs of Jitsi's services and
  /// at the head of an rtcstats dump.
  static func event(in text: Substring) -> JSONValue? {
    var text = text.trimmed
    if text.hasSuffix(",") { text.removeLast() }
    guard text.first == "[" || text.first == "{",
      let value = try? JSONValue(parsing: text, limits: ReportedLines.limits)
    else { return nil }
    let items = value.elements
    if items.count > 2, items[0].identifier != nil, items[1] == .null || items[1].identifier != nil
    {
      return value
    }
    return value["statsSessionId"] != nil || value["fileFormat"] != nil ? value : nil
  }

  /// Returns the event with the collector's time, unless the event already has a time.
  private static func stamped(_ event: JSONValue, _ milliseconds: Double?) -> JSONValue {
    guard let milliseconds else { return event }
    if case .list(let items) = event {
      return items.last?.unixMilliseconds == nil ? .list(items + [.number(milliseconds)]) : event
    }
    guard event["timestamp"] == nil else { return event }
    return .object(event.members + [JSONValue.Member("timestamp", .number(milliseconds))])
  }

  /// Returns the program's lines at the beginning of a collector's log; nil if the lines are the
  /// program's own.
  package static func lines(atTheBeginOf head: [UInt8]) -> String? {
    if head.starts(with: Array("RTCStatsDump".utf8)) { return nil }
    let lines = head.split(separator: 0x0a, omittingEmptySubsequences: false)
    var unwrapper = LogUnwrapper()
    var found: [String] = []
    for line in lines.prefix(linesMaximum) {
      let line = String(decoding: line, as: UTF8.self)
      if found.isEmpty, event(in: line[...]) != nil { return nil }
      if let text = unwrapper.line(in: line) { found.append(text) }
    }
    return found.isEmpty ? nil : found.joined(separator: "\n")
  }
}
