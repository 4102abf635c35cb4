import Tape
import Wire

/// The part of a catalogue that covers one folder.
struct CataloguePart {
  let database: CatalogueDatabase
  private(set) var failures: [TapeError] = []
  private(set) var cut: [String] = []
  /// The selected takes that have rows, with their entry numbers.
  private(set) var chosen: [(entry: Int64, path: String)] = []
  /// The number of takes just read, and the number of new and changed takes still to be read.
  private(set) var readCount = 0
  private(set) var waitingCount = 0

  /// A take as the existing file lists it.
  private struct Known {
    var entry: Int64
    var stamp: String
    var failure: TapeError?
    var cut: String
  }

  /// The result of reading a take.
  private enum Outcome: Sendable {
    case read(CatalogueEntry)
    case failed(TapeError)
    /// The settings skip the take, or reading was stopped before it.
    case leftOut
  }

  /// Opens a folder's catalogue and reads new and changed takes.
  ///
  /// - Parameter isWhole: whether the entries list every take in the folder; if so, the rows of
  ///   other takes are removed.
  init(
    _ group: (folder: String, entries: [TakeList.Entry]), isWhole: Bool,
    reading: CatalogueReading, jobs: Int, progress: TakeCatalogue.Progress, readMaximum: Int
  ) throws(SQLiteError) {
    let file = CatalogueFile(folder: group.folder)
    var existing = reading.isUsual ? file.existing() : nil
    var known: [String: Known] = [:]
    if let opened = existing {
      if let found = try? Self.known(opened.database) { known = found } else { existing = nil }
    }
    let stamps = group.entries.map { TakeStamp(path: $0.path).text }
    var stale = group.entries.indices.filter {
      known[group.entries[$0].name]?.stamp != stamps[$0]
    }
    let present = Set(group.entries.map(\.name))
    let gone = isWhole ? known.filter { !present.contains($0.key) }.map(\.value.entry) : []
    if let existing, gone.isEmpty, stale.isEmpty || readMaximum <= 0 {
      database = existing.database
    } else {
      let draft = try reading.isUsual ? file.draft(copying: existing?.path) : CatalogueFile.unkept()
      database = draft.database
      if !draft.isCopy {
        known = [:]
        stale = Array(group.entries.indices)
      }
      let wanted = Array(stale.prefix(max(0, readMaximum)))
      let entries = wanted.map { (entry: group.entries[$0], stamp: stamps[$0]) }
      let old = entries.compactMap { known[$0.entry.name]?.entry } + gone
      try database.connection.execute("BEGIN")
      try delete(old)
      try read(
        entries, from: (known.values.map(\.entry).max() ?? 0) + 1, reading, jobs, progress)
      try database.connection.execute("COMMIT")
      draft.finish()
      readCount = wanted.count
      waitingCount = stale.count - wanted.count
      known = try Self.known(database)
    }
    if readMaximum <= 0 { waitingCount = stale.count }
    for entry in group.entries {
      guard let one = known[entry.name] else { continue }
      if !one.cut.isEmpty { cut.append("\(entry.path): \(one.cut)") }
      if var failure = one.failure {
        failure.path = entry.path
        failures.append(failure)
      } else {
        chosen.append((one.entry, entry.path))
      }
    }
  }

  /// Creates views of the file's tables that show only the selected takes' rows and begin with a
  /// column for the take's path.
  func putViews() throws(SQLiteError) {
    try database.connection.execute(
      """
      PRAGMA query_only = OFF;
      CREATE TEMP TABLE chosen (place INTEGER PRIMARY KEY, entry INTEGER, path TEXT UNIQUE)
      """)
    let insert = try database.connection.prepare("INSERT INTO chosen (entry, path) VALUES (?, ?)")
    for take in chosen { try insert.insert([.integer(take.entry), .text(take.path)]) }
    for relation in CatalogueSchema.relations + [CatalogueSchema.document] {
      // The rows are ordered by take, as listed, and within a take as they were stored.
      try database.connection.execute(
        """
        CREATE TEMP VIEW \(relation.name) AS
        SELECT chosen.path AS take, \(CatalogueSchema.list(relation.columns))
        FROM chosen CROSS JOIN main.\(relation.storage) AS kept ON kept.entry = chosen.entry
        """)
    }
    try database.connection.execute("PRAGMA query_only = ON")
  }

  // MARK: Reading

