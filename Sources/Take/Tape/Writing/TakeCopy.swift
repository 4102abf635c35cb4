import Wire

/// Writes a take from recorded steps: a part of a take, or a changed take.
///
/// Steps are renumbered from 1 and the digest chain is recomputed, so that the copy is an ordinary
/// take.
package final class TakeCopy {
  private let path: String
  private let connection: SQLiteConnection
  private let inserts: RowInserts
  private let tapeInsert: InsertStatement
  private var chain: StepChain
  private var body = TapeBody(start: 0)
  private var bodyStart = 1
  private var lastAt = Instant.zero

  /// The number of steps added so far.
  package private(set) var steps = 0

  /// The number of steps per row of `tape`.
  private static let bodySteps = 1_024

  /// Creates the file, mode 0600, with the given `take` row; the file must not exist.
  package init(path: String, header: TakeHeader) throws(TapeError) {
    self.path = path
    let header = header.sealed
    try TapeStore.createFile(path, TakeCopy.emptyTake(path))
    do throws(SQLiteError) {
      connection = try SQLiteConnection(path: path, mode: .readWrite)
      // A copy has no readers before it is complete, so journaling and syncing are off.
      try connection.execute(
        """
        PRAGMA journal_mode = OFF;
        PRAGMA synchronous = OFF;
        BEGIN IMMEDIATE;
        """)
      try TakeSchema.mark(connection, format: header.format)
      try header.insert(into: connection)
      tapeInsert = InsertStatement(
        try connection.prepare("INSERT INTO tape VALUES (?, ?, ?, ?, ?)"))
      inserts = try RowInserts(connection, format: header.format)
    } catch {
      throw TapeError(path: path, error)
    }
    chain = StepChain(takeDigest: header.digest)
  }

  private static func emptyTake(_ path: String) throws(TapeError) -> [UInt8] {
    do throws(SQLiteError) {
      return try TakeSchema.emptyFile.get()
    } catch {
      throw TapeError(path: path, error)
    }
  }

  /// Adds a step with its rows; the head's number, row count and check are recomputed.
  package func append(_ head: StepHead, _ rows: RowList, _ range: Range<Int>) throws(TapeError) {
    var head = head
    head.number = steps + 1
    head.rowCount = range.count
    do throws(SQLiteError) {
      _ = try inserts.insert(rows, range, step: head.number)
      if body.count == TakeCopy.bodySteps { try endBody() }
      if body.count == 0 { body = TapeBody(start: head.at.nanoseconds) }
      head.check = chain.advance(head, rows, range)
      body.append(head)
    } catch {
      throw TapeError(path: path, place: "step \(head.number)", error)
    }
    steps += 1
    lastAt = head.at
  }

  private func endBody() throws(SQLiteError) {
    guard body.count > 0 else { return }
    try tapeInsert.run(
      [
        .number(bodyStart), .number(body.count), .number(body.start), .blob(body.bytes),
        .blob(chain.digest),
      ])
    bodyStart += body.count
    body = TapeBody(start: 0)
  }

  /// Completes the file; if `isComplete` is false, it has no `ending` row, as if the recorder had
  /// been killed.
  package func finish(isComplete: Bool = true) throws(TapeError) {
    do throws(SQLiteError) {
      try endBody()
      try inserts.flush()
      if isComplete {
        let insert = try connection.prepare("INSERT INTO ending VALUES (?, ?, ?)")
        try insert.insert(
          [.number(steps), .number(lastAt.nanoseconds), .blob(chain.digest)])
      }
      try connection.execute("COMMIT")
    } catch {
      throw TapeError(path: path, place: "ending", error)
    }
  }
}

// MARK: - RowInserts

/// Inserts steps' rows into a take's tables, and streamed bytes into their streams.
final class RowInserts {
  private var inserts: [TableInsert] = []
  private var streams: [WireStore] = []
  /// Whether video frames are compressed; a writer that is behind turns this off.
  var compresses = true

  /// Prepares an insert for every table with a format's columns.
  init(_ connection: borrowing SQLiteConnection, format: Int64) throws(SQLiteError) {
    var stores: [ByteStream: WireStore] = [:]
    for stream in ByteStream.allCases {
      let store = WireStore(
        try connection.prepare("INSERT OR REPLACE INTO \(stream.rawValue) VALUES (?, ?)"))
      stores[stream] = store
      streams.append(store)
    }
    for table in Table.allCases {
      let definition = table.definition
      // Tables that the format lacks get no rows, so their columns do not matter.
      let format = max(format, table.since)
      inserts.append(
        try TableInsert(
          definition, format: format, connection, definition.stream.flatMap { stores[$0] }))
    }
  }

  /// Inserts a step's rows; returns the number of datagrams among them.
  func insert(_ rows: borrowing RowList, _ range: Range<Int>, step: Int) throws(SQLiteError) -> Int
  {
    guard range.count <= RowNumber.perStep else {
      throw SQLiteError(code: .misuse, message: "a step with more than 65536 rows")
    }
    let first = RowNumber.first(ofStep: step) - Int64(range.lowerBound)
    var packets = 0
    for row in range {
      let table = rows.table(row)
      if table == .packet { packets += 1 }
      let insert = inserts[Int(table.rawValue) - 1]
      if compresses, let coded = ContentCoding.coded(rows, row, in: range) {
        try insert.insert(rows, row, coded: coded, number: first + Int64(row))
      } else {
        try insert.insert(rows, row, number: first + Int64(row))
      }
    }
    return packets
  }

