import FoundationEssentials

/// The form that all JSON output shares: lower-case names with underscores like a take's columns,
/// and times and durations in whole nanoseconds with names that end in `_ns`.
///
/// Values from other modules are encoded with their properties' names. For one release, each object
/// also has its members under these older names, after the new names.
package struct JSONForm: Sendable {
  /// A new name, and the factor that converts numbers to the new unit; nil if the unit is the same.
  struct Member: Sendable {
    var name: String
    var factor: Double?
  }

  /// Names that the general rule does not convert.
  var names: [String: Member] = [:]
  /// Members whose contents keep their own names, such as states of the stack.
  var foreign: Set<String> = []

  private static let take = ["path": Member(name: "take")]

  static let info = JSONForm(names: take)
  static let record = JSONForm(names: take)
  static let replay = JSONForm(names: take, foreign: ["states"])
  static let verify = JSONForm(
    names: take.merging(["seconds": Member(name: "duration_ns", factor: 1e9)]) { $1 })
  /// The form of summaries of takes that `upgrade` and `minimise` derive from another take.
  static let upgrade = JSONForm(names: take.merging(["output": Member(name: "out")]) { $1 })
  package static let bench = JSONForm(names: ["seconds": Member(name: "duration_ns", factor: 1e9)])

  /// Converts a value to this form, without indentation.
  func text(_ json: String) -> String {
    var reader = Reader(bytes: Array(json.utf8), form: self)
    var out: [UInt8] = []
    out.reserveCapacity(json.utf8.count * 3 / 2)
    guard reader.value(into: &out, isForeign: false) else { return json }
    return String(decoding: out, as: UTF8.self)
  }

  /// Returns a member's name in this form; nil if it is unchanged.
  func member(_ name: String) -> Member? {
    if let member = names[name] { return member }
    for (ending, factor) in [("Nanoseconds", nil), ("Milliseconds", 1e6), ("Seconds", 1e9)]
      as [(String, Double?)]
    where name.hasSuffix(ending) && name.count > ending.count {
      return Member(name: Self.lowered(name.dropLast(ending.count)) + "_ns", factor: factor)
    }
    let lowered = Self.lowered(name[...])
    return lowered == name ? nil : Member(name: lowered)
  }

  /// Converts `stoppedEarly` to `stopped_early`, `isComplete` to `complete`, `in-part` to
  /// `in_part`.
  private static func lowered(_ name: Substring) -> String {
    var name = name
    if name.hasPrefix("is"), name.dropFirst(2).first?.isUppercase == true { name.removeFirst(2) }
    var text = ""
    for character in name {
      if character.isUppercase {
        text += text.isEmpty || text.hasSuffix("_") ? "" : "_"
        text += character.lowercased()
      } else {
        text.append(character == "-" ? "_" : character)
      }
    }
    return text
  }
}

/// Parses and rewrites a JSON value; text that is not JSON stays unchanged.
private struct Reader {
  let bytes: [UInt8]
  let form: JSONForm
  private var index = 0
  private var depth = 0

  /// The maximum nesting depth of values, which exceeds that of any JSON that this process writes.
  private static let depthLimit = 200

  init(bytes: [UInt8], form: JSONForm) {
    self.bytes = bytes
    self.form = form
  }

  /// Copies the value at the current position; returns false if there is none.
  mutating func value(into out: inout [UInt8], isForeign: Bool) -> Bool {
    skipSpace()
    guard index < bytes.count, depth < Self.depthLimit else { return false }
    depth += 1
    defer { depth -= 1 }
    switch bytes[index] {
    case UInt8(ascii: "{"): return object(into: &out, isForeign: isForeign)
    case UInt8(ascii: "["): return list(into: &out, isForeign: isForeign)
    case UInt8(ascii: "\""):
      guard let text = string() else { return false }
      out += text
      return true
    default:
      let start = index
      while index < bytes.count, !Self.ends.contains(bytes[index]) { index += 1 }
      out += bytes[start..<index]
      return index > start
    }
  }

