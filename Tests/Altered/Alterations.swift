import Foundation
import Tape
import Wire

/// A way to alter a copy of a take.
enum AlterationKind: String, CaseIterable {
  /// Flips bits of the file.
  case bits
  /// Changes one column's values, in one row or in all, sometimes to another type.
  case values
  /// Changes the counters and sizes that locate a row's bytes and steps.
  case counters
  /// Changes tables, columns, views and triggers.
  case schema
  /// Changes the file's header, or its length.
  case head
  /// Changes JSON members in a text column.
  case members
  /// Sets rows' values to extremes and recomputes the digest chain, so only a replay can notice.
  case forged
}

/// An altered take, and whether its replay has to fail.
struct Altered {
  var kind: AlterationKind
  var what = ""
  /// Whether a value under the digest changed.
  var mustBeNoticed = false
}

/// Writes altered copies of takes; the copy's number determines the take and the changes.
struct Alterations {
  let bases: [String]

  /// Writes the altered take with this number to `path`; equal numbers make equal takes.
  func write(_ number: UInt64, to path: String) throws -> Altered {
    var chance = Chance(number)
    let base = chance.pick(bases)
    let kind = chance.pick(AlterationKind.allCases)
    var altered = Altered(
      kind: kind, what: "\(kind.rawValue) of \((base as NSString).lastPathComponent)")
    try? FileManager.default.removeItem(atPath: path)
    if kind == .forged {
      altered.what += ": " + (try forge(base, path, &chance))
      return altered
    }
    try FileManager.default.copyItem(atPath: base, toPath: path)
    switch kind {
    case .bits: altered.what += ": " + (try flip(path, &chance))
    case .head: altered.what += ": " + (try head(path, &chance))
    default:
      let connection = try SQLiteConnection(path: path, mode: .readWrite)
      try connection.execute("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF")
      let (what, isNoticed) = try alter(kind, connection, &chance)
      altered.what += ": " + what
      altered.mustBeNoticed = isNoticed
    }
    return altered
  }

  // MARK: Bytes

  private func flip(_ path: String, _ chance: inout Chance) throws -> String {
    var bytes = try Data(contentsOf: URL(fileURLWithPath: path))
    let count = 1 + chance.below(16)
    let start = chance.below(bytes.count)
    for _ in 0..<count {
      // Half of the flips hit any place in the file, and half hit the 64 bytes after `start`.
      let place = chance.isOne(in: 2) ? chance.below(bytes.count) : start + chance.below(64)
      if place < bytes.count { bytes[place] ^= UInt8(1 << chance.below(8)) }
    }
    try bytes.write(to: URL(fileURLWithPath: path))
    return "\(count) bits from \(start) on"
  }

  private func head(_ path: String, _ chance: inout Chance) throws -> String {
    var bytes = try Data(contentsOf: URL(fileURLWithPath: path))
    if chance.isOne(in: 4) {
      let length = chance.isOne(in: 2) ? chance.below(bytes.count) : chance.below(64) * 512
      bytes = bytes.prefix(length)
      try bytes.write(to: URL(fileURLWithPath: path))
      return "cut to \(length)"
    }
    // Fields of the file header (SQLite file format section 1.3), then the first page's header.
    let (place, width) = chance.pick([
      (16, 2), (18, 1), (19, 1), (20, 1), (24, 4), (28, 4), (32, 4), (36, 4), (40, 4), (44, 4),
      (48, 4), (52, 4), (56, 4), (60, 4), (64, 4), (68, 4), (92, 4), (96, 4), (100, 1), (101, 2),
      (103, 2), (105, 2), (108, 2), (110, 2),
    ])
    let value = chance.pick([
      0, 1, 2, 3, 0x7f, 0x80, 0xff, 0x7fff_ffff, 0xffff_ffff, Int(chance.next() >> 33),
    ])
    for index in 0..<width where place + index < bytes.count {
      bytes[place + index] = UInt8(truncatingIfNeeded: value >> (8 * (width - 1 - index)))
    }
    try bytes.write(to: URL(fileURLWithPath: path))
    return "\(width) bytes at \(place) are \(value)"
  }

  // MARK: SQL

