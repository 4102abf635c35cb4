package import Tape
import Wire

/// Summary tables for a query on one take: `finding`, `quality`, `connection` and `voice_total`,
/// with the columns that they have in a catalogue except `take`.
package enum TakeRelations {
  /// Returns the summary tables that a query may name.
  static func named(in sql: String) -> [CatalogueSchema.Relation] {
    let words = Set(
      sql.lowercased().split { !($0.isLetter || $0.isNumber || $0 == "_") }.map(String.init))
    return CatalogueSchema.summaries.filter { words.contains($0.name) }
  }

  /// Creates the tables that a query names, empty.
  static func make(
    _ relations: [CatalogueSchema.Relation], in connection: borrowing SQLiteConnection
  ) throws(SQLiteError) {
    for relation in relations {
      try connection.execute(
        "CREATE TEMP TABLE \(relation.name) (\(CatalogueSchema.list(relation.columns)))")
    }
  }

  /// Creates and fills the tables that a query names.
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
