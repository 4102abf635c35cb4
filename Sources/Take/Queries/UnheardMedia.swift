package import Tape

/// Why received media is not there although a take has its packets.
package enum UnheardMedia {
  /// A sentence on media of a kind that was not opened or not decoded; nil where there was none.
  ///
  /// - Parameter kind: `audio` or `video`; nil for both.
  package static func reason(in path: String, kind: String?) throws(TapeError) -> String? {
    let connection = try TakeFile.openForQueries(path)
    do throws(SQLiteError) {
      return try reason(connection, kind: kind)
    } catch {
      throw TapeError(path: path, error)
    }
  }

  static func reason(_ connection: borrowing SQLiteConnection, kind: String?) throws(SQLiteError)
    -> String?
  {
    let kinds = kind.map { "kind = '\($0)'" } ?? "kind IN ('audio', 'video')"
    let codecs = try connection.prepare(
      """
      SELECT group_concat(codec, ', ') FROM (
        SELECT DISTINCT codec FROM format
        WHERE \(kinds) AND outcome IN ('not decoded', 'passed on') ORDER BY codec)
      """)
    if try codecs.step(), let names = codecs.text(0) {
      return "there is \(kind ?? "media") in it that was not decoded (\(names)); retake upgrade "
        + "--decode makes a take with what can be decoded here"
    }
    let closed = try connection.prepare(
      """
      SELECT what, reason FROM coverage WHERE row IN (SELECT max(row) FROM coverage GROUP BY what)
        AND what IN ('no-keys', 'not-opened', 'waiting-overflow', 'unsupported')
      ORDER BY row LIMIT 1
      """)
    if try closed.step() {
      let (what, reason) = closed.values(String.self, String.self)
      guard let words = CoverageText.text(what: what, reason: reason) else { return nil }
      return "\(words), so nobody knows what is in them; import the capture with its keys"
    }
    let agreed = try connection.integer("SELECT count(*) FROM track WHERE \(kinds)") ?? 0
    guard agreed > 0 else { return nil }
    return "there is a track of \(kind ?? "media") in it, and nothing of it was decoded"
  }
}
