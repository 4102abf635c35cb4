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
