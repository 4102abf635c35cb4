import Queries
import Stats
import Tape
import Wire

/// Rows of a take as JSON for the page: what is told in words and tables.
enum PageRows {
  /// A list of the page and the statement that gives it; columns keep their names.
  struct List {
    let name: String
    let sql: String
  }

  static func lists(keepsMessages: Bool) -> [List] {
    [keepsMessages ? signaling : signalingWithoutText] + others
  }

  private static let signaling = List(
    name: "signaling",
    sql: """
      SELECT row >> 16 AS step, peer, at_ns / 1e9 AS at, direction, transport, type, message
      FROM signaling ORDER BY row LIMIT 2000
      """)

  private static let signalingWithoutText = List(
    name: "signaling",
    sql: """
      SELECT row >> 16 AS step, peer, at_ns / 1e9 AS at, direction, transport, type
      FROM signaling ORDER BY row LIMIT 2000
      """)

  private static let others: [List] = [
    List(
      name: "tracks",
      sql: """
        SELECT peer, track, mid, kind, direction, codec, payload_type AS payloadType,
          clock_rate AS clockRate, ssrc, min(at_ns) / 1e9 AS at
        FROM track GROUP BY peer, track, mid, kind, direction, codec, payload_type, ssrc
        ORDER BY peer, track, direction, min(row)
        """),
    List(
      name: "streams",
      sql: """
        SELECT DISTINCT peer, track, direction, kind, ssrc FROM format
        WHERE ssrc <> 0 AND kind IN ('audio', 'video') ORDER BY peer, track, direction, ssrc
        """),
    List(
      name: "candidates",
      sql: """
        SELECT row >> 16 AS step, peer, at_ns / 1e9 AS at, type, candidate_type AS candidateType,
          protocol, address, port, priority, foundation, related_address AS relatedAddress,
          related_port AS relatedPort
        FROM candidate ORDER BY row LIMIT 2000
        """),
    List(
      name: "pairs",
      sql: """
        SELECT peer, at_ns / 1e9 AS at, pair, local, local_type AS localType, remote,
          remote_type AS remoteType, state, nominated, selected,
          requests_sent AS sent, responses_received AS answered,
          current_round_trip_time AS roundTrip
        FROM candidate_pair ORDER BY row LIMIT 5000
        """),
    List(
      name: "channelList",
      sql: """
        SELECT made.peer AS peer, made.channel AS channel, max(made.label) AS label,
          max(made.protocol) AS protocol, max(made.id) AS id, max(made.remote) AS remote,
          max(made.ordered) AS ordered, max(made.max_retransmits) AS maxRetransmits,
          max(made.max_packet_life_time) AS maxPacketLifeTime
        FROM channel AS made GROUP BY made.peer, made.channel ORDER BY 1, 2
        """),
    // The last sample of each object.
    List(
      name: "stats",
      sql: """
        SELECT peer, id, type, members FROM stat
        WHERE row IN (SELECT max(row) FROM stat GROUP BY peer, id)
        ORDER BY peer, type, id LIMIT 1000
        """),
    // Who came into a room and went, and whose media which track carries from when to when. The
    // view `participant_track` says the same, but looks at all rows for each of them.
    List(
      name: "presence",
      sql: """
        SELECT actor, at_ns / 1e9 AS at, participant, id, name, local, present
        FROM presence ORDER BY row LIMIT 5000
        """),
    List(
      name: "carriage",
      sql: """
        SELECT actor, participant, kind, extra, peer, track, direction, from_ns / 1e9 AS "from",
          to_ns / 1e9 AS "to"
        FROM (
          SELECT row, actor, participant, kind, extra_value AS extra, peer, track, direction,
            carried, at_ns AS from_ns,
            lead(at_ns) OVER (
              PARTITION BY peer, track, direction, actor, participant ORDER BY row) AS to_ns
          FROM carriage
        )
        WHERE carried = 1 ORDER BY row LIMIT 5000
        """),
    // What a connection was asked to be, without the secrets of its servers.
    List(
      name: "settings",
      sql: """
        SELECT peer, configuration ->> '$.iceTransportPolicy' AS transportPolicy,
          configuration ->> '$.bundlePolicy' AS bundlePolicy,
          (
            SELECT group_concat(url.value, ', ')
            FROM json_each(configuration, '$.iceServers') AS server,
              json_each(server.value, '$.urls') AS url
          ) AS servers
        FROM (
          SELECT peer, iif(json_valid(configuration), configuration, '{}') AS configuration
          FROM peer
        )
        ORDER BY peer
        """),
    List(
      name: "secured",
      sql: """
        SELECT peer, at_ns / 1e9 AS at, detail ->> '$.version' AS version,
          detail ->> '$.cipherSuite' AS cipherSuite, detail ->> '$.profile' AS profile,
          detail ->> '$.role' AS role
        FROM event WHERE type = 'secured' ORDER BY row LIMIT 100
        """),
  ]

  /// The objects of a list as a JSON array.
  static func json(_ sql: String, _ connection: borrowing SQLiteConnection) throws(SQLiteError)
    -> String
  {
    let rows = try connection.prepare(sql)
    let names = (0..<rows.columnCount).map { jsonString(rows.columnName($0)) }
    var objects: [String] = []
    while try rows.step() {
      let members = names.indices.compactMap { column -> String? in
        guard let value = rows.value(column), value != .null else { return nil }
        return "\(names[column]):\(value.json.text)"
      }
      objects.append("{" + members.joined(separator: ",") + "}")
    }
    return "[" + objects.joined(separator: ",\n") + "]"
  }
}
