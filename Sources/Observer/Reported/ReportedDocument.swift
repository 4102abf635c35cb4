package import Wire

/// Parses files that are one JSON document: dumps of chrome://webrtc-internals of all versions,
/// files of the 2016 rtcstats server, logs whose lines are in one array, and pasted getStats
/// reports.
package struct ReportedDocument: Sendable {
  /// The name of the document's format, for messages.
  package private(set) var format: String
  /// The browser and machine, as the document describes them; nil if it does not.
  package private(set) var head: JSONValue?
  /// All events, by connection and in time order.
  package private(set) var events: [ReportedEvent] = []
  /// Whether report times were distributed evenly over the document's duration.
  package private(set) var hasSpreadTimes = false
  /// Whether the document is an array of a log's lines.
  package private(set) var isLog = false
  /// The number of elements of a log that were skipped because they are not events.
  package private(set) var strangeLines: UInt64 = 0
  /// The number of a log's entries whose times could not be parsed.
  package private(set) var unreadTimes: UInt64 = 0
  /// How many milliseconds the writer's local time is ahead of Unix time, if entries have local
  /// times.
  private var zone: Double?

  /// Parses a document; fails if its kind is not supported.
  package init?(_ document: JSONValue) {
    format = ""
    // Only the first of several dumps in one file is read.
    let document = document.elements.first(where: Self.isDump) ?? document
    if document["PeerConnections"] != nil || document["peerConnections"] != nil {
      let isOfServer = document["peerConnections"] != nil
      format = isOfServer ? "rtcstats server dump" : "webrtc-internals dump"
      readHead(document)
      readDevices(document["getUserMedia"])
      let connections = document["peerConnections"] ?? document["PeerConnections"]
      for (name, value) in Self.named(connections ?? .null) {
        if isOfServer {
          readLog(name, value)
        } else {
          readConnection(name, value)
        }
      }
    } else if let record = Self.record(document) {
      // The document is a part that was cut out of a dump.
      format = "part of a dump of webrtc-internals"
      readConnection("connection", record)
    } else if FirefoxReport.isOne(document) {
      let reports = FirefoxReport.all(in: document)
      (format, events) = ("report of about:webrtc", reports.flatMap(\.events))
    } else if let format = Self.log(document) {
      self.format = format.words
      isLog = true
      readLines(document.elements, format == .jitsi ? .jitsi : .rtcstats)
    } else {
      format = "getStats report"
      readReports(document, "connection", depth: 0)
      guard !events.isEmpty else { return nil }
    }
  }

  private static func isDump(_ value: JSONValue) -> Bool {
    value["PeerConnections"] != nil || value["peerConnections"] != nil
  }

  /// Returns an object's members or a list's elements by their names or positions.
  private static func named(_ value: JSONValue) -> [(name: String, value: JSONValue)] {
    value.members.map { ($0.name, $0.value) }
      + value.elements.enumerated().map { ("connection \($0 + 1)", $1) }
  }

  /// Returns a document as a connection's record: the record itself, or a record around a log or
  /// series that stands alone; nil for other documents.
  private static func record(_ document: JSONValue) -> JSONValue? {
    if document["updateLog"] != nil { return document }
    if let first = document.members.first?.value, first["values"] != nil, first["type"] == nil {
      return .members(("stats", document))
    }
    guard let first = document.elements.first, first["type"]?.text != nil, first["id"] == nil,
      first["value"] != nil, first["time"] != nil || first["timestamp"] != nil
    else { return nil }
    return .members(("updateLog", document))
  }

  /// Returns the format of an array of a log's lines; nil for other documents.
  private static func log(_ document: JSONValue) -> ReportedFormat? {
    // The array may begin with an object that describes the browser.
    let lines = document.elements.prefix(12).map(\.elements).filter { !$0.isEmpty }
    // Lines have at least three elements; `[id, object]` is an entry of a pasted getStats map.
    guard !lines.isEmpty,
      lines.allSatisfy({
        $0.count > 2 && $0[0].identifier != nil && $0.last?.unixMilliseconds != nil
      })
    else { return nil }
    let isNumbered = lines.contains { ReportedNames.methods[$0[0].identifier ?? ""] != nil }
    let hasHead = document.elements.prefix(3).contains { $0["fileFormat"] != nil }
    let areRelative = ReportedFormat.areRelative(lines.compactMap { $0.last?.number })
    return isNumbered || hasHead || areRelative ? .rtcstats : .jitsi
  }

  private mutating func readLines(_ lines: [JSONValue], _ dialect: ReportedLines.Dialect) {
    var reader = ReportedLines(dialect)
    var found: [JSONValue] = []
    var keys: [(connection: String?, milliseconds: Double?)] = []
    for line in lines where line.text != "RTCStatsDump" {
      guard let event = reader.event(of: line) else { continue }
      found.append(line)
      keys.append((event.connection, event.unixMilliseconds))
      if dialect == .rtcstats { events.append(event) }
    }
    (head, strangeLines) = (reader.head, reader.strangeLines)
    guard dialect == .jitsi else { return }
    // Lines may be out of order. A report contains only the changes since the previous one, so the
    // lines are read again in time order.
    reader = ReportedLines(dialect)
    events = ReportedEvent.order(&keys).compactMap { reader.event(of: found[$0]) }
  }

  private mutating func readHead(_ document: JSONValue) {
    let parts = document.members.filter {
      !["PeerConnections", "peerConnections", "getUserMedia"].contains($0.name)
    }
    head = parts.isEmpty ? nil : .object(parts)
  }

  // MARK: getStats reports

  /// Parses one report, an array of reports, or reports by connection, however they are wrapped in
  /// objects.
  private mutating func readReports(_ value: JSONValue, _ name: String, depth: Int) {
    if let report = Self.report(value) {
      for part in Self.parts(of: report) {
        let times = part.objects.compactMap { object in
          object.members?.first { $0.name == "timestamp" }?.value.unixMilliseconds
        }
        events.append(
          ReportedEvent(connection: name, unixMilliseconds: times.max(), content: .stats(part)))
      }
      return
    }
    guard depth < 4 else { return }
    for item in value.elements { readReports(item, name, depth: depth + 1) }
    for member in value.members { readReports(member.value, member.name, depth: depth + 1) }
  }

  /// Splits objects into reports: an id that the current report already has begins the next report.
  private static func parts(of report: ReportedStats) -> [ReportedStats] {
    var parts: [ReportedStats] = []
    var ids: Set<String> = []
    for object in report.objects {
      if ids.contains(object.id) || parts.isEmpty {
        ids = []
        parts.append(ReportedStats(form: .whole, timestamp: nil, objects: []))
      }
      ids.insert(object.id)
      parts[parts.count - 1].objects.append(object)
    }
    return parts
  }

  private static func report(_ value: JSONValue) -> ReportedStats? {
    var objects: [ReportedStats.Object] = []
    switch value {
    case .object(let members):
      if let id = value["id"]?.text, isObject(value) {
        objects = [object(id, value)]
        break
      }
      for member in members {
        // The last object of a report that was cut off may be empty.
        if case .object(let parts) = member.value, parts.isEmpty { continue }
        guard member.value["type"]?.text != nil else { return nil }
        objects.append(object(member.name, member.value))
      }
    case .list(let items):
      for (place, item) in items.enumerated() {
        // A map converted to an array has pairs of id and object.
        let pair = item.elements
        let body = pair.count == 2 ? pair[1] : item
        guard let type = body["type"]?.text else { return nil }
        guard
          let id = body["id"]?.text ?? pair.first?.text
            ?? (isObject(body) ? "\(type) \(place + 1)" : nil)
        else { return nil }
        objects.append(object(id, body))
      }
    default: return nil
    }
    return objects.isEmpty
      ? nil : ReportedStats(form: .whole, timestamp: nil, objects: objects)
  }

  /// Returns whether a value can be a statistics object, as opposed to a log entry.
  private static func isObject(_ value: JSONValue) -> Bool {
    value["type"]?.text != nil && value["timestamp"] != nil && value["value"] == nil
      && value["data"] == nil
  }

  private static func object(_ id: String, _ value: JSONValue) -> ReportedStats.Object {
    ReportedStats.Object(id: id, members: value.members.statisticsMembers)
  }

  // MARK: Logs

  /// Reads getUserMedia calls: a request and its result in current dumps, a log entry in dumps of
  /// the 2016 server.
  private mutating func readDevices(_ value: JSONValue?) {
    for entry in value?.elements ?? [] {
      let name = entry["request_type"]?.text ?? "getUserMedia"
      let rest = entry.members.filter { !["timestamp", "time"].contains($0.name) }
      let content: ReportedEvent.Content
      if let type = entry["type"]?.text {
        content = ReportedNames.content(type, entry["value"])
      } else if entry["error"] != nil {
        content = .failure(name: name, reason: .object(rest))
      } else if entry["stream_id"] != nil {
        content = .success(name: name, result: .object(rest))
      } else {
        content = .call(name: name, arguments: .object(rest))
      }
      let request = [entry["rid"], entry["pid"], entry["request_id"]]
        .map { $0?.identifier ?? "" }.joined(separator: "-")
      events.append(
        ReportedEvent(
          connection: nil, unixMilliseconds: Self.time(of: entry), content: content,
          correlation: request == "--" ? nil : request))
    }
  }

  /// Reads a connection's log in the 2016 server's format.
  private mutating func readLog(_ name: String, _ log: JSONValue) {
    for entry in log.elements {
      let type = entry["type"]?.text ?? ""
      let value = entry["value"]?.unlessNull
      let content: ReportedEvent.Content =
        switch type {
        case "create": .connection(configuration: value)
        case "getStats", "getstats":
          .stats(ReportedStats(map: value ?? .object([]), form: .whole, timestamp: nil))
        default: ReportedNames.content(type, value)
        }
      events.append(
        ReportedEvent(
          connection: name, unixMilliseconds: Self.time(of: entry), content: content))
    }
  }

  private mutating func readConnection(_ name: String, _ record: JSONValue) {
    var reports = SeriesReports(record["stats"])
    if reports.hasSpreadTimes { hasSpreadTimes = true }
    let entries = record["updateLog"]?.elements ?? []
    var log = entries.map { entry in
      let type = entry["type"]?.text ?? ""
      return ReportedEvent(
        connection: name, unixMilliseconds: Self.time(of: entry),
        content: ReportedNames.content(type, Self.value(entry["value"], of: type)))
    }
    unreadTimes += UInt64(
      zip(entries, log).count {
        $1.unixMilliseconds == nil && ($0["timestamp"] ?? $0["time"]) != nil
      })
    if entries.first.flatMap(Self.date)?.isLocal == true {
      moveFromLocalTime(&log, reports.reports.map(\.time))
    }
    let first =
      (log.compactMap(\.unixMilliseconds) + reports.reports.compactMap(\.time)).min()
    let configuration = record.members.filter { !["stats", "updateLog"].contains($0.name) }
    events.append(
      ReportedEvent(
        connection: name, unixMilliseconds: first,
        content: .connection(
          configuration: .object(
            configuration.map { JSONValue.Member($0.name, Self.opened($0.value)) }))))
    // Merges the log and the reports in time order; an entry without a time, or with the time of
    // the next report, precedes that report.
    for event in log {
      while let report = reports.next(before: event.unixMilliseconds) { add(report, name) }
      events.append(event)
    }
    while let report = reports.next(before: .infinity) { add(report, name) }
  }

  /// Corrects times in the writer's local time, perhaps without the day, by the multiple of 15
  /// minutes that brings the last entry nearest to the statistics.
  private mutating func moveFromLocalTime(_ log: inout [ReportedEvent], _ reports: [Double]) {
    // A time of day that is hours before the previous one is on the next day.
    var (last, days) = (0.0, 0.0)
    for place in log.indices {
      guard var time = log[place].unixMilliseconds else { continue }
      let isOfDay = time < Self.dayMilliseconds
      if isOfDay, time + days < last - Self.dayMilliseconds / 2 { days += Self.dayMilliseconds }
      if isOfDay { time += days }
      log[place].unixMilliseconds = time
      last = time
    }
    if last > 0, let report = reports.last,
      last < 2 * Self.dayMilliseconds || abs(last - report) < Self.dayMilliseconds
    {
      zone = ((last - report) / 900_000).rounded() * 900_000
    }
    guard let zone else { return }
    for place in log.indices {
      log[place].unixMilliseconds = log[place].unixMilliseconds.map { $0 - zone }
    }
  }

  private static var dayMilliseconds: Double { 86_400_000 }

  private mutating func add(_ report: SeriesReports.Report, _ name: String) {
    events.append(
      ReportedEvent(
        connection: name, unixMilliseconds: report.time, content: .stats(report.stats)))
  }

  /// Returns when an entry was logged: its Unix time, or else its date.
  private static func time(of entry: JSONValue) -> Double? {
    entry["timestamp"]?.unixMilliseconds ?? entry["time"]?.unixMilliseconds
  }

  /// Returns an entry's date; nil if its time is not written as a date.
  private static func date(of entry: JSONValue) -> ReportedDate? {
    guard entry["timestamp"]?.number == nil else { return nil }
    return (entry["timestamp"]?.text ?? entry["time"]?.text).flatMap { ReportedDate($0) }
  }

  /// Parses a log entry's value: JSON in a string, or the older textual form; nil if there is none.
  private static func value(_ value: JSONValue?, of type: String) -> JSONValue? {
    guard case .text(let text)? = value else { return value?.unlessNull }
    if text.isEmpty { return nil }
    if type.contains("Description") || type.contains("OnSuccess"), let found = description(text) {
      return found
    }
    if type.lowercased().contains("icecandidate"), let found = candidate(text) { return found }
    return opened(.text(text))
  }

  /// Parses JSON inside a string; returns any other value unchanged.
  private static func opened(_ value: JSONValue) -> JSONValue {
    guard case .text(let text) = value,
      let inner = try? JSONValue(parsing: text, limits: ReportedLines.limits)
    else { return value }
    return inner
  }

  /// Parses `type: offer, sdp: v=0...`; nil for anything else.
  private static func description(_ text: String) -> JSONValue? {
    guard text.hasPrefix("type: "), let comma = text.firstIndex(of: ","),
      let sdp = text.range(of: "sdp: ", after: comma)
    else { return nil }
    let type = text[text.index(text.startIndex, offsetBy: 6)..<comma]
    return .members(("type", .text(String(type))), ("sdp", .text(String(text[sdp...]))))
  }

  /// Parses `sdpMid: 0, sdpMLineIndex: 0, candidate: candidate:...`; nil for anything else.
  private static func candidate(_ text: String) -> JSONValue? {
    guard text.hasPrefix("sdpMid: "),
      let place = text.range(of: "candidate: ", after: text.startIndex)
    else { return nil }
    var members: [(String, JSONValue?)] = []
    for part in text[..<place].split(separator: ",") {
      let halves = part.split(separator: ":", maxSplits: 1)
      guard halves.count == 2 else { continue }
      let name = halves[0].drop { $0 == " " }
      let value = halves[1].drop { $0 == " " }
      if name == "sdpMid" { members.append(("sdpMid", .text(String(value)))) }
      if name == "sdpMLineIndex", let index = Int64(value) {
        members.append(("sdpMLineIndex", .integer(index)))
      }
    }
    var line = text[place...]
    if let end = line.firstIndex(of: ",") { line = line[..<end] }
    members.append(("candidate", .text(String(line))))
    return .object(members.compactMap { name, value in value.map { JSONValue.Member(name, $0) } })
  }
}

extension String {
  /// Returns the index after the next occurrence of a word, if there is one.
  fileprivate func range(of word: String, after start: Index) -> Index? {
    var place = start
    while place < endIndex {
      if self[place...].hasPrefix(word) { return index(place, offsetBy: word.count) }
      place = index(after: place)
    }
    return nil
  }
}
