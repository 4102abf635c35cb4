package import Tape
import Wire

/// A take's summary: the output of `retake info`.
package struct TakeInfo: Sendable, Codable {
  /// A peer with its states, tracks and counts of packets.
  package struct PeerInfo: Sendable, Codable {
    package var peer: Int64
    package var label: String
    package var role: String
    /// Each machine's states, in order.
    package var states: [MachineStates]
    package var tracks: [String]
    package var packetsIn: Int64 = 0
    package var packetsOut: Int64 = 0
    /// The number of bytes of UDP payload.
    package var bytesIn: Int64 = 0
    package var bytesOut: Int64 = 0
    /// The numbers of data channels that either side opened and of their messages.
    package var dataChannels: Int64 = 0
    package var messagesIn: Int64 = 0
    package var messagesOut: Int64 = 0
  }

  /// The states through which one of a peer's state machines went.
  package struct MachineStates: Sendable, Codable {
    package var machine: String
    package var states: [String]
  }

  /// An actor that is not an endpoint.
  package struct ActorInfo: Sendable, Codable {
    package var actor: UInt32
    package var kind: String
    package var label: String
  }

  /// A gap in what an actor could see.
  package struct Coverage: Sendable, Codable {
    package var actor: UInt32
    /// The affected peer; nil for the entire actor.
    package var peer: UInt32?
    package var fromNanoseconds: Int64
    package var toNanoseconds: Int64
    package var what: String
    package var reason: String
  }

  /// The number of rows in a table.
  package struct TableCount: Sendable, Codable {
    package var table: String
    package var rows: Int64
  }

  package var path: String
  package var label: String
  /// Facts about the take by key, as recorded; nil if there are none.
  package var tags: [String: String]?
  package var start: String
  package var format: Int64
  package var toolVersion: String
  /// The revision of the stack that made the take; nil if not stored.
  package var revision: Int64?
  /// The newest revision of its observers; nil without observers.
  package var observerRevision: Int64?
  package var toolchain: Toolchain
  package var keepsMedia: Bool
  /// Whether the recording was finished.
  package var isComplete: Bool
  /// The reason that the take has no end: the recorder was killed, or is still running; nil if it
  /// has one.
  package var ending: String?
  package var steps: Int64
  package var durationNanoseconds: Int64
  /// The size of the file, and of a packet capture with its datagrams.
  package var fileBytes: Int64
  package var captureBytes: Int64
  package var peers: [PeerInfo]
  /// The actors that are not endpoints.
  package var actors: [ActorInfo]
  /// The participants in its rooms.
  package var people: [RoomPerson]
  /// The first gaps in what the actors could see.
  package var coverage: [Coverage]
  package var tables: [TableCount]
  /// Tables, views and triggers that do not belong to a take; no digest covers them, and Retake
  /// does not read them.
  package var additions: [String]
  /// The number of views that differ from this version's, which are used instead.
  package var otherViews: Int

  /// SQL for a take's end: the last step or packet if there is no `ending`.
  package static let end = """
    coalesce((SELECT at_ns FROM ending), max(
        coalesce((SELECT max(at_ns) FROM tape), 0),
        coalesce((SELECT at_ns FROM packet_store ORDER BY row DESC LIMIT 1), 0)))
    """

  /// The maximum number of gaps to list.
  private static let coverageMaximum = 20

  /// Reads a take's summary without verifying the take.
  ///
  /// - Parameter countsRows: whether to count each peer's packets and each table's rows, which
  ///   reads them all.
  package init(path: String, countsRows: Bool = true) throws(TapeError) {
    try self.init(
      path: path, try TakeFile.openForQueries(path), countsRows: countsRows)
  }

  /// Reads the summary through an open connection, such as one with a snapshot.
  package init(path: String, _ connection: borrowing SQLiteConnection, countsRows: Bool)
    throws(TapeError)
  {
    let header = try TakeHeader.read(from: connection, path: path)
    self.path = path
    label = header.label
    tags = header.tags.isEmpty ? nil : header.tags
    start = header.startText
    format = header.format
    toolVersion = header.toolVersion
    revision = header.revision
    toolchain = header.toolchain
    keepsMedia = header.keepsMedia
    do throws(SQLiteError) {
      isComplete = try connection.integer("SELECT count(*) FROM ending") == 1
      steps =
        try connection.integer(
          "SELECT first_step + steps - 1 FROM tape ORDER BY first_step DESC LIMIT 1") ?? 0
      durationNanoseconds = try connection.integer("SELECT \(TakeInfo.end)") ?? 0
      fileBytes = try connection.byteCount()
      peers = try TakeInfo.peers(connection)
      if countsRows { try TakeInfo.countPackets(connection, &peers) }
      actors = try TakeInfo.actors(connection)
      people = try RoomPeople(connection).all
      if actors.contains(where: { $0.kind == "observer" }) {
        observerRevision = try connection.integer(
          "SELECT max(coalesce(configuration ->> '$.revision', 1)) FROM actor_store WHERE kind = 1")
      }
      coverage = try TakeInfo.coverage(connection)
      if let redacted = header.redacted {
        // What a redaction removed is missing throughout the take, so this gap comes first.
        coverage.insert(
          Coverage(
            actor: 0, peer: nil, fromNanoseconds: 0, toNanoseconds: durationNanoseconds,
            what: "redacted", reason: redacted.sentence), at: 0)
      }
      var counts: [TableCount] = []
      for table in Table.allCases where countsRows {
        let rows = try connection.integer("SELECT count(*) FROM \(table.storageName)") ?? 0
        counts.append(TableCount(table: table.name, rows: rows))
      }
      tables = counts
    } catch {
      throw TapeError(path: path, error)
    }
    let schema = try SchemaCheck(connection, path: path, format: header.format)
    (additions, otherViews) = (schema.additions, schema.otherViews)
    ending = try isComplete ? nil : TakeEnding.of(path).words
    // An observed datagram is in two peers' history, but only once in a capture.
    captureBytes =
      peers.reduce(24) {
        let isSeen = $1.role == "observed"
        let (bytes, packets) = isSeen ? (0, 0) : ($1.bytesIn, $1.packetsIn)
        return $0 +| bytes +| $1.bytesOut +| 58 *| (packets +| $1.packetsOut)
      }
  }

  private static func actors(_ connection: borrowing SQLiteConnection) throws(SQLiteError)
    -> [ActorInfo]
  {
    let rows = try connection.prepare(
      "SELECT actor, kind, label FROM actor WHERE kind <> 'endpoint' ORDER BY row")
    var found: [ActorInfo] = []
    while try rows.step() {
      let (actor, kind, label) = rows.values(UInt32.self, String.self, String.self)
      found.append(ActorInfo(actor: actor, kind: kind, label: label))
    }
    return found
  }

  private static func coverage(_ connection: borrowing SQLiteConnection) throws(SQLiteError)
    -> [Coverage]
  {
    let rows = try connection.prepare(
      """
      SELECT actor, peer, from_ns, to_ns, what, reason FROM coverage
      ORDER BY row LIMIT \(coverageMaximum)
      """)
    var found: [Coverage] = []
    while try rows.step() {
      let (actor, peer, from, to, what, reason) = rows.values(
        UInt32.self, UInt32?.self, Int64.self, Int64.self, String.self, String.self)
      found.append(
        Coverage(
          actor: actor, peer: peer, fromNanoseconds: from, toNanoseconds: to, what: what,
          reason: reason))
    }
    return found
  }

  private static func peers(_ connection: borrowing SQLiteConnection) throws(SQLiteError)
    -> [PeerInfo]
  {
    var peers: [PeerInfo] = []
    func place(_ peer: Int64) -> Int? { peers.firstIndex { $0.peer == peer } }
    let statement = try connection.prepare("SELECT peer, label, role FROM peer ORDER BY row")
    while try statement.step() {
      let (peer, label, role) = statement.values(Int64.self, String.self, String.self)
      peers.append(PeerInfo(peer: peer, label: label, role: role, states: [], tracks: []))
    }
    let states = try connection.prepare("SELECT peer, machine, to_state FROM state ORDER BY row")
    while try states.step() {
      let (peer, machine, state) = states.values(Int64.self, String.self, String.self)
      if let index = place(peer) { peers[index].reached(state, by: machine) }
    }
    let tracks = try connection.prepare(
      """
      SELECT DISTINCT peer, track || ' ' || kind || ' ' || direction
        || ' ' || iif(codec = '', '(codec unknown)', codec)
      FROM track ORDER BY peer, track, direction
      """)
    while try tracks.step() {
      let (peer, track) = tracks.values(Int64.self, String.self)
      if let index = place(peer) { peers[index].tracks.append(track) }
    }
    let channels = try connection.prepare(
      """
      SELECT peer, count(*), sum(messages_received), sum(messages_sent)
      FROM channel_total GROUP BY peer
      """)
    while try channels.step() {
      let (peer, count, messagesIn, messagesOut) = channels.values(
        Int64.self, Int64.self, Int64.self, Int64.self)
      guard let index = place(peer) else { continue }
      peers[index].dataChannels = count
      (peers[index].messagesIn, peers[index].messagesOut) = (messagesIn, messagesOut)
    }
    return peers
  }

  private static func countPackets(
    _ connection: borrowing SQLiteConnection, _ peers: inout [PeerInfo]
  ) throws(SQLiteError) {
    let packets = try connection.prepare(
      """
      SELECT peer, direction, sum(packets), sum(bytes)
      FROM path_end JOIN (
        SELECT path, count(*) AS packets, sum(size) AS bytes
        FROM packet_store GROUP BY path
      ) USING (path)
      GROUP BY peer, direction
      """)
    while try packets.step() {
      let (peer, direction, count, bytes) = packets.values(
        Int64.self, String.self, Int64.self, Int64.self)
      guard let index = peers.firstIndex(where: { $0.peer == peer }) else { continue }
      if direction == directionName(true) {
        (peers[index].packetsIn, peers[index].bytesIn) = (count, bytes)
      } else {
        (peers[index].packetsOut, peers[index].bytesOut) = (count, bytes)
      }
    }
  }

  /// The summary as a JSON object with sorted keys.
  package var json: String { CanonicalJSON.text(self) }
}

