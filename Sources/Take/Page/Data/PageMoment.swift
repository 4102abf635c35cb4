import Tape

/// How far a take has come: what is read through several connections is of one moment when each of
/// them finds the same.
struct PageMoment: Equatable, Sendable {
  /// The last packet that belongs to it.
  let lastPacket: Int64
  private let ends: [Int64]

  /// The moment that a snapshot is of, which begins with this.
  init(_ connection: borrowing SQLiteConnection) throws(SQLiteError) {
    var ends: [Int64] = []
    for query in Self.queries { ends.append(try connection.integer(query) ?? 0) }
    self.ends = ends
    lastPacket = ends[0]
  }

  private static let queries = [
    "SELECT max(row) FROM packet_store", "SELECT max(row) FROM frame_store",
    "SELECT max(row) FROM rtcp", "SELECT max(row) FROM stat",
    "SELECT max(first_step) FROM tape", "SELECT count(*) FROM ending",
  ]
}
