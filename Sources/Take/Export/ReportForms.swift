import Tape
import Wire

/// Writes a chrome://webrtc-internals dump in the form that Chrome has used since 2025: a series
/// for each object's members, and a log of calls and events.
///
/// The series stay in memory until the end, because the format groups them by connection.
struct InternalsWriter: ReportWriting {
  private struct Series {
    var values = ""
    var count = 0
  }

  private struct Object {
    var type: String
    var names: [String] = []
    var series: [String: Series] = [:]
    var from: Double
    var to: Double
  }

  private struct Connection {
    var log: [String] = []
    var ids: [String] = []
    var objects: [String: Object] = [:]
  }

  private let file: TextFile
  private let reporters: [Reporter]
  private let header: TakeHeader
  private var connections: [Int64: Connection] = [:]
  private var devices: [String] = []

  init(_ file: TextFile, _ reporters: [Reporter], _ header: TakeHeader) {
    self.file = file
    self.reporters = reporters
    self.header = header
  }

  func begin() {}

  mutating func add(_ event: ReportEvent) {
    guard event.peer > 0 else { return addDevices(event) }
    let type: String
    switch event.kind {
    case .success: type = event.name + "OnSuccess"
    case .failure: type = event.name + "OnFailure"
    case .call, .event: type = event.name
    }
    // A value is always a string: JSON, or empty if there is none.
    let value = event.value == .null ? "" : event.value.json
    connections[event.peer, default: Connection()].log.append(
      JSONText.object([
        ("type", .text(type)), ("value", .text(value)), ("timestamp", .number(event.time)),
      ]).text)
  }

  /// Adds a device request and its result.
  private mutating func addDevices(_ event: ReportEvent) {
    guard ["getUserMedia", "getDisplayMedia"].contains(event.name) else { return }
    var members = event.value.members.filter { $0.name != "timestamp" }
    func add(_ name: String, _ value: JSONValue) {
      if !members.contains(where: { $0.name == name }) {
        members.append(JSONValue.Member(name, value))
      }
    }
    add("pid", .integer(1))
    add("rid", .integer(1))
    add("request_id", .integer(event.call ?? 0))
    add("request_type", .text(event.name))
    switch event.kind {
    case .success: add("stream_id", .text(""))
    case .failure: add("error", .text(event.value.text ?? event.value["name"]?.text ?? "Error"))
    case .call, .event: add("origin", .text(""))
    }
    add("timestamp", .number(event.time))
    devices.append(JSONValue.object(members).json)
  }

  mutating func add(_ report: StatsReport) {
    var connection = connections[report.peer] ?? Connection()
    connections[report.peer] = nil
    for stats in report.objects {
      var object =
        connection.objects[stats.id]
        ?? Object(type: stats.type, from: report.time, to: report.time)
      connection.objects[stats.id] = nil
      if object.series.isEmpty { connection.ids.append(stats.id) }
      object.to = report.time
      let isOwn = ReportReader.isRemote(stats.type) || report.changed.contains(stats.id)
      let time = JSONValue.number(isOwn ? stats.timestamp : report.time)
      for member in [JSONValue.Member("timestamp", time)] + stats.members {
        if object.series[member.name] == nil { object.names.append(member.name) }
        var series = object.series[member.name] ?? Series()
        object.series[member.name] = nil
        series.values += (series.count == 0 ? "" : ",") + member.value.json
        series.count += 1
        object.series[member.name] = series
      }
      // All series end together, because readers align them by their ends.
      if object.names.count > stats.members.count + 1 {
        let length = object.series["timestamp"]?.count ?? 0
        let present = Set(stats.members.map(\.name))
        for name in object.names where name != "timestamp" && !present.contains(name) {
          if let count = object.series[name]?.count, count < length {
            object.series[name]?.values += ",null"
            object.series[name]?.count += 1
          }
        }
      }
      connection.objects[stats.id] = object
    }
    connections[report.peer] = connection
  }

