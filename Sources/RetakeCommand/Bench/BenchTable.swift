import Foundation

/// One thing that was measured, and what it should be.
struct BenchRow: Encodable {
  /// Whether the ratio should stay below the goal or reach it.
  enum Sense: String, Encodable {
    case atMost = "at most"
    case atLeast = "at least"
  }

  var what: String
  /// What was measured, and what it is compared with, in the unit.
  var measured: Double
  var floor: Double
  var unit: String
  var ratio: Double
  var sense: Sense
  var goal: Double

  var isMet: Bool { sense == .atMost ? ratio <= goal : ratio >= goal }

  private enum CodingKeys: String, CodingKey {
    case what, measured, floor, unit, ratio, sense, goal, met
  }

  func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encode(what, forKey: .what)
    try container.encode(measured, forKey: .measured)
    try container.encode(floor, forKey: .floor)
    try container.encode(unit, forKey: .unit)
    try container.encode(ratio, forKey: .ratio)
    try container.encode(sense, forKey: .sense)
    try container.encode(goal, forKey: .goal)
    try container.encode(isMet, forKey: .met)
  }
}

/// All that was measured, as a table or as JSON.
struct BenchTable: Encodable {
  var seconds: Int
  var rows: [BenchRow] = []
  /// What the C libraries need for the call, in seconds each.
  var floor: [String: Double] = [:]

  mutating func add(
    _ what: String, _ measured: Double, floor: Double, _ unit: String, ratio: Double? = nil,
    _ sense: BenchRow.Sense, _ goal: Double
  ) {
    rows.append(
      BenchRow(
        what: what, measured: measured, floor: floor, unit: unit,
        ratio: ratio ?? (floor > 0 ? measured / floor : 0), sense: sense, goal: goal))
  }

  /// The table for programs.
  var json: String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
    guard let data = try? encoder.encode(self) else { return "{}" }
    return String(decoding: data, as: UTF8.self)
  }

  /// The table for people.
  var text: String {
    let head = ["what", "measured", "floor", "ratio", "goal", ""]
    let lines =
      [head]
      + rows.map { row in
        [
          row.what, "\(number(row.measured)) \(row.unit)", "\(number(row.floor)) \(row.unit)",
          number(row.ratio), "\(row.sense == .atMost ? "<=" : ">=") \(number(row.goal))",
          row.isMet ? "met" : "not met",
        ]
      }
    let widths = head.indices.map { column in lines.map { $0[column].count }.max() ?? 0 }
    let table = lines.map { line in
      var text = ""
      for (column, cell) in line.enumerated() {
        let space = String(repeating: " ", count: widths[column] - cell.count)
        text += column == 0 || column == 5 ? cell + space : space + cell
        if column < 5 { text += "  " }
      }
      return text
    }
    let parts = floor.sorted { $0.value > $1.value }.map { "\($0.key) \(number($0.value)) s" }
    let rest = parts.isEmpty ? [] : ["", "floor of the call: " + parts.joined(separator: ", ")]
    return (table + rest).joined(separator: "\n")
  }

  private func number(_ value: Double) -> String {
    String(format: value.magnitude >= 100 ? "%.0f" : value.magnitude >= 10 ? "%.1f" : "%.3f", value)
  }
}
