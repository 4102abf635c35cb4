import Foundation
import Peer
import Tape
import Wire

/// A field of two messages that should be equal.
package struct FieldPair: Hashable, Sendable, Codable {
  package var name: String
  /// What the recording has; nil when it has no such field.
  package var recorded: String?
  package var replayed: String?

  /// Whether the field is the same on both sides.
  package var isEqual: Bool { recorded == replayed }
}

extension FieldPair {
  /// The decoded fields of the two rows of a difference side by side.
  static func pairs(_ difference: StepDifference, _ left: RowList, _ right: RowList) -> [FieldPair]
  {
    switch difference {
    case .deadline, .entropy: return []
    case .row(let before, let after):
      return telling(
        joined(before.map { fields(left, $0) } ?? [], after.map { fields(right, $0) } ?? []))
    case .value(let before, let after, _):
      return telling(joined(fields(left, before), fields(right, after)))
    }
  }

  /// Of many fields those that differ, and the first ones, which say what the message is.
  private static func telling(_ pairs: [FieldPair]) -> [FieldPair] {
    guard pairs.count > FieldPair.manyFields, pairs.contains(where: { !$0.isEqual }) else {
      return pairs
    }
    return pairs.enumerated().filter { $0.offset < FieldPair.namingFields || !$0.element.isEqual }
      .map(\.element)
  }

  private static let manyFields = 32
  private static let namingFields = 6

  /// What the recording and the machine tell of the inside after the step.
  ///
  /// The recording keeps the earliest deadline and the sum of random bytes; which layer they belong
  /// to, only the machine can say.
  static func inside(_ finding: StepCheck.Finding, _ snapshot: PeerSnapshot?) -> [FieldPair] {
    let head = finding.step.head
    var pairs = [
      FieldPair(name: "deadline", recorded: text(head.deadline), replayed: text(finding.deadline)),
      FieldPair(
        name: "random bytes drawn", recorded: String(head.entropyDrawn),
        replayed: String(finding.entropyDrawn)),
      FieldPair(
        name: "outputs", recorded: String(finding.step.outputRows.count),
        replayed: String(finding.replayedRows.count)),
    ]
    guard let snapshot else { return pairs }
    for drawn in snapshot.entropy {
      pairs.append(
        FieldPair(
          name: "random bytes of \(drawn.stream)", recorded: nil, replayed: String(drawn.bytes)))
    }
    for wake in snapshot.deadlines {
      let isRecorded = wake.at == head.deadline
      pairs.append(
        FieldPair(
          name: "deadline of \(wake.layer)", recorded: isRecorded ? text(wake.at) : nil,
          replayed: text(wake.at)))
    }
    return pairs
  }

  /// An instant in words; `none` where nothing is waited for.
  static func text(_ instant: Instant?) -> String {
    instant.map { timeText($0.nanoseconds) } ?? "none"
  }

  /// The pairs as aligned lines, with a mark at those that differ; none for no pairs.
  static func table(_ pairs: [FieldPair], title: String) -> [String] {
    guard !pairs.isEmpty else { return [] }
    let width = max(24, pairs.map(\.name.count).max() ?? 0)
    let column = min(44, max(8, pairs.map { ($0.recorded ?? "-").count }.max() ?? 0))
    func padded(_ text: String, _ width: Int) -> String {
      text + String(repeating: " ", count: max(0, width - text.count))
    }
    let head = "  \(padded(title, width + 2))  \(padded("recorded", column))  replayed"
    return [head]
      + pairs.map { pair in
        let mark = pair.isEqual || pair.recorded == nil && pair.replayed != nil ? " " : "*"
        return "  \(mark) \(padded(pair.name, width))  \(padded(pair.recorded ?? "-", column))  "
          + (pair.replayed ?? "-")
      }
  }

  private static func fields(_ rows: RowList, _ row: Int) -> [(name: String, value: String)] {
    let table = rows.table(row)
    var fields: [(name: String, value: String)] = []
    for (index, name) in table.columns.enumerated() {
      if table == .packet, index == table.columns.count - 1,
        case .blob(let bytes) = rows[row, index]
      {
        fields.append(("size", String(bytes.count)))
        fields += PacketFields.of(bytes)
      } else if case .text(let text) = rows[row, index], let parts = DocumentFields(text) {
        fields += parts.all.map { ("\(name).\($0.name)", $0.value) }
      } else {
        fields.append((name, RowText.value(rows, row, index)))
      }
    }
    return fields
  }

  /// Puts fields of the same name side by side, in the order in which they stand.
  private static func joined(
    _ left: [(name: String, value: String)], _ right: [(name: String, value: String)]
  ) -> [FieldPair] {
    var rest = right
    var pairs: [FieldPair] = []
    for field in left {
      var pair = FieldPair(name: field.name, recorded: field.value, replayed: nil)
      if let index = rest.firstIndex(where: { $0.name == field.name }) {
        pair.replayed = rest.remove(at: index).value
      }
      pairs.append(pair)
    }
    return pairs + rest.map { FieldPair(name: $0.name, recorded: nil, replayed: $0.value) }
  }
}
