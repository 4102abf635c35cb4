import Foundation
import Peer
import Wire

/// The file of a take while it is written, and all that must go on from step to step.
///
/// One thread at a time uses it: the one that creates it, then the writer's.
final class TapeStore: @unchecked Sendable {
  private let path: String
  private let connection: SQLiteConnection
  private var inserts: [InsertStatement] = []
  private let tapeInsert: InsertStatement
  private let wire: WireStore
  private let media: WireStore
  private var transcript: Transcript
  private var chain: StepChain

  private(set) var summary = TapeWriter.Summary()
  private var lastAt = Instant.zero

  /// How many steps and about how many bytes of memory one transaction may have.
  static let batchSteps = 4_096
  static let batchBytes = 16 << 20

  /// Creates the file with mode 0600 and writes the `take` row.
  init(path: String, options: TapeWriter.Options) throws(TapeError) {
    let header = TakeHeader(options: options)
    try TapeStore.createFile(path)
    self.path = path
    do throws(SQLiteError) {
      connection = try SQLiteConnection(path: path, mode: .readWrite)
      try connection.execute(
        """
        PRAGMA page_size = 8192;
        PRAGMA journal_mode = WAL;
        PRAGMA synchronous = NORMAL;
        PRAGMA wal_autocheckpoint = 4000;
        PRAGMA cache_size = -8000;
        PRAGMA max_page_count = \(options.pageLimit);
        BEGIN IMMEDIATE;
        """)
      try TakeSchema.create(in: connection)
      try header.insert(into: connection)
      try connection.execute("COMMIT")
      tapeInsert = InsertStatement(
        try connection.prepare("INSERT INTO tape VALUES (?, ?, ?, ?, ?)"))
      for table in Table.allCases {
        let columns = table.storageColumns.joined(separator: ", ")
        let places = table.storageColumns.map { _ in "?" }.joined(separator: ", ")
        let sql =
          "INSERT INTO \(table.storageName) (row, \(columns)) VALUES (?, \(places))"
        inserts.append(InsertStatement(try connection.prepare(sql)))
      }
      wire = WireStore(try connection.prepare("INSERT OR REPLACE INTO wire VALUES (?, ?)"))
      media = WireStore(try connection.prepare("INSERT OR REPLACE INTO media VALUES (?, ?)"))
      transcript = Transcript(keepsMedia: options.keepsMedia)
      chain = StepChain(takeDigest: header.digest)
    } catch {
      throw TapeError(path: path, error)
    }
  }

  private static func createFile(_ path: String) throws(TapeError) {
    let descriptor = open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else {
      let reason =
        errno == EEXIST
        ? "a file of this name exists; choose another name or remove it"
        : "it cannot be created: \(String(cString: strerror(errno)))"
      throw TapeError(path: path, place: "", reason: reason, kind: .failed)
    }
    // The mode given to `open` is narrowed by the process's mask, never widened, and is exact here.
    fchmod(descriptor, 0o600)
    close(descriptor)
  }

  /// Tells the words of a peer before its genesis.
  func name(peer: UInt32, label: String, role: String) {
    transcript.name(peer: peer, label: label, role: role)
  }

  /// Writes steps in one transaction; after a failure nothing more must be written.
  func write(_ steps: ArraySlice<StepRecord>) throws(TapeError) {
    guard let first = steps.first else { return }
    let before = summary
    do throws(SQLiteError) {
      try connection.execute("BEGIN IMMEDIATE")
      var body = TapeBody(start: first.at.nanoseconds)
      for step in steps { body.append(try write(step)) }
      try wire.flush()
      try media.flush()
      try tapeInsert.run(
        [
          .number(before.steps + 1), .number(body.count), .number(body.start),
          .blob(body.bytes), .blob(chain.digest),
        ])
      try connection.execute("COMMIT")
    } catch {
      summary = before
      try? connection.execute("ROLLBACK")
      throw TapeError(path: path, place: "step \(before.steps + 1)", error)
    }
  }

  private func write(_ step: StepRecord) throws(SQLiteError) -> StepHead {
    transcript.begin(peer: step.peer, at: step.at)
    transcript.append(step.input)
    for output in step.outputs { transcript.append(output) }
    let number = summary.steps + 1
    let count = transcript.rows.count
    guard count <= RowNumber.perStep else {
      throw SQLiteError(code: .misuse, message: "a step with more than 65536 rows")
    }
    var head = StepHead(
      number: number, kind: StepKind(step.input), peer: step.peer, at: step.at,
      deadline: step.deadline, entropyDrawn: step.entropyDrawn, rowCount: count)
    let first = RowNumber.first(ofStep: number)
    for row in 0..<count {
      let table = transcript.rows.table(row)
      let insert = inserts[table.place]
      var values = transcript.rows.row(row)
      // Shortening a slice in place would copy the rows of the whole step.
      if table == .packet, case .blob(let bytes)? = values.last {
        values = values.dropLast()
        summary.packets += 1
        insert.bind(Int64(bytes.count), at: table.columns.count + 1)
        insert.bind(wire.position, at: table.columns.count + 2)
        try wire.append(bytes)
      } else if table == .frame, case .blob(let bytes)? = values.last {
        values = values.dropLast()
        insert.bind(media.position, at: table.columns.count + 1)
        try media.append(bytes)
      }
      try insert.run(row: first + Int64(row), values)
    }
    head.check = chain.advance(head, transcript.rows, 0..<count)
    summary.steps = number
    lastAt = step.at
    return head
  }

  /// Writes the `ending` row and leaves one plain file behind: no write-ahead log, no shared
  /// memory.
  func end() throws(TapeError) {
    do throws(SQLiteError) {
      var insert = try connection.prepare("INSERT INTO ending VALUES (?, ?, ?)")
      try insert.insert(
        row: nil, [.number(summary.steps), .number(lastAt.nanoseconds), .blob(chain.digest)])
    } catch {
      throw TapeError(path: path, place: "ending", error)
    }
    try merge()
  }

  /// Merges the write-ahead log into the file; a take that lost something gets no `ending` row.
  func merge() throws(TapeError) {
    do throws(SQLiteError) {
      _ = try connection.integer("PRAGMA wal_checkpoint(TRUNCATE)")
      // Statements that were not finished keep the log alive; a reader then merges it instead.
      _ = try connection.integer("PRAGMA journal_mode = DELETE")
      summary.bytes = Int(try connection.byteCount())
    } catch {
      throw TapeError(path: path, place: "", error)
    }
  }
}

/// A prepared insert that can stand in an array.
private final class InsertStatement {
  private var statement: SQLiteStatement

  init(_ statement: consuming SQLiteStatement) { self.statement = statement }

  /// Binds a value that `run` does not get, by its place counted from 1.
  func bind(_ value: Int64, at place: Int) { statement.bind(value, at: Int32(place)) }

  func run(row: Int64? = nil, _ values: ArraySlice<Value>) throws(SQLiteError) {
    try statement.insert(row: row, values)
  }
}
