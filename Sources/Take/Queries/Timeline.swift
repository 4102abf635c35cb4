package import Tape
import Wire

/// A take's events in order, for all peers: the output of `retake timeline`.
package struct Timeline: Sendable {
  /// An event on the timeline.
  package struct Entry: Hashable, Sendable {
    package var atNanoseconds: Int64
    package var step: Int64
    package var peer: Int64
    /// One of `lanes`.
    package var lane: String
    /// The text from the row, with JSON after an event's or call's name.
    package var text: String
  }

  package private(set) var entries: [Entry] = []
  private var labels = PeerLabels()
  /// Room participants' names, by service id.
  private var names: [String: String] = [:]
  /// The name of the only machine that is neither a peer nor an observer; nil if there are several.
  private var machine: String?

  /// The categories of events.
  package static let lanes = [
    "peer", "api", "signaling", "state", "candidate", "pair", "track", "media", "rtcp", "channel",
    "message", "event",
  ]

  /// Reads the timeline of a take or a part of it; an empty list selects all lanes.
  package init(path: String, selection: TakeSelection = TakeSelection(), lanes: [String] = [])
    throws(TapeError)
  {
    try self.init(path: path, try TakeFile.open(path), selection: selection, lanes: lanes)
  }

  /// Reads the timeline through an open connection, such as one with a snapshot.
  package init(
    path: String, _ connection: borrowing SQLiteConnection,
    selection: TakeSelection = TakeSelection(), lanes: [String] = []
  ) throws(TapeError) {
    do throws(SQLiteError) {
      labels = try PeerLabels(connection)
      machine = try Timeline.onlyMachine(connection)
      names = try Timeline.names(connection)
      let statement = try connection.prepare(
        Timeline.queries.joined(separator: "\nUNION ALL\n") + "\nORDER BY at_ns, row")
      while try statement.step() {
        let (row, at, peer, lane, text) = statement.values(
          Int64.self, Int64.self, Int64.self, String.self, String.self)
        guard selection.holds(peer: peer, at: at), lanes.isEmpty || lanes.contains(lane) else {
          continue
        }
        entries.append(
          Entry(atNanoseconds: at, step: row >> 16, peer: peer, lane: lane, text: text))
      }
    } catch {
      throw TapeError(path: path, error)
    }
  }

  /// A query per lane: row, time, peer, lane and text.
  private static let queries = [
    """
    -- Ends that were only seen get their names when somebody answers, and begin with a candidate.
    SELECT
      min(row, coalesce((SELECT min(row) FROM candidate WHERE candidate.peer = peer.peer), row))
        AS row,
      at_ns, peer, 'peer', 'begins' || CASE role WHEN '' THEN '' ELSE ' as ' || role END
    FROM peer
    """,
    // For track settings, the values are the event.
    """
    SELECT row, at_ns, peer, 'api',
      name || iif(name IN ('setEnabled', 'setVolume'), ' ' || arguments, '')
    FROM call_request WHERE name NOT IN ('getStats', 'segment')
    """,
    """
    SELECT row, at_ns, peer, 'api', 'call ' || call || ' refused: ' || error
    FROM call_reply WHERE error IS NOT NULL
    """,
    """
    SELECT row, at_ns, peer, 'signaling',
      CASE direction WHEN 'in' THEN '<- ' ELSE '-> ' END || type || ' over ' || transport
      || ', ' || length(message) || iif(length(message) = 1, ' character', ' characters')
    FROM signaling
    """,
    """
    SELECT row, at_ns, peer, 'state',
      machine || ': ' || iif(from_state = '', '', from_state || ' -> ') || to_state
    FROM state
    """,
    """
    SELECT row, at_ns, peer, 'candidate',
      replace(type, '-candidate', '') || iif(candidate_type = '', '', ' ' || candidate_type)
      || ' ' || address || ' port ' || port || ' ' || protocol
    FROM candidate
    """,
    """
    SELECT change.row, at_ns, change.peer, 'pair',
      'selected ' || coalesce(last.local, change.local)
        || coalesce(' (' || nullif(coalesce(last.local_type, change.local_type), '') || ')', '')
        || ' -> ' || coalesce(last.remote, change.remote)
        || coalesce(' (' || nullif(coalesce(last.remote_type, change.remote_type), '') || ')', '')
    FROM (
      SELECT *, lag(selected) OVER (PARTITION BY peer, pair ORDER BY row) AS before
      FROM candidate_pair
    ) AS change
    -- Whom a relay carries it to may show later.
    LEFT JOIN (
      SELECT peer, pair, local, local_type, remote, remote_type, max(row)
      FROM candidate_pair WHERE peer IN (SELECT peer FROM peer WHERE role = 'observed')
      GROUP BY peer, pair
    ) AS last ON last.peer = change.peer AND last.pair = change.pair
    WHERE selected = 1 AND before IS NOT 1
    """,
    """
    SELECT row, at_ns, peer, 'track', track || ' ' || kind || ' ' || direction || ' ' || codec
      || ', payload type ' || payload_type || coalesce(', ssrc ' || ssrc, '')
    FROM track
    """,
    """
    SELECT min(frame_store.row), frame_store.at_ns, format.peer, 'media', 'first ' || kind
      || ' frame ' || CASE direction WHEN 'in' THEN outcome ELSE 'sent' END || ', track ' || track
      || CASE WHEN width > 0 THEN ', ' || width || 'x' || height ELSE '' END
    -- A format is written down with the first frame that has it.
    FROM format JOIN frame_store ON frame_store.row = (
      SELECT first.row FROM frame_store AS first
      WHERE first.row >= format.row AND first.format = format.format ORDER BY first.row LIMIT 1
    )
    WHERE outcome IN ('decoded', 'encoded', 'not decoded', 'passed on')
    GROUP BY format.peer, track, direction
    """,
    """
    SELECT row, at_ns, peer, 'rtcp', CASE direction WHEN 'in' THEN '<- ' ELSE '-> ' END
      || 'key frame request (' || type || '), ssrc ' || ssrc
    FROM rtcp WHERE type IN ('pli', 'fir')
    """,
    """
    SELECT row, at_ns, peer, 'channel', channel
      || CASE label WHEN '' THEN '' ELSE ' "' || label || '"' END || ' ' || state
      || CASE state WHEN 'closed' THEN
        ', ' || messages_sent || iif(messages_sent = 1, ' message (', ' messages (')
        || bytes_sent || ' bytes) sent, '
        || messages_received || ' (' || bytes_received || ' bytes) received'
      ELSE coalesce(', stream ' || id, '') || iif(remote, ', made by the peer', '')
        || iif(ordered, '', ', unordered')
        || coalesce(', at most ' || max_retransmits || ' retransmissions', '')
        || coalesce(', at most ' || max_packet_life_time || ' ms', '')
      END
    FROM channel
    """,
    // Messages of the same kind on the same channel within a second share a line.
    """
    SELECT min(row), min(at_ns), peer, 'message', iif(direction = 'in', '<- ', '-> ')
      || CASE count(*) WHEN 1 THEN kind || ' message, ' || size || ' bytes'
        ELSE count(*) || ' ' || kind || ' messages, ' || min(size) || ' to ' || max(size)
        || ' bytes, ' || sum(size) || ' in all' END
      || ', channel ' || channel || coalesce(', refused: ' || error, '')
    FROM message
    GROUP BY peer, channel, direction, kind, error, at_ns / 1000000000
    """,
    """
    SELECT row, at_ns, peer, 'event', type || CASE WHEN detail = '{}' THEN '' ELSE ' ' || detail END
    FROM event WHERE type NOT IN (
      'icecandidate', 'bufferedamountlow', 'certificate', 'keylog')
    """,
  ]

  /// Describes an entry in words, even if the row has JSON.
  package func words(_ entry: Entry) -> String {
    switch entry.lane {
    case "event":
      let type = entry.text.prefix { $0 != " " }
      return EventWords.text(
        type: String(type), detail: String(entry.text.dropFirst(type.count + 1)), names: names)
    case "api": return EventWords.text(ofCall: entry.text)
    default: return entry.text
    }
  }

  /// Returns the timeline as aligned columns.
  package func text(_ look: TableLook = TableLook()) -> String {
    let rows = entries.map { entry in
      [
        thousandths(entry.atNanoseconds / 1_000_000), String(entry.step), name(of: entry.peer),
        entry.lane, words(entry),
      ]
    }
    return TextTable(
      columns: ["seconds", "step", "peer", "lane", "what"], rows: rows,
      alignsRight: [true, true, false, false, false], wraps: true
    ).text(look) { row, column in column == 4 ? Timeline.ink(lane: row[3], row[4]) : nil }
  }

  /// Returns an entry's colour: for states that were reached, and requests that were refused.
  private static func ink(lane: String, _ text: String) -> Ink? {
    switch lane {
    case "state": text.split(separator: " ").last.flatMap { Ink(state: $0) }
    case "api" where text.contains(" refused: "): .bad
    case "message" where text.contains(", refused: "): .bad
    default: nil
    }
  }

  private func name(of peer: Int64) -> String {
    if peer == 0, let machine, !machine.isEmpty { return machine }
    let label = labels[peer] ?? ""
    return label.isEmpty ? String(peer) : "\(peer) \(label)"
  }

  /// Returns room participants' names by service id, up to a limit.
  private static func names(_ connection: borrowing SQLiteConnection) throws(SQLiteError)
    -> [String: String]
  {
    guard try connection.integer("PRAGMA user_version") ?? 0 >= 6 else { return [:] }
    let rows = try connection.prepare(
      """
      SELECT id, name FROM presence
      WHERE id <> '' AND name <> '' AND name <> id ORDER BY row LIMIT 10000
      """)
    var names: [String: String] = [:]
    while try rows.step() {
      let (id, name) = rows.values(String.self, String.self)
      names[id] = name
    }
    return names
  }

  /// Returns the only machine that is not a peer: its rows have no owner, so a single machine can
  /// be named, but not several.
  private static func onlyMachine(_ connection: borrowing SQLiteConnection) throws(SQLiteError)
    -> String?
  {
    guard try connection.integer("PRAGMA user_version") ?? 0 >= 4 else { return nil }
    let rows = try connection.prepare("SELECT label FROM actor WHERE kind <> 'endpoint' LIMIT 2")
    guard try rows.step() else { return nil }
    let label = rows.text(0)
    return try rows.step() ? nil : label
  }

  /// The timeline as a JSON array.
  package var json: String {
    let objects = entries.map { entry in
      JSONText.object([
        ("at_ns", .integer(entry.atNanoseconds)), ("step", .integer(entry.step)),
        ("peer", .integer(entry.peer)), ("lane", .text(entry.lane)), ("what", .text(words(entry))),
      ])
    }
    return JSONText.list(objects, separator: ",\n").text
  }
}
