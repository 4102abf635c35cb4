import Replay
import Wire

/// A snapshot as a tree of named values, for printing, look-up and comparison.
///
/// It is created by reflection, so new fields of a layer appear automatically.
package struct SnapshotTree: Hashable, Sendable, Codable {
  /// The type of a node: a leaf's kind of value, or a container.
  package enum Kind: String, Sendable, Codable {
    case text, number, seconds, absent, record, list
  }

  package var name: String
  package var kind: Kind
  /// A leaf's value: digits for a number, seconds for a time.
  package var value: String
  package var children: [SnapshotTree]

  init(_ name: String, _ kind: Kind, _ value: String = "", _ children: [SnapshotTree] = []) {
    self.name = name
    self.kind = kind
    self.value = value
    self.children = children
  }

  /// Reflects plain data: numbers, strings, times, and structures, arrays and optionals of them.
  package init(_ name: String, of value: Any) {
    switch value {
    case let text as String: self.init(name, .text, text)
    case let flag as Bool: self.init(name, .number, flag ? "true" : "false")
    case let number as any BinaryInteger: self.init(name, .number, "\(number)")
    case let number as Double: self.init(name, .number, JSONText.number(number).text)
    case let instant as Instant: self.init(name, .seconds, Self.seconds(instant.nanoseconds))
    case let interval as Interval: self.init(name, .seconds, Self.seconds(interval.nanoseconds))
    case let address as SocketAddress: self.init(name, .text, address.description)
    case let address as IPAddress: self.init(name, .text, address.description)
    default: self.init(name, reflecting: value)
    }
  }

  private init(_ name: String, reflecting value: Any) {
    let mirror = Mirror(reflecting: value)
    switch mirror.displayStyle {
    case .optional:
      if let some = mirror.children.first {
        self.init(name, of: some.value)
      } else {
        self.init(name, .absent)
      }
    case .collection, .set, .dictionary:
      let entries = mirror.children.enumerated().map {
        SnapshotTree(String($0.offset), of: $0.element.value)
      }
      let fields = entries.compactMap(\.namedValue)
      if !fields.isEmpty, Set(fields.map(\.name)).count == entries.count {
        self.init(name, .record, "", fields)
      } else {
        self.init(name, .list, "", entries)
      }
    case .enum: self.init(name, .text, (value as? any RawRepresentable).map(Self.raw) ?? "\(value)")
    default:
      if let raw = value as? any RawRepresentable {
        self.init(name, .text, Self.raw(raw))
      } else {
        let fields = mirror.children.compactMap { child in
          child.label.map { SnapshotTree($0, of: child.value) }
        }
        // A wrapper around a number is shown as the number.
        if fields.count == 1, fields[0].name == "number", fields[0].kind == .number {
          self.init(name, .number, fields[0].value)
        } else {
          self.init(name, .record, "", fields)
        }
      }
    }
  }

  /// The value under its name, if this record has only a `name` and a `value`; nil otherwise.
  private var namedValue: SnapshotTree? {
    guard kind == .record, children.map(\.name) == ["name", "value"],
      children[0].kind == .text
    else { return nil }
    let value = children[1]
    return SnapshotTree(children[0].value, value.kind, value.value, value.children)
  }

  private static func raw(_ value: any RawRepresentable) -> String { "\(value.rawValue)" }

  private static func seconds(_ nanoseconds: Int64) -> String {
    let digits = String(nanoseconds.magnitude % 1_000_000_000)
    let fraction = String(repeating: "0", count: 9 - digits.count) + digits
    return (nanoseconds < 0 ? "-" : "") + String(nanoseconds.magnitude / 1_000_000_000) + "."
      + fraction.prefix(6)
  }

  // MARK: Look-up

  /// Returns the subtree at a path such as `flow.receiving[1].missing`, if there is one.
  package subscript(path: String) -> SnapshotTree? {
    var tree = self
    for part in path.split(whereSeparator: { $0 == "." || $0 == "[" || $0 == "]" }) {
      guard let next = tree.children.first(where: { $0.name == part }) else { return nil }
      tree = next
    }
    return tree
  }

  /// Describes why a path does not exist: how far it matches, what can follow, and similar paths.
  func absence(of path: String) -> String {
    var (tree, known) = (self, "")
    var unknown: Substring = ""
    for part in path.split(whereSeparator: { $0 == "." || $0 == "[" || $0 == "]" }) {
      guard let next = tree.children.first(where: { $0.name == part }) else {
        unknown = part
        break
      }
      known += tree.kind == .list ? "[\(part)]" : known.isEmpty ? "\(part)" : ".\(part)"
      tree = next
    }
    let there: String
    if tree.children.isEmpty {
      there = tree.kind == .list ? "there are no entries now" : "the value is \(tree.text)"
    } else if tree.kind == .list {
      there = "there are [0] to [\(tree.children.count - 1)]"
    } else {
      there = "there are " + tree.children.map(\.name).joined(separator: ", ")
    }
    let meant = near(String(unknown), below: tree, at: known)
    return "there is nothing at \"\(path)\"; " + (known.isEmpty ? there : "at \(known) \(there)")
      + (meant.isEmpty ? "" : "; did you mean \(meant.joined(separator: " or "))?")
      + (meant.isEmpty && known.isEmpty ? "; show without a path prints all of it" : "")
  }

  /// Returns paths that the user may have meant: similar names at the known path or, if there are
  /// none, up to three paths elsewhere that end with the same or a similar name.
  private func near(_ name: String, below tree: SnapshotTree, at known: String) -> [String] {
    guard tree.kind != .list else { return [] }
    let here = Nearest.words(to: name, among: tree.children.map(\.name))
    if !here.isEmpty { return here.map { known.isEmpty ? $0 : "\(known).\($0)" } }
    let ends = leaves(recursive: true).map { entry in
      (path: entry.path, name: entry.path.split { $0 == "." || $0 == "[" }.last ?? "")
    }
    let isThere = ends.contains { $0.name == name }
    let wanted = isThere ? [name] : Nearest.words(to: name, among: ends.map { String($0.name) })
    return Array(ends.filter { wanted.contains(String($0.name)) }.prefix(3).map(\.path))
  }

  /// Returns all paths that begin with a string, for completion.
  package func paths(below prefix: String) -> [String] {
    leaves(recursive: true).map(\.path).filter { $0.hasPrefix(prefix) }
  }

  /// The values of all leaves, with their paths from this node.
  package var leaves: [(path: String, value: String)] {
    leaves(recursive: false).map { ($0.path, $0.tree.text) }
  }

  private func leaves(recursive: Bool) -> [(path: String, tree: SnapshotTree)] {
    var found: [(path: String, tree: SnapshotTree)] = []
    func walk(_ tree: SnapshotTree, _ path: String) {
      for child in tree.children {
        let below =
          tree.kind == .list
          ? "\(path)[\(child.name)]" : path.isEmpty ? child.name : "\(path).\(child.name)"
        if child.children.isEmpty || recursive { found.append((below, child)) }
        if !child.children.isEmpty { walk(child, below) }
      }
    }
    walk(self, "")
    return found
  }

  /// Returns the differences from another state: each path with its values before and after.
  package func changes(to other: SnapshotTree) -> [(path: String, before: String, after: String)] {
    let after = other.leaves
    var rest: [String: String] = [:]
    for leaf in after { rest[leaf.path] = leaf.value }
    var changes: [(path: String, before: String, after: String)] = []
    var known: Set<String> = []
    for leaf in leaves {
      known.insert(leaf.path)
      let now = rest[leaf.path] ?? "-"
      if now != leaf.value { changes.append((leaf.path, leaf.value, now)) }
    }
    changes += after.filter { !known.contains($0.path) }.map { ($0.path, "-", $0.value) }
    return changes
  }

  // MARK: Printing

  /// A leaf's value, or a subtree's size.
  package var text: String {
    switch kind {
    case .text: value.isEmpty ? "\"\"" : value
    case .number: value
    case .seconds: value + " s"
    case .absent: "-"
    case .record: counted(children.count, "field")
    case .list: children.isEmpty ? "none" : counted(children.count, "entry", "entries")
    }
  }

  /// The tree as indented lines; a record or list is on one line if it fits.
  package var lines: [String] { lines(indent: "").map(PrintableText.line) }

  private func lines(indent: String) -> [String] {
    guard !children.isEmpty else { return ["\(indent)\(name): \(text)"] }
    if let short = oneLine, (indent + short).count <= 100 { return [indent + short] }
    if kind == .list, children.allSatisfy({ $0.children.isEmpty }) {
      return ["\(indent)\(name):"] + wrapped(indent: indent + "  ")
    }
    return ["\(indent)\(name):"] + children.flatMap { $0.lines(indent: indent + "  ") }
  }

  /// Returns a list's values on as few lines as possible.
  private func wrapped(indent: String) -> [String] {
    var lines: [String] = []
    var line = indent
    for (index, child) in children.enumerated() {
      let part = child.text + (index + 1 < children.count ? "," : "")
      if line.count + part.count > 98, line != indent {
        lines.append(line)
        line = indent
      }
      line += (line == indent ? "" : " ") + part
    }
    return lines + [line]
  }

  private var oneLine: String? {
    guard children.allSatisfy({ $0.children.isEmpty }) else { return nil }
    let parts = children.map { kind == .list ? $0.text : "\($0.name) \($0.text)" }
    return "\(name): " + parts.joined(separator: ", ")
  }

  /// The tree as JSON: times and durations in seconds, absent values as null.
  package var json: String {
    switch kind {
    case .text: JSONText.text(value).text
    case .number, .seconds: value
    case .absent: JSONText.null.text
    case .record: JSONText.object(children.map { ($0.name, JSONText($0.json)) }).text
    case .list: JSONText.list(children.map { JSONText($0.json) }).text
    }
  }
}
