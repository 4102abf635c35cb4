package import Tape
import Wire

/// The events of all of a take's peers in time order: the output of `retake timeline`.
package struct Timeline: Sendable {
  /// A line of the timeline.
  package struct Entry: Hashable, Sendable {
    package var atNanoseconds: Int64
    package var step: Int64
    package var peer: Int64
    /// One of `lanes`.
    package var lane: String
    /// The text of the row; for events and some calls, a name followed by JSON.
    package var text: String
  }

  package private(set) var entries: [Entry] = []
  private var labels = PeerLabels()
  /// The names of room participants, by the id that the service assigned.
  private var names: [String: String] = [:]
  /// The label of the only actor that is not an endpoint; nil if there are several or none.
  private var machine: String?

  /// The kinds of entries; callers can select some of them.
  package static let lanes = [
    "peer", "api", "signaling", "state", "candidate", "pair", "track", "media", "rtcp", "channel",
    "message", "event",
  ]

  /// Reads the timeline of a take or of a part of it, limited to some lanes unless the list is
  /// empty.
  package init(path: String, selection: TakeSelection = TakeSelection(), lanes: [String] = [])
    throws(TapeError)
  {
    try self.init(path: path, try TakeFile.open(path), selection: selection, lanes: lanes)
  }

  /// Reads the timeline through an open connection, such as one that sees a snapshot of a take.
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

  /// Queries whose columns are row, time, peer, lane and text; some lanes have several.
  private static let queries = [
    """
    -- Observed peers are named when a response is seen, but begin with their first candidate.
    SELECT
      min(row, coalesce((SELECT min(row) FROM candidate WHERE candidate.peer = peer.peer), row))
        AS row,
      at_ns, peer, 'peer', 'begins' || CASE role WHEN '' THEN '' ELSE ' as ' || role END
    FROM peer
    """,
    // These calls change media settings, so their arguments are shown.
    """
    SELECT row, at_ns, peer, 'api',
      name || iif(name IN ('setEnabled', 'setVolume', 'setParameters', 'setDirection',
        'replaceSource', 'setContentHint', 'limitBitrate', 'insertDTMF'), ' ' || arguments, '')
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
    -- Behind a relay, an observed pair's addresses may become known later.
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
    -- A format is recorded with the first frame that has it.
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
    // Messages of one kind on one channel within a second share a line.
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

  /// Describes an entry in plain words, even if its text contains JSON.
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

  /// Formats the timeline in aligned columns.
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

  /// Returns the colour of an entry: its state's colour, or `bad` for a refused call or message;
  /// nil for other entries.
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

  /// Returns the names of room participants by their service's id, up to a maximum.
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

  /// Returns the label of the only actor that is not an endpoint; nil if there is none, or if there
  /// are several, because rows do not state their actor.
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
