package import Tape
import Wire

/// A database about many takes, for SQL queries, in files beside the takes.
///
/// It usually has a few hundred rows per take. Opening it reads the takes that are new or have
/// changed.
package final class TakeCatalogue {
  /// Callbacks for cancellation and progress.
  package struct Progress: Sendable {
    package var isWanted: @Sendable () -> Bool
    /// Called after each take, whether it was read, failed or was left out.
    package var report: @Sendable (_ done: Int, _ count: Int) -> Void

    package init(
      isWanted: @escaping @Sendable () -> Bool = { true },
      report: @escaping @Sendable (_ done: Int, _ count: Int) -> Void = { _, _ in }
    ) {
      self.isWanted = isWanted
      self.report = report
    }
  }

  /// The takes that could not be read, in order.
  package let failures: [TapeError]
  /// The tables and results that were too large to be stored, by take, as in `calls/a.take: state`.
  package let cut: [String]
  package let takeCount: Int
  /// The number of new and changed takes not read because of `readMaximum`.
  package let waitingCount: Int
  /// The database, with the relations as tables or views with a `take` column.
  private let database: CatalogueDatabase

  /// Opens the catalogue of the listed takes, after reading those that are new or have changed.
  ///
  /// - Parameters:
  ///   - jobs: the number of takes read in parallel.
  ///   - readMaximum: the maximum number of takes to read.
  package init(
    _ list: TakeList, reading: CatalogueReading = CatalogueReading(), jobs: Int,
    progress: Progress = Progress(), readMaximum: Int = .max
  ) throws(TapeError) {
    var parts: [CataloguePart] = []
    var readCount = 0
    do throws(SQLiteError) {
      for group in list.groups {
        let part = try CataloguePart(
          group, isWhole: list.wholeFolders.contains(group.folder), reading: reading, jobs: jobs,
          progress: progress, readMaximum: readMaximum - readCount)
        try part.putViews()
        readCount += part.readCount
        parts.append(part)
      }
      database = try parts.count == 1 ? parts[0].database : Self.joint(parts)
    } catch {
      throw TapeError(path: list.title, place: "catalogue", error)
    }
    failures = parts.flatMap(\.failures)
    cut = parts.flatMap(\.cut)
    takeCount = parts.reduce(0) { $0 + $1.chosen.count }
    waitingCount = parts.reduce(0) { $0 + $1.waitingCount }
  }

  /// Copies several catalogues' rows into one database.
  private static func joint(_ parts: [CataloguePart]) throws(SQLiteError) -> CatalogueDatabase {
    let joint = try SQLiteConnection(path: "", mode: .readWrite)
    try joint.execute("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; BEGIN")
    for relation in CatalogueSchema.relations + [CatalogueSchema.document] {
      let count = relation.columns.count + 1
      try joint.execute(
        "CREATE TABLE \(relation.name) (take, \(CatalogueSchema.list(relation.columns)))")
      let marks = [String](repeating: "?", count: count).joined(separator: ", ")
      let insert = try joint.prepare("INSERT INTO \(relation.name) VALUES (\(marks))")
      for part in parts {
        let rows = try part.database.connection.prepare("SELECT * FROM \(relation.name)")
        while try rows.step() {
          try insert.insert((0..<count).map { rows.value($0) ?? .null })
        }
      }
      try joint.execute("CREATE INDEX \(relation.name)_take ON \(relation.name) (take)")
    }
    try joint.execute("COMMIT; PRAGMA query_only = ON")
    return CatalogueDatabase(joint)
  }

  /// Runs this program's own statements on the catalogue, and converts their errors.
  package func read<Value>(
    _ body: (borrowing SQLiteConnection) throws(SQLiteError) -> Value
  ) throws(TapeError) -> Value {
    do throws(SQLiteError) {
      return try body(database.connection)
    } catch {
      throw TapeError(path: "", place: "catalogue", error)
    }
  }

  // MARK: Queries

  /// Returns whether a query names only tables that catalogues have.
  package static func answers(_ sql: String) -> Bool {
    guard let empty = try? CatalogueSchema.emptyRelations() else { return false }
    return (try? empty.prepare(sql)) != nil
  }

  /// Answers a query; from then on, the catalogue's connection permits only reading.
  ///
  /// - Returns: the number of rows.
  package func answer(
    _ sql: String, format: SQLConsole.Format, look: TableLook,
    isWanted: @escaping () -> Bool, write: @escaping (String) -> Void
  ) throws(TapeError) -> Int {
    try SQLConsole.run(
      on: database.connection, path: "", sql: sql, format: format, look: look,
      isWanted: isWanted, write: write)
  }

  /// Calls a closure with the stored JSON results of a subcommand, one take after another.
  package func documents(_ kind: String, _ body: (String) -> Void) throws(TapeError) {
    try read { (connection) throws(SQLiteError) in
      let rows = try connection.prepare("SELECT take, json FROM document WHERE kind = '\(kind)'")
      while try rows.step() {
        let (take, json) = rows.values(String.self, String.self)
        body(Self.document(json, take: take))
      }
    }
  }

  /// Inserts the take's path into a stored result.
  static func document(_ json: String, take: String) -> String {
    func inside(_ text: String) -> String {
      String(JSONText.text(text).text.dropFirst().dropLast())
    }
    // In commands, the path is quoted for the shell.
    let word = inside(ShellText.word(CatalogueEntry.placeholder))
    return json.replacing(word, with: inside(ShellText.word(take)))
      .replacing(CatalogueEntry.placeholder, with: inside(take))
  }
}

// MARK: - CatalogueReading

/// Settings for reading takes into a catalogue.
package struct CatalogueReading: Sendable {
  /// Selects the part of a take for findings and speakers; returning nil skips the take.
  package typealias Selection = @Sendable (_ take: String) -> TakeSelection?
  /// Returns explanations from replays with changes, keyed by the index of the explained finding.
  package typealias Explanation =
    @Sendable (_ take: String, [Finding]) throws(TapeError) -> [Int: String]

  let rules: [FindingRule]
  let selection: Selection?
  let explanation: Explanation?
  /// Whether takes are read as for a catalogue file: without a selection, other rules or
  /// explanations.
  let isUsual: Bool

  /// Whether takes may be skipped.
  package var isPart: Bool { selection != nil }

  /// Creates settings; by default, entire takes are read with this version's rules.
  package init(
    rules: [FindingRule]? = nil, selection: Selection? = nil, explanation: Explanation? = nil
  ) {
    self.rules = rules ?? FindingRule.all
    self.selection = selection
    self.explanation = explanation
    isUsual = rules == nil && selection == nil && explanation == nil
  }
}
