import Wire

/// Reconstructs reports from webrtc-internals, which stores a series of values per member.
///
/// A series ends with the last report that contained its object, but may begin later than the
/// object's other series, so all of an object's series are aligned at their ends.
struct SeriesReports {
  struct Report {
    /// Unix time in milliseconds.
    var time: Double
    var stats: ReportedStats
    fileprivate init(time: Double) {
      self.time = time
      stats = ReportedStats(form: .whole, timestamp: time, objects: [])
    }
  }

  private(set) var reports: [Report] = []
  /// Whether report times were distributed evenly, because dumps before 2023 have none.
  private(set) var hasSpreadTimes = false
  private var place = 0

  private struct Series {
    var name: String
    var values: [JSONValue]
  }

  private struct Object {
    var id: String
    var type: String
    var series: [Series] = []
    var count = 0
    var start: Double?
    var end: Double?

    /// The times of the object's samples; nil if the dump has none.
    var times: [Double]? {
      guard let series = series.first(where: { $0.name == "timestamp" }) else { return nil }
      let times = series.values.compactMap(\.unixMilliseconds)
      return times.count == series.values.count ? times : nil
    }
  }

  init(_ stats: JSONValue?) {
    let objects = Self.objects(stats)
    let times = Self.times(objects)
    hasSpreadTimes = times.isSpread
    reports = times.values.map { Report(time: $0) }
    guard !reports.isEmpty else { return }
    for object in objects { lay(object) }
  }

  /// Returns the next report if it is earlier than `time`; nil if `time` is nil.
  mutating func next(before time: Double?) -> Report? {
    guard place < reports.count, let time, reports[place].time < time else { return nil }
    place += 1
    return reports[place - 1]
  }

  // MARK: Reading

  private static func objects(_ stats: JSONValue?) -> [Object] {
    var objects: [Object] = []
    var places: [String: Int] = [:]
    for member in stats?.members ?? [] {
      guard let (id, name) = parts(of: member.name) else { continue }
      let values = self.values(member.value["values"])
      let place = places[id] ?? objects.count
      if place == objects.count {
        let type = member.value["statsType"]?.text ?? LegacyStatistics.type(ofID: id)
        objects.append(Object(id: id, type: type))
        places[id] = place
      }
      objects[place].series.append(Series(name: name, values: values))
      if values.count >= objects[place].count {
        objects[place].count = values.count
        objects[place].start = member.value["startTime"]?.text.flatMap(ReportedDate.milliseconds)
        objects[place].end = member.value["endTime"]?.text.flatMap(ReportedDate.milliseconds)
      }
    }
    return objects
  }

  /// Splits `id-member` and `id-[computed/s]`, where ids may contain hyphens too; nil for anything
  /// else.
  private static func parts(of key: String) -> (id: String, name: String)? {
    let split = key.firstIndex(of: "[") ?? key.lastIndex(of: "-").map { key.index(after: $0) }
    guard let split, split > key.startIndex else { return nil }
    let id = key[..<split]
    return (String(id.hasSuffix("-") ? id.dropLast() : id), String(key[split...]))
  }

  /// Parses an array, usually JSON in a string; empty for anything else.
  private static func values(_ value: JSONValue?) -> [JSONValue] {
    guard case .text(let text)? = value else { return value?.elements ?? [] }
    return (try? JSONValue(parsing: text, limits: ReportedLines.limits))?.elements ?? []
  }

  /// Returns the times of all reports, from the object with the most samples.
  ///
  /// Objects whose times come from the remote peer's reports are ignored.
  private static func times(_ objects: [Object]) -> (values: [Double], isSpread: Bool) {
    let own = objects.filter { !$0.type.hasPrefix("remote-") || $0.type == "remote-candidate" }
    let longest = own.max { $0.count < $1.count }
    let timed = own.compactMap(\.times).max { $0.count < $1.count }
    if let timed, timed.count >= longest?.count ?? 0 { return (timed.sorted(), false) }
    guard let longest, longest.count > 0, let end = longest.end else { return (timed ?? [], false) }
    let start = min(longest.start ?? end, end)
    let steps = Double(max(longest.count - 1, 1))
    return (
      (0..<longest.count).map { start + (end - start) * Double($0) / steps }, true
    )
  }

  /// Assigns an object's samples to reports, the last sample to the report at the object's end.
  private mutating func lay(_ object: Object) {
    guard object.count > 0 else { return }
    let end = object.end ?? reports[reports.count - 1].time
    // Finds the nearest report, because the dump's times and the samples' differ by milliseconds.
    let last =
      reports.indices.min { abs(reports[$0].time - end) < abs(reports[$1].time - end) } ?? 0
    for sample in 0..<object.count {
      let place = last - (object.count - 1 - sample)
      guard reports.indices.contains(place) else { continue }
      var members = [JSONValue.Member("type", .text(object.type))]
      for series in object.series {
        let index = sample - (object.count - series.values.count)
        guard index >= 0, let value = series.values[index].unlessInvalid else { continue }
        members.append(JSONValue.Member(series.name, value))
      }
      reports[place].stats.objects.append(
        ReportedStats.Object(id: object.id, members: members.statisticsMembers))
    }
  }
}

extension JSONValue {
  /// The value; nil for null and for Chromium's "Invalid Date".
  fileprivate var unlessInvalid: JSONValue? {
    self == .null || self == .text("Invalid Date") ? nil : self
  }
}