  /// Characters that end a number, `true`, `false` or `null`.
  private static let ends = Array(",]} \n\r\t".utf8)

  private mutating func skipSpace() {
    while index < bytes.count, [0x20, 0x0a, 0x0d, 0x09].contains(bytes[index]) { index += 1 }
  }

  /// Skips a character if it is next; returns whether it was.
  private mutating func passes(_ character: Character) -> Bool {
    skipSpace()
    guard index < bytes.count, bytes[index] == character.asciiValue else { return false }
    index += 1
    return true
  }

  /// Reads a string's bytes, with its quotes; returns nil if no string is next.
  private mutating func string() -> ArraySlice<UInt8>? {
    let start = index
    guard passes("\"") else { return nil }
    while index < bytes.count {
      switch bytes[index] {
      case UInt8(ascii: "\\"): index += 2
      case UInt8(ascii: "\""):
        index += 1
        return bytes[start..<index]
      default: index += 1
      }
    }
    return nil
  }

  private mutating func list(into out: inout [UInt8], isForeign: Bool) -> Bool {
    guard passes("[") else { return false }
    out.append(UInt8(ascii: "["))
    if passes("]") {
      out.append(UInt8(ascii: "]"))
      return true
    }
    while true {
      guard value(into: &out, isForeign: isForeign) else { return false }
      if passes("]") { break }
      guard passes(",") else { return false }
      out.append(UInt8(ascii: ","))
      // Readers may process rows line by line, so line breaks between rows stay; those before
      // indented lines do not.
      if index + 1 < bytes.count, bytes[index] == 0x0a, bytes[index + 1] > 0x20 { out.append(0x0a) }
    }
    out.append(UInt8(ascii: "]"))
    return true
  }

  private mutating func object(into out: inout [UInt8], isForeign: Bool) -> Bool {
    guard passes("{") else { return false }
    var members: [(name: [UInt8], value: [UInt8])] = []
    while !passes("}") {
      if !members.isEmpty, !passes(",") { return false }
      skipSpace()
      guard let name = string(), passes(":") else { return false }
      let inner = name.dropFirst().dropLast()
      var value: [UInt8] = []
      let isOthers = isForeign || form.foreign.contains(String(decoding: inner, as: UTF8.self))
      guard self.value(into: &value, isForeign: isOthers) else { return false }
      members.append((Array(inner), value))
    }
    if !isForeign { members = inForm(members) }
    out.append(UInt8(ascii: "{"))
    for (place, member) in members.enumerated() {
      if place > 0 { out.append(UInt8(ascii: ",")) }
      out += [UInt8(ascii: "\"")] + member.name + [UInt8(ascii: "\""), UInt8(ascii: ":")]
      out += member.value
    }
    out.append(UInt8(ascii: "}"))
    return true
  }

  /// Returns the members under their new names, followed by those with old names.
  private func inForm(_ members: [(name: [UInt8], value: [UInt8])])
    -> [(name: [UInt8], value: [UInt8])]
  {
    var renamed: [(name: [UInt8], value: [UInt8])] = []
    var older: [(name: [UInt8], value: [UInt8])] = []
    let names = members.map { String(decoding: $0.name, as: UTF8.self) }
    for (name, member) in zip(names, members) {
      guard let new = form.member(name), !names.contains(new.name) else {
        renamed.append(member)
        continue
      }
      renamed.append((Array(new.name.utf8), scaled(member.value, by: new.factor)))
      older.append(member)
    }
    return renamed + older
  }

  /// Converts a number to another unit, rounded; other values stay unchanged.
  private func scaled(_ value: [UInt8], by factor: Double?) -> [UInt8] {
    guard let factor, let number = Double(String(decoding: value, as: UTF8.self)),
      let whole = Int64(exactly: (number * factor).rounded())
    else { return value }
    return Array(String(whole).utf8)
  }
}