  mutating func finish() throws(ExportFailure) {
    try file.write("{\n \"getUserMedia\": [\(devices.joined(separator: ",\n  "))],\n")
    try file.write(" \"PeerConnections\": {\n")
    for (place, reporter) in reporters.filter({ $0.number > 0 }).enumerated() {
      if place > 0 { try file.write(",\n") }
      try write(reporter, connections[reporter.number] ?? Connection())
    }
    let agent = "Retake/\(retakeVersion)"
    try file.write(
      "\n },\n \"UserAgent\": \(JSONText.text(agent).text),\n \"UserAgentData\": "
        + "[{\"brand\":\"Retake\",\"version\":\(JSONText.text(retakeVersion).text)}],\n"
        + " \"timestamp\": \(JSONText.number(Double(header.startUnixNanoseconds) / 1e6).text)\n}\n")
  }

  private func write(
    _ reporter: Reporter, _ connection: Connection
  ) throws(ExportFailure) {
    try file.write("  \(JSONText.text(reporter.name).text): {\n   \"pid\": 1,\n")
    try file.write("   \"url\": \(JSONText.text("retake:\(reporter.label)").text),\n")
    try file.write(
      "   \"rtcConfiguration\": \(JSONText.text(reporter.configuration.json).text),\n")
    try file.write("   \"constraints\": \"\",\n   \"stats\": {\n")
    var isFirst = true
    for id in connection.ids {
      guard let object = connection.objects[id] else { continue }
      let ends =
        "{\"startTime\":\"\(DateText.iso(object.from))\","
        + "\"endTime\":\"\(DateText.iso(object.to))\","
        + "\"statsType\":\(JSONText.text(object.type).text),\"values\":"
      for name in object.names {
        guard let series = object.series[name] else { continue }
        try file.write(isFirst ? "    " : ",\n    ")
        isFirst = false
        try file.write(JSONText.text("\(id)-\(name)").text + ": " + ends)
        try file.write(JSONText.text("[\(series.values)]").text + "}")
      }
    }
    try file.write("\n   },\n   \"updateLog\": [\n    ")
    try file.write(connection.log.joined(separator: ",\n    "))
    try file.write("\n   ]\n  }")
  }
}

/// Writes an rtcstats dump, file format 3: a line for each call, event and report; reports contain
/// only changes.
struct RTCStatsWriter: ReportWriting {
  private let file: TextFile
  private let reporters: [Reporter]
  private let header: TakeHeader
  /// The last line's time as readers compute it, by adding up time differences, in milliseconds.
  private var last: Double = 0
  private var begun: Set<Int64> = []
  private var former: [Int64: [String: [String: String]]] = [:]

  init(_ file: TextFile, _ reporters: [Reporter], _ header: TakeHeader) {
    self.file = file
    self.reporters = reporters
    self.header = header
  }

  func begin() throws(ExportFailure) {
    let head = JSONText.object([
      ("fileFormat", .integer(3)), ("clientProtocol", .text("rtcstats#5.0")),
      ("userAgent", .text("Retake/\(retakeVersion)")),
      ("startTime", .number(Double(header.startUnixNanoseconds) / 1e6)),
    ])
    try file.write("RTCStatsDump\n\(head.text)\n")
  }

  private mutating func line(
    _ method: String, _ peer: Int64, _ value: String, _ extra: String?, at time: Double
  ) throws(ExportFailure) {
    if peer > 0, begun.insert(peer).inserted,
      let reporter = reporters.first(where: { $0.number == peer })
    {
      let made = Double(header.startUnixNanoseconds +| reporter.at) / 1e6
      try line("create", peer, reporter.configuration.json, nil, at: min(made, time))
    }
    let name = reporters.first { $0.number == peer }.flatMap { $0.number > 0 ? $0.name : nil }
    let passed = time - last
    last += passed
    let parts = [
      JSONText.text(method), name.map { .text($0) } ?? .null, JSONText(value),
      extra.map { .text($0) }, .number(passed),
    ]
    try file.write(JSONText.list(parts.compactMap(\.self)).text + "\n")
  }

