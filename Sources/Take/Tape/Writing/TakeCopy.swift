import Wire

/// Writes a take from recorded steps, such as a part of a take or changed steps.
///
/// Steps are numbered from 1 and the digests are recomputed, so the copy is a take like any other.
package final class TakeCopy {
  private let path: String
  private let connection: SQLiteConnection
  private let inserts: RowInserts
  private let tapeInsert: InsertStatement
  private var chain: StepChain
  private var body = TapeBody(start: 0)
  private var bodyStart = 1
  private var lastAt = Instant.zero

  /// The number of steps that were added so far.
  package private(set) var steps = 0

  /// The number of steps in a row of `tape`.
  private static let bodySteps = 1_024

  /// Creates the file, which must not exist, with mode 0600 and the given `take` row.
  package init(path: String, header: TakeHeader) throws(TapeError) {
    self.path = path
    let header = header.sealed
    try TapeStore.createFile(path, TakeCopy.emptyTake(path))
    do throws(SQLiteError) {
      connection = try SQLiteConnection(path: path, mode: .readWrite)
      // No one reads the copy before it is complete, so it needs neither a journal nor syncing.
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

  /// Adds a step; its head's number, row count and check are recomputed.
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

  /// Completes the file.
  ///
  /// - Parameter isComplete: false omits the `ending` row, as if the recorder had been killed.
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

/// Inserts the rows of steps into a take's tables, and streamed bytes into their streams.
final class RowInserts {
  private var inserts: [TableInsert] = []
  private var streams: [WireStore] = []
  /// Finds bytes that are already stored; nil in formats that store the bytes of every row.
  private let relayed: RelayedPlaces?
  /// Whether video frames are compressed; a writer that is behind turns this off.
  var compresses = true

  /// Prepares an INSERT for each table, with the columns that the format has.
  init(_ connection: borrowing SQLiteConnection, format: Int64) throws(SQLiteError) {
    relayed = format >= RelayedRow.since ? RelayedPlaces() : nil
    var stores: [ByteStream: WireStore] = [:]
    for stream in ByteStream.allCases {
      let store = WireStore(
        try connection.prepare("INSERT OR REPLACE INTO \(stream.rawValue) VALUES (?, ?)"))
      stores[stream] = store
      streams.append(store)
    }
    for table in Table.allCases {
      let definition = table.definition
      // A table that the format lacks gets no rows, so its columns do not matter.
      let format = max(format, table.since)
      inserts.append(
        try TableInsert(
          definition, format: format, connection, definition.stream.flatMap { stores[$0] }))
    }
  }

  /// Inserts the rows of a step; returns the number of datagrams among them.
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
      relayed?.learn(rows, row)
      if compresses, let coded = ContentCoding.coded(rows, row, in: range) {
        try insert.insert(rows, row, coded: coded, number: first + Int64(row))
      } else {
        try insert.insert(rows, row, number: first + Int64(row), relayed)
      }
    }
    return packets
  }

  /// Writes incomplete pieces, as required at the end of a transaction.
  func flush() throws(SQLiteError) {
    for stream in streams { try stream.flush() }
  }
}

final class TableInsert {
  private let statement: SQLiteStatement
  /// The stream for the bytes of one column; nil if all values stay in the row.
  private let stream: WireStore?
  /// The index of the streamed column, and the number of columns that replace it: position and
  /// possibly size.
  private let column: Int
  private let places: Int
  /// Whether the last column names the compression of the column before it, and the last column's
  /// parameter.
  private let isCoded: Bool
  private let codingParameter: Int32

  /// Prepares the INSERT with the columns that the format has.
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

  /// Inserts a row with its last value compressed, or uncompressed if the format has no
  /// compression.
  func insert(
    _ rows: borrowing RowList, _ row: Int, coded: (ContentCoding, bytes: [UInt8]), number: Int64
  ) throws(SQLiteError) {
    guard isCoded else { return try insert(rows, row, number: number, nil) }
    let values = ValueBytes(
      rows.row(row).dropLast() + [.blob(coded.bytes), .text(coded.0.rawValue)])
    try statement.insert(row: number, values, 0..<values.count)
  }

  /// Inserts a row uncompressed.
  ///
  /// - Parameter relayed: finds bytes that are already stored; nil stores them again.
  func insert(
    _ rows: borrowing RowList, _ row: Int, number: Int64, _ relayed: RelayedPlaces?
  ) throws(SQLiteError) {
    let range = rows.range(row)
    guard let stream else {
      // A previous compressed row may have left a binding here.
      if isCoded { statement.bindNull(at: codingParameter) }
      return try statement.insert(row: number, rows.bytes, range)
    }
    // The first parameter for the streamed column; parameter 1 is the row number.
    let parameter = Int32(2 + column)
    let last = parameter + Int32(places) - 1
    let position = stream.position
    let earlier = relayed?.find(rows, row, next: position)
    let length: Int? =
      if let earlier { earlier.length } else { try stream.append(rows, row, column) }
    if let length {
      if places > 1 { statement.bind(Int64(length), at: parameter) }
      statement.bind(earlier?.position ?? position, at: last)
    } else {
      for place in parameter...last { statement.bindNull(at: place) }
    }
    try statement.insert(row: number, rows.bytes, range, gap: (column, places))
  }
}

/// A prepared INSERT in a class, because an array cannot contain noncopyable structures.
final class InsertStatement {
  private let statement: SQLiteStatement

  init(_ statement: consuming SQLiteStatement) { self.statement = statement }

  func run(_ values: [Value]) throws(SQLiteError) { try statement.insert(values) }
}

// MARK: - RowNumbering

/// Renumbers paths, formats and captured media for a copy that leaves out peers or joins several
/// takes.
///
/// Numbers are assigned at the first use by any peer. Leaving out a peer therefore changes the
/// numbers in the other peers' rows. Values that several takes have in common are stored once.
package struct RowNumbering {
  private var numbers: [Key: Int64] = [:]
  private var known: [Table: Numbering<[Value]>] = [:]

  private struct Key: Hashable {
    var source: Int
    var table: Table
    var number: Int64
  }

  package init() {}

  /// Returns the rows of a step, renumbered and without rows that the copy already has.
  ///
  /// - Parameter source: the index of the rows' take, if there are several.
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
        // Rows are equal if they differ only in the number; for captured media, the digest
        // suffices.
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

  /// Returns the column that refers to rows of another table; nil if there is none.
  private static func reference(in table: Table) -> (column: Int, table: Table)? {
    for (index, column) in table.columns.enumerated() {
      if case .reference(let named) = column.kind { return (index, named) }
    }
    return nil
  }
}
