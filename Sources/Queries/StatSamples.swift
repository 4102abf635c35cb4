import Stats
package import Tape
package import Wire

/// The last sample of a peer's stats at an instant, as the `stat` rows have it.
package struct StatSamples: Sendable {
  /// One stats object.
  package struct Object: Hashable, Sendable {
    package var id: String
    package var type: String
    package var timestamp: Double
    /// The members as JSON text.
    package var members: String

    /// The whole object in the shape that browsers give.
    package var json: String {
      let head = "{\"id\":\(jsonString(id)),\"timestamp\":\(StatsValue.number(timestamp).json)"
      let rest = members.dropFirst()
      return head + ",\"type\":\(jsonString(type))" + (rest == "}" ? "}" : ",\(rest)")
    }
  }

  /// The objects of one peer.
  package struct Peer: Sendable {
    package var label: String
    package var objects: [Object]
  }

  package private(set) var peers: [Peer] = []

  /// Reads the objects of every peer that were current at an instant, or at the end.
  package init(path: String, at instant: Instant?) throws(TapeError) {
    let connection = try TakeFile.open(path)
    do throws(SQLiteError) {
      var labels = try connection.prepare("SELECT peer, label FROM peer ORDER BY peer")
      while try labels.step() {
        let number = labels.integer(0)
        peers.append(
          Peer(
            label: labels.text(1) ?? "",
            objects: try StatSamples.objects(of: number, connection, at: instant)))
      }
    } catch {
      throw TapeError(path: path, error)
    }
  }

  /// The newest row of each object; an object that did not change since has no newer one.
  private static func objects(
    of peer: Int64, _ connection: borrowing SQLiteConnection, at instant: Instant?
  ) throws(SQLiteError) -> [Object] {
    var statement = try connection.prepare(
      """
      SELECT id, type, timestamp_ms, members FROM stat
      WHERE row IN (SELECT max(row) FROM stat WHERE peer = ?1 AND at_ns <= ?2 GROUP BY id)
      ORDER BY type, row
      """)
    statement.bind(peer, at: 1)
    statement.bind(instant?.nanoseconds ?? .max, at: 2)
    var objects: [Object] = []
    while try statement.step() {
      let timestamp: Double
      if case .real(let value)? = statement.value(2) { timestamp = value } else { timestamp = 0 }
      objects.append(
        Object(
          id: statement.text(0) ?? "", type: statement.text(1) ?? "", timestamp: timestamp,
          members: statement.text(3) ?? "{}"))
    }
    return objects
  }
}
