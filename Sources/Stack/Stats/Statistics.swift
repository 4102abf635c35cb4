package import Wire

/// A stats object in the form the room SDKs use: flat, with members by name.
public struct Statistics: Hashable, Sendable {
  /// The object's identifier, the same in every report.
  public var id: String
  /// The W3C type, such as `inbound-rtp` or `candidate-pair`.
  public var type: String
  /// Unix time of the sample in seconds.
  public var timeStamp: Double
  /// All other members, by their W3C names.
  public var values: [String: StatsValue]

  /// Converts a W3C object; its timestamp in milliseconds becomes seconds.
  public init(_ object: StatsObject) {
    id = object.id
    type = object.type
    timeStamp = object.timestamp / 1000
    values = Dictionary(object.members.map { ($0.name, $0.value) }) { first, _ in first }
  }

  /// The object as JSON, with members sorted by name.
  public var json: String {
    let members = values.sorted { $0.key < $1.key }.map { ($0.key, JSONText($0.value)) }
    return JSONText.object([
      ("id", .text(id)), ("type", .text(type)), ("timeStamp", .number(timeStamp)),
      ("values", .object(members)),
    ]).text
  }
}

/// One direction of a session's statistics, as the room SDKs report it.
public struct StatisticsReport: Hashable, Sendable {
  /// The objects by id.
  public var statistics: [String: Statistics]
  /// Unix time of the report in seconds; 0 if the report is empty.
  public var timeStamp: Double

  /// Converts a W3C report; among objects with the same id, the first wins.
  public init(_ report: StatsReport) {
    statistics = Dictionary(report.objects.map { ($0.id, Statistics($0)) }) { first, _ in first }
    timeStamp = (report.objects.map(\.timestamp).max() ?? 0) / 1000
  }

  /// The report as JSON, with objects sorted by id.
  public var json: String {
    let objects = statistics.sorted { $0.key < $1.key }.map { ($0.key, JSONText($0.value.json)) }
    return JSONText.object([
      ("timeStamp", .number(timeStamp)), ("statistics", .object(objects)),
    ]).text
  }
}

extension StatsReport {
  /// The sending direction (`getLocalStatsReport`): sent streams and all objects they refer to,
  /// such as sources, the remote peer's reports and the transport.
  public var local: StatisticsReport { direction("outbound-rtp") }

  /// The receiving direction (`getRemoteStatsReport`): received streams and all objects they refer
  /// to.
  public var remote: StatisticsReport { direction("inbound-rtp") }

  private func direction(_ type: String) -> StatisticsReport {
    StatisticsReport(reachable(from: objects.filter { $0.type == type }.map(\.id)))
  }
}

// MARK: - StatsReport

/// The value of one member of a stats object.
public enum StatsValue: Hashable, Sendable {
  /// A counter or another integer.
  case integer(Int64)
  /// A measurement, such as a time in seconds, a level or a rate.
  case number(Double)
  /// A text, such as an identifier, a state or an address.
  case text(String)
  /// A Boolean value, such as `nominated`.
  case flag(Bool)
  /// A nested record, such as `qualityLimitationDurations`.
  case record([StatsMember])
}

/// A member of a stats object: its W3C name and value.
public struct StatsMember: Hashable, Sendable {
  /// The member's name in W3C's specification, such as `packetsSent`.
  public var name: String
  /// The member's value, in the unit of W3C's specification.
  public var value: StatsValue

  /// Creates a member from its W3C name and its value.
  public init(_ name: String, _ value: StatsValue) {
    self.name = name
    self.value = value
  }
}

/// One stats object (a W3C `RTCStats` dictionary); members that do not apply are absent.
public struct StatsObject: Hashable, Sendable {
  /// The object's identifier: opaque, and the same in every report.
  public var id: String
  /// The W3C type, such as `inbound-rtp` or `candidate-pair`.
  public var type: String
  /// Unix time of the sample in milliseconds.
  public var timestamp: Double
  /// The members besides `id`, `type` and `timestamp`, in the standard's order.
  public var members: [StatsMember]

  /// Creates an object; its members must be in the standard's order.
  public init(id: String, type: String, timestamp: Double, members: [StatsMember]) {
    self.id = id
    self.type = type
    self.timestamp = timestamp
    self.members = members
  }
}

/// The result of `getStats`: stats objects in a fixed order.
public struct StatsReport: Hashable, Sendable {
  /// The objects, in an order that depends only on the state of the connection.
  public var objects: [StatsObject]

  /// Creates a report, which keeps the order of its objects.
  public init(objects: [StatsObject] = []) { self.objects = objects }
}

// MARK: - StatsReport: Selection

extension StatsReport {
  /// Returns the objects with these ids and everything they refer to, in this report's order (W3C
  /// stats selection algorithm).
  ///
  /// A member refers to an object if its name ends in `Id` and its value is the id of an object in
  /// the report.
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

  /// Returns the object with this id; nil if the report has none.
  public subscript(id id: String) -> StatsObject? { objects.first { $0.id == id } }
}

// MARK: - StatsJSON

extension StatsValue {
  /// The value as JSON; numbers that JSON cannot represent become null.
  public var json: String { JSONText(self).text }
}

extension StatsObject {
  /// The members after `id`, `type` and `timestamp` as one JSON object: column `members` of a
  /// `stat` row.
  public var membersJSON: String { jsonObject(members) }

  /// The object as JSON, in the form browsers print.
  public var json: String {
    jsonObject(
      [
        StatsMember("id", .text(id)), StatsMember("timestamp", .number(timestamp)),
        StatsMember("type", .text(type)),
      ] + members)
  }

  /// Returns a member's value; nil if it does not apply.
  public subscript(name: String) -> StatsValue? { members.first { $0.name == name }?.value }
}

extension StatsReport {
  /// The report as a JSON array, in the form browsers print.
  public var json: String { JSONText.list(objects.map { JSONText($0.json) }).text }
}

extension JSONText {
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

/// Quotes and escapes a string for JSON (RFC 8259 section 7).
package func jsonString(_ text: String) -> String { JSONText.text(text).text }

private func jsonObject(_ members: [StatsMember]) -> String {
  var out: [UInt8] = []
  out.reserveCapacity(32 * (1 + members.count))
  append(members, to: &out)
  return String(decoding: out, as: UTF8.self)
}

/// Appends the members as JSON in place, because a report has thousands of them.
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
