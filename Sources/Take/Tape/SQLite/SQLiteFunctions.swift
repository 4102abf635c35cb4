import CSQLite
import Glibc

/// Functions that queries have in addition to SQLite's: `percentile`, `median`, `stddev` and
/// `regexp`.
///
/// Views do not use them, so that other programs can use the views.
enum SQLiteFunctions {
  /// The description of the functions in `retake sql --schema`.
  static let text = """
    -- Functions of retake sql and retake open, beside those of SQLite; plain sqlite3 lacks them,
    -- and no view uses them.
    --
    -- percentile(x, p)  the value that p of a hundred values of x do not exceed, between two
    --                   values in proportion; p from 0 to 100, as in percentile(x, 95), the same
    --                   in all rows of a group
    -- median(x)         percentile(x, 50)
    -- stddev(x)         the standard deviation of a sample (n - 1); NULL for fewer than two values
    -- x REGEXP pattern  whether a text contains a match of a POSIX extended regular expression,
    --                   with \\d, \\w, \\s and \\b; also regexp(pattern, x)
    --
    -- The first three are aggregates and leave NULL out:
    --   SELECT ssrc, median(delay_ms), percentile(delay_ms, 95) FROM one_way_delay GROUP BY ssrc

    """

  private typealias Values = UnsafeMutablePointer<OpaquePointer?>

  static func install(on handle: OpaquePointer) throws(SQLiteError) {
    let aggregates: [(String, Int32)] = [("percentile", 2), ("median", 1), ("stddev", 1)]
    let flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_INNOCUOUS
    for (name, count) in aggregates {
      let kind = UnsafeMutableRawPointer(bitPattern: name == "stddev" ? 2 : 1)
      try check(
        sqlite3_create_function_v2(
          handle, name, count, flags, kind, nil,
          { context, count, values in SQLiteFunctions.add(context, count, values) },
          { context in SQLiteFunctions.finish(context) }, nil), handle)
    }
    let expressions = Unmanaged.passRetained(Expressions())
    try check(
      sqlite3_create_function_v2(
        handle, "regexp", 2, flags, expressions.toOpaque(),
        { context, _, values in SQLiteFunctions.match(context, values) }, nil, nil,
        { owner in
          guard let owner else { return }
          Unmanaged<Expressions>.fromOpaque(owner).release()
        }), handle)
  }

  private static func check(_ code: Int32, _ handle: OpaquePointer) throws(SQLiteError) {
    guard code == SQLITE_OK else { throw SQLiteConnection.error(code, of: handle) }
  }

  // MARK: Percentiles and deviation

  /// The values of a group, which an aggregate function collects.
  private final class Sample {
    var values: [Double] = []
    var percent: Double?
    var fault: String?
  }

  /// Returns the sample of the current group; nil if it has none and `makes` is false.
  private static func sample(_ context: OpaquePointer?, makes: Bool) -> Unmanaged<Sample>? {
    let size = Int32(MemoryLayout<UnsafeRawPointer?>.size)
    guard let place = sqlite3_aggregate_context(context, makes ? size : 0) else { return nil }
    let slot = place.assumingMemoryBound(to: UnsafeRawPointer?.self)
    if let known = slot.pointee { return Unmanaged<Sample>.fromOpaque(known) }
    guard makes else { return nil }
    let made = Unmanaged.passRetained(Sample())
    slot.pointee = UnsafeRawPointer(made.toOpaque())
    return made
  }

  private static func add(_ context: OpaquePointer?, _ count: Int32, _ values: Values?) {
    guard let values, let kept = sample(context, makes: true) else {
      return sqlite3_result_error_nomem(context)
    }
    let sample = kept.takeUnretainedValue()
    if count == 2 {
      let percent = sqlite3_value_double(values[1])
      let isNumber = [SQLITE_INTEGER, SQLITE_FLOAT].contains(sqlite3_value_numeric_type(values[1]))
      if !isNumber || !(0...100).contains(percent) {
        sample.fault = "the second argument of percentile() must be a number from 0 to 100"
      } else if let known = sample.percent, known != percent {
        sample.fault = "the second argument of percentile() must be the same in all rows of a group"
      }
      sample.percent = percent
    }
    switch sqlite3_value_numeric_type(values[0]) {
    case SQLITE_INTEGER, SQLITE_FLOAT: sample.values.append(sqlite3_value_double(values[0]))
    case SQLITE_NULL: break
    default: sample.fault = "a value is not a number"
    }
  }

  private static func finish(_ context: OpaquePointer?) {
    guard let kept = sample(context, makes: false) else { return sqlite3_result_null(context) }
    let sample = kept.takeRetainedValue()
    if let fault = sample.fault { return sqlite3_result_error(context, fault, -1) }
    let isDeviation = Int(bitPattern: sqlite3_user_data(context)) == 2
    let result =
      isDeviation
      ? deviation(sample.values) : percentile(&sample.values, sample.percent ?? 50)
    guard let result else { return sqlite3_result_null(context) }
    sqlite3_result_double(context, result)
  }

  private static func percentile(_ values: inout [Double], _ percent: Double) -> Double? {
    guard !values.isEmpty else { return nil }
    values.sort()
    let place = percent / 100 * Double(values.count - 1)
    let low = min(Int(place), values.count - 1)
    guard low + 1 < values.count else { return values[low] }
    return values[low] + (values[low + 1] - values[low]) * (place - Double(low))
  }

