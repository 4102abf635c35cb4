import Stats

/// Many values of one thing: the packets of a stream, the frames of a track, a curve.
struct PageSeries: Sendable {
  /// What it is: `packets`, `lost`, `frames`, `rtcp`, `curve`, `messages`.
  let what: String
  /// What tells it from others of its kind: peer, direction, ssrc, ...
  let facts: [(String, StatsValue?)]
  var columns: [(name: String, column: PageColumn)]
}

/// All series of a page with their columns one after another.
struct PageSeriesList {
  /// The bytes of all columns.
  private(set) var bytes: [UInt8] = []
  private var objects: [String] = []

  mutating func add(_ series: PageSeries) {
    guard let count = series.columns.first?.column.count, count > 0 else { return }
    var places: [String] = []
    for (name, column) in series.columns {
      places.append(
        "\(jsonString(name)):[\(bytes.count),\(column.bytes.count),\(column.coding.rawValue)]")
      bytes += column.bytes
    }
    let facts = series.facts.compactMap { name, value in
      value.map { "\(jsonString(name)):\($0.json)," }
    }
    objects.append(
      """
      {"what":\(jsonString(series.what)),\(facts.joined())"count":\(count),\
      "columns":{\(places.joined(separator: ","))}}
      """)
  }

  /// A JSON array: what each series is, and where its columns stand in `bytes`.
  var json: String { "[" + objects.joined(separator: ",\n") + "]" }
}