  private static func known(_ database: CatalogueDatabase) throws(SQLiteError)
    -> [String: Known]
  {
    let rows = try database.connection.prepare(
      "SELECT id, name, stamp, place, reason, kind, cut FROM entry ORDER BY id")
    var known: [String: Known] = [:]
    while try rows.step() {
      let (entry, name, stamp, place) = rows.values(
        Int64.self, String.self, String.self, String.self)
      let (reason, kind, cut) = rows.values(from: 4, String?.self, Int.self, String.self)
      known[name] = Known(
        entry: entry, stamp: stamp,
        failure: reason.map {
          TapeError(path: name, place: place, reason: $0, kind: Self.kind(kind))
        }, cut: cut)
    }
    return known
  }

  private static let kinds: [TapeError.Kind] = [.invalid, .failed, .missing]

  private static func kind(_ number: Int) -> TapeError.Kind {
    kinds.indices.contains(number) ? kinds[number] : .invalid
  }

  private func delete(_ entries: [Int64]) throws(SQLiteError) {
    guard !entries.isEmpty else { return }
    let list = entries.sorted().map(String.init).joined(separator: ", ")
    for relation in CatalogueSchema.relations + [CatalogueSchema.document] {
      try database.connection.execute(
        "DELETE FROM \(relation.storage) WHERE entry IN (\(list))")
    }
    try database.connection.execute("DELETE FROM entry WHERE id IN (\(list))")
  }

  /// Reads takes on several threads and writes their results.
  private func read(
    _ takes: [(entry: TakeList.Entry, stamp: String)], from first: Int64,
    _ reading: CatalogueReading, _ jobs: Int, _ progress: TakeCatalogue.Progress
  ) throws(SQLiteError) {
    let writer = try EntryWriter(database)
    var next = first
    try ParallelTakes.run(takes.count, jobs: jobs, tool: ShortTakes.init) {
      (short: ShortTakes, index: Int, post: (Outcome) -> Void) in
      guard progress.isWanted() else { return post(.leftOut) }
      let path = takes[index].entry.path
      do throws(TapeError) {
        let entry = try CatalogueEntry(
          path: path, reading: reading, through: short, isWanted: progress.isWanted)
        post(entry.map { .read($0) } ?? .leftOut)
      } catch {
        post(.failed(error))
      }
    } deliver: { (index, outcome) throws(SQLiteError) in
      let (name, stamp) = (takes[index].entry.name, takes[index].stamp)
      switch outcome {
      case .leftOut: break
      case .read(let entry): try writer.insert(next, name: name, stamp: stamp, entry)
      case .failed(let error):
        // A system error may not recur, so the take is read again next time.
        try writer.insert(
          next, name: name, stamp: error.kind == .invalid ? stamp : "", error,
          kind: Self.kinds.firstIndex(of: error.kind) ?? 0)
      }
      next += 1
      progress.report(index + 1, takes.count)
    }
  }
}

/// Writes takes' rows into a catalogue.
private final class EntryWriter {
  private let database: CatalogueDatabase
  private let entry: SQLiteStatement
  private let relations: [String: Insert]

  private final class Insert {
    let statement: SQLiteStatement

    init(_ relation: CatalogueSchema.Relation, _ database: CatalogueDatabase)
      throws(SQLiteError)
    {
      let marks = [String](repeating: "?", count: relation.columns.count + 1)
        .joined(separator: ", ")
      statement = try database.connection.prepare(
        "INSERT INTO \(relation.storage) VALUES (\(marks))")
    }
  }

  init(_ database: CatalogueDatabase) throws(SQLiteError) {
    self.database = database
    entry = try database.connection.prepare(
      """
      INSERT INTO entry (id, name, stamp, place, reason, kind, cut) VALUES (?, ?, ?, ?, ?, ?, ?)
      """)
    var relations: [String: Insert] = [:]
    for relation in CatalogueSchema.relations + [CatalogueSchema.document] {
      relations[relation.name] = try Insert(relation, database)
    }
    self.relations = relations
  }

  func insert(_ id: Int64, name: String, stamp: String, _ read: CatalogueEntry)
    throws(SQLiteError)
  {
    try entry.insert([
      .integer(id), .text(name), .text(stamp), .null, .null, .null,
      .text(read.cut.joined(separator: ", ")),
    ])
    for (relation, rows) in read.rows {
      for values in rows { try relations[relation]?.statement.insert([.integer(id)] + values) }
    }
  }

  func insert(_ id: Int64, name: String, stamp: String, _ error: TapeError, kind: Int)
    throws(SQLiteError)
  {
    try entry.insert([
      .integer(id), .text(name), .text(stamp), .text(error.place), .text(error.reason),
      .number(kind), .text(""),
    ])
  }
}