  /// Writes incomplete pieces before a transaction ends.
  func flush() throws(SQLiteError) {
    for stream in streams { try stream.flush() }
  }
}

final class TableInsert {
  private let statement: SQLiteStatement
  /// The stream for a column's bytes; nil if they stay in the row.
  private let stream: WireStore?
  /// The index of the column with the bytes, and how many columns replace it (size, position).
  private let column: Int
  private let places: Int
  /// Whether the last column names the encoding of the column before it, and that column's
  /// parameter.
  private let isCoded: Bool
  private let codingParameter: Int32

  /// Prepares the insert with a format's columns.
  init(
    _ definition: TableDefinition, format: Int64, _ connection: borrowing SQLiteConnection,
    _ stream: WireStore?
  ) throws(SQLiteError) {
    let names = definition.storageColumns(format: format)
    let columns = names.joined(separator: ", ")
    let parameters = names.map { _ in "?" }.joined(separator: ", ")
    statement = try connection.prepare(
      "INSERT INTO \(definition.storageName) (row, \(columns)) VALUES (?, \(parameters))")
    self.stream = stream
    column = definition.streamColumn ?? 0
    places = definition.placeColumns.count
    isCoded = definition.hasCoding(format: format)
    codingParameter = Int32(1 + names.count)
  }

  /// Inserts a row with its last value compressed, if the format supports it.
  func insert(
    _ rows: borrowing RowList, _ row: Int, coded: (ContentCoding, bytes: [UInt8]), number: Int64
  ) throws(SQLiteError) {
    guard isCoded else { return try insert(rows, row, number: number) }
    let values = ValueBytes(
      rows.row(row).dropLast() + [.blob(coded.bytes), .text(coded.0.rawValue)])
    try statement.insert(row: number, values, 0..<values.count)
  }

  /// Inserts a row uncompressed.
  func insert(_ rows: borrowing RowList, _ row: Int, number: Int64) throws(SQLiteError) {
    let range = rows.range(row)
    guard let stream else {
      // Clears the encoding that a previous row may have bound.
      if isCoded { statement.bindNull(at: codingParameter) }
      return try statement.insert(row: number, rows.bytes, range)
    }
    // The first parameter for the column; parameters are counted from 1, and the row number is the
    // first.
    let parameter = Int32(2 + column)
    let last = parameter + Int32(places) - 1
    let position = stream.position
    if let length = try stream.append(rows, row, column) {
      if places > 1 { statement.bind(Int64(length), at: parameter) }
      statement.bind(position, at: last)
    } else {
      for place in parameter...last { statement.bindNull(at: place) }
    }
    try statement.insert(row: number, rows.bytes, range, gap: (column, places))
  }
}

/// A prepared insert in a class, so that it can be stored in an array.
final class InsertStatement {
  private let statement: SQLiteStatement

  init(_ statement: consuming SQLiteStatement) { self.statement = statement }

  func run(_ values: [Value]) throws(SQLiteError) { try statement.insert(values) }
}

// MARK: - RowNumbering

/// Renumbers paths, formats and contents in a copy that omits some of them or merges several takes.
///
/// They are numbered in order of first use over all of a take's peers, so omitting a peer changes
/// the others' numbers, and values that two takes share are stored once.
package struct RowNumbering {
  private var numbers: [Key: Int64] = [:]
  private var known: [Table: Numbering<[Value]>] = [:]

  private struct Key: Hashable {
    var source: Int
    var table: Table
    var number: Int64
  }

  package init() {}

  /// Returns a step's rows with consecutive numbers.
  ///
  /// - Parameter source: the rows' take, if there are several.
  package mutating func renumbered(_ rows: RowList, _ range: Range<Int>, source: Int = 0)
    -> RowList
  {
    var copy = RowList()
    for row in range {
      let table = rows.table(row)
      var values = rows.row(row)
      if let own = table.columns.firstIndex(where: { $0.name == table.definition.key }),
        case .integer(let number) = values[own]
      {
        // Rows are equal if all other columns are; for contents, the digest suffices.
        let what = ContentRow(rows, row).map { [.blob($0.digest)] } ?? Array(values.dropFirst())
        let (next, isNew) = known[table, default: Numbering()].number(of: what)
        numbers[Key(source: source, table: table, number: number)] = next
        guard isNew else { continue }
        values[own] = .integer(next)
      } else if let (column, named) = RowNumbering.reference(in: table),
        case .integer(let number) = values[column],
        let known = numbers[Key(source: source, table: named, number: number)]
      {
        values[column] = .integer(known)
      }
      copy.append(table, values)
    }
    return copy
  }

  /// Returns the table's column that refers to a numbered row in another table.
  private static func reference(in table: Table) -> (column: Int, table: Table)? {
    for (index, column) in table.columns.enumerated() {
      if case .reference(let named) = column.kind { return (index, named) }
    }
    return nil
  }
}
