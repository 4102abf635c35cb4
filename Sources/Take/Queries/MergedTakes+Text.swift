import Tape

extension MergedTakes: CustomStringConvertible {
  /// The offset of the clocks and a table of both ways.
  package var description: String { text() }

  /// The same for a terminal.
  package func text(_ look: TableLook = TableLook()) -> String {
    let names = (ways.first?.from ?? first, ways.first?.to ?? second)
    var lines = [
      "\(names.1) begins \(milliseconds(Double(offsetNanoseconds) / 1e6)) after \(names.0), "
        + "within \(milliseconds(uncertaintyMilliseconds)); "
        + "by their wall clocks \(milliseconds(Double(wallClockOffsetNanoseconds) / 1e6))"
    ]
    if let driftPartsPerMillion {
      lines.append("its clock runs \(fixed(driftPartsPerMillion)) millionths faster")
    }
    let rows = ways.map { way in
      [
        way.from, way.to, String(way.sent), String(way.received), fixed(way.lostPercent),
        fixed(way.leastMilliseconds), fixed(way.medianMilliseconds),
        fixed(way.percentile95Milliseconds), fixed(way.mostMilliseconds),
      ]
    }
    let table = TextTable(
      columns: ["from", "to", "sent", "came", "lost %", "least ms", "median", "95 %", "most"],
      rows: rows,
      alignsRight: [false, false, true, true, true, true, true, true, true], wraps: true)
    return lines.joined(separator: "\n") + "\n" + table.text(look)
  }

  /// Everything, with the delays in each second, as a JSON object.
  package var json: String { CanonicalJSON.text(self) }

  /// What to know of a joint take of both ends; nil when there is nothing.
  package var jointNote: String? {
    guard jointErrorMilliseconds >= 0.05 else { return nil }
    return "its delays are right in the middle of the call and up to "
      + "\(milliseconds(jointErrorMilliseconds)) wrong at its ends, because the clocks drift"
  }

  private func milliseconds(_ value: Double) -> String { fixed(value) + " ms" }

  /// A number with three digits after the point.
  private func fixed(_ value: Double) -> String {
    let scaled = (value * 1_000).rounded()
    guard scaled.magnitude < 9e15 else { return "?" }
    return (scaled < 0 ? "-" : "") + thousandths(Int64(scaled.magnitude))
  }
}
