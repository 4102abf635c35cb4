/// Builds steps from their heads and rows, with a decoder for each kind of actor.
struct StepDecoder {
  private let kinds: MachineKinds
  private let contents: ContentSource
  private var endpoints: EndpointDecoder
  /// Decoders for kinds other than endpoints, created when a kind first occurs.
  private var decoders: [MachineKind: any InputDecoder] = [:]
  private var actors = ByActor<Actor>()

  /// An actor's properties, from its genesis.
  private struct Actor {
    var kind = MachineKind.endpoint
    var peer: UInt32?
  }

  init(_ kinds: MachineKinds, _ contents: ContentSource) {
    self.kinds = kinds
    self.contents = contents
    endpoints = EndpointDecoder(contents)
  }

  /// Appends a step; returns false if its head and rows do not match.
  mutating func append(
    _ head: StepHead, _ rows: borrowing RowList, _ range: Range<Int>,
    to steps: inout [TapeChunk.Step]
  ) -> Bool {
    guard let count = StepDecoder.inputRowCount(head, rows, range) else { return false }
    let actor = actor(of: head, rows, range)
    let inputRows = range.lowerBound..<range.lowerBound + count
    if actor.kind == .endpoint {
      guard let input = endpoints.peerInput(of: head, rows, inputRows) else { return false }
      steps.append(
        TapeChunk.Step(
          head: head, peer: actor.peer, input: input, rows: range, inputRowCount: count))
    } else {
      guard let input = input(actor.kind, head, rows, inputRows) else { return false }
      steps.append(
        TapeChunk.Step(
          head: head, peer: actor.peer, other: input, rows: range, inputRowCount: count))
    }
    return true
  }

  private mutating func input(
    _ kind: MachineKind, _ head: StepHead, _ rows: borrowing RowList, _ range: Range<Int>
  ) -> (any RecordedInput)? {
    if decoders[kind] == nil { decoders[kind] = kinds.decoder(of: kind, contents) }
    guard decoders[kind] != nil else { return UnknownInput(stepKind: head.kind) }
    return decoders[kind]?.input(of: head, rows, range)
  }

  /// Returns how many of a step's rows belong to its input; nil if the input's row is missing.
  ///
  /// The input is one row, preceded by the rows that it refers to.
  private static func inputRowCount(
    _ head: StepHead, _ rows: borrowing RowList, _ range: Range<Int>
  ) -> Int? {
    if head.kind == .deadline { return 0 }
    for row in range {
      switch rows.table(row) {
      case .path, .content, .clock, .format: continue
      default: return row - range.lowerBound + 1
      }
    }
    return nil
  }

  /// Returns the actor of a step; without a genesis, it is an endpoint with the same peer number.
  private mutating func actor(of head: StepHead, _ rows: borrowing RowList, _ range: Range<Int>)
    -> Actor
  {
    if head.kind == .genesis {
      var actor = Actor()
      for row in range {
        if let row = ActorRow(rows, row) { actor.kind = MachineKind(rawValue: row.kind) }
        if let row = PeerRow(rows, row) { actor.peer = row.peer.number }
      }
      actors[head.actor] = actor
    }
    return actors[head.actor] ?? Actor(peer: head.actor)
  }
}

// MARK: - RowQueue

/// The rows of all tables, merged in the order of their numbers.
struct RowQueue {
  /// Why the rows of a step cannot be read.
  enum Fault: Error {
    /// A table has a row that belongs to no step.
    case added(Table)
    /// A row is missing after this many rows of the step.
    case missing(Int)
    case damaged(Table, String)
    case unreadable(Table, SQLiteError)
  }

  private let cursors: [TableCursor]
  /// Each cursor's next row number; an array, because every row searches it.
  private var next: [Int64]
  /// The index of the cursor from which the last row was read; its table often has the next row
  /// too.
  private var place = 0

  init(_ cursors: [TableCursor]) {
    self.cursors = cursors
    next = cursors.map(\.next)
  }

  /// The first table with unread rows; nil if there is none.
  var left: Table? {
    next.firstIndex { $0 != .max }.map { cursors[$0].table }
  }

  /// Reads the given number of rows, which must be all rows of a step.
  mutating func read(_ count: Int, ofStep number: Int, into rows: inout RowList) throws(Fault) {
    let first = RowNumber.first(ofStep: number)
    for ordinal in 0..<count {
      let wanted = first + Int64(ordinal)
      guard let place = next[place] == wanted ? place : next.firstIndex(of: wanted) else {
        if let early = early(before: wanted) { throw .added(early) }
        throw .missing(ordinal)
      }
      let cursor = cursors[place]
      let isGood: Bool
      do throws(SQLiteError) {
        isGood = try cursor.read(into: &rows)
      } catch {
        throw .unreadable(cursor.table, error)
      }
      next[place] = cursor.next
      self.place = place
      guard isGood else { throw .damaged(cursor.table, cursor.damage) }
    }
    if let extra = early(before: RowNumber.first(ofStep: number + 1)) { throw .added(extra) }
  }

