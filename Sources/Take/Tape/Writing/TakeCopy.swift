import Wire

/// Writes a take from steps that were recorded already: a part of another take, or one with
/// changes.
///
/// Steps are numbered on from 1 and the digest chain is made anew, so that the copy is a take like
/// any other.
package final class TakeCopy {
  private let path: String
  private let connection: SQLiteConnection
  private let inserts: RowInserts
  private let tapeInsert: InsertStatement
  private var chain: StepChain
  private var body = TapeBody(start: 0)
  private var bodyStart = 1
  private var lastAt = Instant.zero

  /// How many steps were added.
  package private(set) var steps = 0

  /// How many steps one row of `tape` holds.
  private static let bodySteps = 1_024

  /// Creates the file, mode 0600, with the `take` row given; the file must not exist.
  package init(path: String, header: TakeHeader) throws(TapeError) {
    self.path = path
    let header = header.sealed
    try TapeStore.createFile(path, TakeCopy.emptyTake(path))
    do throws(SQLiteError) {
      connection = try SQLiteConnection(path: path, mode: .readWrite)
      // Nobody relies on a copy before it is complete, so nothing is written twice or waited for.
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

  /// Adds a step with its rows; the number, the row count and the check of the head are made anew.
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

  /// Completes the file; a copy that is not complete has no `ending` row, as after a killed
  /// recorder.
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

/// Puts the rows of steps into the tables of a take, and bytes that stand in a stream into that.
final class RowInserts {
  private var inserts: [TableInsert] = []
  private var streams: [WireStore] = []
  /// Whether video frames are stored compressed; who has fallen behind stores them as they are.
  var compresses = true

  /// Prepares an insert for every table, with the columns that takes of a format have.
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
      // What a format does not have gets no rows, so any columns will do.
      let format = max(format, table.since)
      inserts.append(
        try TableInsert(
          definition, format: format, connection, definition.stream.flatMap { stores[$0] }))
    }
  }

  /// Inserts the rows of a step; returns how many of them were datagrams.
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

  /// Writes the pieces that are not full yet, before a transaction ends.
  func flush() throws(SQLiteError) {
    for stream in streams { try stream.flush() }
  }
}

/// Inserts the rows of one table.
final class TableInsert {
  private let statement: SQLiteStatement
  /// Where the bytes of a column go; nil when they stay in the row.
  private let stream: WireStore?
  /// Which column that is, and how many say instead how many bytes they are and where they begin.
  private let column: Int
  private let places: Int
  /// Whether a last column says how the one before is stored, and its parameter.
  private let isCoded: Bool
  private let codingParameter: Int32

  /// Prepares the insert, with the columns that takes of a format have.
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

  /// Inserts a row whose last value is stored smaller, where the format of the take knows how.
  func insert(
    _ rows: borrowing RowList, _ row: Int, coded: (ContentCoding, bytes: [UInt8]), number: Int64
  ) throws(SQLiteError) {
    guard isCoded else { return try insert(rows, row, number: number) }
    let values = ValueBytes(
      rows.row(row).dropLast() + [.blob(coded.bytes), .text(coded.0.rawValue)])
    try statement.insert(row: number, values, 0..<values.count)
  }

  /// Inserts a row with all its columns.
  func insert(_ rows: borrowing RowList, _ row: Int, number: Int64) throws(SQLiteError) {
    let range = rows.range(row)
    guard let stream else {
      // What a row before was stored as is still bound.
      if isCoded { statement.bindNull(at: codingParameter) }
      return try statement.insert(row: number, rows.bytes, range)
    }
    // Behind the number of the row, counted from 1.
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

/// A prepared insert that can stand in an array.
final class InsertStatement {
  private let statement: SQLiteStatement

  init(_ statement: consuming SQLiteStatement) { self.statement = statement }

  func run(_ values: [Value]) throws(SQLiteError) { try statement.insert(values) }
}

// MARK: - RowNumbering

/// Numbers paths, formats and contents anew in a copy that leaves some of them out, or that takes
/// them from several takes.
///
/// They are counted in the order of first use over all peers of a take, so without one peer those
/// of the others are other numbers, and what two takes have both is written down once.
package struct RowNumbering {
  private var numbers: [Key: Int64] = [:]
  private var known: [Table: Numbering<[Value]>] = [:]

  private struct Key: Hashable {
    var source: Int
    var table: Table
    var number: Int64
  }

  package init() {}

  /// The rows of a step with numbers that leave nothing out.
  ///
  /// - Parameter source: which take the rows are of, when there are several.
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
        // What is the same is told by all the rest of the row; of contents the digest is enough.
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

  /// The column of a table that holds the number of a row in another one.
  private static func reference(in table: Table) -> (column: Int, table: Table)? {
    for (index, column) in table.columns.enumerated() {
      if case .reference(let named) = column.kind { return (index, named) }
    }
    return nil
  }
}
