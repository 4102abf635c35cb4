import Stats

/// Many values of one thing: the packets of a stream, the frames of a track, a curve.
struct PageSeries: Sendable {
  typealias Columns = [(name: String, column: PageColumn)]

  /// What it is: `packets`, `lost`, `frames`, `rtcp`, `curve`, `messages`.
  let what: String
  /// What tells it from others of its kind: peer, direction, ssrc, ...
  let facts: [(String, StatsValue?)]
  var columns: Columns
  /// What it comes to by bins, for who draws the whole take before all values are there.
  var overview: Columns = []
}

/// All series of a page with their columns one after another: those that a page needs first in
/// front, then the values of long series, which have an overview there.
struct PageSeriesList {
  /// Where a column stands among those of its part.
  private struct Place {
    var name: String
    var begin: Int
    var length: Int
    var coding: PageColumn.Coding
  }

  private struct Entry {
    var facts: String
    var columns: [Place] = []
    var overview: [Place] = []
  }

  /// A series of more values has its columns behind those of all others, and an overview.
  private let shortMaximum: Int
  private var entries: [Entry] = []
  private var early: [UInt8] = []
  private var late: [UInt8] = []

  init(shortMaximum: Int = .max) { self.shortMaximum = shortMaximum }

  mutating func add(_ series: PageSeries) {
    guard let count = series.columns.first?.column.count, count > 0 else { return }
    let isLong = count > shortMaximum && !series.overview.isEmpty
    let facts = series.facts.compactMap { name, value in
      value.map { "\(jsonString(name)):\($0.json)," }
    }
    var entry = Entry(
      facts: "\"what\":\(jsonString(series.what)),\(facts.joined())\"count\":\(count)")
    if isLong {
      entry.columns = Self.place(series.columns, in: &late)
      entry.overview = Self.place(series.overview, in: &early)
    } else {
      entry.columns = Self.place(series.columns, in: &early)
    }
    entries.append(entry)
  }

  private static func place(_ columns: PageSeries.Columns, in bytes: inout [UInt8]) -> [Place] {
    columns.map { name, column in
      defer { bytes += column.bytes }
      return Place(
        name: name, begin: bytes.count, length: column.bytes.count, coding: column.coding)
    }
  }

  /// How many bytes stand in front of the values of long series.
  var earlyCount: Int { early.count }

  /// The bytes of all columns.
  var bytes: [UInt8] { late.isEmpty ? early : early + late }

  /// A JSON array: what each series is, and where its columns stand in `bytes`.
  var json: String {
    let objects = entries.map { entry in
      let isLong = !entry.overview.isEmpty
      let overview = isLong ? ",\"overview\":\(Self.json(entry.overview, behind: 0))" : ""
      let columns = Self.json(entry.columns, behind: isLong ? early.count : 0)
      return "{\(entry.facts),\"columns\":\(columns)\(overview)}"
    }
    return "[" + objects.joined(separator: ",\n") + "]"
  }

  private static func json(_ places: [Place], behind: Int) -> String {
    let members = places.map {
      "\(jsonString($0.name)):[\(behind + $0.begin),\($0.length),\($0.coding.rawValue)]"
    }
    return "{" + members.joined(separator: ",") + "}"
  }
}