  private func early(before number: Int64) -> Table? {
    next.firstIndex { $0 < number }.map { cursors[$0].table }
  }
}

// MARK: - TableCursor

/// Reads the rows of a table in order, one row ahead.
final class TableCursor {
  let table: Table
  /// The number of the next row; `.max` at the end of the table.
  private(set) var next: Int64 = .min
  private let statement: SQLiteStatement
  /// The stream that contains the bytes of a column; nil if the table contains them.
  private let stream: WireCursor?
  /// The ranges of result columns before and after the streamed bytes; column 0 is the row number.
  private let columns: Range<Int>
  private let columnsBehind: Range<Int>
  /// The result columns that hold the size of the streamed bytes and their position in the stream.
  private let sizeColumn: Int
  private let positionColumn: Int
  /// The result column that says how the column before it is compressed; nil without compression.
  private let codingColumn: Int?

  /// - Parameter streams: the byte streams of the take.
  init(
    _ definition: TableDefinition, format: Int64, _ connection: borrowing SQLiteConnection,
    _ streams: [ByteStream: WireCursor]
  ) throws(SQLiteError) {
    table = definition.table
    stream = definition.stream.flatMap { streams[$0] }
    let names = definition.storageColumns(format: format)
    codingColumn = definition.hasCoding(format: format) ? names.count : nil
    sizeColumn = 1 + (names.firstIndex(of: "size") ?? 0)
    if let place = definition.streamColumn {
      let behind = 1 + place + definition.placeColumns.count
      columns = 1..<1 + place
      positionColumn = behind - 1
      columnsBehind = behind..<1 + names.count
    } else {
      columns = 1..<1 + names.count - (definition.hasCoding(format: format) ? 2 : 0)
      positionColumn = 0
      columnsBehind = 0..<0
    }
    statement = try connection.prepare(
      "SELECT row, \(names.joined(separator: ", ")) FROM \(definition.storageName) "
        + "ORDER BY \(definition.key)")
    try advance()
  }

  private func advance() throws(SQLiteError) {
    guard try statement.step() else {
      next = .max
      return
    }
    // If the value is not an integer, the file was altered. `.max` is reserved for the end.
    next = statement.storageClass(0) == .integer ? min(statement.exactInteger(0), .max - 1) : .min
  }

  /// Explains why the last row could not be read.
  var damage: String {
    if codingColumn != nil { return "its compressed bytes cannot be read" }
    return stream == nil
      ? "a text was changed" : "the bytes of its \(table.name) rows were moved"
  }

  /// Reads a row and advances to the next; returns false if the row is damaged.
  func read(into rows: inout RowList) throws(SQLiteError) -> Bool {
    rows.begin(table)
    var isGood = statement.append(columns, to: &rows.bytes)
    if let stream {
      guard try readBytes(of: stream, into: &rows.bytes) else {
        rows.removeLast()
        return false
      }
      isGood = statement.append(columnsBehind, to: &rows.bytes) && isGood
    }
    if let codingColumn {
      let bytes = decodedBytes(codingColumn)
      rows.bytes.append(bytes.map { .blob($0) } ?? .null)
      isGood = isGood && bytes != nil
    }
    try advance()
    return isGood
  }

  /// Decompresses the bytes of the current row; nil if they are damaged.
  private func decodedBytes(_ codingColumn: Int) -> [UInt8]? {
    let bytes = statement.bytes(codingColumn - 1)
    guard statement.storageClass(codingColumn - 1) == .blob else { return nil }
    switch statement.storageClass(codingColumn) {
    case .null: return bytes
    case .text: break
    default: return nil
    }
    return statement.text(codingColumn).flatMap { ContentCoding(rawValue: $0) }?.decoded(bytes)
  }

  /// Reads the streamed bytes of the current row.
  ///
  /// - Returns: false if they are neither the next bytes in the stream nor the bytes of an earlier
  ///   row.
  private func readBytes(
    of stream: WireCursor, into bytes: inout ValueBytes
  ) throws(SQLiteError) -> Bool {
    let position = statement.exactInteger(positionColumn)
    switch statement.storageClass(positionColumn) {
    case .null:
      bytes.appendNull()
      return true
    case .integer where statement.storageClass(sizeColumn) == .integer: break
    default: return false
    }
    let size = statement.exactInteger(sizeColumn)
    guard position == stream.position else {
      return try stream.read(size, again: position, into: &bytes)
    }
    return try stream.read(size, into: &bytes)
  }
}
