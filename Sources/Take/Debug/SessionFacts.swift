import Tape
import Wire

/// The values of a take that are compared with the values of another take.
struct SessionFacts {
  struct Peer {
    var number: Int64
    var label: String
    var configuration: String
  }

  struct Message {
    var peer: Int64
    var atNanoseconds: Int64
    var direction: String
    var type: String
    var text: String
  }

  struct State {
    var peer: Int64
    var atNanoseconds: Int64
    var machine: String
    var to: String
  }

  /// A named value with its time: a track's codec, a number of frames, a stats member.
  struct Fact {
    var peer: Int64
    var kind: String
    var name: String
    var value: String
    var atNanoseconds: Int64
  }

  let path: String
  let header: TakeHeader
  private(set) var peers: [Peer] = []
  private(set) var messages: [Message] = []
  private(set) var states: [State] = []
  private(set) var facts: [Fact] = []

  init(path: String) throws(TapeError) {
    self.path = path
    let connection = try TakeFile.openForQueries(path)
    header = try TakeHeader.read(from: connection, path: path)
    do throws(SQLiteError) {
      try readPeers(connection)
      try readMessages(connection)
      try readStates(connection)
      for query in SessionFacts.queries { try readFacts(connection, query) }
    } catch {
      throw TapeError(path: path, error)
    }
  }

  private mutating func readPeers(_ connection: borrowing SQLiteConnection) throws(SQLiteError) {
    let rows = try connection.prepare("SELECT peer, label, configuration FROM peer ORDER BY row")
    while try rows.step() {
      let (number, label, configuration) = rows.values(Int64.self, String.self, String.self)
      peers.append(Peer(number: number, label: label, configuration: configuration))
    }
  }

  private mutating func readMessages(_ connection: borrowing SQLiteConnection) throws(SQLiteError) {
    let rows = try connection.prepare(
      "SELECT peer, at_ns, direction, type, message FROM signaling ORDER BY row")
    while try rows.step() {
      let (peer, at, direction, type, text) = rows.values(
        Int64.self, Int64.self, String.self, String.self, String.self)
      messages.append(
        Message(peer: peer, atNanoseconds: at, direction: direction, type: type, text: text))
    }
  }

  private mutating func readStates(_ connection: borrowing SQLiteConnection) throws(SQLiteError) {
    let rows = try connection.prepare(
      "SELECT peer, at_ns, machine, to_state FROM state ORDER BY row")
    while try rows.step() {
      let (peer, at, machine, state) = rows.values(
        Int64.self, Int64.self, String.self, String.self)
      states.append(State(peer: peer, atNanoseconds: at, machine: machine, to: state))
    }
  }

  private mutating func readFacts(_ connection: borrowing SQLiteConnection, _ query: String)
    throws(SQLiteError)
  {
    let rows = try connection.prepare(query)
    while try rows.step() {
      let (peer, kind, name, found, at) = rows.values(
        Int64.self, String.self, String.self, Value.self, Int64.self)
      let value: String
      switch found {
      case .real(let number): value = number.description
      case .null: continue
      case let other: value = other.summary
      }
      facts.append(
        Fact(peer: peer, kind: kind, name: name, value: value, atNanoseconds: at))
    }
  }

  /// The stats members that characterize a session.
  private static let members = [
    "packetsReceived", "packetsLost", "packetsSent", "nackCount", "pliCount", "firCount",
    "retransmittedPacketsSent", "retransmittedPacketsReceived", "framesDecoded", "framesDropped",
    "framesEncoded", "freezeCount", "totalFreezesDuration", "concealedSamples",
    "concealmentEvents", "packetsDiscarded", "jitter", "targetBitrate", "frameWidth", "frameHeight",
  ]

  /// The queries for facts; their columns are peer, kind, name, value and time.
  private static var queries: [String] {
    [
      """
      SELECT peer, 'track', 'track ' || track || ' ' || kind || ' ' || direction,
        codec || ' payload type ' || payload_type, at_ns
      FROM track ORDER BY row
      """,
      """
      SELECT peer, 'pair', 'selected pair', local_type || ' to ' || remote_type, from_ns
      FROM selected_pair ORDER BY from_ns
      """,
      """
      SELECT peer, 'frames', 'track ' || track || ' ' || kind || ' ' || outcome, count(*),
        min(at_ns)
      FROM frame GROUP BY peer, track, kind, outcome ORDER BY min(frame.row)
      """,
      """
      SELECT peer, 'first frame', 'track ' || track || ' ' || kind || ', ms',
        round(since_genesis_ms, 1), at_ns
      FROM first_frame ORDER BY at_ns
      """,
      """
      SELECT peer, 'freeze', 'track ' || track, group_concat(
          round(from_ns / 1e9, 3) || ' s for ' || round(gap_ms) || ' ms', ', '), min(from_ns)
      FROM freeze GROUP BY peer, track
      """,
      """
      SELECT peer, 'event', 'refused ' || (detail ->> '$.layer') || ': ' || (detail ->> '$.reason'),
        count(*), min(at_ns)
      FROM event WHERE type = 'refused' GROUP BY peer, detail ->> '$.layer', detail ->> '$.reason'
      """,
      """
      SELECT stat.peer, 'stats',
        stat.type || ' ' || coalesce(stat.members ->> '$.kind', '')
          || ' mid ' || coalesce(stat.members ->> '$.mid', '') || ' ' || member.key,
        member.value, stat.at_ns
      FROM stat, json_each(stat.members) AS member
      WHERE stat.row IN (SELECT max(row) FROM stat GROUP BY peer, id)
        AND stat.type IN ('inbound-rtp', 'outbound-rtp')
        AND member.key IN (\(members.map { "'\($0)'" }.joined(separator: ", ")))
      ORDER BY stat.peer, stat.type, stat.row
      """,
    ]
  }
}

