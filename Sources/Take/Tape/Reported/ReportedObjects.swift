import Observer
import Wire

/// An object of getStats with all its members.
struct ReportedObject: Hashable, Sendable {
  var id: String
  var type: String
  /// Unix time in milliseconds.
  var timestamp: Double
  /// Without the id, the type and the time; in W3C's names, with those of before beside them.
  var members: [JSONValue.Member]

  subscript(name: String) -> JSONValue? { members.last { $0.name == name }?.value }

  /// A number, also one that stands in a text.
  func number(_ name: String) -> Double? {
    guard let value = self[name] else { return nil }
    guard let number = value.number ?? value.text.flatMap(Double.init), number.isFinite else {
      return nil
    }
    return number
  }

  /// A count; 0 where there is none.
  func count(_ name: String) -> UInt64 {
    number(name).flatMap { UInt64(exactly: $0.rounded()) } ?? 0
  }

  func flag(_ name: String) -> Bool? { self[name]?.flag }

  var json: String { JSONValue.object(members).json }
}

/// The objects of the last report of a connection, built up from what reports say of them.
struct ReportedObjects {
  private var raw: [String: [JSONValue.Member]] = [:]
  private var whole: [String: ReportedObject] = [:]
  /// The ids in the order in which they came up.
  private(set) var ids: [String] = []

  /// A file may claim any number; a step has room for this many rows.
  private static let most = 10_000

  var count: Int { ids.count }
  subscript(id: String) -> ReportedObject? { whole[id] }

  /// All objects of a type, in the order in which they came up.
  func all(_ type: String) -> [ReportedObject] {
    ids.compactMap { whole[$0] }.filter { $0.type == type }
  }

  /// Folds a report in: gives the objects that changed, and the ids of those that are gone.
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

  /// Members with those that are newer; objects inside of them are merged alike.
  private static func merged(
    _ before: [JSONValue.Member], _ newer: [JSONValue.Member]
  ) -> [JSONValue.Member] {
    guard !before.isEmpty else { return newer }
    var members = before
    // The time of the report before does not hold for this one.
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
