/// The schema of takes: the numbered files of Schema/, embedded in the binary.
package enum TakeSchema {
  /// The SQL of every migration in order; the first one makes format 1.
  ///
  /// SwiftPM names the constant after the file and puts `_` for a leading digit.
  package static var migrations: [String] {
    [String(decoding: PackageResources._001_take_sql, as: UTF8.self)]
  }

  /// Makes the tables of the newest format in an empty database.
  static func create(in connection: borrowing SQLiteConnection) throws(SQLiteError) {
    for sql in migrations { try connection.execute(sql) }
    try connection.execute(
      """
      PRAGMA application_id = \(TakeHeader.applicationID);
      PRAGMA user_version = \(TakeHeader.currentFormat);
      """)
  }
}
