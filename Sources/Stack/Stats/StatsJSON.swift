package import Wire

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
