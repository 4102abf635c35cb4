package import Queries
import Stats
package import Tape
import Wire

/// Queries a take's packets for a list: the matching rows, a range of them, and one packet's
/// details.
package enum PagePackets {
  /// A packet's sender, receiver and time.
  package struct Place: Sendable {
    /// The time in nanoseconds since the start of the take.
    package let at: Int64
    package let source: String
    package let destination: String

    /// Reads a packet's row; fails if there is none.
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

  /// Returns the rows of the packets that match `filter`, in order.
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

  /// Returns the index of the first row at or after a time.
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

  /// Returns packets as a JSON array.
  ///
  /// Each is `[row, step, peer, seconds, direction, protocol, size, ssrc, payload type, sequence,
  /// timestamp, marker, transport-wide sequence, local, remote, description, reports]`; the
  /// description is null for RTP and RTCP, and the reports are null for all but RTCP.
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

  /// Returns a packet's details: bytes and fields, its reports and frame, and related packets.
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

  /// Dissects a packet; returns its layers with their fields as JSON.
  private static func layers(_ packet: String, _ connection: borrowing SQLiteConnection)
    throws(SQLiteError) -> JSONText
  {
    let rows = try connection.prepare("SELECT protocol, bytes FROM \(packet)")
    guard try rows.step() else { return .list([]) }
    return PacketFields(rows.bytes(1), kind: rows.text(0) ?? "").json
  }

  /// Returns a query for a received RTP packet's frame, with the number of the frame's packets and
  /// the time of the first.
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

  /// Returns a query for the packets that a packet responds to, and for the responses to it.
  ///
  /// These are a check and its response, a NACK and the requested packets, and a key frame request
  /// and the key frame.
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

// MARK: - PacketFilter

/// Selects packets for a list by words and comparisons such as `in rtp ssrc=1234 size>1000`, `rtcp
/// pli` or `stun peer=1`.
package struct PacketFilter: Hashable, Sendable {
  /// An error in a filter, as one sentence.
  package struct Failure: Error, Hashable, Sendable, CustomStringConvertible {
    package var description: String
  }

  /// An SQL condition on the `packet` view; nil for all packets.
  package let sql: String?

  private static let protocols = ["stun", "dtls", "rtp", "rtcp", "turn", "other"]
  private static let numbers = [
    "step", "peer", "at_ns", "size", "ssrc", "payload_type", "sequence", "rtp_time", "marker",
    "transport_sequence",
  ]
  private static let texts = ["direction", "protocol", "local", "remote"]

  /// Parses a filter; all words and comparisons must hold.
  package init(_ text: String) throws(Failure) {
    var parts: [String] = []
    var isBare = false
    for token in text.split(separator: " ").map(String.init) {
      if isBare {
        parts.append(try Self.comparison("ssrc=\(token)"))
        isBare = false
      } else if token == "packet" {
        continue
      } else if token == "ssrc" {
        isBare = true
      } else if token == "in" || token == "out" {
        parts.append("packet.direction = '\(token)'")
      } else if Self.protocols.contains(token) {
        parts.append("packet.protocol = '\(token)'")
      } else if RTCPRow.types.contains(token) {
        parts.append(Self.report(token))
      } else {
        parts.append(try Self.comparison(token))
      }
    }
    guard !isBare else { throw Failure(description: "ssrc needs a number, as in: ssrc 301774210") }
    sql = parts.isEmpty ? nil : parts.joined(separator: " AND ")
  }

  /// Returns the condition that a packet is RTCP and contains a message of a type; each message has
  /// its own row in the packet's step.
  private static func report(_ type: String) -> String {
    """
    packet.protocol = 'rtcp' AND EXISTS (
      SELECT 1 FROM rtcp WHERE rtcp.row BETWEEN packet.row & ~65535 AND packet.row | 65535
        AND rtcp.type = '\(type)' AND rtcp.direction = packet.direction)
    """
  }

  private static func comparison(_ token: String) throws(Failure) -> String {
    let name = token.prefix { !"!=<>~".contains($0) }
    let sign = token.dropFirst(name.count).prefix { "!=<>~".contains($0) }
    let value = String(token.dropFirst(name.count + sign.count))
    guard !sign.isEmpty, !name.isEmpty else {
      throw Failure(
        description: "\"\(token.prefix(40))\" does not select packets; use in, out, "
          + (protocols + RTCPRow.types).joined(separator: ", ")
          + ", and comparisons like size>1000")
    }
    guard numbers.contains(String(name)) || texts.contains(String(name)) else {
      throw Failure(
        description: "a packet has no field \(name.prefix(40)), only "
          + (numbers + texts).joined(separator: ", "))
    }
    if sign == "~" {
      return "instr(packet.\(name), \(quoted(value))) > 0"
    }
    guard ["=", "!=", "<", "<=", ">", ">="].contains(sign) else {
      throw Failure(description: "\(sign) is not a comparison; use = != < <= > >= ~")
    }
    if numbers.contains(String(name)) {
      guard let number = Int64(value) else {
        throw Failure(description: "\(name) needs a whole number, not \(value.prefix(40))")
      }
      return "packet.\(name) \(sign) \(number)"
    }
    return "packet.\(name) \(sign) \(quoted(value))"
  }

  private static func quoted(_ text: String) -> String {
    "'" + text.replacing("'", with: "''").replacing("\0", with: "") + "'"
  }
}

// MARK: - PageCatalogue

/// An entry in the list that `retake open` shows, from the folder's catalogue.
package struct PageCatalogue: Sendable {
  private var members: [(String, JSONText?)]
  private let isComplete: Bool

  /// Returns the entries by path; the entry of a take that could not be read states the reason.
  package static func entries(_ catalogue: TakeCatalogue) throws(TapeError)
    -> [String: PageCatalogue]
  {
    var entries: [String: PageCatalogue] = [:]
    for failure in catalogue.failures {
      entries[failure.path] = PageCatalogue(failure: failure)
    }
    let ids = try findings(catalogue)
    try catalogue.read { (connection) throws(SQLiteError) in
      let rows = try connection.prepare(
        """
        SELECT take, label, start_utc, duration_ns, names, bytes, complete, codecs, relay,
          round_trip_ms, loss_share, concealed_share, findings, severity, finding, finding_text,
          traffic, frozen_ns, side, confidence, packets_refused FROM take
        """)
      while try rows.step() {
        let take = rows.text(0) ?? ""
        entries[take] = PageCatalogue(rows, ids: ids[take] ?? [])
      }
    }
    return entries
  }

  /// Returns the ids of each take's findings, without their symptoms, by path.
  private static func findings(_ catalogue: TakeCatalogue) throws(TapeError)
    -> [String: [String]]
  {
    try catalogue.read { (connection) throws(SQLiteError) in
      let rows = try connection.prepare("SELECT DISTINCT take, id FROM finding WHERE depth = 0")
      var ids: [String: [String]] = [:]
      while try rows.step() {
        let (take, id) = rows.values(String.self, String.self)
        ids[take, default: []].append(id)
      }
      return ids
    }
  }

  /// Creates an entry for a take that could not be read.
  package init(failure: TapeError) {
    members = [("error", .text(failure.description))]
    isComplete = true
  }

  private init(_ row: borrowing SQLiteStatement, ids: [String]) {
    let (label, start, length, names) = row.values(
      from: 1, String.self, String.self, Int64.self, String.self)
    let (bytes, isComplete, codecs, isRelayed) = row.values(
      from: 5, Int64.self, Bool.self, String.self, Bool.self)
    let (trip, loss, concealed, count) = row.values(
      from: 9, Double?.self, Double?.self, Double?.self, Int64.self)
    let (severity, worst, text, traffic) = row.values(
      from: 13, String.self, String?.self, String?.self, String.self)
    let frozen = row.isNull(17) ? nil : row.integer(17)
    let (side, confidence, refused) = row.values(
      from: 18, String?.self, String?.self, Int64.self)
    self.isComplete = isComplete
    let findings = JSONText.object([
      ("count", .integer(count)),
      ("severity", .integer(FindingSeverity(name: severity)?.rawValue ?? 0)),
      ("level", worst == nil ? nil : .text(severity)), ("worst", worst.map { .text($0) }),
      ("evidence", text.map { .text($0) }), ("side", side.map { .text($0) }),
      ("confidence", confidence.map { .text($0) }),
    ])
    let facts = JSONText.object([
      ("findings", .list(ids.map { .text($0) })),
      ("codecs", .list(codecs.split(separator: " ").map { .text(String($0)) })),
      ("relay", .flag(isRelayed)), ("round_trip_ms", trip.map { .number($0) }),
      ("loss_share", loss.map { .number($0) }), ("concealed_share", concealed.map { .number($0) }),
      ("frozen_ns", frozen.map { .integer($0) }),
      ("packets_refused", refused > 0 ? .integer(refused) : nil),
    ])
    members = [
      ("label", .text(label)), ("start", .text(start)), ("seconds", .number(Double(length) / 1e9)),
      ("peers", .text(names)), ("bytes", .integer(bytes)), ("isComplete", .flag(isComplete)),
      (
        "details",
        .object([
          ("findings", findings), ("facts", facts),
          // The catalogue stores a JSON array of numbers.
          ("spark", traffic.hasPrefix("[") ? JSONText(traffic) : nil),
        ])
      ),
    ]
  }

  package func json(name: String, isLive: Bool) -> String {
    JSONText.object(
      [("name", .text(name))] + members + [("isLive", .flag(isLive && !isComplete))]
    ).text
  }

  /// Returns an entry for a take that is still being read.
  package static func waiting(name: String) -> String {
    JSONText.object([("name", .text(name)), ("isWaiting", .flag(true))]).text
  }
}
