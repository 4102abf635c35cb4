package import Tape
import Wire

/// An overview of a take: the output of `retake info`.
package struct TakeInfo: Sendable, Codable {
  /// A peer with its states, tracks and counts of packets.
  package struct PeerInfo: Sendable, Codable {
    package var peer: Int64
    package var label: String
    package var role: String
    /// The states of each of the peer's state machines, in order.
    package var states: [MachineStates]
    package var tracks: [String]
    package var packetsIn: Int64 = 0
    package var packetsOut: Int64 = 0
    /// The number of UDP payload bytes that the peer received and sent.
    package var bytesIn: Int64 = 0
    package var bytesOut: Int64 = 0
    /// The number of data channels, opened by either side.
    package var dataChannels: Int64 = 0
    /// The number of messages that data channels received and sent; nil if another stack reported
    /// the connection without counting them.
    package var messagesIn: Int64? = 0
    package var messagesOut: Int64? = 0
  }

  /// All states of one of a peer's state machines, in order.
  package struct MachineStates: Sendable, Codable {
    package var machine: String
    package var states: [String]
  }

  /// An actor other than an endpoint, such as a room or an observer.
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

  /// How many rows a table or view has.
  package struct TableCount: Sendable, Codable {
    package var table: String
    package var rows: Int64
  }

  package var path: String
  package var label: String
  /// Facts that the recording application stated about the take, by key; nil if there are none.
  package var tags: [String: String]?
  package var start: String
  package var format: Int64
  package var toolVersion: String
  /// The revision of the stack that recorded the take; nil if the take does not state it.
  package var revision: Int64?
  /// The newest revision among the take's observers; nil if there are none.
  package var observerRevision: Int64?
  package var toolchain: Toolchain
  package var keepsMedia: Bool
  /// Whether the recording was ended properly.
  package var isComplete: Bool
  /// Why the take is incomplete: the recorder was killed or is still running; nil if it is
  /// complete.
  package var ending: String?
  package var steps: Int64
  package var durationNanoseconds: Int64
  /// The size of the file, and the size of a packet capture with the same datagrams, in bytes.
  package var fileBytes: Int64
  package var captureBytes: Int64
  package var peers: [PeerInfo]
  /// The actors other than endpoints, such as rooms and observers.
  package var actors: [ActorInfo]
  /// The participants in the take's rooms.
  package var people: [RoomPerson]
  /// The first gaps in what the actors could see, up to `coverageMaximum`.
  package var coverage: [Coverage]
  package var tables: [TableCount]
  /// Tables, views and triggers that were added to the file; Retake neither reads them nor includes
  /// them in a digest.
  package var additions: [String]
  /// The number of the file's views that differ from this version's, which are used instead.
  package var otherViews: Int

  /// SQL for the time when a take ends; a take without `ending` ends with its last step or packet.
  package static let end = """
    coalesce((SELECT at_ns FROM ending), max(
        coalesce((SELECT max(at_ns) FROM tape), 0),
        coalesce((SELECT at_ns FROM packet_store ORDER BY row DESC LIMIT 1), 0)))
    """

  /// The maximum number of gaps to list.
  private static let coverageMaximum = 20

  /// Reads the overview without verifying the take.
  ///
  /// - Parameter countsRows: whether to count each peer's packets and each table's rows, which
  ///   takes long because it reads all rows.
  package init(path: String, countsRows: Bool = true) throws(TapeError) {
    try self.init(
      path: path, try TakeFile.openForQueries(path), countsRows: countsRows)
  }

  /// Reads the overview through an open connection, such as one that sees a snapshot of a take.
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
        // A redaction removed data from the entire take, so it is listed before other gaps.
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
    // An observed datagram has rows at two peers, but a capture contains it once.
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
    for index in peers.indices where peers[index].role == "reported" {
      (peers[index].messagesIn, peers[index].messagesOut) =
        try reportedMessages(connection, peer: peers[index].peer)
    }
    return peers
  }

  /// Returns the message counts in another stack's last report on each data channel.
  ///
  /// The take contains no messages of the other stack, so they cannot be counted.
  private static func reportedMessages(
    _ connection: borrowing SQLiteConnection, peer: Int64
  ) throws(SQLiteError) -> (received: Int64?, sent: Int64?) {
    let counts = try connection.prepare(
      """
      SELECT sum(members ->> '$.messagesReceived'), sum(members ->> '$.messagesSent')
      FROM stat JOIN (
        SELECT max("row") AS "row" FROM stat
        WHERE peer = \(peer) AND type IN ('data-channel', 'datachannel')
        GROUP BY id
      ) USING ("row")
      """)
    guard try counts.step() else { return (nil, nil) }
    let (received, sent) = counts.values(Int64?.self, Int64?.self)
    return (received, sent)
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

  /// The overview as a JSON object with sorted keys.
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
  /// The overview as printed by `retake info`.
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
        ?? (isReported ? "complete; reports of another stack, without packets" : "complete"))
    if let tags {
      let words = tags.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
      add("tags", words.joined(separator: ", "))
    }
    // A take with only a few packets is mostly schema, so a percentage would mislead.
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
        // CPU features are a long list, so only the JSON contains them.
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
        func words(_ count: Int64?) -> String { count.map(String.init) ?? "unknown" }
        let isCounted = peer.messagesIn != nil || peer.messagesOut != nil
        add(
          "  channels",
          "\(peer.dataChannels), "
            + (isCounted
              ? "messages \(words(peer.messagesIn)) in, \(words(peer.messagesOut)) out"
              : "number of messages unknown"))
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
      // A later row of the same kind includes an earlier row's count.
      let isLast = !coverage[(place + 1)...].contains {
        ($0.actor, $0.peer, $0.what) == (gap.actor, gap.peer, gap.what)
      }
      guard isLast else { continue }
      // Values deduced from packets are not missing from the take, so they are listed as judged.
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
      add(
        "added",
        "\(additions.joined(separator: ", ")): not part of a take, and not read by Retake")
    }
    if otherViews > 0 {
      add(
        "views",
        "\(otherViews) of the file's SQL views are from another version of Retake, or were "
          + "altered; this version uses its own")
    }
    return lines.map(PrintableText.line).joined(separator: "\n")
  }
}

extension TakeInfo {
  /// Describes a person, as in `participant 2 ben, from 0.039 s on: audio in on peer 2, track 1`.
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

/// Formats a number of thousandths with three decimals, as in `0.039` or `-0.039`.
func thousandths(_ value: Int64) -> String {
  let digits = String(value.magnitude % 1000)
  return (value < 0 ? "-" : "") + "\(value.magnitude / 1000)."
    + String(repeating: "0", count: 3 - digits.count) + digits
}
