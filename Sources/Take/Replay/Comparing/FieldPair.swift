import Peer
import SCTP
import Tape
import Wire

/// A field of a message, as recorded and as replayed.
package struct FieldPair: Hashable, Sendable, Codable {
  package var name: String
  /// The recorded value; nil if the recorded message lacks the field.
  package var recorded: String?
  package var replayed: String?

  package var isEqual: Bool { recorded == replayed }
}

extension FieldPair {
  /// Decodes both rows of a difference and pairs their fields.
  ///
  /// - Parameter open: decrypts a DTLS record if its keys are known.
  static func pairs(
    _ difference: StepDifference, _ left: RowList, _ right: RowList,
    open: ([UInt8]) -> [UInt8]? = { _ in nil }
  ) -> [FieldPair] {
    let rows: (before: Int?, after: Int?)
    switch difference {
    case .deadline, .entropy: return []
    case .row(let before, let after): rows = (before, after)
    case .value(let before, let after, _): rows = (before, after)
    }
    let pairs = joined(
      rows.before.map { fields(left, $0, open) } ?? [],
      rows.after.map { fields(right, $0, open) } ?? [])
    let isPacket =
      rows.before.map { left.table($0) == .packet } ?? rows.after.map {
        right.table($0) == .packet
      } ?? false
    guard isPacket else { return distinctive(pairs) }
    // Most columns of a packet only repeat what its bytes contain.
    return distinctive(pairs.filter { !$0.isEqual || !Table.packet.columnNames.contains($0.name) })
  }

  /// Reduces a long list to the fields that differ and the first fields, which identify the
  /// message.
  private static func distinctive(_ pairs: [FieldPair]) -> [FieldPair] {
    guard pairs.count > FieldPair.manyFields, pairs.contains(where: { !$0.isEqual }) else {
      return pairs.map(\.withoutSecrets)
    }
    return pairs.enumerated().filter { $0.offset < FieldPair.namingFields || !$0.element.isEqual }
      .map(\.element.withoutSecrets)
  }

  /// A copy for display, which shows only whether secrets are equal.
  var withoutSecrets: FieldPair {
    var pair = self
    if SecretText.isSecret(field: name) {
      pair.recorded = recorded.map { _ in SecretText.hidden }
      pair.replayed = replayed.map { _ in
        isEqual || recorded == nil ? SecretText.hidden : "\(SecretText.hidden), a different one"
      }
    } else {
      pair.recorded = recorded.map(SecretText.hidden(in:))
      pair.replayed = replayed.map(SecretText.hidden(in:))
      if !isEqual, pair.isEqual { pair.replayed? += ", with different secrets" }
    }
    return pair
  }

  private static let manyFields = 32
  private static let namingFields = 6

  /// Compares the machine's state after the step with the recording.
  ///
  /// The take records only the earliest deadline and the number of random bytes drawn; the snapshot
  /// shows which layers they belong to.
  static func inside(
    _ finding: StepCheck.Finding, _ snapshot: (any MachineSnapshot)?
  ) -> [FieldPair] {
    let head = finding.step.head
    let isSame = head.deadline == finding.deadline
    let inputRows = finding.step.inputRows.count
    var pairs = [
      FieldPair(
        name: "deadline", recorded: isSame ? text(head.deadline) : exact(head.deadline),
        replayed: isSame ? text(finding.deadline) : exact(finding.deadline)),
      FieldPair(
        name: "random bytes drawn", recorded: String(head.entropyDrawn),
        replayed: String(finding.entropyDrawn)),
      FieldPair(
        name: "outputs", recorded: String(finding.step.outputRows.count),
        replayed: String(max(0, finding.replayedRows.count - inputRows))),
    ]
    guard let snapshot else { return pairs }
    for drawn in snapshot.drawnBytes {
      pairs.append(
        FieldPair(
          name: "random bytes of \(drawn.stream)", recorded: nil, replayed: String(drawn.bytes)))
    }
    for wake in snapshot.wakes {
      let isRecorded = wake.at == head.deadline
      pairs.append(
        FieldPair(
          name: "deadline of \(wake.layer)", recorded: isRecorded ? text(wake.at) : nil,
          replayed: text(wake.at)))
    }
    return pairs
  }

  /// Formats an instant, or returns `none` for nil.
  static func text(_ instant: Instant?) -> String {
    instant.map { timeText($0.nanoseconds) } ?? "none"
  }

  /// Formats an instant to the nanosecond, or returns `none` for nil.
  static func exact(_ instant: Instant?) -> String {
    instant.map { exactTimeText($0.nanoseconds) } ?? "none"
  }

  /// Formats the pairs as aligned lines, with a mark where they differ; empty if there are none.
  ///
  /// - Parameter marksNew: whether to mark fields that only the replay has.
  static func table(_ pairs: [FieldPair], title: String, marksNew: Bool) -> [String] {
    guard !pairs.isEmpty else { return [] }
    let width = max(24, pairs.map(\.name.count).max() ?? 0)
    let column = min(44, max(8, pairs.map { ($0.recorded ?? "-").count }.max() ?? 0))
    func padded(_ text: String, _ width: Int) -> String {
      text + String(repeating: " ", count: max(0, width - text.count))
    }
    let head = "  \(padded(title, width + 2))  \(padded("recorded", column))  replayed"
    return [head]
      + pairs.map { pair in
        let isNew = pair.recorded == nil && pair.replayed != nil
        let mark = pair.isEqual || isNew && !marksNew ? " " : "*"
        return "  \(mark) \(padded(pair.name, width))  \(padded(pair.recorded ?? "-", column))  "
          + (pair.replayed ?? "-")
      }
  }

