import Queries
import Stats
import Tape
import Wire

/// The answers of the page's queries.
enum PageAnswers {
  /// A curve or a list of events whose rows follow each other.
  private struct Run {
    var facts: [(String, StatsValue?)]
    var key: [Value]
    var at = PageColumn(.steps)
    var value = PageColumn(.values)
  }

  /// What lasted, as rows of a JSON array: `[peer, subject, from, to, text]`; nil for none.
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

  /// More than anybody looks through; a hostile take can have as many as it has bytes.
  private static let spanMaximum = 20_000

  private static func seconds(_ value: Double) -> String {
    StatsValue.number((value * 1e5).rounded() / 1e5).json
  }

  /// The series of several queries of any other form, in their order; nil when the take is not as
  /// it was at a moment any more.
  static func series(_ queries: [PageQuery], path: String, at moment: PageMoment)
    throws(TapeError) -> [PageSeries]?
  {
    let connection = try TakeFile.openSnapshot(path)
    do throws(SQLiteError) {
      guard try PageMoment(connection) == moment else { return nil }
      // Most queries read all statistics, which stay at hand for the next one.
      try connection.execute("PRAGMA cache_size = -\(cacheKilobytes)")
    } catch {
      throw TapeError(path: path, error)
    }
    return try series(queries, path: path, connection)
  }

  private static let cacheKilobytes = 64_000

  /// The series of several queries of any other form, in their order.
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
      // Most rows continue with the run, which is seen without a copy of what they have.
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

  /// The nearest whole number of a value that may be anything.
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
  /// What its series are called.
  fileprivate var what: String {
    switch form {
    case .curves: "curve"
    case .events, .messages, .spans: name
    }
  }
}

extension Value {
  /// The value as JSON has it; nil for nothing.
  fileprivate var stats: StatsValue? {
    switch self {
    case .null, .blob: nil
    case .integer(let value): .integer(value)
    case .real(let value): .number(value)
    case .text(let value): .text(value)
    }
  }
}

/// How far a take has come: what is read through several connections is of one moment when each of
/// them finds the same.
struct PageMoment: Equatable, Sendable {
  /// The last packet that belongs to it.
  let lastPacket: Int64
  private let ends: [Int64]

  /// The moment that a snapshot is of, which begins with this.
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

/// What went wrong, as the page and a catalogue of takes show it: the same list, words and
/// severities that `retake findings` prints.
struct PageFindings {
  private let found: TakeFindings

  /// How many spans of a finding are drawn.
  private static let spanMaximum = 500

  init(_ found: TakeFindings) { self.found = found }

  /// The findings as a JSON array; `spans` has seconds and the evidence, longest first.
  var json: String { "[" + found.findings.map { json($0) }.joined(separator: ",\n") + "]" }

  private func json(_ finding: Finding) -> String {
    // The longest first, wherever one stands for all.
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
      "text":\(jsonString(finding.text)),"count":\(finding.detections.count),\
      "seconds":\(seconds(finding.lengthNanoseconds)),"spans":[\(spans.joined(separator: ","))],\
      "symptoms":[\(symptoms)],"sql":\(jsonString(sql))}
      """
  }

  private func seconds(_ nanoseconds: Int64) -> String {
    StatsValue.number((Double(nanoseconds) / 1e4).rounded() / 1e5).json
  }
}
