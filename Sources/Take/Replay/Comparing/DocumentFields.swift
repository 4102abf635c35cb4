import Foundation

/// The members of a JSON document, and the lines of the session descriptions in it, so that what
/// differs between two documents is a field and not a long text.
struct DocumentFields {
  private(set) var all: [(name: String, value: String)] = []

  /// How deep objects within objects are taken apart.
  private static let depth = 6

  /// Takes a text apart; nil when it is no JSON object or list.
  init?(_ text: String) {
    guard let first = text.utf8.first, first == UInt8(ascii: "{") || first == UInt8(ascii: "["),
      let value = try? JSONSerialization.jsonObject(with: Data(text.utf8))
    else { return nil }
    add(value, at: "", depth: 0)
    // An empty document has no fields.
    if all.allSatisfy({ $0.name == "value" }) { return nil }
  }

  private mutating func add(_ value: Any, at path: String, depth: Int) {
    if depth < DocumentFields.depth, let object = value as? [String: Any], !object.isEmpty {
      for key in object.keys.sorted() {
        if let member = object[key] {
          add(member, at: path.isEmpty ? key : "\(path).\(key)", depth: depth + 1)
        }
      }
    } else if depth < DocumentFields.depth, let list = value as? [Any], !list.isEmpty {
      for (index, member) in list.enumerated() {
        add(member, at: "\(path)[\(index)]", depth: depth + 1)
      }
    } else if let text = value as? String, text.hasPrefix("v=0") {
      addDescription(text, at: path)
    } else {
      let isEmpty = (value as? [String: Any])?.isEmpty ?? (value as? [Any])?.isEmpty ?? false
      let empty = value is [String: Any] ? "{}" : "[]"
      all.append((path.isEmpty ? "value" : path, isEmpty ? empty : "\(value)"))
    }
  }

  /// The lines of a description by section and type; of several alike each has a number.
  private mutating func addDescription(_ text: String, at path: String) {
    var section = "session"
    var sections = 0
    var counts: [String: Int] = [:]
    for line in text.split(whereSeparator: \.isNewline) {
      if line.hasPrefix("m=") {
        sections += 1
        section = "m-section \(sections)"
      }
      // An attribute is known by its name, another line by its type (RFC 8866 section 5).
      let isAttribute = line.hasPrefix("a=")
      let key = "\(section) \(isAttribute ? line.prefix { $0 != ":" } : line.prefix(2))"
      let count = counts[key, default: 0] + 1
      counts[key] = count
      let label = count == 1 ? key : "\(key) \(count)"
      all.append((path.isEmpty ? label : "\(path) \(label)", String(line)))
    }
  }
}
