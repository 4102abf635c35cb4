import Foundation

/// The subset of JSON Schema (draft 2020-12) that the command's output schema needs.
struct JSONSchema {
  /// The complete document, in which `$ref` is resolved.
  let root: [String: Any]

  /// Reads a schema; a file that is not a JSON object yields an empty one.
  init(path: String) throws {
    let data = try Data(contentsOf: URL(filePath: path))
    root = try JSONSerialization.jsonObject(with: data) as? [String: Any] ?? [:]
  }

  /// The definitions: one per verb, and shared ones.
  var definitions: [String: [String: Any]] { root["$defs"] as? [String: [String: Any]] ?? [:] }

  /// Returns where a value does not match a definition; empty if it matches.
  func misses(of value: Any, _ definition: String) -> [String] {
    guard let schema = definitions[definition] else { return ["there is no \(definition)"] }
    return misses(of: value, schema, at: definition)
  }

  private func misses(of value: Any, _ schema: [String: Any], at place: String) -> [String] {
    var found: [String] = []
    if let reference = schema["$ref"] as? String {
      let name = reference.replacing("#/$defs/", with: "")
      found += misses(of: value, definitions[name] ?? ["type": "missing"], at: place)
    }
    if let choices = schema["anyOf"] as? [[String: Any]],
      choices.allSatisfy({ !misses(of: value, $0, at: place).isEmpty })
    {
      found.append("\(place): none of the forms fits")
    }
    let wanted = (schema["type"] as? [String]) ?? (schema["type"] as? String).map { [$0] } ?? []
    if !wanted.isEmpty, !wanted.contains(where: { Self.isA($0, value) }) {
      return found + ["\(place): \(value) is no \(wanted.joined(separator: " or "))"]
    }
    if let values = schema["enum"] as? [String], !values.contains("\(value)") {
      found.append("\(place): \(value) is none of \(values)")
    }
    if let list = value as? [Any], let items = schema["items"] as? [String: Any] {
      for (index, item) in list.enumerated() {
        found += misses(of: item, items, at: "\(place)[\(index)]")
      }
    }
    if let object = value as? [String: Any] { found += misses(ofMembers: object, schema, place) }
    return found
  }

  private func misses(
    ofMembers object: [String: Any], _ schema: [String: Any], _ place: String
  ) -> [String] {
    var found: [String] = []
    let properties = schema["properties"] as? [String: [String: Any]] ?? [:]
    for name in schema["required"] as? [String] ?? [] where object[name] == nil {
      found.append("\(place): \(name) is missing")
    }
    for name in object.keys.sorted() {
      guard let value = object[name] else { continue }
      if let property = properties[name] {
        found += misses(of: value, property, at: "\(place).\(name)")
      } else if let others = schema["additionalProperties"] as? [String: Any] {
        found += misses(of: value, others, at: "\(place).\(name)")
      } else if schema["additionalProperties"] as? Bool == false {
        found.append("\(place): \(name) is not in the schema")
      }
    }
    return found
  }

  private static func isA(_ type: String, _ value: Any) -> Bool {
    let number = value as? NSNumber
    // Foundation on Linux reads a Boolean as a one-byte number.
    let isFlag = number.map { String(cString: $0.objCType) == "c" } ?? false
    return switch type {
    case "null": value is NSNull
    case "boolean": isFlag
    case "string": value is String
    case "number": number != nil && !isFlag
    case "integer": number.map { !isFlag && $0.doubleValue == $0.doubleValue.rounded() } ?? false
    case "array": value is [Any]
    case "object": value is [String: Any]
    default: false
    }
  }
}
