extension StatsValue {
  /// The value as JSON text; a number that JSON cannot carry becomes null.
  public var json: String {
    switch self {
    case .integer(let value): String(value)
    case .number(let value): jsonNumber(value)
    case .text(let value): jsonString(value)
    case .flag(let value): value ? "true" : "false"
    case .record(let members): jsonObject(members)
    }
  }
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
  public var json: String { "[" + objects.map(\.json).joined(separator: ",") + "]" }
}

private func jsonObject(_ members: [StatsMember]) -> String {
  var out: [UInt8] = []
  out.reserveCapacity(32 * (1 + members.count))
  appendObject(members, to: &out)
  return String(decoding: out, as: UTF8.self)
}

/// Objects are written as bytes: they are most of what a take says each second.
private func appendObject(_ members: [StatsMember], to out: inout [UInt8]) {
  out.append(UInt8(ascii: "{"))
  for index in members.indices {
    if index > 0 { out.append(UInt8(ascii: ",")) }
    appendString(members[index].name, to: &out)
    out.append(UInt8(ascii: ":"))
    switch members[index].value {
    case .text(let value): appendString(value, to: &out)
    case .record(let members): appendObject(members, to: &out)
    case let value: append(value.json, to: &out)
    }
  }
  out.append(UInt8(ascii: "}"))
}

private func append(_ text: String, to out: inout [UInt8]) {
  var text = text
  text.withUTF8 { out.append(contentsOf: $0) }
}

private func appendString(_ text: String, to out: inout [UInt8]) {
  var text = text
  out.append(UInt8(ascii: "\""))
  let isPlain = text.withUTF8 { bytes in
    // Nearly all strings of a report are names and numbers.
    guard bytes.allSatisfy({ $0 >= 0x20 && $0 != 0x22 && $0 != 0x5c }) else { return false }
    out.append(contentsOf: bytes)
    return true
  }
  if !isPlain { append(escaped(text), to: &out) }
  out.append(UInt8(ascii: "\""))
}

/// A number as JSON text: whole values without a fraction, as JavaScript prints them.
private func jsonNumber(_ value: Double) -> String {
  guard value.isFinite else { return "null" }
  if value.rounded(.towardZero) == value, value.magnitude < 9_007_199_254_740_992 {
    return String(Int64(value))
  }
  return value.description
}

/// A string as JSON text (RFC 8259 section 7).
public func jsonString(_ text: String) -> String {
  var out: [UInt8] = []
  appendString(text, to: &out)
  return String(decoding: out, as: UTF8.self)
}

private func escaped(_ text: String) -> String {
  var out = ""
  for scalar in text.unicodeScalars {
    switch scalar {
    case "\"": out += "\\\""
    case "\\": out += "\\\\"
    case "\n": out += "\\n"
    case "\r": out += "\\r"
    case "\t": out += "\\t"
    case _ where scalar.value < 0x20:
      let digits = String(scalar.value, radix: 16)
      out += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
    default: out.unicodeScalars.append(scalar)
    }
  }
  return out
}
