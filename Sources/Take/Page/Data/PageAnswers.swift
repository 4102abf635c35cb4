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