  mutating func add(_ event: ReportEvent) throws(ExportFailure) {
    var method = event.name
    switch event.kind {
    case .success: method += "OnSuccess"
    case .failure: method += "OnFailure"
    case .event where Self.handlers.contains(method): method = "on" + method
    case .call, .event: break
    }
    if event.peer == 0, Self.devices.contains(event.name) {
      method = "navigator.mediaDevices." + method
    }
    try line(
      method, event.peer, event.value.json,
      event.call.map { "\(event.peer)-\($0)" }, at: event.time)
  }

  private static let devices: Set<String> = [
    "getUserMedia", "getDisplayMedia", "enumerateDevices", "devicechange",
  ]
  /// Events that rtcstats names after their handlers, as in `onicecandidate`.
  private static let handlers: Set<String> = [
    "icecandidate", "icecandidateerror", "track", "signalingstatechange",
    "iceconnectionstatechange", "connectionstatechange", "icegatheringstatechange",
    "negotiationneeded", "datachannel", "devicechange",
  ]

  mutating func add(_ report: StatsReport) throws(ExportFailure) {
    var before = former[report.peer] ?? [:]
    var parts: [(String, JSONText?)] = report.gone.map { ($0, .null) }
    for id in report.gone { before[id] = nil }
    for object in report.objects
    where report.changed.contains(object.id) || before[object.id] == nil {
      var members: [(String, JSONText?)] = []
      var now: [String: String] = [:]
      let old = before[object.id] ?? [:]
      for member in [JSONValue.Member("type", .text(object.type))] + object.members {
        let text = member.value.json
        now[member.name] = text
        if old[member.name] != text { members.append((member.name, JSONText(text))) }
      }
      members.append(("timestamp", .number(object.timestamp)))
      before[object.id] = now
      parts.append((object.id, .object(members)))
    }
    former[report.peer] = before
    try line("getStats", report.peer, JSONText.object(parts).text, nil, at: report.time)
  }

  mutating func finish() throws(ExportFailure) {
    // A connection that reported nothing still gets a `create` line.
    for reporter in reporters where reporter.number > 0 && !begun.contains(reporter.number) {
      begun.insert(reporter.number)
      let made = Double(header.startUnixNanoseconds +| reporter.at) / 1e6
      try line("create", reporter.number, reporter.configuration.json, nil, at: max(made, last))
    }
    try line("close", 0, "1000", nil, at: last)
  }
}

/// Formats dates as JavaScript does.
enum DateText {
  /// Formats Unix milliseconds as `2026-06-03T09:09:02.822Z`; Gregorian years are counted from
  /// March here, so that leap days come last.
  static func iso(_ milliseconds: Double) -> String {
    let whole = Int64(exactly: max(min(milliseconds, 4e12), 0).rounded()) ?? 0
    let (seconds, rest) = (whole / 1_000, whole % 1_000)
    let day = seconds / 86_400 + 719_468
    let era = day / 146_097
    let ofEra = day - era * 146_097
    let year = (ofEra - ofEra / 1_460 + ofEra / 36_524 - ofEra / 146_096) / 365
    let ofYear = ofEra - (365 * year + year / 4 - year / 100)
    let month = (5 * ofYear + 2) / 153
    let number = ofYear - (153 * month + 2) / 5 + 1
    let calendar = month < 10 ? month + 3 : month - 9
    func two(_ value: Int64) -> String { value < 10 ? "0\(value)" : "\(value)" }
    let date = "\(year + era * 400 + (calendar <= 2 ? 1 : 0))-\(two(calendar))-\(two(number))"
    let time = "\(two(seconds / 3_600 % 24)):\(two(seconds / 60 % 60)):\(two(seconds % 60))"
    let fraction = String(rest)
    return "\(date)T\(time).\(String(repeating: "0", count: 3 - fraction.count))\(fraction)Z"
  }
}
