import Wire

// Formats a comparison of folders as text and JSON.
extension FolderDiff {
  /// Returns the comparison as tables.
  package func text(_ look: TableLook = TableLook()) -> String {
    var text = zip(folders, takes).map { "\($0): \(counted($1, "take"))" }
      .map(PrintableText.line).joined(separator: "\n")
    text += "\n\n" + measures(look)
    if !findings.isEmpty { text += "\n" + found(look) }
    if !changes.isEmpty { text += "\n" + changed(look) }
    for (place, labels) in onlyLabels.enumerated() where !labels.isEmpty {
      let named = labels.prefix(20).joined(separator: ", ")
      let rest = labels.count > 20 ? " and \(labels.count - 20) more" : ""
      text += PrintableText.line("\nOnly in \(folders[place]): \(named)\(rest)") + "\n"
    }
    return text + (isEmpty ? "\nNothing differs by more than a tenth.\n" : "")
  }

  private func measures(_ look: TableLook) -> String {
    TextTable(
      columns: [
        "measure", "median", "then", "10 %", "then", "90 %", "then", "pairs", "change", "up",
        "down", "",
      ],
      rows: rows.map { row in
        let unit = row.measure.unit.isEmpty ? "" : ", \(row.measure.unit)"
        let sides = row.sides
        func pair(_ value: KeyPath<Distribution, Double>) -> [String] {
          sides.map { $0.count == 0 ? "" : number($0[keyPath: value], row.measure) }
        }
        return [row.measure.title + unit] + pair(\.median) + pair(\.low) + pair(\.high) + [
          row.pairs > 0 ? "\(row.pairs)" : "",
          row.pairedChange.map { ($0 > 0 ? "+" : "") + number($0, row.measure) } ?? "",
          row.pairs > 0 ? "\(row.rose)" : "", row.pairs > 0 ? "\(row.fell)" : "", verdict(row),
        ]
      },
      alignsRight: [
        false, true, true, true, true, true, true, true, true, true, true, false,
      ]
    ).text(look) { row, column in
      column == 11 ? (row[11] == "worse" ? .bad : row[11] == "better" ? .good : nil) : nil
    }
  }

  /// Returns `better` or `worse` for a difference, or `differs` if it is neither; empty if there is
  /// no difference.
  private func verdict(_ row: Row) -> String {
    guard row.differs else { return "" }
    let (first, second) = (row.sides[0], row.sides[1])
    let change =
      row.pairedChange.flatMap { $0 == 0 ? nil : $0 }
      ?? (second.median == first.median ? second.high - first.high : second.median - first.median)
    guard let moreIsWorse = row.measure.moreIsWorse, change != 0, row.rose == 0 || row.fell == 0
    else { return "differs" }
    return (change > 0) == moreIsWorse ? "worse" : "better"
  }

  private func number(_ value: Double, _ measure: Measure) -> String {
    decimal(value * measure.scale)
  }

  private func found(_ look: TableLook) -> String {
    TextTable(
      columns: ["finding", "severity", "takes", "then", ""],
      rows: findings.map { one in
        [
          one.id, one.severity.name,
          share(one.takes[0], takes[0]), share(one.takes[1], takes[1]),
          one.differs ? "differs" : "",
        ]
      }, alignsRight: [false, false, true, true, false]
    ).text(look)
  }

  private func share(_ count: Int, _ all: Int) -> String {
    "\(count) (\(all == 0 ? 0 : count * 100 / all) %)"
  }

  private func changed(_ look: TableLook) -> String {
    TextTable(
      columns: ["label", "measure", "median", "then"],
      rows: changes.map { change in
        [
          change.label,
          change.measure.title + (change.measure.unit.isEmpty ? "" : ", \(change.measure.unit)"),
          number(change.values[0], change.measure), number(change.values[1], change.measure),
        ]
      }, alignsRight: [false, false, true, true]
    ).text(look)
  }

  /// The comparison as a JSON object.
  package var json: String {
    func values(_ numbers: [Double]) -> JSONText {
      .list(numbers.map { .number(($0 * 1e6).rounded() / 1e6) })
    }
    let measures = rows.map { row in
      JSONText.object([
        ("name", .text(row.measure.name)), ("takes", .list(row.sides.map { .integer($0.count) })),
        ("median", values(row.sides.map(\.median))), ("low", values(row.sides.map(\.low))),
        ("high", values(row.sides.map(\.high))), ("pairs", .integer(row.pairs)),
        ("paired_change", row.pairedChange.map { .number(($0 * 1e6).rounded() / 1e6) }),
        ("rose", .integer(row.rose)), ("fell", .integer(row.fell)),
        ("differs", .flag(row.differs)),
      ])
    }
    let found = findings.map { one in
      JSONText.object([
        ("id", .text(one.id)), ("severity", .text(one.severity.name)),
        ("takes", .list(one.takes.map { .integer($0) })), ("differs", .flag(one.differs)),
      ])
    }
    let changed = changes.map { change in
      JSONText.object([
        ("label", .text(change.label)), ("measure", .text(change.measure.name)),
        ("values", values(change.values)),
      ])
    }
    return JSONText.object([
      ("folders", .list(folders.map { .text($0) })), ("takes", .list(takes.map { .integer($0) })),
      ("measures", .list(measures, separator: ",\n")),
      ("findings", .list(found, separator: ",\n")), ("changes", .list(changed, separator: ",\n")),
      ("common_labels", .integer(commonLabels)),
      ("only_labels", .list(onlyLabels.map { .list($0.map { .text($0) }) })),
    ]).text
  }
}
