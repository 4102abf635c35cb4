/// The arguments of a call by name, for reporting differences.
///
/// They are found by reflection, so a new field of a description or source needs no change here.
struct CallArguments {
  /// The simple values in order, each with its path: `source`, `description.sdp`.
  private var values: [(name: String, value: Any)] = []

  /// Collects the arguments.
  /// - Parameter call: a case of an enumeration with its arguments, or a structure of them.
  init(_ call: Any) {
    let mirror = Mirror(reflecting: call)
    if mirror.displayStyle == .enum {
      // A case without arguments has no children.
      if let child = mirror.children.first { add("", child.value, depth: 0) }
    } else {
      add("", call, depth: 0)
    }
  }

  private static let depthMaximum = 4

  private mutating func add(_ name: String, _ value: Any, depth: Int) {
    let mirror = Mirror(reflecting: value)
    switch mirror.displayStyle {
    case .optional?:
      if let some = mirror.children.first {
        add(name, some.value, depth: depth)
      } else {
        values.append((name, "nothing"))
      }
    case .tuple? where depth < Self.depthMaximum, .struct? where depth < Self.depthMaximum:
      guard !mirror.children.isEmpty else { return values.append((name, value)) }
      for child in mirror.children {
        // Unlabelled values are named `.0`, `.1`.
        let label = child.label.flatMap { $0.hasPrefix(".") ? nil : $0 } ?? ""
        let place = [name, label].filter { !$0.isEmpty }.joined(separator: ".")
        add(place, child.value, depth: depth + 1)
      }
    default: values.append((name, value))
    }
  }

  /// All of them on one line.
  var text: String {
    values.map { name, value in
      (name.isEmpty ? "" : "\(name): ") + Self.short(value)
    }.joined(separator: ", ")
  }

  /// The arguments that differ from those of the recorded call, with both values.
  func differences(from recorded: CallArguments) -> [String] {
    let names = values.map(\.name)
    guard names == recorded.values.map(\.name) else {
      return ["\(text), recorded \(recorded.text)"]
    }
    return zip(values, recorded.values).compactMap { present, recorded in
      Self.difference(present.name, present.value, recorded.value)
    }
  }

  private static func difference(_ name: String, _ present: Any, _ recorded: Any) -> String? {
    let name = name.isEmpty ? "" : "\(name): "
    let (new, old) = (String(describing: present), String(describing: recorded))
    guard new != old else { return nil }
    // The first differing line of a description says more than its length.
    let lines = new.split(whereSeparator: \.isNewline)
    let oldLines = old.split(whereSeparator: \.isNewline)
    guard max(lines.count, oldLines.count) > 1 else {
      return "\(name)\(short(present)), recorded \(short(recorded))"
    }
    let same = zip(lines, oldLines).prefix { $0 == $1 }.count
    func line(_ lines: [Substring]) -> String {
      same < lines.count ? "\"\(lines[same].prefix(lengthMaximum))\"" : "its end"
    }
    return "\(name)line \(same + 1) is \(line(lines)), recorded \(line(oldLines))"
  }

  private static let lengthMaximum = 80

  /// A value shortened for a sentence.
  private static func short(_ value: Any) -> String {
    if let bytes = value as? [UInt8] {
      let text = String(decoding: bytes, as: UTF8.self)
      let isText = text.unicodeScalars.allSatisfy { $0.value >= 0x20 && $0.value != 0xfffd }
      return isText && bytes.count <= lengthMaximum ? "\"\(text)\"" : "\(bytes.count) bytes"
    }
    let text = String(describing: value)
    if text.contains(where: \.isNewline) { return "\(text.count) characters" }
    return text.count > lengthMaximum ? "\(text.prefix(lengthMaximum))..." : text
  }
}
