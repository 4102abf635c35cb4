import Glibc
import Queries
import Stats
import Tape
import Wire

/// A take's rows as JSON, for the page's text and tables.
enum PageRows {
  /// A list on the page and the statement that fills it; JSON members are named like the columns.
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
    // The last sample of each stats object.
    List(
      name: "stats",
      sql: """
        SELECT peer, id, type, members FROM stat
        WHERE row IN (SELECT max(row) FROM stat GROUP BY peer, id)
        ORDER BY peer, type, id LIMIT 1000
        """),
    // When participants entered and left a room, and when a track carried their media. The
    // `participant_track` view returns the same, but scans all rows for each row that it returns.
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
    // A connection's configuration, without its servers' secrets.
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

  /// Returns the rows of a statement as a JSON array of objects.
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

// MARK: - PageCover

/// Replaces IP addresses and mDNS names with consistent names.
struct AddressCover {
  private var names: [String: String] = [:]

  /// Returns the text with every address replaced.
  mutating func covered(_ text: some StringProtocol) -> String {
    let bytes = Array(text.utf8)
    var output: [UInt8] = []
    output.reserveCapacity(bytes.count)
    var index = 0
    while index < bytes.count {
      guard Self.isPart(bytes[index]), index == 0 || !Self.isWord(bytes[index - 1]) else {
        output.append(bytes[index])
        index += 1
        continue
      }
      var end = index
      while end < bytes.count, Self.isPart(bytes[end]) { end += 1 }
      if let length = addressLength(bytes[index..<end], followed: bytes[end...].first) {
        output += name(of: bytes[index..<(index + length)]).utf8
        index += length
      } else if let length = localNameLength(bytes[index...]) {
        output += name(of: bytes[index..<(index + length)]).utf8
        index += length
      } else {
        output += bytes[index..<end]
        index = end
      }
    }
    return String(decoding: output, as: UTF8.self)
  }

  private mutating func name(of address: ArraySlice<UInt8>) -> String {
    let text = String(decoding: address, as: UTF8.self).lowercased()
    if let name = names[text] { return name }
    let name = "address-\(names.count + 1)"
    names[text] = name
    return name
  }

  /// Returns the length of the address that a run of hexadecimal digits, dots and colons begins
  /// with (for IPv6, the whole run); nil if there is none.
  private func addressLength(_ run: ArraySlice<UInt8>, followed next: UInt8?) -> Int? {
    if next.map({ !Self.isWord($0) }) ?? true, Self.isAddress(run, AF_INET6) { return run.count }
    let version4 = run.prefix { $0 == UInt8(ascii: ".") || Self.isDigit($0) }
    let end = version4.last == UInt8(ascii: ".") ? version4.dropLast() : version4
    return Self.isAddress(end, AF_INET) ? end.count : nil
  }

  /// Returns the length of an mDNS name (RFC 8839 section 5.1: a UUID and `.local`); nil for other
  /// text.
  private func localNameLength(_ text: ArraySlice<UInt8>) -> Int? {
    let name = text.prefix(42)
    guard name.count == 42, name.suffix(6).elementsEqual(".local".utf8),
      name.prefix(36).allSatisfy({ Self.isHexadecimal($0) || $0 == UInt8(ascii: "-") })
    else { return nil }
    return name.count
  }

  private static func isAddress(_ text: ArraySlice<UInt8>, _ family: Int32) -> Bool {
    // Longer runs cannot be addresses, and short ones such as `::` reveal nothing.
    guard (3...45).contains(text.count) else { return false }
    var address = in6_addr()
    return String(decoding: text, as: UTF8.self).withCString {
      inet_pton(family, $0, &address) == 1
    }
  }

  private static func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) }

  private static func isHexadecimal(_ byte: UInt8) -> Bool {
    isDigit(byte) || (0x41...0x46).contains(byte) || (0x61...0x66).contains(byte)
  }

  private static func isPart(_ byte: UInt8) -> Bool {
    isHexadecimal(byte) || byte == UInt8(ascii: ".") || byte == UInt8(ascii: ":")
  }

  private static func isWord(_ byte: UInt8) -> Bool {
    isDigit(byte) || (0x41...0x5a).contains(byte) || (0x61...0x7a).contains(byte)
      || byte == UInt8(ascii: ".") || byte == UInt8(ascii: "_")
  }
}
