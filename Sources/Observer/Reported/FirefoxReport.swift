import Wire

/// Reads the JSON that Firefox's about:webrtc copies ("Copy Report", "Copy Report History"): a
/// connection with its configuration, descriptions and statistics.
struct FirefoxReport {
  private(set) var events: [ReportedEvent] = []

  /// The maximum number of reports in a document.
  private static let most = 100_000

  /// Returns whether a document is a report, a history of reports, or a list of either.
  static func isOne(_ document: JSONValue) -> Bool {
    let first = document.elements.first ?? document
    guard first["pcid"]?.text != nil else { return false }
    return first.members.contains { $0.name.hasSuffix("Stats") || $0.name == "reports" }
  }

  static func all(in document: JSONValue) -> [FirefoxReport] {
    let reports = (document.elements.isEmpty ? [document] : document.elements).prefix(most)
    // Several reports may describe the same connection, so those with the same id are joined.
    var names: [String] = []
    var joined: [String: [JSONValue]] = [:]
    for report in reports {
      guard let name = report["pcid"]?.text else { continue }
      if joined[name] == nil { names.append(name) }
      joined[name, default: []].append(report)
    }
    return names.map { FirefoxReport($0, joined[$0] ?? []) }
  }

  private init(_ name: String, _ documents: [JSONValue]) {
    let words = name.split(separator: " ")
    // The name begins with an id, or with the time of the connection's creation in microseconds.
    let begun = words.prefix(2).lazy.compactMap { JSONValue.text(String($0)).unixMilliseconds }
      .first { $0 > 1e11 }
    let reports = documents.flatMap { $0["reports"]?.elements ?? [$0] }.prefix(Self.most)
    let histories = documents.flatMap { document in
      (document["sdpHistories"]?.elements ?? []) + (document["reports"]?.elements ?? [document])
    }.flatMap { $0["sdpHistory"]?.elements ?? [] }
    let configuration = reports.lazy.compactMap { $0["configuration"] }.first
    var timed: [ReportedEvent] = []
    func add(_ content: ReportedEvent.Content, _ time: Double?) {
      timed.append(
        ReportedEvent(connection: name, unixMilliseconds: time ?? begun, content: content))
    }
    var known: Set<JSONValue> = []
    for entry in histories where known.insert(entry).inserted {
      guard let sdp = entry["sdp"]?.text else { continue }
      let isLocal = entry["isLocal"]?.flag == true
      add(
        .call(
          name: isLocal ? "setLocalDescription" : "setRemoteDescription",
          arguments: .members(("type", .text(Self.type(of: sdp))), ("sdp", .text(sdp)))),
        entry["timestamp"]?.unixMilliseconds)
    }
    for report in reports {
      let time = report["timestamp"]?.unixMilliseconds
      if histories.isEmpty { Self.describe(report, add) }
      let stats = Self.stats(of: report)
      if !stats.objects.isEmpty { add(.stats(stats), time) }
      let rest = report.members.filter { member in
        !member.name.hasSuffix("Stats")
          && !["pcid", "configuration", "sdpHistory", "localSdp", "remoteSdp"].contains(member.name)
      }
      add(.event(name: "about-webrtc-report", detail: .object(rest)), time)
    }
    if reports.last?["closed"]?.flag == true {
      add(.call(name: "close", arguments: nil), reports.last?["timestamp"]?.unixMilliseconds)
    }
    events = [
      ReportedEvent(
        connection: name, unixMilliseconds: begun ?? timed.compactMap(\.unixMilliseconds).min(),
        content: .connection(configuration: configuration))
    ]
    var keys = timed.map { (connection: $0.connection, milliseconds: $0.unixMilliseconds) }
    events += ReportedEvent.order(&keys).map { timed[$0] }
  }

  /// Infers a description's type: only an offer leaves the DTLS role to the remote side.
  private static func type(of sdp: String) -> String {
    sdp.contains("a=setup:actpass") ? "offer" : "answer"
  }

  /// Adds a report's last descriptions, because older versions of Firefox keep no history of them.
  private static func describe(
    _ report: JSONValue, _ add: (ReportedEvent.Content, Double?) -> Void
  ) {
    let isOfferer = report["offerer"]?.flag
    let sides = [("localSdp", "setLocalDescription"), ("remoteSdp", "setRemoteDescription")]
    for (member, call) in isOfferer == false ? sides.reversed() : sides {
      guard let sdp = report[member]?.text, !sdp.isEmpty else { continue }
      let type = isOfferer.map { $0 == (member == "localSdp") ? "offer" : "answer" }
      add(
        .call(
          name: call,
          arguments: .members(("type", .text(type ?? self.type(of: sdp))), ("sdp", .text(sdp)))),
        nil)
    }
  }

  /// Joins a report's objects, which Firefox lists separately for each type.
  private static func stats(of report: JSONValue) -> ReportedStats {
    var stats = ReportedStats(
      form: .whole, timestamp: report["timestamp"]?.unixMilliseconds, objects: [])
    var ids: Set<String> = []
    for member in report.members where member.name.hasSuffix("Stats") {
      for object in member.value.elements {
        guard object["type"]?.text != nil, let id = object["id"]?.text, ids.insert(id).inserted
        else { continue }
        stats.objects.append(
          ReportedStats.Object(id: id, members: object.members.statisticsMembers))
      }
    }
    return stats
  }
}