  /// Replacements for a value, as SQL.
  private static let values = [
    "9223372036854775807", "-9223372036854775808", "4611686018427387904", "9007199254740993",
    "4294967296", "4294967295", "2147483648", "-2147483649", "65536", "65535", "256", "128", "-1",
    "0", "1", "1.5", "1e308", "-1e308", "9e999", "-9e999", "1e-320", "NULL", "''", "'x'",
    "'9223372036854775807'", "x''", "x'00'", "zeroblob(100000)", "zeroblob(3000000)",
    "CAST(x'ff1b5d41' AS TEXT)", "char(0, 27, 93, 7, 155, 8238)",
    "substr(hex(zeroblob(500000)), 1, 1000000)", "'in'", "'out'", "'{}'", "'[]'", "'connected'",
  ]

  private static let tables =
    Table.allCases.map(\.storageName) + ["take", "tape", "ending", "wire", "media"]

  private func alter(
    _ kind: AlterationKind, _ connection: borrowing SQLiteConnection, _ chance: inout Chance
  ) throws -> (String, Bool) {
    switch kind {
    case .values: return try values(connection, &chance)
    case .counters: return try counters(connection, &chance)
    case .schema: return try schema(connection, &chance)
    default: return try members(connection, &chance)
    }
  }

  /// Runs an SQL statement; returns the statement and whether it changed anything.
  private func run(_ sql: String, _ connection: borrowing SQLiteConnection) throws -> (String, Bool)
  {
    let before = try connection.integer("SELECT total_changes()") ?? 0
    do {
      try connection.execute(sql)
    } catch {
      return ("\(sql) failed: \(error)", false)
    }
    let after = try connection.integer("SELECT total_changes()") ?? 0
    return (sql, after > before)
  }

  private func columns(of table: String, _ connection: borrowing SQLiteConnection) throws
    -> [String]
  {
    let rows = try connection.prepare("SELECT name FROM pragma_table_info('\(table)')")
    var names: [String] = []
    while try rows.step() { names.append(rows.text(0) ?? "") }
    // A copy of an older take also has the tables and columns of later formats, but no verb reads
    // them.
    let format = try connection.integer("PRAGMA user_version") ?? 0
    guard let known = Table.allCases.first(where: { $0.storageName == table }) else { return names }
    guard known.since <= format else { return [] }
    let read = Set(known.storageColumns(format: format)).union(["row"])
    return names.filter(read.contains)
  }

  private func values(
    _ connection: borrowing SQLiteConnection, _ chance: inout Chance
  ) throws -> (String, Bool) {
    for _ in 0..<20 {
      let table = chance.pick(Self.tables)
      let count = Int(try connection.integer("SELECT count(*) FROM \(table)") ?? 0)
      let names = try columns(of: table, connection)
      guard count > 0, !names.isEmpty else { continue }
      let (column, value) = (chance.pick(names), chance.pick(Self.values))
      let scope =
        chance.isOne(in: 3)
        ? "" : " AND rowid = (SELECT rowid FROM \(table) LIMIT 1 OFFSET \(chance.below(count)))"
      let before = try contents(of: column, table, connection)
      let (what, _) = try run(
        "UPDATE OR IGNORE \(table) SET \(column) = \(value) WHERE (\(column) IS NOT \(value) "
          + "OR typeof(\(column)) <> typeof(\(value)))\(scope)", connection)
      // Affinity may have converted the new value back to the old one.
      return (what, try contents(of: column, table, connection) != before)
    }
    return ("nothing", false)
  }

  private func contents(
    of column: String, _ table: String, _ connection: borrowing SQLiteConnection
  ) throws -> [Value?] {
    let rows = try connection.prepare("SELECT \(column) FROM \(table) ORDER BY rowid")
    var values: [Value?] = []
    while try rows.step() { values.append(rows.value(0)) }
    return values
  }