extension TakeInfo.PeerInfo {
  fileprivate mutating func reached(_ state: String, by machine: String) {
    if let index = states.firstIndex(where: { $0.machine == machine }) {
      states[index].states.append(state)
    } else {
      states.append(TakeInfo.MachineStates(machine: machine, states: [state]))
    }
  }
}

extension TakeInfo: CustomStringConvertible {
  /// The summary as printed text.
  package var description: String {
    var lines = ["\(path): \(label.isEmpty ? "a take" : label)"]
    func add(_ name: String, _ value: String) {
      lines.append("  " + name + String(repeating: " ", count: max(1, 12 - name.count)) + value)
    }
    add("start", start)
    add("duration", "\(thousandths(durationNanoseconds / 1_000_000)) s, \(counted(steps, "step"))")
    let isReported = !peers.isEmpty && peers.allSatisfy { $0.role == "reported" }
    add(
      "recording",
      ending
        ?? (isReported ? "complete; reports of another stack, which hold no packets" : "complete"))
    if let tags {
      let words = tags.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
      add("tags", words.joined(separator: ", "))
    }
    // Beside a handful of packets a take is mostly its tables, and a share says nothing.
    let isComparable = captureBytes > 24 && fileBytes / 10 <= captureBytes
    let share =
      isComparable ? " (\(fileBytes *| 100 / captureBytes) % of a packet capture)" : ""
    add(
      "size",
      "\(counted(fileBytes, "byte"))\(share), media copy \(keepsMedia ? "kept" : "left out")")
    add(
      "recorder",
      "Retake \(toolVersion), format \(format)"
        + (revision.map { ", stack revision \($0)" } ?? "")
        + (observerRevision.map { ", observer revision \($0)" } ?? ""))
    add(
      "toolchain",
      [
        ("OpenSSL", toolchain.openssl), ("libsrtp", toolchain.srtp), ("Opus", toolchain.opus),
        ("libvpx", toolchain.vpx), ("OpenH264", toolchain.openh264 ?? ""),
        ("dav1d", toolchain.dav1d ?? ""),
        // The CPU's features are a long list, which only the JSON has.
        ("CPU", String(toolchain.cpu.prefix { $0 != " " })),
      ].filter { !$0.1.isEmpty }.map { "\($0.0) \($0.1)" }.joined(separator: ", "))
    for peer in peers {
      lines.append("  peer \(peer.peer) \(peer.label)\(peer.role.isEmpty ? "" : ", \(peer.role)")")
      if peer.role == "reported" {
        add("  packets", "none in the take: another stack reported this connection")
      } else {
        add("  packets", "\(peer.packetsIn) in, \(peer.packetsOut) out")
        add("  bytes", "\(peer.bytesIn) in, \(peer.bytesOut) out")
      }
      for track in peer.tracks { add("  track", track) }
      if peer.dataChannels > 0 {
        add(
          "  channels",
          "\(peer.dataChannels), messages \(peer.messagesIn) in, \(peer.messagesOut) out")
      }
      for states in peer.states {
        lines.append("    \(states.machine): \(states.states.joined(separator: ", "))")
      }
    }
    for actor in actors {
      lines.append("  actor \(actor.actor) \(actor.label), \(actor.kind)")
      for person in people where person.actor == actor.actor {
        lines.append("    " + words(person))
      }
    }
    for (place, gap) in coverage.enumerated() {
      // A later row's count includes those of earlier rows of its kind.
      let isLast = !coverage[(place + 1)...].contains {
        ($0.actor, $0.peer, $0.what) == (gap.actor, gap.peer, gap.what)
      }
      guard isLast else { continue }
      // Deduced facts were seen in packets, though no description states them.
      add(
        gap.what == "deduced" ? "judged" : "not seen",
        CoverageText.line(what: gap.what, reason: gap.reason)
          + " (\(gap.what), \(thousandths(gap.fromNanoseconds / 1_000_000)) to "
          + "\(thousandths(gap.toNanoseconds / 1_000_000)) s"
          + (gap.peer.map { ", peer \($0)" } ?? "") + ")")
    }
    add(
      "rows", tables.filter { $0.rows > 0 }.map { "\($0.table) \($0.rows)" }.joined(separator: ", ")
    )
    if !additions.isEmpty {
      add("added", "\(additions.joined(separator: ", ")): not of a take, and not read by Retake")
    }
    if otherViews > 0 {
      add(
        "views",
        "\(otherViews) of the file's SQL views are those of another version of Retake, or altered; "
          + "this one uses its own")
    }
    return lines.map(PrintableText.line).joined(separator: "\n")
  }
}

extension TakeInfo {
  /// Returns words such as `participant 2 ben, from 0.039 s on: audio in on peer 2, track 1`.
  private func words(_ person: RoomPerson) -> String {
    func seconds(_ nanoseconds: Int64) -> String { thousandths(nanoseconds / 1_000_000) }
    let span =
      person.leftNanoseconds.map {
        "\(seconds(person.enteredNanoseconds)) to \(seconds($0)) s"
      } ?? "from \(seconds(person.enteredNanoseconds)) s on"
    let who =
      "participant \(person.participant) \(person.title)"
      + (person.isLocal ? " (the recorded side)" : "")
    return "\(who), \(span)"
      + (person.tracks.isEmpty ? "" : ": " + person.tracks.joined(separator: "; "))
  }
}

/// Formats thousandths as a decimal number.
func thousandths(_ value: Int64) -> String {
  let digits = String(value.magnitude % 1000)
  return "\(value / 1000)." + String(repeating: "0", count: 3 - digits.count) + digits
}
