import Stats

/// The values of one subject: a stream's packets, a track's frames, a curve.
struct PageSeries: Sendable {
  typealias Columns = [(name: String, column: PageColumn)]

  /// The kind: `packets`, `lost`, `frames`, `rtcp`, `curve` or `messages`.
  let what: String
  /// The facts that identify the series within its kind: peer, direction, ssrc and so on.
  let facts: [(String, StatsValue?)]
  var columns: Columns
  /// Aggregated values, for drawing the entire take before all values are loaded.
  var overview: Columns = []
}

/// A page's series with their columns concatenated: first those that a page needs immediately, then
/// the values of long series, whose overview is in the first part.
struct PageSeriesList {
  /// The position of a column in its part.
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

  /// The maximum length of a series that is stored in the first part as a whole, without an
  /// overview.
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

  /// The number of bytes before the values of long series.
  var earlyCount: Int { early.count }

  /// The bytes of all columns; the values of long series come last.
  var bytes: [UInt8] { late.isEmpty ? early : early + late }

  /// A JSON array with each series and the positions of its columns in `bytes`.
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

// MARK: - Bins

/// A stream's bytes in bins of half a second; empty bins are omitted.
struct PacketBins: Sendable {
  private var bin: Int64 = 0
  private var sum: Int64 = 0
  private var bins = PageColumn(.steps)
  private var bytes = PageColumn(.values)

  mutating func add(_ size: Int64, at units: Int64) {
    let now = PageTime.bin(units)
    if now != bin { close(before: now) }
    sum &+= size
  }

  private mutating func close(before next: Int64) {
    if sum != 0 {
      bins.append(bin)
      bytes.append(sum)
    }
    (bin, sum) = (next, 0)
  }

  /// Returns the bins so far and starts a new list.
  mutating func drain() -> PageSeries.Columns {
    close(before: bin)
    defer { self = PacketBins() }
    return [("bin", bins), ("bytes", bytes)]
  }
}

/// A track's frame outcomes in bins of half a second.
struct FrameBins: Sendable {
  private struct Bin {
    var number: Int64 = 0
    var frames: Int64 = 0
    var shown: Int64 = 0
    var peak: Int64 = 0
    var concealed: Int64 = 0
    var recovered: Int64 = 0
  }

  private var open = Bin()
  private var bins = PageColumn(.steps)
  private var shown = PageColumn(.values)
  private var peak = PageColumn(.values)
  private var concealed = PageColumn(.values)
  private var recovered = PageColumn(.values)

  /// - Parameters:
  ///   - outcome: the outcome's index.
  ///   - measure: the audio peak, or the quantizer of a video frame.
  mutating func add(outcome: Int64, measure: Int64, at units: Int64) {
    let now = PageTime.bin(units)
    if now != open.number { close(before: now) }
    open.frames += 1
    open.peak = max(open.peak, measure)
    switch outcome {
    case 0, 1, 5, 6: open.shown += 1
    case 2: open.recovered += 1
    case 3, 9: open.concealed += 1
    default: break
    }
  }

  private mutating func close(before next: Int64) {
    if open.frames > 0 {
      bins.append(open.number)
      shown.append(open.shown)
      peak.append(open.peak)
      concealed.append(open.concealed)
      recovered.append(open.recovered)
    }
    open = Bin(number: next)
  }

  /// Returns the bins so far and starts a new list.
  mutating func drain() -> PageSeries.Columns {
    close(before: open.number)
    defer { self = FrameBins() }
    return [
      ("bin", bins), ("shown", shown), ("peak", peak), ("concealed", concealed),
      ("recovered", recovered),
    ]
  }
}

// MARK: - PageColumn

/// Integers in a compact encoding: one column of a series, such as its packets' times.
///
/// Each number is a zigzag varint: the sign is the lowest bit, and each byte has seven bits, lowest
/// bits first. The highest bit is set in all bytes but the last. `columns.js` decodes them.
struct PageColumn: Sendable {
  /// The meaning of the varints.
  enum Coding: Int, Sendable {
    /// The numbers themselves.
    case values = 0
    /// The difference from the previous number; for the first number, from 0.
    case steps = 1
  }

  let coding: Coding
  private(set) var bytes: [UInt8] = []
  private(set) var count = 0
  private var last: Int64 = 0

  init(_ coding: Coding) { self.coding = coding }

  mutating func append(_ value: Int64) {
    var number = value
    if coding == .steps {
      number = value &- last
      last = value
    }
    var rest = UInt64(bitPattern: (number << 1) ^ (number >> 63))
    while rest >= 0x80 {
      bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    bytes.append(UInt8(truncatingIfNeeded: rest))
    count += 1
  }

  /// Returns the column so far and starts a new one.
  mutating func drain() -> PageColumn {
    let whole = self
    self = PageColumn(coding)
    return whole
  }
}

/// The times in pages: integers that count units of 10 µs since the start of the take.
enum PageTime {
  static func units(_ nanoseconds: Int64) -> Int64 { nanoseconds / 10_000 }

  /// Returns the number of the half second that contains a time, counted from 0.
  static func bin(_ units: Int64) -> Int64 { units / 50_000 }
}
