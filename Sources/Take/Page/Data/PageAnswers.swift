import Queries
import Stats
import Tape
import Wire

/// The results of the page's queries.
enum PageAnswers {
  /// Consecutive rows of one curve or event list.
  private struct Run {
    var facts: [(String, StatsValue?)]
    var key: [Value]
    var at = PageColumn(.steps)
    var value = PageColumn(.values)
  }

  /// Returns time spans as a JSON array: `[peer, subject, from, to, text]`; nil if there are none.
  static func spans(_ query: PageQuery, _ connection: borrowing SQLiteConnection)
    throws(SQLiteError) -> String?
  {
    let rows = try connection.prepare(query.sql)
    var items: [String] = []
    while try rows.step(), items.count < spanMaximum {
      let (peer, subject, from, to, text) = rows.values(
        Int64.self, String.self, Double.self, Double.self, String.self)
      items.append(
        "[\(peer),\(jsonString(subject)),\(seconds(from)),\(seconds(to)),\(jsonString(text))]")
    }
    return items.isEmpty ? nil : "[" + items.joined(separator: ",") + "]"
  }

  /// The maximum number of spans; a crafted take could contain millions of them.
  private static let spanMaximum = 20_000

  private static func seconds(_ value: Double) -> String {
    StatsValue.number((value * 1e5).rounded() / 1e5).json
  }

  /// Returns the series of several queries (in any form but spans), in order; nil if the take has
  /// changed since `moment`.
  static func series(_ queries: [PageQuery], path: String, at moment: PageMoment)
    throws(TapeError) -> [PageSeries]?
  {
    let connection = try TakeFile.openSnapshot(path)
    do throws(SQLiteError) {
      guard try PageMoment(connection) == moment else { return nil }
      // Most queries read all statistics, which a larger cache retains.
      try connection.execute("PRAGMA cache_size = -\(cacheKilobytes)")
    } catch {
      throw TapeError(path: path, error)
    }
    return try series(queries, path: path, connection)
  }

  private static let cacheKilobytes = 64_000

  /// Returns the series of several queries (in any form but spans), in order.
  static func series(
    _ queries: [PageQuery], path: String, _ connection: borrowing SQLiteConnection
  ) throws(TapeError) -> [PageSeries] {
    var found: [PageSeries] = []
    do throws(SQLiteError) {
      for query in queries { found += try series(query, connection) }
    } catch {
      throw TapeError(path: path, error)
    }
    return found
  }

  private static func series(_ query: PageQuery, _ connection: borrowing SQLiteConnection)
    throws(SQLiteError) -> [PageSeries]
  {
    let rows = try connection.prepare(query.sql)
    let columns = query.form == .messages ? 3 : 4
    var found: [PageSeries] = []
    var run: Run?
    while try rows.step() {
      guard !rows.isNull(columns + 1) else { continue }
      // Most rows continue the run; the check copies none of their values.
      if run.map({ run in !(0..<columns).allSatisfy { rows.has(run.key[$0], $0) } }) ?? true {
        let key = (0..<columns).map { rows.value($0) ?? .null }
        if run?.key != key {
          if let run { found.append(series(run, of: query)) }
          run = Run(facts: facts(key, of: query), key: key)
        }
      }
      run?.at.append(PageTime.units(rows.integer(columns)))
      run?.value.append(whole(rows.real(columns + 1)))
    }
    if let run { found.append(series(run, of: query)) }
    return found
  }

  private static func series(_ run: Run, of query: PageQuery) -> PageSeries {
    PageSeries(
      what: query.what, facts: run.facts, columns: [("at", run.at), ("value", run.value)])
  }

  /// Rounds a value to the nearest integer, limited to the range of `Int64`.
  private static func whole(_ value: Double) -> Int64 {
    Int64(saturating: value)
  }

  private static func facts(_ key: [Value], of query: PageQuery) -> [(String, StatsValue?)] {
    let values = key.map(\.stats)
    switch query.form {
    case .curves(let unit, let divisor):
      return [
        ("of", .text(query.name)), ("unit", .text(unit)), ("divisor", .number(divisor)),
        ("peer", values[0]), ("direction", values[1]), ("kind", values[2]), ("ssrc", values[3]),
      ]
    case .events:
      return [
        ("peer", values[0]), ("direction", values[1]), ("type", values[2]), ("ssrc", values[3]),
      ]
    case .messages, .spans:
      return [("peer", values[0]), ("direction", values[1]), ("channel", values[2])]
    }
  }
}

extension PageQuery {
  /// The kind of the query's series.
  fileprivate var what: String {
    switch form {
    case .curves: "curve"
    case .events, .messages, .spans: name
    }
  }
}

extension Value {
  /// The value for JSON; nil for null.
  fileprivate var stats: StatsValue? {
    switch self {
    case .null, .blob: nil
    case .integer(let value): .integer(value)
    case .real(let value): .number(value)
    case .text(let value): .text(value)
    }
  }
}

/// A take's size at one moment: reads through several connections are consistent if all of them see
/// the same size.
struct PageMoment: Equatable, Sendable {
  /// The row of the last packet at that moment.
  let lastPacket: Int64
  private let ends: [Int64]

  /// Reads the take's size; the first query starts the connection's snapshot.
  init(_ connection: borrowing SQLiteConnection) throws(SQLiteError) {
    var ends: [Int64] = []
    for query in Self.queries { ends.append(try connection.integer(query) ?? 0) }
    self.ends = ends
    lastPacket = ends[0]
  }

  private static let queries = [
    "SELECT max(row) FROM packet_store", "SELECT max(row) FROM frame_store",
    "SELECT max(row) FROM rtcp", "SELECT max(row) FROM stat",
    "SELECT max(first_step) FROM tape", "SELECT count(*) FROM ending",
  ]
}

/// The findings for the page and the catalogue: the same list, words and severities as in `retake
/// findings`.
struct PageFindings {
  private let found: TakeFindings

  /// The maximum number of spans per finding.
  private static let spanMaximum = 500

  init(_ found: TakeFindings) { self.found = found }

  /// The findings as a JSON array; `spans` lists times in seconds and the evidence, longest first.
  var json: String { "[" + found.findings.map { json($0) }.joined(separator: ",\n") + "]" }

  private func json(_ finding: Finding) -> String {
    // The longest span comes first, because some places show only one.
    let sorted = finding.detections.sorted {
      ($0.length, $1.fromNanoseconds) > ($1.length, $0.fromNanoseconds)
    }
    let spans = sorted.prefix(Self.spanMaximum).map { span in
      "[\(seconds(span.fromNanoseconds)),\(seconds(span.toNanoseconds)),"
        + "\(jsonString(span.evidence))]"
    }
    let sql = found.rules.first { $0.id == finding.id }?.sql ?? ""
    let symptoms = finding.symptoms.map { json($0) }.joined(separator: ",")
    return """
      {"rule":\(jsonString(finding.id)),"peer":\(finding.worst?.peer ?? 0),\
      "severity":\(finding.severity.rawValue),"level":\(jsonString(finding.severity.name)),\
      "side":\(jsonString(finding.sideWords)),\
      "confidence":\(jsonString(finding.confidence?.name ?? "")),\
      "text":\(jsonString(finding.text)),"count":\(finding.detections.count),\
      "seconds":\(seconds(finding.lengthNanoseconds)),"spans":[\(spans.joined(separator: ","))],\
      "symptoms":[\(symptoms)],"sql":\(jsonString(sql))}
      """
  }

  private func seconds(_ nanoseconds: Int64) -> String {
    StatsValue.number((Double(nanoseconds) / 1e4).rounded() / 1e5).json
  }
}
