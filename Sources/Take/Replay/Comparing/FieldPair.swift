import Peer
import SCTP
import Tape
import Wire

/// A field that is compared between two messages.
package struct FieldPair: Hashable, Sendable, Codable {
  package var name: String
  /// The recorded value; nil if the recording lacks the field.
  package var recorded: String?
  package var replayed: String?

  package var isEqual: Bool { recorded == replayed }
}

extension FieldPair {
  /// Decodes a difference's two rows into fields side by side.
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
    // A packet's columns repeat what its bytes contain.
    return distinctive(pairs.filter { !$0.isEqual || !Table.packet.columnNames.contains($0.name) })
  }

  /// Reduces many fields to the differing ones, and the first ones, which identify the message.
  private static func distinctive(_ pairs: [FieldPair]) -> [FieldPair] {
    guard pairs.count > FieldPair.manyFields, pairs.contains(where: { !$0.isEqual }) else {
      return pairs.map(\.withoutSecrets)
    }
    return pairs.enumerated().filter { $0.offset < FieldPair.namingFields || !$0.element.isEqual }
      .map(\.element.withoutSecrets)
  }

  /// A copy for display: it only shows whether passwords and tokens are equal.
  var withoutSecrets: FieldPair {
    var pair = self
    if SecretText.isSecret(field: name) {
      pair.recorded = recorded.map { _ in SecretText.hidden }
      pair.replayed = replayed.map { _ in
        isEqual || recorded == nil ? SecretText.hidden : "\(SecretText.hidden), another one"
      }
    } else {
      pair.recorded = recorded.map(SecretText.hidden(in:))
      pair.replayed = replayed.map(SecretText.hidden(in:))
      if !isEqual, pair.isEqual { pair.replayed? += ", with other secrets" }
    }
    return pair
  }

  private static let manyFields = 32
  private static let namingFields = 6

  /// Compares the recorded and the actual state after the step.
  ///
  /// The recording has only the earliest deadline and the total of random bytes; only the machine
  /// knows which layers they belong to.
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

  /// Formats an instant; `none` for nil.
  static func text(_ instant: Instant?) -> String {
    instant.map { timeText($0.nanoseconds) } ?? "none"
  }

  /// Formats an instant to the nanosecond; `none` for nil.
  static func exact(_ instant: Instant?) -> String {
    instant.map { exactTimeText($0.nanoseconds) } ?? "none"
  }

  /// Returns the pairs as aligned lines with a mark at differing ones; empty if there are none.
  ///
  /// - Parameter marksNew: whether a field that only the replay has counts as different.
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
          fields.append(DecodedField("carries", "what the recorded keys do not open"))
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

  /// Pairs fields with the same name, in order.
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
      // For long bytes, show where they differ.
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

/// A message's decoded field, with its formatted value.
struct DecodedField {
  var name: String
  var value: String
  /// The bytes behind the value, which may show only some of them.
  var bytes: [UInt8]?

  /// The number of a field's bytes to show.
  static let shownBytes = 16

  init(_ name: String, _ value: String) {
    self.name = name
    self.value = value
  }

  /// Formats bytes as text if they are printable, otherwise in hexadecimal.
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

/// A JSON document's members, including the lines of session descriptions in it, so that a
/// difference between documents is a field rather than a long text.
struct DocumentFields {
  private(set) var all: [(name: String, value: String)] = []

  /// The maximum nesting depth to split up.
  private static let depth = 6

  /// Splits a document; fails if the text is not a JSON object or array.
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

  /// Adds a description's lines by section and type, numbering lines of the same type.
  private mutating func addDescription(_ text: String, at path: String) {
    var section = "session"
    var sections = 0
    var counts: [String: Int] = [:]
    for line in text.split(whereSeparator: \.isNewline) {
      if line.hasPrefix("m=") {
        sections += 1
        section = "m-section \(sections)"
      }
      // An attribute's name identifies it, another line's type does (RFC 8866 section 5).
      let isAttribute = line.hasPrefix("a=")
      let key = "\(section) \(isAttribute ? line.prefix { $0 != ":" } : line.prefix(2))"
      let count = counts[key, default: 0] + 1
      counts[key] = count
      let label = count == 1 ? key : "\(key) \(count)"
      all.append((path.isEmpty ? label : "\(path) \(label)", String(line)))
    }
  }
}
