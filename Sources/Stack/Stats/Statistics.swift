package import Wire

/// A stats object in the form of the room SDKs: flat, with its members by name.
public struct Statistics: Hashable, Sendable {
  /// The same for the same thing in every report.
  public var id: String
  /// `inbound-rtp`, `candidate-pair`, ...
  public var type: String
  /// Unix time of the sample in seconds.
  public var timeStamp: Double
  /// The members by their W3C names.
  public var values: [String: StatsValue]

  /// The form of a W3C object.
  public init(_ object: StatsObject) {
    id = object.id
    type = object.type
    timeStamp = object.timestamp / 1000
    values = Dictionary(object.members.map { ($0.name, $0.value) }) { first, _ in first }
  }

  /// The object as JSON with its values in the order of their names.
  public var json: String {
    let members = values.sorted { $0.key < $1.key }.map { ($0.key, JSONText($0.value)) }
    return JSONText.object([
      ("id", .text(id)), ("type", .text(type)), ("timeStamp", .number(timeStamp)),
      ("values", .object(members)),
    ]).text
  }
}

/// What the room SDKs report of one direction: of the session that sends, or of the one that
/// receives.
public struct StatisticsReport: Hashable, Sendable {
  /// By id.
  public var statistics: [String: Statistics]
  /// Unix time of the report in seconds; 0 without objects.
  public var timeStamp: Double

  /// The form of a W3C report.
  public init(_ report: StatsReport) {
    statistics = Dictionary(report.objects.map { ($0.id, Statistics($0)) }) { first, _ in first }
    timeStamp = (report.objects.map(\.timestamp).max() ?? 0) / 1000
  }

  /// The report as JSON with its objects in the order of their ids.
  public var json: String {
    let objects = statistics.sorted { $0.key < $1.key }.map { ($0.key, JSONText($0.value.json)) }
    return JSONText.object([
      ("timeStamp", .number(timeStamp)), ("statistics", .object(objects)),
    ]).text
  }
}

extension StatsReport {
  /// What this side sends, in the SDKs' form (getLocalStatsReport): the sent streams with their
  /// sources, the peer's reports on them, and the transport below.
  public var local: StatisticsReport { direction("outbound-rtp") }

  /// What this side receives, in the SDKs' form (getRemoteStatsReport).
  public var remote: StatisticsReport { direction("inbound-rtp") }

  private func direction(_ type: String) -> StatisticsReport {
    StatisticsReport(reachable(from: objects.filter { $0.type == type }.map(\.id)))
  }
}

// MARK: - StatsReport

/// A value of a stats member.
public enum StatsValue: Hashable, Sendable {
  /// A counter or a whole number.
  case integer(Int64)
  /// A measure: seconds, a level, a rate.
  case number(Double)
  /// An identifier, a state, an address.
  case text(String)
  /// A flag.
  case flag(Bool)
  /// A nested record, as W3C has for quality limitation durations.
  case record([StatsMember])
}

/// A member of a stats object: its W3C name and value.
public struct StatsMember: Hashable, Sendable {
  /// The W3C name.
  public var name: String
  /// The value.
  public var value: StatsValue

  /// Creates a member.
  public init(_ name: String, _ value: StatsValue) {
    self.name = name
    self.value = value
  }
}

/// One stats object (W3C RTCStats and its heirs); members that do not apply are absent.
public struct StatsObject: Hashable, Sendable {
  /// Unpredictable but the same for the same thing in every report.
  public var id: String
  /// `inbound-rtp`, `candidate-pair`, ...
  public var type: String
  /// Unix time of the sample in milliseconds.
  public var timestamp: Double
  /// The other members in the order of the standard.
  public var members: [StatsMember]

  /// Creates an object.
  public init(id: String, type: String, timestamp: Double, members: [StatsMember]) {
    self.id = id
    self.type = type
    self.timestamp = timestamp
    self.members = members
  }
}

/// What getStats gives: stats objects in a fixed order.
public struct StatsReport: Hashable, Sendable {
  /// The objects.
  public var objects: [StatsObject]

  /// Creates a report.
  public init(objects: [StatsObject] = []) { self.objects = objects }
}

// MARK: - StatsReport: Selection

extension StatsReport {
  /// The objects of these ids with all that they refer to, in the order of this report (webrtc-pc
  /// section 8.3).
  ///
  /// A member refers to an object when its name ends in `Id` and its value is an id of the report.
  public func reachable(from roots: [String]) -> StatsReport {
    var reached = Set<String>()
    var waiting = roots
    while let id = waiting.popLast() {
      guard let object = self[id: id], reached.insert(id).inserted else { continue }
      for member in object.members where member.name.hasSuffix("Id") {
        if case .text(let target) = member.value { waiting.append(target) }
      }
    }
    return StatsReport(objects: objects.filter { reached.contains($0.id) })
  }

  /// The object of an id; nil when there is none.
  public subscript(id id: String) -> StatsObject? { objects.first { $0.id == id } }
}

// MARK: - StatsJSON

extension StatsValue {
  /// The value as JSON text; a number that JSON cannot carry becomes null.
  public var json: String { JSONText(self).text }
}

extension StatsObject {
  /// The members after `id`, `type` and `timestamp` as one JSON object, as a `stat` row keeps them.
  public var membersJSON: String { jsonObject(members) }

  /// The whole object as browsers print it.
  public var json: String {
    jsonObject(
      [
        StatsMember("id", .text(id)), StatsMember("timestamp", .number(timestamp)),
        StatsMember("type", .text(type)),
      ] + members)
  }

  /// The value of a member, or nil when it does not apply.
  public subscript(name: String) -> StatsValue? { members.first { $0.name == name }?.value }
}

extension StatsReport {
  /// The report as a JSON array of objects, in the shape that browsers' getStats gives.
  public var json: String { JSONText.list(objects.map { JSONText($0.json) }).text }
}

extension JSONText {
  /// A value of a statistic.
  package init(_ value: StatsValue) {
    self =
      switch value {
      case .integer(let value): .integer(value)
      case .number(let value): .number(value)
      case .text(let value): .text(value)
      case .flag(let value): .flag(value)
      case .record(let members): JSONText(jsonObject(members))
      }
  }
}

/// A string as JSON text (RFC 8259 section 7).
package func jsonString(_ text: String) -> String { JSONText.text(text).text }

private func jsonObject(_ members: [StatsMember]) -> String {
  var out: [UInt8] = []
  out.reserveCapacity(32 * (1 + members.count))
  append(members, to: &out)
  return String(decoding: out, as: UTF8.self)
}

/// In place and as bytes, because reports have thousands of members.
private func append(_ members: [StatsMember], to out: inout [UInt8]) {
  out.append(UInt8(ascii: "{"))
  for index in members.indices {
    if index > 0 { out.append(UInt8(ascii: ",")) }
    JSONText.append(members[index].name, to: &out)
    out.append(UInt8(ascii: ":"))
    switch members[index].value {
    case .text(let value): JSONText.append(value, to: &out)
    case .record(let members): append(members, to: &out)
    case .integer, .number, .flag:
      out.append(contentsOf: JSONText(members[index].value).text.utf8)
    }
  }
  out.append(UInt8(ascii: "}"))
}
