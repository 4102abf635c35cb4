import Wire

/// The members of a JSON document, and the lines of the session descriptions in it, so that what
/// differs between two documents is a field and not a long text.
struct DocumentFields {
  private(set) var all: [(name: String, value: String)] = []

  /// How deep objects within objects are taken apart.
  private static let depth = 6

  /// Takes a text apart; nil when it is no JSON object or list.
  init?(_ text: String) {
    guard let first = text.utf8.first, first == UInt8(ascii: "{") || first == UInt8(ascii: "["),
      let value = try? JSONValue(parsing: text)
    else { return nil }
    add(value, at: "", depth: 0)
    // An empty document has no fields.
    if all.allSatisfy({ $0.name == "value" }) { return nil }
  }

  private mutating func add(_ value: JSONValue, at path: String, depth: Int) {
    switch value {
    case .object(let members) where depth < DocumentFields.depth && !members.isEmpty:
      for name in Set(members.map(\.name)).sorted() {
        if let member = value[name] {
          add(member, at: path.isEmpty ? name : "\(path).\(name)", depth: depth + 1)
        }
      }
    case .list(let elements) where depth < DocumentFields.depth && !elements.isEmpty:
      for (index, element) in elements.enumerated() {
        add(element, at: "\(path)[\(index)]", depth: depth + 1)
      }
    case .text(let text) where text.hasPrefix("v=0"): addDescription(text, at: path)
    default: all.append((path.isEmpty ? "value" : path, value.text ?? value.json))
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
