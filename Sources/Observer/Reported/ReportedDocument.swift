package import Wire

/// Reads files that are one JSON document: dumps of chrome://webrtc-internals of all years, what
/// the
/// rtcstats server of 2016 stored, and reports of getStats as people paste them.
package struct ReportedDocument: Sendable {
  /// What kind of document it is, in words.
  package private(set) var format: String
  /// What it says about the browser and the machine.
  package private(set) var head: JSONValue?
  /// Everything in it, by connections and in the order of time.
  package private(set) var events: [ReportedEvent] = []
  /// Whether times of statistics had to be spread over the time that the document covers.
  package private(set) var hasSpreadTimes = false

  /// Reads a document; nil for one of none of these kinds.
  package init?(_ document: JSONValue) {
    format = ""
    if document["PeerConnections"] != nil || document["peerConnections"] != nil {
      let isOfServer = document["peerConnections"] != nil
      format = isOfServer ? "dump of an rtcstats server" : "dump of webrtc-internals"
      readHead(document)
      readDevices(document["getUserMedia"])
      for member in (document["peerConnections"] ?? document["PeerConnections"])?.members ?? [] {
        if isOfServer {
          readLog(member.name, member.value)
        } else {
          readConnection(member.name, member.value)
        }
      }
    } else {
      format = "report of getStats"
      readReports(document, "connection", depth: 0)
      guard !events.isEmpty else { return nil }
    }
  }

  private mutating func readHead(_ document: JSONValue) {
    let parts = document.members.filter {
      !["PeerConnections", "peerConnections", "getUserMedia"].contains($0.name)
    }
    head = parts.isEmpty ? nil : .object(parts)
  }

  // MARK: getStats as it is

  /// One report, several in an array, or several under the names of their connections, however
  /// whoever pasted them wrapped them up.
  private mutating func readReports(_ value: JSONValue, _ name: String, depth: Int) {
    if let report = Self.report(value) {
      let times = report.objects.compactMap { object in
        object.members?.first { $0.name == "timestamp" }?.value.number
      }
      events.append(
        ReportedEvent(connection: name, unixMilliseconds: times.max(), content: .stats(report)))
      return
    }
    guard depth < 4 else { return }
    for item in value.elements { readReports(item, name, depth: depth + 1) }
    for member in value.members { readReports(member.value, member.name, depth: depth + 1) }
  }

  private static func report(_ value: JSONValue) -> ReportedStats? {
    var objects: [ReportedStats.Object] = []
    switch value {
    case .object(let members):
      for member in members {
        guard member.value["type"]?.text != nil else { return nil }
        objects.append(object(member.name, member.value))
      }
    case .list(let items):
      for item in items {
        // Maps that were turned into arrays have pairs of id and object.
        let pair = item.elements
        let body = pair.count == 2 ? pair[1] : item
        guard body["type"]?.text != nil, let id = body["id"]?.text ?? pair.first?.text else {
          return nil
        }
        objects.append(object(id, body))
      }
    default: return nil
    }
    return objects.isEmpty
      ? nil : ReportedStats(form: .whole, timestamp: nil, objects: objects)
  }

  private static func object(_ id: String, _ value: JSONValue) -> ReportedStats.Object {
    ReportedStats.Object(id: id, members: value.members.filter { $0.name != "id" })
  }

  // MARK: Logs

  /// The calls for devices: of today a request and a result each, of 2016 entries of a log.
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

  /// The log of a connection as the server of 2016 has it.
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
    // Both are in the order of time; the log goes first where times are equal or missing.
    for event in log {
      while let report = reports.next(before: event.unixMilliseconds) { add(report, name) }
      events.append(event)
    }
    while let report = reports.next(before: .infinity) { add(report, name) }
  }

  /// Takes the zone out of the times of an old log, which are those of its user's clock on the
  /// wall:
  /// by as many quarters of an hour as bring its last entry nearest to the statistics.
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

  /// Milliseconds, or a date: ISO 8601, or as Chromium wrote it before in the words of its user.
  private static func time(of entry: JSONValue) -> Double? {
    if let time = entry["timestamp"]?.number { return time }
    return entry["time"]?.text.flatMap(SeriesReports.milliseconds)
  }

  /// The value of a log's entry: JSON in a text today, before in words.
  private static func value(_ value: JSONValue?, of type: String) -> JSONValue? {
    guard case .text(let text)? = value else { return value?.unlessNull }
    if text.isEmpty { return nil }
    if type.contains("Description") || type.contains("OnSuccess"), let found = description(text) {
      return found
    }
    if type.lowercased().contains("icecandidate"), let found = candidate(text) { return found }
    return opened(.text(text))
  }

  /// What is JSON inside of a text.
  private static func opened(_ value: JSONValue) -> JSONValue {
    guard case .text(let text) = value,
      let inner = try? JSONValue(parsing: text, limits: ReportedLines.limits)
    else { return value }
    return inner
  }

  /// Reads `type: offer, sdp: v=0...`.
  private static func description(_ text: String) -> JSONValue? {
    guard text.hasPrefix("type: "), let comma = text.firstIndex(of: ","),
      let sdp = text.range(of: "sdp: ", after: comma)
    else { return nil }
    let type = text[text.index(text.startIndex, offsetBy: 6)..<comma]
    return .members(("type", .text(String(type))), ("sdp", .text(String(text[sdp...]))))
  }

  /// Reads `sdpMid: 0, sdpMLineIndex: 0, candidate: candidate:...`.
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
  /// Where what follows a word begins; nil without it.
  fileprivate func range(of word: String, after start: Index) -> Index? {
    var place = start
    while place < endIndex {
      if self[place...].hasPrefix(word) { return index(place, offsetBy: word.count) }
      place = index(after: place)
    }
    return nil
  }
}
