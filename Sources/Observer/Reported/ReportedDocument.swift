package import Wire

/// Parses files that are one JSON document: dumps of chrome://webrtc-internals of all versions,
/// files of the 2016 rtcstats server, and pasted getStats reports.
package struct ReportedDocument: Sendable {
  /// The name of the document's format, for messages.
  package private(set) var format: String
  /// The browser and machine, as the document describes them.
  package private(set) var head: JSONValue?
  /// All events, by connection and in time order.
  package private(set) var events: [ReportedEvent] = []
  /// Whether report times were distributed evenly over the document's duration.
  package private(set) var hasSpreadTimes = false

  /// Parses a document; fails if it is none of these kinds.
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
      // A part of a dump that somebody cut out.
      format = "part of a dump of webrtc-internals"
      readConnection("connection", record)
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

  /// Returns the record of one connection if a document is one, or one's log or series.
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
          object.members?.first { $0.name == "timestamp" }.flatMap { Self.milliseconds($0.value) }
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

  /// Splits objects into reports: an id that was there before begins the next one.
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

  /// Parses an object's time: milliseconds, a date, or the microseconds of old libraries.
  private static func milliseconds(_ timestamp: JSONValue) -> Double? {
    guard let time = timestamp.number ?? timestamp.text.flatMap(SeriesReports.milliseconds) else {
      return nil
    }
    return time > 1e14 ? time / 1000 : time
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
    ReportedStats.Object(id: id, members: value.members.filter { $0.name != "id" })
  }

  // MARK: Logs

  /// Reads getUserMedia calls: request and result in current dumps, log entries in those from 2016.
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
    var log = (record["updateLog"]?.elements ?? []).map { entry in
      let type = entry["type"]?.text ?? ""
      return ReportedEvent(
        connection: name, unixMilliseconds: Self.time(of: entry),
        content: ReportedNames.content(type, Self.value(entry["value"], of: type)))
    }
    if record["updateLog"]?.elements.first?["timestamp"] == nil {
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
    // Merges both in time order; a log entry precedes reports with an equal or missing time.
    for event in log {
      while let report = reports.next(before: event.unixMilliseconds) { add(report, name) }
      events.append(event)
    }
    while let report = reports.next(before: .infinity) { add(report, name) }
  }

  /// Corrects an old log's times, which are in the user's local time, by the multiple of 15 minutes
  /// that brings its last entry nearest to the statistics.
  private func moveFromLocalTime(_ log: inout [ReportedEvent], _ reports: [Double]) {
    guard let last = log.compactMap(\.unixMilliseconds).max(), let report = reports.last,
      abs(last - report) < 86_400_000
    else { return }
    let zone = ((last - report) / 900_000).rounded() * 900_000
    for place in log.indices {
      log[place].unixMilliseconds = log[place].unixMilliseconds.map { $0 - zone }
    }
  }

  private mutating func add(_ report: SeriesReports.Report, _ name: String) {
    events.append(
      ReportedEvent(
        connection: name, unixMilliseconds: report.time, content: .stats(report.stats)))
  }

  /// Parses milliseconds or a date: ISO 8601, or Chromium's older form in the user's locale.
  private static func time(of entry: JSONValue) -> Double? {
    if let time = entry["timestamp"]?.number { return time }
    return entry["time"]?.text.flatMap(SeriesReports.milliseconds)
  }

  /// Parses a log entry's value: JSON in a string, or the older textual form.
  private static func value(_ value: JSONValue?, of type: String) -> JSONValue? {
    guard case .text(let text)? = value else { return value?.unlessNull }
    if text.isEmpty { return nil }
    if type.contains("Description") || type.contains("OnSuccess"), let found = description(text) {
      return found
    }
    if type.lowercased().contains("icecandidate"), let found = candidate(text) { return found }
    return opened(.text(text))
  }

  /// Parses JSON inside a string.
  private static func opened(_ value: JSONValue) -> JSONValue {
    guard case .text(let text) = value,
      let inner = try? JSONValue(parsing: text, limits: ReportedLines.limits)
    else { return value }
    return inner
  }

  /// Parses `type: offer, sdp: v=0...`.
  private static func description(_ text: String) -> JSONValue? {
    guard text.hasPrefix("type: "), let comma = text.firstIndex(of: ","),
      let sdp = text.range(of: "sdp: ", after: comma)
    else { return nil }
    let type = text[text.index(text.startIndex, offsetBy: 6)..<comma]
    return .members(("type", .text(String(type))), ("sdp", .text(String(text[sdp...]))))
  }

  /// Parses `sdpMid: 0, sdpMLineIndex: 0, candidate: candidate:...`.
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