  private func counters(
    _ connection: borrowing SQLiteConnection, _ chance: inout Chance
  ) throws -> (String, Bool) {
    let number = chance.pick(Self.values.prefix(15).map { $0 })
    let table = chance.pick(Self.tables)
    let row = "(SELECT rowid FROM \(table) LIMIT 1 OFFSET \(chance.below(60)))"
    // The row of `ending` has no stored number, so changing its number would alter nothing.
    let numbered = table == "ending" ? "tape" : table
    return try run(
      chance.pick([
        "UPDATE tape SET steps = \(number) WHERE steps <> \(number)",
        "UPDATE tape SET at_ns = \(number) WHERE at_ns <> \(number)",
        "UPDATE OR IGNORE tape SET first_step = \(number) WHERE first_step <> \(number)",
        "UPDATE ending SET steps = \(number) WHERE steps <> \(number)",
        "UPDATE ending SET at_ns = \(number) WHERE at_ns <> \(number)",
        "INSERT INTO ending SELECT * FROM ending",
        "UPDATE packet_store SET position = position + 1",
        "UPDATE packet_store SET size = \(number)",
        "UPDATE packet_store SET path = \(number)", "UPDATE frame_store SET format = \(number)",
        "UPDATE frame_store SET size = \(number), position = NULL WHERE position IS NOT NULL",
        "DELETE FROM wire WHERE rowid = (SELECT max(piece) FROM wire)",
        "INSERT INTO wire SELECT max(piece) + 1, x'00' FROM wire",
        "DELETE FROM \(table) WHERE rowid = \(row)",
        "UPDATE OR IGNORE \(numbered) SET rowid = \(number) "
          + "WHERE rowid = (SELECT rowid FROM \(numbered) LIMIT 1 OFFSET \(chance.below(60)))",
        "INSERT OR IGNORE INTO \(table) SELECT * FROM \(table)",
        "UPDATE tape SET body = CAST(substr(body, 1, length(body) / 2) || zeroblob(50) AS BLOB)",
        "UPDATE tape SET body = zeroblob(200000)",
      ]), connection)
  }

  private func schema(
    _ connection: borrowing SQLiteConnection, _ chance: inout Chance
  ) throws -> (String, Bool) {
    let table = chance.pick(Self.tables)
    let column = chance.pick(try columns(of: table, connection) + ["row"])
    let endless =
      "CREATE VIEW \(table) AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
      + "SELECT i AS \(column) FROM n"
    let edit = "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET "
    let whose = " WHERE name = '\(table)'; PRAGMA writable_schema = RESET"
    let (what, _) = try run(
      chance.pick([
        "DROP TABLE \(table); \(endless)",
        "\(edit) type = 'view', rootpage = 0, sql = '\(endless)'\(whose)",
        "DROP TABLE \(table); CREATE VIRTUAL TABLE \(table) USING fts5(\(column))",
        "DROP TABLE \(table); CREATE VIRTUAL TABLE \(table) USING generate_series",
        "DROP TABLE \(table)",
        "ALTER TABLE \(table) ADD COLUMN more INTEGER DEFAULT 9223372036854775807",
        "ALTER TABLE \(table) RENAME COLUMN \(column) TO other",
        "\(edit) sql = replace(sql, 'INTEGER', 'TEXT')\(whose)",
        "\(edit) sql = replace(sql, 'NOT NULL', '')\(whose)",
        "\(edit) sql = replace(sql, '\(column)', 'x')\(whose)",
        "\(edit) sql = sql || ' STRICT'\(whose)", "\(edit) rootpage = 1\(whose)",
        "\(edit) rootpage = 999999\(whose)", "\(edit) name = 'x'\(whose)",
        "CREATE INDEX more ON \(table) (\(column))",
        "CREATE TABLE more (x); CREATE VIEW packet2 AS SELECT * FROM more",
        "CREATE TRIGGER more AFTER INSERT ON \(table) BEGIN DELETE FROM take; END",
        "DROP VIEW packet; CREATE VIEW packet AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT "
          + "i + 1 FROM n) SELECT i AS row FROM n",
        "DROP VIEW stream_stat; CREATE TABLE stream_stat (peer)",
      ]), connection)
    return (what, false)
  }

  /// Text columns that hold JSON.
  private static let documents = [
    ("stat", "members"), ("event", "detail"), ("peer", "configuration"), ("rtcp", "fields"),
    ("call_request", "arguments"), ("call_reply", "reply"), ("actor_store", "configuration"),
    ("take", "toolchain"), ("presence", "metadata"),
  ]

