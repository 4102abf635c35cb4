/// Builds steps from their heads and rows, using the decoder for each actor's kind.
struct StepDecoder {
  private let kinds: MachineKinds
  private let contents: ContentSource
  private var endpoints: EndpointDecoder
  /// Decoders for other kinds, created with each kind's first actor.
  private var decoders: [MachineKind: any InputDecoder] = [:]
  private var actors = ByActor<Actor>()

  /// An actor as its genesis describes it.
  private struct Actor {
    var kind = MachineKind.endpoint
    var peer: UInt32?
  }

  init(_ kinds: MachineKinds, _ contents: ContentSource) {
    self.kinds = kinds
    self.contents = contents
    endpoints = EndpointDecoder(contents)
  }

  /// Appends a step from its head and rows in place; returns false if they do not match.
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

  /// Returns the number of a step's rows that belong to its input: one, after those that it refers
  /// to by number.
  ///
  /// nil if the input's row is missing.
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

  /// Returns a step's actor as its genesis describes it; by default an endpoint with the actor's
  /// number as its peer number.
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

/// The rows of all tables, merged by row number.
struct RowQueue {
  /// A fault in a step's rows.
  enum Fault: Error {
    /// A table has a row that no step accounts for.
    case added(Table)
    /// A row is missing after this many rows.
    case missing(Int)
    case damaged(Table, String)
    case unreadable(Table, SQLiteError)
  }

  private let cursors: [TableCursor]
  /// Each cursor's next row number, in one array because every row searches it.
  private var next: [Int64]
  /// The index of the cursor with the last row; the next row is often in the same table.
  private var place = 0

  init(_ cursors: [TableCursor]) {
    self.cursors = cursors
    next = cursors.map(\.next)
  }

  /// The first table with unread rows.
  var left: Table? {
    next.firstIndex { $0 != .max }.map { cursors[$0].table }
  }

  /// Reads the given number of a step's rows.
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

/// Reads one table in order, with a look-ahead of one row.
final class TableCursor {
  let table: Table
  /// The next row's number; `.max` at the end.
  private(set) var next: Int64 = .min
  private let statement: SQLiteStatement
  /// The stream with a column's bytes; nil if they are in the table.
  private let stream: WireCursor?
  /// The result columns before and after the streamed bytes; column 0 is the row number.
  private let columns: Range<Int>
  private let columnsBehind: Range<Int>
  /// The result columns with the streamed bytes' size and position in the stream.
  private let sizeColumn: Int
  private let positionColumn: Int
  /// The result column with the encoding of the column before it; nil if the table has none.
  private let codingColumn: Int?

  /// - Parameter streams: the take's byte streams.
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
    // Only integers are row numbers, and `.max` is reserved for the end.
    next = statement.storageClass(0) == .integer ? min(statement.exactInteger(0), .max - 1) : .min
  }

  /// Describes why a row could not be read.
  var damage: String {
    if codingColumn != nil { return "its compressed bytes cannot be read" }
    return stream == nil
      ? "a text was changed" : "the bytes of its \(table.name) rows are not where they were"
  }

  /// Reads the current row and advances; returns false if the row is damaged.
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

  /// Decompresses the current row's bytes; returns nil if they are damaged.
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

  /// Reads the current row's bytes, which must be next in the stream; returns false otherwise.
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
    guard position == stream.position else { return false }
    return try stream.read(statement.exactInteger(sizeColumn), into: &bytes)
  }
}
