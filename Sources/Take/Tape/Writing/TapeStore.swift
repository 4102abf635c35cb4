import Dispatch
import FoundationEssentials
import Glibc
import Synchronization
import Wire

/// A take's file while it is being written, with the state that is kept from step to step.
///
/// Only one thread at a time uses it: first the thread that creates it, then the thread that writes
/// the steps.
final class TapeStore {
  private let path: String
  private let connection: SQLiteConnection
  private let inserts: RowInserts
  private let tapeInsert: InsertStatement
  private var transcript: Transcript
  private var chain: StepChain

  private(set) var summary = TapeWriter.Summary()
  private var lastAt = Instant.zero

  /// The maximum size of a transaction, in steps and in approximate bytes of memory.
  static let batchSteps = 4_096
  static let batchBytes = 16 << 20

  /// Creates the file with mode 0600 and writes the `take` row.
  init(path: String, options: TapeWriter.Options) throws(TapeError) {
    let header = TakeHeader(options: options)
    try TapeStore.createFile(path)
    self.path = path
    do throws(SQLiteError) {
      connection = try SQLiteConnection(path: path, mode: .readWrite)
      // If the recorder is killed, the file has everything that was passed to the system; no more
      // is promised, so only `merge` waits for the disk. The log is short, so its pages are reused
      // while they are cached.
      try connection.execute(
        """
        PRAGMA page_size = \(TakeSchema.pageSize);
        PRAGMA journal_mode = WAL;
        PRAGMA synchronous = OFF;
        PRAGMA wal_autocheckpoint = 500;
        PRAGMA cache_size = -8000;
        PRAGMA max_page_count = \(options.pageLimit);
        BEGIN IMMEDIATE;
        """)
      try TakeSchema.create(in: connection)
      try header.insert(into: connection)
      try connection.execute("COMMIT")
      tapeInsert = InsertStatement(
        try connection.prepare("INSERT INTO tape VALUES (?, ?, ?, ?, ?)"))
      inserts = try RowInserts(connection, format: header.format)
      transcript = Transcript(keepsMedia: options.keepsMedia)
      chain = StepChain(takeDigest: header.digest)
    } catch {
      throw TapeError(path: path, error)
    }
  }

  static func createFile(_ path: String, _ contents: [UInt8] = []) throws(TapeError) {
    let code: SystemCode
    switch UnfinishedFiles.create(path) {
    case .success(let descriptor):
      let written = WholeFile.write(contents, into: descriptor)
      let closed = close(descriptor) == 0 ? 0 : errno
      guard written != 0 || closed != 0 else { return }
      code = SystemCode(written == 0 ? closed : written)
    case .failure(let failure): code = failure
    }
    let reason =
      code.number == EEXIST
      ? "it exists already: choose another name or remove the file"
      : "it cannot be created: \(code)"
    throw TapeError(path: path, place: "", reason: reason, kind: .failed)
  }

  /// Sets the description of an actor, before its genesis.
  func name(actor: UInt32, _ words: ActorWords) { transcript.adopt(words, of: actor) }

  /// Whether the writer is behind; video frames are then not compressed.
  var isHurried = false {
    didSet { inserts.compresses = !isHurried }
  }

  /// Discards the state of an actor that has no more steps.
  func forget(actor: UInt32) { transcript.forget(actor: actor) }

  /// Writes steps in one transaction; after an error no further steps may be written.
  func write(_ steps: ArraySlice<StepRecord>) throws(TapeError) {
    guard let first = steps.first else { return }
    let before = summary
    do throws(SQLiteError) {
      try connection.execute("BEGIN IMMEDIATE")
      var body = TapeBody(start: first.at.nanoseconds)
      for step in steps { body.append(try write(step)) }
      try inserts.flush()
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
    transcript.begin(actor: step.actor, at: step.at)
    step.input.write(to: &transcript)
    step.outputs.write(to: &transcript)
    let number = summary.steps + 1
    let count = transcript.rows.count
    var head = StepHead(
      number: number, kind: step.input.stepKind, actor: step.actor, at: step.at,
      deadline: step.deadline, entropyDrawn: step.entropyDrawn, rowCount: count)
    summary.packets += try inserts.insert(transcript.rows, 0..<count, step: number)
    head.check = chain.advance(head, transcript.rows, 0..<count)
    summary.steps = number
    lastAt = step.at
    return head
  }

  /// Writes the `ending` row and merges the write-ahead log, so that a single file remains.
  func end() throws(TapeError) {
    do throws(SQLiteError) {
      let insert = try connection.prepare("INSERT INTO ending VALUES (?, ?, ?)")
      try insert.insert(
        [.number(summary.steps), .number(lastAt.nanoseconds), .blob(chain.digest)])
    } catch {
      throw TapeError(path: path, place: "ending", error)
    }
    try merge()
  }

  /// Merges the write-ahead log into the file; without `end`, the take has no `ending` row.
  func merge() throws(TapeError) {
    do throws(SQLiteError) {
      try connection.execute("PRAGMA synchronous = NORMAL")
      _ = try connection.integer("PRAGMA wal_checkpoint(TRUNCATE)")
      do throws(SQLiteError) {
        // The log stays while statements are unfinished; a reader then merges it.
        _ = try connection.integer("PRAGMA journal_mode = DELETE")
      } catch {
        // The log also stays while another process has the take open, but the take is complete.
        guard error.code.primary == .busy else { throw error }
      }
      summary.bytes = Int(try connection.byteCount())
    } catch {
      throw TapeError(path: path, place: "", error)
    }
  }
}

// MARK: - WriterThread

/// A thread that writes takes; all takes share one such thread per processor.
final class WriterThread: Sendable {
  private struct State {
    var writers: [TapeWriter] = []
    /// Writers whose steps are to be written before the interval ends.
    var asking: [TapeWriter] = []
    var isRunning = false
  }

  private let state = Mutex(State())
  private let signal = DispatchSemaphore(value: 0)

  /// How often the queued steps of a take are written.
  private static let interval = DispatchTimeInterval.milliseconds(100)

  private static let all = (0..<max(1, ProcessInfo.processInfo.activeProcessorCount)).map { _ in
    WriterThread()
  }
  private static let turn = Atomic<Int>(0)

  /// Returns the thread for a new take; takes are distributed round-robin.
  static func next() -> WriterThread {
    let turn = turn.add(1, ordering: .relaxed).oldValue
    return all[Int(UInt(bitPattern: turn) % UInt(all.count))]
  }

  /// Adds a take, whose queued steps are written regularly until it is finished.
  func add(_ writer: TapeWriter) {
    let starts = state.withLock { state in
      state.writers.append(writer)
      defer { state.isRunning = true }
      return !state.isRunning
    }
    guard starts else {
      signal.signal()
      return
    }
    startWorker(named: "takes") { [self] in run() }
  }

  /// Makes the thread write a take without waiting for the interval.
  func wake(for writer: TapeWriter) {
    state.withLock { $0.asking.append(writer) }
    signal.signal()
  }

  private func run() {
    var due = DispatchTime.now()
    while true {
      if state.withLock({ $0.writers.isEmpty }) {
        signal.wait()
      } else {
        _ = signal.wait(timeout: due)
      }
      let isDue = due <= .now()
      if isDue { due = .now() + WriterThread.interval }
      let writers = state.withLock { state in
        let asking = state.asking
        state.asking = []
        return isDue ? state.writers : asking
      }
      let finished = writers.filter { !$0.writeQueued() }
      guard !finished.isEmpty else { continue }
      state.withLock { state in
        state.writers.removeAll { writer in finished.contains { $0 === writer } }
      }
    }
  }
}
