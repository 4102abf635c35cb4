package import Wire

/// Reads a take from the first step to the last and checks the chain of digests on the way.
///
/// Each table is read once and in order, so memory does not grow with the length of the take.
package final class TapeReader {
  /// How a recording ended, as its `ending` row states.
  package struct Ending: Hashable, Sendable {
    package var steps: Int
    package var at: Instant
    var digest: [UInt8]

    /// The value for a malformed `ending` row, or for several such rows.
    static let altered = Ending(steps: 0, at: .zero, digest: [])
  }

  package let path: String
  package let header: TakeHeader
  /// The `ending` row; nil if the recorder was killed or is still running.
  package let ending: Ending?

  private let connection: SQLiteConnection
  private let tape: SQLiteStatement
  private var rows: RowQueue
  private let wire: WireCursor
  private let media: WireCursor
  private var chain: StepChain
  private var inputs: StepDecoder

  /// The heads in the current row of `tape`, and how many of them have been returned.
  private var heads: [StepHead] = []
  private var position = 0
  /// The size of the largest chunk so far in bytes; the next chunk reserves that much memory.
  private var largestChunk = 0
  private var batchDigest: [UInt8] = []
  private var stepsRead = 0
  private var lastAt = Instant.zero
  private var fault: TapeFault?
  private var isAtEnd = false

  /// The size of the page cache: small, because each table is read once and in order, and because
  /// every checkpoint of the debugger has a cache.
  package static let cacheKilobytes = 1_000

  /// Opens a take and checks its header.
  ///
  /// - Parameter kinds: the kinds of machines, besides endpoints, whose inputs can be read.
  package init(path: String, kinds: MachineKinds = MachineKinds()) throws(TapeError) {
    self.path = path
    connection = try TakeFile.open(path, cacheKilobytes: TapeReader.cacheKilobytes)
    header = try TakeHeader.read(from: connection, path: path)
    do throws(SQLiteError) {
      // In a single transaction, all cursors see the same state of a take that is still being
      // recorded.
      try connection.execute("BEGIN")
      ending = try TapeReader.ending(connection)
      tape = try connection.prepare(
        "SELECT first_step, steps, at_ns, body, digest FROM tape ORDER BY first_step")
      var cursors: [TableCursor] = []
      let wire = try WireCursor(connection, .wire, format: header.format)
      let media = try WireCursor(connection, .media, format: header.format)
      for table in Table.allCases where table.since <= header.format {
        cursors.append(
          try TableCursor(
            table.definition, format: header.format, connection,
            [.wire: wire, .media: media]))
      }
      self.wire = wire
      self.media = media
      rows = RowQueue(cursors)
      inputs = StepDecoder(kinds, try ContentSource(connection, format: header.format))
    } catch {
      throw TapeError(path: path, error)
    }
    chain = StepChain(takeDigest: header.digest)
  }

  /// Returns the number of steps; without an `ending` row, the number of steps in the file.
  package func stepCount() throws(TapeError) -> Int {
    if let ending { return ending.steps }
    do throws(SQLiteError) {
      let last = "SELECT first_step + steps - 1 FROM tape ORDER BY first_step DESC LIMIT 1"
      return Int(try connection.integer(last) ?? 0)
    } catch {
      throw TapeError(path: path, place: "tape", error)
    }
  }

  /// Returns the peer configurations that contain a member with the given name, as JSON.
  package func peerConfigurations(with member: String) throws(TapeError) -> [String] {
    var configurations: [String] = []
    do throws(SQLiteError) {
      let statement = try connection.prepare(
        "SELECT configuration FROM peer WHERE instr(configuration, '\"\(member)\"') > 0")
      while try statement.step() { configurations.append(statement.values(String.self)) }
    } catch {
      throw TapeError(path: path, place: "peer", error)
    }
    return configurations
  }

  /// Returns the revisions in the take that differ from this version's, the stack's first.
  ///
  /// The stack's revision is left out if the take has only observers. For a take without stored
  /// revisions, the result is empty.
  package func otherRevisions() throws(TapeError) -> [OtherRevision] {
    var others: [OtherRevision] = []
    do throws(SQLiteError) {
      if let revision = header.revision, revision != stackRevision, try hasStack() {
        others.append(
          OtherRevision(isObserver: false, recorded: revision, present: stackRevision))
      }
      for revision in try observerRevisions() where revision != observerRevision {
        others.append(
          OtherRevision(isObserver: true, recorded: revision, present: observerRevision))
      }
    } catch {
      throw TapeError(path: path, place: "actor", error)
    }
    return others
  }

  /// Returns whether the take has a machine that is not an observer.
  ///
  /// A peer whose actor has no row in `actor_store` is an endpoint.
  private func hasStack() throws(SQLiteError) -> Bool {
    try connection.integer(
      "SELECT EXISTS (SELECT 1 FROM peer WHERE actor IS NULL"
        + " OR actor NOT IN (SELECT actor FROM actor_store))"
        + " OR EXISTS (SELECT 1 FROM actor_store WHERE kind <> 1)") == 1
  }

  /// Returns the distinct revisions of the take's observers.
  package func observerRevisions() throws(SQLiteError) -> [Int64] {
    guard header.format >= TakeHeader.revisionFormat else { return [] }
    var found: [Int64] = []
    let statement = try connection.prepare(
      "SELECT configuration FROM actor_store WHERE kind = 1 ORDER BY row")
    while try statement.step() {
      let genesis = CanonicalJSON.value(
        ObserverGenesis.self, from: statement.values(String.self))
      let revision = genesis?.revision ?? 1
      if !found.contains(revision) { found.append(revision) }
    }
    return found
  }

  private static func ending(_ connection: borrowing SQLiteConnection) throws(SQLiteError)
    -> Ending?
  {
    let statement = try connection.prepare("SELECT steps, at_ns, digest FROM ending")
    guard try statement.step() else { return nil }
    // A malformed row is reported only after all steps have been read.
    guard statement.storageClasses == [.integer, .integer, .blob] else { return .altered }
    let (steps, at, digest) = statement.values(Int.self, Instant.self, [UInt8].self)
    guard try !statement.step() else { return .altered }
    return Ending(steps: steps, at: at, digest: digest)
  }

  /// Returns the time of the last step; nil if the take is empty.
  ///
  /// If there is no `ending` row and the last row of `tape` is damaged, the result is the time at
  /// which that row begins.
  package func lastTime() throws(TapeError) -> Instant? {
    if let ending { return ending.at }
    do throws(SQLiteError) {
      let last = try connection.prepare(
        "SELECT steps, at_ns, body FROM tape ORDER BY first_step DESC LIMIT 1")
      guard try last.step() else { return nil }
      let (count, start) = last.values(Int.self, Int64.self)
      let body = last.bytes(2)
      let heads = try? TapeBody.heads(body.span.bytes, first: 1, count: count, start: start)
      return heads?.last?.at ?? Instant(nanoseconds: start)
    } catch {
      throw TapeError(path: path, place: "tape", error)
    }
  }

  /// The average size of a step, in bytes, above which chunks have fewer steps than requested.
  private static let bytesPerStep = 4_096

  /// Returns the next steps, at most `limit`; nil at the end of the take.
  ///
  /// - Parameter spare: a used chunk, whose memory is reused.
  package func next(
    steps limit: Int = 256, reusing spare: consuming TapeChunk = TapeChunk()
  ) throws(TapeFault) -> TapeChunk? {
    if let fault { throw fault }
    var chunk = consume spare
    chunk.removeAll()
    chunk.rows.bytes.makeRoom(for: largestChunk)
    defer {
      largestChunk = min(max(largestChunk, chunk.rows.bytes.count), Self.bytesPerStep * limit)
    }
    do throws(TapeFault) {
      while chunk.steps.count < limit, chunk.rows.bytes.count < Self.bytesPerStep * limit,
        !isAtEnd
      {
        if position == heads.count {
          try readHeads()
        } else {
          try readStep(into: &chunk)
        }
      }
    } catch {
      // The intact steps before the fault are returned first.
      guard !chunk.steps.isEmpty else { throw error }
      fault = error
    }
    if chunk.steps.isEmpty, let fault { throw fault }
    return chunk.steps.isEmpty ? nil : chunk
  }

  /// Returns the next steps, or nil at the end, and reports an altered file like any other error.
  package func chunk(steps limit: Int = 256) throws(TapeError) -> TapeChunk? {
    do throws(TapeFault) {
      return try next(steps: limit)
    } catch {
      throw error.reason(path)
    }
  }

  // MARK: Heads

  private func altered(
    _ reason: String, table: String = "", step: Int? = nil, at: Instant? = nil,
    _ suspect: TapeChunk? = nil
  ) -> TapeFault {
    .altered(
      Alteration(
        step: step ?? stepsRead + 1, atNanoseconds: (at ?? lastAt).nanoseconds, table: table,
        reason: reason),
      suspect)
  }

  private func readHeads() throws(TapeFault) {
    if stepsRead > 0, chain.digest != batchDigest {
      throw altered("the digest of its transaction was changed", table: "tape", step: stepsRead)
    }
    do throws(SQLiteError) {
      guard try tape.step() else {
        isAtEnd = true
        try checkEnd()
        return
      }
    } catch {
      throw .unreadable(TapeError(path: path, place: "tape", error))
    }
    guard tape.storageClasses == [.integer, .integer, .integer, .blob, .blob] else {
      throw altered("a value of its transaction has another type", table: "tape")
    }
    let (first, count, start) = (
      tape.exactInteger(0), Int(tape.exactInteger(1)), tape.exactInteger(2)
    )
    let (body, digest) = tape.values(from: 3, [UInt8].self, [UInt8].self)
    guard first == Int64(stepsRead + 1) else {
      throw altered(
        first > Int64(stepsRead + 1)
          ? "the steps up to \(first - 1) are missing" : "a transaction occurs twice",
        table: "tape")
    }
    do throws(ReadError) {
      heads = try TapeBody.heads(
        body.span.bytes, first: stepsRead + 1, count: count, start: start)
    } catch {
      throw altered("the headers of its transaction were changed", table: "tape")
    }
    guard !heads.isEmpty else {
      throw altered("a transaction without steps was added", table: "tape")
    }
    position = 0
    batchDigest = digest
  }

  private func checkEnd() throws(SQLiteError) {
    if let left = rows.left {
      fault = altered("rows were added after the last step", table: left.name)
    } else if try !wire.isAtEnd() {
      fault = altered("bytes were added after the last datagram", table: "wire")
    } else if try !media.isAtEnd() {
      fault = altered("bytes were added after the last frame", table: "media")
    } else if let ending {
      if ending.steps > stepsRead {
        fault = altered("the steps up to \(ending.steps) are missing", table: "tape")
      } else if ending.steps < stepsRead || ending.at != lastAt || ending.digest != chain.digest {
        fault = altered("the row was changed", table: "ending", step: max(1, stepsRead))
      }
    }
  }

  // MARK: Steps

  private func readStep(into chunk: inout TapeChunk) throws(TapeFault) {
    let head = heads[position]
    let start = chunk.rows.count
    try readRows(of: head, into: &chunk.rows)
    let range = start..<chunk.rows.count
    let check = chain.advance(head, chunk.rows, range)
    let isDecoded = inputs.append(head, chunk.rows, range, to: &chunk.steps)
    guard check == head.check else {
      let step = isDecoded ? chunk.steps.popLast() : nil
      throw altered(
        "a value of the step was changed; it has \(described(chunk.rows, range))", at: head.at,
        suspect(step, chunk.rows, range))
    }
    guard isDecoded else {
      throw .unreadable(
        TapeError(
          path: path, place: "step \(head.number)",
          reason: "its input has a form that this version does not know"))
    }
    position += 1
    stepsRead += 1
    lastAt = head.at
  }

  private func readRows(of head: StepHead, into rows: inout RowList) throws(TapeFault) {
    let start = rows.count
    do throws(RowQueue.Fault) {
      try self.rows.read(head.rowCount, ofStep: head.number, into: &rows)
    } catch {
      switch error {
      case .added(let table):
        throw altered("a row was added", table: table.name, at: head.at)
      case .missing(let ordinal):
        throw altered(
          "row \(ordinal + 1) of \(head.rowCount) is missing; before it the step has "
            + described(rows, start..<rows.count), at: head.at)
      case .damaged(let table, let damage):
        throw altered(damage, table: table.name, at: head.at)
      case .unreadable(let table, let reason):
        throw .unreadable(
          TapeError(path: path, place: "\(table.name), step \(head.number)", reason))
      }
    }
  }

  private func suspect(_ step: TapeChunk.Step?, _ rows: RowList, _ range: Range<Int>)
    -> TapeChunk?
  {
    guard var step else { return nil }
    var chunk = TapeChunk()
    for row in range { chunk.rows.append(rows, row) }
    step.rows = 0..<range.count
    chunk.steps = [step]
    return chunk
  }

  /// Describes rows by the names of their tables, as in `2 rows: path, packet`.
  private func described(_ rows: RowList, _ range: Range<Int>) -> String {
    guard !range.isEmpty else { return "no rows" }
    let names = range.prefix(8).map { rows.table($0).name }.joined(separator: ", ")
    return "\(range.count) row\(range.count == 1 ? "" : "s"): \(names)"
      + (range.count > 8 ? ", ..." : "")
  }
}
