import Queries
import Stats
package import Tape
import Wire

/// The packets of a take for a list that is looked through: which there are, some of them, and one
/// with all that belongs to it.
package enum PagePackets {
  /// Who sent a packet to whom, and when.
  package struct Place: Sendable {
    /// Nanoseconds since the take began.
    package let at: Int64
    package let source: String
    package let destination: String

    /// Nil when the take has no packet of the row.
    package init?(row: Int64, _ connection: borrowing SQLiteConnection) throws(SQLiteError) {
      let rows = try connection.prepare(
        "SELECT at_ns, direction, local, remote FROM packet WHERE row = \(row) LIMIT 1")
      guard try rows.step() else { return nil }
      let (at, direction, local, remote) = rows.values(
        Int64.self, String.self, String.self, String.self)
      self.at = at
      source = direction == "in" ? remote : local
      destination = direction == "in" ? local : remote
    }
  }

  /// The rows of packets that a filter lets through, in their order.
  package static func rows(_ filter: PacketFilter, _ connection: borrowing SQLiteConnection)
    throws(SQLiteError) -> [Int64]
  {
    let statement = try connection.prepare(
      filter.sql.map { "SELECT DISTINCT row FROM packet WHERE \($0) ORDER BY row" }
        ?? """
        SELECT row FROM packet_store WHERE path IN (SELECT path FROM path_end) ORDER BY row
        """)
    var rows: [Int64] = []
    while try statement.step() { rows.append(statement.integer(0)) }
    return rows
  }

  /// The place of the first of some rows that is not earlier than a time.
  package static func index(
    of seconds: Double, in rows: [Int64], _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> Int {
    let wanted = Int64(exactly: (seconds * 1e9).rounded()) ?? 0
    var (low, high) = (0, rows.count)
    while low < high {
      let middle = (low + high) / 2
      let at = try connection.integer(
        "SELECT at_ns FROM packet_store WHERE row = \(rows[middle])")
      if at ?? 0 < wanted { low = middle + 1 } else { high = middle }
    }
    return low
  }

  /// Some packets as a JSON array; each is
  /// `[row, step, peer, seconds, direction, protocol, size, ssrc, payload type, sequence,
  /// timestamp, marker, transport-wide sequence, from, to, what it is, reports]`: what it is only
  /// where the other columns do not say it.
  package static func list(_ rows: ArraySlice<Int64>, _ connection: borrowing SQLiteConnection)
    throws(SQLiteError) -> String
  {
    let statement = try connection.prepare(
      """
      SELECT row, step, peer, at_ns, direction, protocol, size, ssrc, payload_type, sequence,
        rtp_time, marker, transport_sequence, local, remote,
        CASE WHEN protocol NOT IN ('rtp', 'rtcp') THEN substr(bytes, 1, 64) END,
        CASE WHEN protocol = 'rtcp' THEN (
          SELECT group_concat(type, ' ') FROM rtcp
          WHERE rtcp.row BETWEEN packet.row & ~65535 AND packet.row | 65535
            AND rtcp.direction = packet.direction
        ) END
      FROM packet WHERE row = ? LIMIT 1
      """)
    var lines: [String] = []
    for row in rows {
      statement.bind(row, at: 1)
      if try statement.step() {
        let kind = statement.text(5) ?? ""
        let values = (0..<17).map { column in
          let value = statement.value(column) ?? .null
          return switch (column, value) {
          case (3, _): StatsValue.number(Double(statement.integer(3)) / 1e9).json
          case (15, .blob(let beginning)): jsonString(PacketFields.line(beginning, kind: kind))
          default: value.json.text
          }
        }
        lines.append("[" + values.joined(separator: ",") + "]")
      }
      statement.reset()
    }
    return "[" + lines.joined(separator: ",\n") + "]"
  }

  /// One packet: its bytes and fields, the reports and the frame in it, and what answers what.
  package static func detail(_ row: Int64, _ connection: borrowing SQLiteConnection)
    throws(SQLiteError) -> String
  {
    let packet = "(SELECT * FROM packet WHERE row = \(row) LIMIT 1)"
    let parts: [(String, String)] = [
      (
        "packet",
        "SELECT row, step, peer, at_ns / 1e9 AS at, direction, local, remote, size,"
          + " protocol, ssrc, payload_type AS payloadType, sequence, rtp_time AS rtpTime, marker,"
          + " transport_sequence AS transportSequence, bytes FROM \(packet)"
      ),
      (
        "reports",
        "SELECT type, ssrc, fields FROM rtcp WHERE row BETWEEN \(row & ~0xffff)"
          + " AND \(row | 0xffff) AND direction = (SELECT direction FROM \(packet)) LIMIT 50"
      ),
      ("frames", frames(packet)), ("links", links(packet)),
    ]
    var members: [String] = []
    for (name, sql) in parts {
      members.append("\(jsonString(name)):\(try PageRows.json(sql, connection))")
    }
    members.append("\"layers\":\(try layers(packet, connection).text)")
    return "{" + members.joined(separator: ",\n") + "}"
  }

  /// The fields of a packet, layer by layer.
  private static func layers(_ packet: String, _ connection: borrowing SQLiteConnection)
    throws(SQLiteError) -> JSONText
  {
    let rows = try connection.prepare("SELECT protocol, bytes FROM \(packet)")
    guard try rows.step() else { return .list([]) }
    return PacketFields(rows.bytes(1), kind: rows.text(0) ?? "").json
  }

  /// The frame that a packet of RTP belongs to, with the times of its first and last packet.
  private static func frames(_ packet: String) -> String {
    """
    SELECT frame.step AS step, frame.at_ns / 1e9 AS at, frame.kind AS kind, frame.codec AS codec,
      frame.outcome AS outcome, frame.key AS key, frame.width AS width, frame.height AS height,
      frame.size AS size, frame.quantiser AS quantiser,
      (SELECT count(*) FROM packet AS each WHERE each.ssrc = this.ssrc
        AND each.direction = this.direction AND each.peer = this.peer
        AND each.rtp_time = this.rtp_time AND each.at_ns BETWEEN this.at_ns - 5000000000
        AND this.at_ns + 5000000000) AS packets,
      (SELECT min(each.at_ns) FROM packet AS each WHERE each.ssrc = this.ssrc
        AND each.direction = this.direction AND each.peer = this.peer
        AND each.rtp_time = this.rtp_time AND each.at_ns BETWEEN this.at_ns - 5000000000
        AND this.at_ns + 5000000000) / 1e9 AS first
    FROM \(packet) AS this JOIN frame ON frame.peer = this.peer AND frame.ssrc = this.ssrc
      AND frame.direction = this.direction AND frame.rtp_time = this.rtp_time
    WHERE this.protocol = 'rtp' AND this.direction = 'in' ORDER BY frame.row LIMIT 4
    """
  }

  /// Packets that this one answers, or that answer it: a check and its response, a NACK and what it
  /// asks for, a request for a key frame and that frame.
  private static func links(_ packet: String) -> String {
    """
    SELECT 'same transaction' AS what, other.row AS row, other.at_ns / 1e9 AS at,
      other.direction AS direction
    FROM \(packet) AS this JOIN packet AS other ON other.protocol = 'stun'
      AND other.peer = this.peer AND other.row <> this.row
      AND other.at_ns BETWEEN this.at_ns - 10000000000 AND this.at_ns + 10000000000
      AND substr(other.bytes, 9, 12) = substr(this.bytes, 9, 12)
    WHERE this.protocol = 'stun'
    UNION ALL
    SELECT 'asked for by a NACK', rtcp.row, rtcp.at_ns / 1e9, rtcp.direction
    FROM \(packet) AS this JOIN rtcp ON rtcp.type = 'nack' AND rtcp.ssrc = this.ssrc
      AND rtcp.peer = this.peer AND rtcp.direction <> this.direction
      AND rtcp.at_ns BETWEEN this.at_ns - 5000000000 AND this.at_ns + 5000000000
    WHERE this.protocol = 'rtp' AND EXISTS (
      SELECT 1 FROM json_each(rtcp.fields, '$.sequences') WHERE value = this.sequence)
    UNION ALL
    SELECT 'asks for it', asked.row, asked.at_ns / 1e9, asked.direction
    FROM \(packet) AS this JOIN rtcp ON rtcp.row BETWEEN this.row & ~65535 AND this.row | 65535
      AND rtcp.type = 'nack' AND rtcp.direction = this.direction
    JOIN packet AS asked ON asked.peer = this.peer AND asked.ssrc = rtcp.ssrc
      AND asked.direction <> this.direction
      AND asked.at_ns BETWEEN this.at_ns - 5000000000 AND this.at_ns + 5000000000
      AND asked.sequence IN (SELECT value FROM json_each(rtcp.fields, '$.sequences'))
    WHERE this.protocol = 'rtcp'
    UNION ALL
    SELECT 'key frame after it', key.row, key.at_ns / 1e9, key.direction FROM (
      SELECT frame.row AS row, frame.at_ns AS at_ns, frame.direction AS direction
      FROM \(packet) AS this JOIN rtcp ON rtcp.row BETWEEN this.row & ~65535 AND this.row | 65535
        AND rtcp.type IN ('pli', 'fir') AND rtcp.direction = this.direction
      JOIN frame ON frame.peer = this.peer AND frame.ssrc = rtcp.ssrc AND frame.key = 1
        AND frame.direction <> this.direction AND frame.at_ns > this.at_ns
      WHERE this.protocol = 'rtcp' ORDER BY frame.row LIMIT 1) AS key
    LIMIT 60
    """
  }
}