  private static func fields(
    _ rows: RowList, _ row: Int, _ open: ([UInt8]) -> [UInt8]?
  ) -> [DecodedField] {
    let table = rows.table(row)
    var fields: [DecodedField] = []
    for (index, name) in table.columnNames.prefix(rows.row(row).count).enumerated() {
      switch rows[row, index] {
      case .blob(let bytes) where table == .packet:
        fields.append(DecodedField("size", String(bytes.count)))
        fields += PacketFields.of(bytes)
        if let data = open(bytes) {
          fields.append(DecodedField("carries", SCTPText.title(data.span.bytes)))
          fields.append(DecodedField("SCTP packet", data))
        } else if PacketText(bytes).title.hasSuffix("ApplicationData") {
          fields.append(DecodedField("carries", "not decrypted by the recorded keys"))
        }
      case .blob(let bytes): fields.append(DecodedField(name, bytes))
      case .null: break
      case .text(let text):
        if let parts = DocumentFields(text) {
          fields += parts.all.map { DecodedField("\(name).\($0.name)", $0.value) }
        } else {
          fields.append(DecodedField(name, text))
        }
      default: fields.append(DecodedField(name, rows.text(row, index)))
      }
    }
    return fields
  }

  /// Pairs fields of the same name, in the recorded message's order.
  private static func joined(_ left: [DecodedField], _ right: [DecodedField]) -> [FieldPair] {
    var rest = right
    var pairs: [FieldPair] = []
    for field in left {
      guard let index = rest.firstIndex(where: { $0.name == field.name }) else {
        pairs.append(FieldPair(name: field.name, recorded: field.value, replayed: nil))
        continue
      }
      let other = rest.remove(at: index)
      var pair = FieldPair(name: field.name, recorded: field.value, replayed: other.value)
      // For long bytes, show the part that differs.
      if let bytes = field.bytes, let others = other.bytes, bytes != others,
        max(bytes.count, others.count) > DecodedField.shownBytes
      {
        let offset = firstDifference(bytes, others)
        pair.recorded = excerpt(bytes, around: offset)
        pair.replayed = excerpt(others, around: offset)
      }
      pairs.append(pair)
    }
    return pairs + rest.map { FieldPair(name: $0.name, recorded: nil, replayed: $0.value) }
  }
}

/// A field of a decoded message, with its value as text.
struct DecodedField {
  var name: String
  var value: String
  /// The bytes behind the value, which may show only the first of them; nil if the value was not
  /// made from bytes, or shows all of them as text.
  var bytes: [UInt8]?

  /// The maximum number of bytes that a value shows in hexadecimal; as text, it shows up to twice
  /// as many.
  static let shownBytes = 16

  init(_ name: String, _ value: String) {
    self.name = name
    self.value = value
  }

  /// Formats 4 to 32 printable bytes as text, and other bytes in hexadecimal.
  init(_ name: String, _ bytes: [UInt8]) {
    self.name = name
    self.bytes = bytes
    let isText = bytes.count > 3 && bytes.allSatisfy { (32..<127).contains($0) }
    value =
      isText && bytes.count <= 2 * DecodedField.shownBytes
      ? "\"\(String(decoding: bytes, as: UTF8.self))\""
      : hexadecimal(bytes, limit: DecodedField.shownBytes)
    if isText, bytes.count <= 2 * DecodedField.shownBytes { self.bytes = nil }
  }
}

// MARK: - DocumentFields

/// The members of a JSON document, where a session description is split into its lines.
///
/// A difference between two documents is then a short field instead of a long string.
struct DocumentFields {
  private(set) var all: [(name: String, value: String)] = []

  /// The maximum depth of nested objects that are split up.
  private static let depth = 6

  /// Splits a document; fails unless the text is a JSON object or array with members.
  init?(_ text: String) {
    guard let first = text.utf8.first, first == UInt8(ascii: "{") || first == UInt8(ascii: "["),
      let value = try? JSONValue(parsing: text)
    else { return nil }
    // An empty document has no fields.
    switch value {
    case .object(let members) where members.isEmpty: return nil
    case .list(let elements) where elements.isEmpty: return nil
    default: add(value, at: "", depth: 0)
    }
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

  /// Adds the lines of a session description, numbering lines of the same type within a section.
  private mutating func addDescription(_ text: String, at path: String) {
    var section = "session"
    var sections = 0
    var counts: [String: Int] = [:]
    for line in text.split(whereSeparator: \.isNewline) {
      if line.hasPrefix("m=") {
        sections += 1
        section = "m-section \(sections)"
      }
      // Attributes are distinguished by name, and other lines by type (RFC 8866 section 5).
      let isAttribute = line.hasPrefix("a=")
      let key = "\(section) \(isAttribute ? line.prefix { $0 != ":" } : line.prefix(2))"
      let count = counts[key, default: 0] + 1
      counts[key] = count
      let label = count == 1 ? key : "\(key) \(count)"
      all.append((path.isEmpty ? label : "\(path) \(label)", String(line)))
    }
  }
}