  private func members(
    _ connection: borrowing SQLiteConnection, _ chance: inout Chance
  ) throws -> (String, Bool) {
    let (table, column) = chance.pick(Self.documents)
    let value = chance.pick([
      "1e308", "-1e308", "9223372036854775807", "-9223372036854775808", "1e999", "-1", "0", "null",
      "\"x\"", "[]", "{}", "\"\\u0000\\u001b]0;x\\u0007\"", "18446744073709551616", "true", "0.1",
    ])
    // Replaces one member, all members or the complete document, or makes it invalid.
    let new = chance.pick([
      "json_set(\(column), '$.' || (SELECT key FROM json_each(\(table).\(column)) "
        + "LIMIT 1 OFFSET \(chance.below(8))), json('\(value)'))",
      "(SELECT json_group_object(key, json('\(value)')) FROM json_each(\(table).\(column)))",
      "'\(value)'", "'{' || \(column)", "replace(hex(zeroblob(50000)), '00', '[')",
      "replace(hex(zeroblob(50000)), '00', '{\"a\":')",
    ])
    return try run(
      "UPDATE OR IGNORE \(table) SET \(column) = \(new) WHERE json_valid(\(column)) "
        + "AND \(new) IS NOT \(column)", connection)
  }

  // MARK: Recomputed chain

  private static let numbers: [Value] = [
    .integer(.max), .integer(.min), .integer(1 << 62), .integer(-1), .integer(0), .integer(65_536),
    .integer(1 << 32), .integer(-(1 << 31)), .integer(1_000_000_000), .integer(127), .integer(255),
    .real(.infinity), .real(1e308), .real(-1e308), .null, .text(""), .text("\u{1b}]0;x\u{7}"),
    .text(String(repeating: "[", count: 30_000)), .blob([]), .blob([0xff]),
    .text("{\"a\":1e308}"),
  ]

  /// Replacements for a packet's or a frame's bytes.
  private static let contents: [Value] = [
    .blob([]), .blob([0]), .blob([0x80, 0xff]), .blob([UInt8](repeating: 0xff, count: 70_000)),
    .blob([0x80, 0x60] + [UInt8](repeating: 0, count: 10)), .blob([0, 1, 0, 0]),
    .blob([0x80, 0xc8, 0xff, 0xff] + [UInt8](repeating: 0xff, count: 24)),
  ]

  private func forge(_ base: String, _ path: String, _ chance: inout Chance) throws -> String {
    let reader = try TapeReader(path: base)
    var header = reader.header
    if chance.isOne(in: 8) {
      header.startUnixNanoseconds = chance.pick([.max, .min, 0, -1, 1 << 62])
    }
    let copy = try TakeCopy(path: path, header: header)
    // On average, one row in `share` changes, and at most 50 in all.
    let share = chance.pick([3, 20, 200, 1_000])
    var changes = 0
    var first = ""
    while let chunk = try reader.next() {
      for step in chunk.steps {
        var head = step.head
        if chance.isOne(in: share * 20) {
          head.at = Instant(nanoseconds: chance.pick([.max, .min, 1 << 62, -1, 0]))
        }
        var rows = RowList()
        for row in step.rows {
          guard changes < 50, chance.isOne(in: share) else {
            rows.append(chunk.rows, row)
            continue
          }
          var values = chunk.rows.row(row)
          let column = chance.below(values.count)
          let definition = chunk.rows.table(row).columns[column]
          let value = chance.pick(definition.stream == nil ? Self.numbers : Self.contents)
          // The tables declare NOT NULL where a field always has a value.
          values[column] = value == .null && !definition.isOptional ? .integer(-1) : value
          if changes == 0 { first = "\(chunk.rows.table(row)) \(column) of step \(head.number)" }
          changes += 1
          rows.append(chunk.rows.table(row), values)
        }
        do {
          try copy.append(head, rows, 0..<rows.count)
        } catch {
          // The table rejects the value, so the take ends there, in the middle of the step.
          try copy.finish(isComplete: false)
          return "\(first), refused by its table"
        }
      }
    }
    try copy.finish(isComplete: !chance.isOne(in: 4))
    return "\(changes) values, the first in \(first)"
  }
}
