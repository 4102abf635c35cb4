package import Tape
import Wire

/// What is known of many takes, to be asked with SQL: a row or two hundred of each, read from
/// files that are kept beside the takes and made anew where a take is another one.
package final class TakeCatalogue {
  /// Whether the work on it is wanted, and how far it is.
  package struct Progress: Sendable {
    package var isWanted: @Sendable () -> Bool
    /// Hears of each take that was read.
    package var report: @Sendable (_ done: Int, _ count: Int) -> Void

    package init(
      isWanted: @escaping @Sendable () -> Bool = { true },
      report: @escaping @Sendable (_ done: Int, _ count: Int) -> Void = { _, _ in }
    ) {
      self.isWanted = isWanted
      self.report = report
    }
  }

  /// The takes that could not be read, in their order.
  package let failures: [TapeError]
  /// Takes of which more rows are there than are kept: `calls/a.take: state`.
  package let cut: [String]
  /// How many takes have rows in it.
  package let takeCount: Int
  /// How many takes are not in it yet, where only some of those that are new were to be read.
  package let waitingCount: Int
  /// Has the relations as tables or views, each with the column `take`.
  private let database: CatalogueDatabase

  /// Reads what is new, and opens the catalogue of some takes.
  ///
  /// - Parameters:
  ///   - jobs: how many takes are read at once.
  ///   - readMaximum: how many takes are read at most.
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

  /// All rows of several catalogues.
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

  /// Reads rows with a statement of Retake's own.
  package func read<Value>(
    _ body: (borrowing SQLiteConnection) throws(SQLiteError) -> Value
  ) throws(TapeError) -> Value {
    do throws(SQLiteError) {
      return try body(database.connection)
    } catch {
      throw TapeError(path: "", place: "catalogue", error)
    }
  }

  // MARK: Questions

  /// Whether a query names nothing but what catalogues have.
  package static func answers(_ sql: String) -> Bool {
    guard let empty = try? CatalogueSchema.emptyRelations() else { return false }
    return (try? empty.prepare(sql)) != nil
  }

  /// Answers one query, after which the catalogue answers nothing else.
  ///
  /// - Returns: how many rows there were.
  package func answer(
    _ sql: String, format: SQLConsole.Format, look: TableLook,
    isWanted: @escaping () -> Bool, write: @escaping (String) -> Void
  ) throws(TapeError) -> Int {
    try SQLConsole.run(
      on: database.connection, path: "", sql: sql, format: format, look: look,
      isWanted: isWanted, write: write)
  }

  /// Hands the results of a verb over, in the order of the takes, each as JSON of one take.
  package func documents(_ kind: String, _ body: (String) -> Void) throws(TapeError) {
    try read { (connection) throws(SQLiteError) in
      let rows = try connection.prepare("SELECT take, json FROM document WHERE kind = '\(kind)'")
      while try rows.step() {
        let (take, json) = rows.values(String.self, String.self)
        body(Self.document(json, take: take))
      }
    }
  }

  /// A result that was kept, with the path of its take in it.
  static func document(_ json: String, take: String) -> String {
    func inside(_ text: String) -> String {
      String(JSONText.text(text).text.dropFirst().dropLast())
    }
    // Commands have it as a word of a shell.
    let word = inside(ShellText.word(CatalogueEntry.placeholder))
    return json.replacing(word, with: inside(ShellText.word(take)))
      .replacing(CatalogueEntry.placeholder, with: inside(take))
  }
}