  private static func deviation(_ values: [Double]) -> Double? {
    guard values.count > 1 else { return nil }
    let mean = values.reduce(0, +) / Double(values.count)
    let squares = values.reduce(0) { $0 + ($1 - mean) * ($1 - mean) }
    return (squares / Double(values.count - 1)).squareRoot()
  }

  // MARK: Regular expressions

  /// Keeps the last compiled regular expression, since a query usually has only one.
  private final class Expressions {
    private var pattern: String?
    private var compiled = regex_t()

    deinit { if pattern != nil { regfree(&compiled) } }

    /// Returns whether a pattern matches a string; nil if the pattern is invalid.
    func matches(_ pattern: String, _ text: UnsafePointer<CChar>) -> Bool? {
      if self.pattern != pattern {
        if self.pattern != nil { regfree(&compiled) }
        self.pattern = nil
        let flags = REG_EXTENDED | REG_NOSUB
        guard regcomp(&compiled, Expressions.posix(pattern), flags) == 0 else { return nil }
        self.pattern = pattern
      }
      return regexec(&compiled, text, 0, nil, 0) == 0
    }

    /// Replaces classes such as `\d`, which POSIX does not have.
    private static func posix(_ pattern: String) -> String {
      var text = ""
      var isEscaped = false
      var isInList = false
      for character in pattern {
        if isEscaped {
          switch character {
          case "d": text += isInList ? "0-9" : "[0-9]"
          case "D" where !isInList: text += "[^0-9]"
          default: text += (isInList ? "" : "\\") + String(character)
          }
          isEscaped = false
        } else if character == "\\" {
          isEscaped = true
        } else {
          if character == "[" { isInList = true }
          if character == "]" { isInList = false }
          text.append(character)
        }
      }
      return isEscaped ? text + "\\" : text
    }
  }

  private static func match(_ context: OpaquePointer?, _ values: Values?) {
    guard let values, let owner = sqlite3_user_data(context) else { return }
    guard let pattern = sqlite3_value_text(values[0]), let text = sqlite3_value_text(values[1])
    else { return sqlite3_result_null(context) }
    let words = String(cString: pattern)
    let expressions = Unmanaged<Expressions>.fromOpaque(owner).takeUnretainedValue()
    let matches = text.withMemoryRebound(to: CChar.self, capacity: 1) {
      expressions.matches(words, $0)
    }
    guard let matches else {
      return sqlite3_result_error(context, "\(words.prefix(100)) is not a regular expression", -1)
    }
    sqlite3_result_int(context, matches ? 1 : 0)
  }
}

/// The values of a query's current row, counted from 0.
struct RowValues {
  fileprivate let values: UnsafeMutablePointer<OpaquePointer?>

  /// Returns an integer, clamped like `SQLiteStatement.integer`; 0 for NULL.
  func integer(_ column: Int) -> Int64 {
    min(max(sqlite3_value_int64(values[column]), -Int64.largestRead), Int64.largestRead)
  }

  func isNull(_ column: Int) -> Bool { sqlite3_value_type(values[column]) == SQLITE_NULL }
}

/// An SQL function that hands each row of a table to Swift.
///
/// SQLite passes all values of a row in one call. Stepping a statement to each row and reading its
/// columns needs 1.5 times as long.
final class RowFunction {
  private static let name = "retake_row"
  /// Receives the running query's rows and returns whether to continue; nil if no query is running.
  private var receive: ((RowValues) -> Bool)?
  private let handle: OpaquePointer

  /// Registers the function with a connection, which then retains this object.
  init(on handle: OpaquePointer) throws(SQLiteError) {
    self.handle = handle
    let code = sqlite3_create_function_v2(
      handle, Self.name, -1, SQLITE_UTF8 | SQLITE_DIRECTONLY,
      Unmanaged.passRetained(self).toOpaque(),
      { context, _, values in
        guard let values, let owner = sqlite3_user_data(context) else { return }
        let function = Unmanaged<RowFunction>.fromOpaque(owner).takeUnretainedValue()
        guard let receive = function.receive, !receive(RowValues(values: values)) else { return }
        sqlite3_result_error(context, "the take has more rows than fit into memory", -1)
      }, nil, nil,
      { owner in
        guard let owner else { return }
        Unmanaged<RowFunction>.fromOpaque(owner).release()
      })
    guard code == SQLITE_OK else { throw SQLiteConnection.error(code, of: handle) }
  }

  /// Calls a closure with each row of a table, in order; throws if it returns false.
  func forEachRow(
    of table: String, _ columns: String, _ statements: StatementStore?,
    _ body: (RowValues) -> Bool
  ) throws(SQLiteError) {
    try withoutActuallyEscaping(body) { (body) throws(SQLiteError) in
      let statement = try SQLiteConnection.prepare(
        "SELECT 1 FROM \(table) WHERE \(Self.name)(\(columns)) ORDER BY row", on: handle,
        statements)
      receive = body
      defer { receive = nil }
      // The function returns NULL for each row, so the statement has no result rows.
      _ = try statement.step()
    }
  }
}
