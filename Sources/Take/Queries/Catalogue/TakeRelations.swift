package import Tape
import Wire

/// What sums a take up, as tables beside its own, for a query that names them: `finding`,
/// `quality`, `connection` and `voice_total`, with the columns that a catalogue has but for `take`.
package enum TakeRelations {
  /// The relations that a query may name.
  static func named(in sql: String) -> [CatalogueSchema.Relation] {
    let words = Set(
      sql.lowercased().split { !($0.isLetter || $0.isNumber || $0 == "_") }.map(String.init))
    return CatalogueSchema.summaries.filter { words.contains($0.name) }
  }

  /// Makes the tables that a query names, without rows.
  static func make(
    _ relations: [CatalogueSchema.Relation], in connection: borrowing SQLiteConnection
  ) throws(SQLiteError) {
    for relation in relations {
      try connection.execute(
        "CREATE TEMP TABLE \(relation.name) (\(CatalogueSchema.list(relation.columns)))")
    }
  }

  /// Puts the tables that a query names over a take, which is summed up for it.
  package static func put(
    namedIn sql: String, over connection: borrowing SQLiteConnection, path: String,
    isWanted: @escaping @Sendable () -> Bool = { true }
  ) throws(TapeError) {
    let relations = named(in: sql)
    guard !relations.isEmpty else { return }
    let reading = CatalogueReading(rules: FindingRule.all)
    guard let entry = try CatalogueEntry(path: path, reading: reading, isWanted: isWanted) else {
      return
    }
    do throws(SQLiteError) {
      try connection.execute("PRAGMA query_only = OFF")
      try make(relations, in: connection)
      for relation in relations {
        let marks = relation.columns.map { _ in "?" }.joined(separator: ", ")
        let insert = try connection.prepare("INSERT INTO \(relation.name) VALUES (\(marks))")
        for rows in entry.rows where rows.relation == relation.name {
          for values in rows.values { try insert.insert(values) }
        }
      }
      try connection.execute("PRAGMA query_only = ON")
    } catch {
      throw TapeError(path: path, error)
    }
  }
}