// MARK: - DescriptionDiff

/// Compares two session descriptions section by section, ignoring values that are new in every
/// session.
struct DescriptionDiff {
  /// Lines that only one of the two descriptions has, with the name of their section, and sections
  /// in which only the order of lines differs.
  private(set) var lines: [String] = []

  /// Compares two signaling messages, each SDP or JSON that contains SDP.
  init(_ left: String, _ right: String) {
    let (before, after) = (Self.sections(Self.sdp(left)), Self.sections(Self.sdp(right)))
    for index in 0..<max(before.count, after.count) {
      let old = index < before.count ? before[index] : (name: "", lines: [])
      let new = index < after.count ? after[index] : (name: "", lines: [])
      let name = old.name.isEmpty ? new.name : old.name
      let changes =
        Self.only(old.lines, new.lines).map { "\(name): - \($0)" }
        + Self.only(new.lines, old.lines).map { "\(name): + \($0)" }
      let isReordered = changes.isEmpty && old.lines != new.lines
      lines += isReordered ? ["\(name): the order of its lines"] : changes
    }
  }

  private static func sdp(_ message: String) -> String {
    guard message.hasPrefix("{"),
      let sdp = try? JSONValue(parsing: message)["sdp"]?.text
    else { return message }
    return sdp
  }

  /// Returns the session part and the m-sections, named by kind and mid.
  private static func sections(_ sdp: String) -> [(name: String, lines: [String])] {
    var sections: [(name: String, lines: [String])] = [("session", [])]
    var sources: [Substring] = []
    for line in sdp.split(whereSeparator: \.isNewline) {
      if line.hasPrefix("m=") {
        sections.append((String(line.dropFirst(2).prefix { $0 != " " }), []))
      }
      if line.hasPrefix("a=mid:"), sections.count > 1 {
        sections[sections.count - 1].name += " " + line.dropFirst(6)
      }
      if let kept = normalised(line, &sources) { sections[sections.count - 1].lines.append(kept) }
    }
    return sections
  }

  /// Replaces values that are new in every session with fixed text, so that they compare as equal.
  private static func normalised(_ line: Substring, _ sources: inout [Substring]) -> String? {
    for (prefix, text) in [
      ("o=", "o=..."), ("a=ice-ufrag:", "a=ice-ufrag:..."), ("a=ice-pwd:", "a=ice-pwd:..."),
      ("c=", "c=..."), ("a=rtcp:", "a=rtcp:..."), ("a=msid:", "a=msid:..."),
    ] where line.hasPrefix(prefix) {
      return text
    }
    if line.hasPrefix("m=") {
      // The port number does not matter, except that 0 rejects the section.
      let words = line.split(separator: " ")
      let port = words.count > 1 && words[1] == "0" ? "0" : "port"
      return ([words[0], Substring(port)] + words.dropFirst(2)).joined(separator: " ")
    }
    if line.hasPrefix("a=fingerprint:") { return String(line.prefix { $0 != " " }) + " ..." }
    if line.hasPrefix("a=candidate:") {
      // Foundation, priority and port vary; type and transport are compared.
      let words = line.split(separator: " ")
      guard words.count > 7 else { return String(line) }
      return "a=candidate: \(words[2]) typ \(words[7])"
    }
    if line.hasPrefix("a=ssrc:") {
      let number = line.dropFirst(7).prefix { $0.isNumber }
      return "a=ssrc:\(ordinal(number, &sources))"
        + String(line.dropFirst(7 + number.count)).prefix { $0 != ":" }
    }
    if line.hasPrefix("a=ssrc-group:") {
      let words = line.split(separator: " ")
      return ([String(words[0])] + words.dropFirst().map { ordinal($0, &sources) })
        .joined(separator: " ")
    }
    return String(line)
  }

  /// Replaces an SSRC with its order of appearance, which is the same in both descriptions.
  private static func ordinal(_ source: Substring, _ sources: inout [Substring]) -> String {
    if let index = sources.firstIndex(of: source) { return "#\(index + 1)" }
    sources.append(source)
    return "#\(sources.count)"
  }

  /// Returns the lines that the other list lacks; each line in that list matches at most one line.
  private static func only(_ lines: [String], _ others: [String]) -> [String] {
    var left = others
    return lines.filter { line in
      guard let index = left.firstIndex(of: line) else { return true }
      left.remove(at: index)
      return false
    }
  }
}
