package import Observer
import Wire

/// A stats object of another stack, with all its members.
struct ReportedObject: Hashable, Sendable {
  var id: String
  var type: String
  /// The Unix time of the object in milliseconds.
  var timestamp: Double
  /// The members besides id, type and timestamp, under both their W3C names and older names.
  var members: [JSONValue.Member]

  subscript(name: String) -> JSONValue? { members.last { $0.name == name }?.value }

  /// Returns a member as a number, even if it is stored as a string; nil if it is not a number.
  func number(_ name: String) -> Double? {
    guard let value = self[name] else { return nil }
    guard let number = value.number ?? value.text.flatMap(Double.init), number.isFinite else {
      return nil
    }
    return number
  }

  /// Returns the value of a counter; 0 if the object does not have it.
  func count(_ name: String) -> UInt64 {
    number(name).flatMap { UInt64(exactly: $0.rounded()) } ?? 0
  }

  func flag(_ name: String) -> Bool? { self[name]?.flag }

  var json: String { JSONValue.object(members).json }
}

/// The stats objects of a connection, merged from reports that may contain only changes.
package struct ReportedObjects: Sendable {
  private var raw: [String: [JSONValue.Member]] = [:]
  private var whole: [String: ReportedObject] = [:]
  /// The ids in the order in which they were first reported.
  private(set) var ids: [String] = []

  /// The maximum number of objects, so that all fit into the rows of a step; further objects are
  /// ignored.
  private static let most = 10_000

  package init() {}

  var count: Int { ids.count }
  subscript(id: String) -> ReportedObject? { whole[id] }

  /// Returns the objects of a type, in the order in which they were first reported.
  func all(_ type: String) -> [ReportedObject] {
    ids.compactMap { whole[$0] }.filter { $0.type == type }
  }

  /// Merges a report into the objects, whether it is complete or contains only changes.
  package mutating func merge(_ report: ReportedStats) { _ = fold(report) }

  /// The objects as a complete report; nil if there are none.
  package var report: ReportedStats? {
    guard !ids.isEmpty else { return nil }
    let objects = ids.map { id in
      // An object keeps the time of the last report that contained it.
      let members = (raw[id] ?? []).filter { $0.name != "timestamp" }
      let time = JSONValue.Member("timestamp", .number(whole[id]?.timestamp ?? 0))
      return ReportedStats.Object(id: id, members: members + [time])
    }
    return ReportedStats(form: .whole, timestamp: nil, objects: objects)
  }

  /// Merges a report; returns the objects that changed, and the ids of those that disappeared.
  mutating func fold(_ report: ReportedStats) -> (changed: [ReportedObject], gone: [String]) {
    var changed: [ReportedObject] = []
    var named: Set<String> = []
    var gone: [String] = []
    for object in report.objects {
      guard let members = object.members else {
        if raw[object.id] != nil { gone.append(object.id) }
        continue
      }
      named.insert(object.id)
      guard raw[object.id] != nil || ids.count < Self.most else { continue }
      let before = report.form == .whole ? [] : raw[object.id] ?? []
      let merged = Self.merged(before, members)
      if raw[object.id] == nil { ids.append(object.id) }
      raw[object.id] = merged
      let folded = Self.object(object.id, merged, report.timestamp)
      if whole[object.id] != folded { changed.append(folded) }
      whole[object.id] = folded
    }
    if report.form != .changes { gone += ids.filter { !named.contains($0) } }
    for id in gone { (raw[id], whole[id]) = (nil, nil) }
    if !gone.isEmpty { ids.removeAll { raw[$0] == nil } }
    return (changed, gone)
  }

  /// Merges newer members into older ones; nested objects are merged in the same way.
  private static func merged(
    _ before: [JSONValue.Member], _ newer: [JSONValue.Member]
  ) -> [JSONValue.Member] {
    guard !before.isEmpty else { return newer }
    var members = before
    // The older timestamp must not remain if the newer report has none.
    members.removeAll { $0.name == "timestamp" }
    for member in newer {
      guard let place = members.firstIndex(where: { $0.name == member.name }) else {
        members.append(member)
        continue
      }
      if case .object(let old) = members[place].value, case .object(let new) = member.value {
        members[place].value = .object(merged(old, new))
      } else {
        members[place].value = member.value
      }
    }
    return members
  }

  private static func object(
    _ id: String, _ raw: [JSONValue.Member], _ timestamp: Double?
  ) -> ReportedObject {
    var object = ReportedObject(id: id, type: "", timestamp: timestamp ?? 0, members: [])
    for member in LegacyStatistics.translated(raw, id: id) {
      switch member.name {
      case "type": object.type = member.value.text ?? ""
      case "timestamp": object.timestamp = member.value.number ?? object.timestamp
      case "id": break
      default: object.members.append(member)
      }
    }
    return object
  }
}
