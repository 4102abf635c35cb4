package import Stats
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

    package init(id: String, type: String, timestamp: Double, members: String) {
      self.id = id
      self.type = type
      self.timestamp = timestamp
      self.members = members
    }

    /// The object of a report.
    package init(_ object: StatsObject) {
      self.init(
        id: object.id, type: object.type, timestamp: object.timestamp,
        members: object.membersJSON)
    }

    /// The members in their order: names, and values as JSON text.
    package var list: [(name: String, value: String)] { StatMembers.list(members) }

    /// The whole object in the shape that browsers give.
    package var json: String {
      var text = "{"
      appendBody(to: &text)
      return text
    }

    /// Appends the whole object but for its first brace.
    func appendBody(to text: inout String) {
      text += "\"id\":"
      JSONText.append(id, to: &text)
      text += ",\"timestamp\":"
      text += JSONText.number(timestamp).text
      text += ",\"type\":"
      JSONText.append(type, to: &text)
      let rest = members.dropFirst()
      if rest != "}" { text += "," }
      // What joins a string with a part of one counts the characters of both.
      text.append(contentsOf: rest)
    }
  }

  /// The objects of one peer.
  package struct Peer: Sendable {
    /// Its number.
    package var number: Int64
    package var label: String
    package var objects: [Object]

    package init(number: Int64, label: String, objects: [Object]) {
      self.number = number
      self.label = label
      self.objects = objects
    }
  }

  package private(set) var peers: [Peer] = []

  /// Takes reports that were made otherwise.
  package init(peers: [Peer]) { self.peers = peers }

  /// Reads the objects of every peer that were current at an instant, or at the end.
  package init(path: String, at instant: Wire.Instant?) throws(TapeError) {
    let connection = try TakeFile.open(path)
    do throws(SQLiteError) {
      for (peer, label) in try PeerLabels(connection).entries {
        peers.append(
          Peer(
            number: peer, label: label,
            objects: try StatSamples.objects(of: peer, connection, at: instant)))
      }
    } catch {
      throw TapeError(path: path, error)
    }
  }

  /// A whole report of a peer that was recorded.
  package struct Instant: Hashable, Sendable {
    package var peer: Int64
    /// The step that answered the call.
    package var step: Int
    package var atNanoseconds: Int64
    /// How many objects it had.
    package var objectCount: Int64
  }

  /// When each peer's stats were sampled, in the order of time.
  package static func instants(path: String) throws(TapeError) -> [Instant] {
    let connection = try TakeFile.open(path)
    var instants: [Instant] = []
    do throws(SQLiteError) {
      let statement = try connection.prepare(
        """
        SELECT peer, reply_at_ns, reply_step,
          iif(json_type(reply) = 'object', reply ->> '$.objects', reply)
        FROM call
        WHERE name = 'getStats' AND reply IS NOT NULL
          AND arguments NOT LIKE '%"receiver"%' AND arguments NOT LIKE '%"sender"%'
        ORDER BY row
        """)
      while try statement.step() {
        let (peer, at, step, count) = statement.values(
          Int64.self, Int64.self, Int.self, Int64.self)
        instants.append(
          Instant(peer: peer, step: step, atNanoseconds: at, objectCount: count))
      }
    } catch {
      throw TapeError(path: path, error)
    }
    return instants
  }

  /// The newest row of each object that still was there: one that did not change since has no
  /// newer one, and the reply of the first report without it names the one that is gone.
  private static func objects(
    of peer: Int64, _ connection: borrowing SQLiteConnection, at instant: Wire.Instant?
  ) throws(SQLiteError) -> [Object] {
    let statement = try connection.prepare(
      """
      SELECT id, type, timestamp_ms, members FROM stat
      WHERE row IN (SELECT max(row) FROM stat WHERE peer = ?1 AND at_ns <= ?2 GROUP BY id)
        AND NOT EXISTS (
          SELECT 1 FROM call_reply, json_each(call_reply.reply, '$.gone') AS gone
          WHERE call_reply.peer = ?1 AND call_reply.at_ns <= ?2 AND call_reply.row > stat.row
            AND call_reply.reply LIKE '{"objects":%' AND gone.value = stat.id
        )
      ORDER BY type, row
      """)
    statement.bind(peer, at: 1)
    statement.bind(instant?.nanoseconds ?? .max, at: 2)
    var objects: [Object] = []
    while try statement.step() {
      let (id, type, timestamp, members) = statement.values(
        String.self, String.self, Double.self, String?.self)
      objects.append(
        Object(id: id, type: type, timestamp: timestamp, members: members ?? "{}"))
    }
    return objects
  }
}
