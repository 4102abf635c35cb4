package import Tape
import Wire

/// A summary of a call that fits on one screen: participants, path, media and problems.
package struct TakeSummary: Sendable {
  /// One end of a connection, with its path.
  struct Connection: Sendable {
    var peer: Int64
    var name: String
    var other: String
    var isObserved: Bool
    var state: String
    /// The time from the peer's genesis to `connected`; nil if it never connected.
    var connectedNanoseconds: Int64?
    var pair: Pair?
    var roundTrip: RoundTrip?
  }

  /// The last selected candidate pair.
  struct Pair: Sendable {
    var local: String
    var localType: String
    var remote: String
    var remoteType: String
    var changes: Int
  }

  /// The median and the maximum round trip, in milliseconds.
  struct RoundTrip: Sendable {
    var median: Double
    var most: Double
  }

  /// Media in one direction, measured at the receiver if the take has it, and otherwise at the
  /// sender.
  struct Media: Sendable {
    var peer: Int64
    var name: String
    var direction: WireDirection
    var kind: String
    var codec: String
    var ssrc: Int64
    var track: Int64?
    var width: Int32 = 0
    var height: Int32 = 0
    var framesPerSecond = 0.0
    /// The mean bit rate; nil if the stream is too short for a rate.
    var bitsPerSecond: Double?
    /// The lost packets and their share; nil if unknown, as for a sent stream without receiver
    /// reports.
    var lossShare: Double?
    var lost: Int64?
    /// The number of packets that arrived but failed SRTP's checks; statistics count them as lost.
    var refused: Int64 = 0
    /// The number of packets; 0 if media was negotiated but none was seen.
    var packets: Int64 = 0
    var jitterMilliseconds: Double?
    var frozenSeconds = 0.0
    var freezes = 0
    var concealedShare: Double?
    /// The mean level excluding silence, in dBov; nil for video, and if no level is known.
    var level: Double?
  }

  /// The path of the take, used as its name in text and JSON.
  var path: String
  package let findings: TakeFindings
  let label: String
  let start: String
  let end: Int64
  private(set) var connections: [Connection] = []
  private(set) var media: [Media] = []
  private(set) var packets: Int64 = 0
  /// Whether the take has another stack's statistics instead of packets.
  private let isReported: Bool

  package init(path: String, findings: TakeFindings) throws(TapeError) {
    try self.init(path: path, try TakeFile.openForQueries(path), findings: findings)
  }

  /// Summarizes a take through an open connection.
  init(path: String, _ connection: borrowing SQLiteConnection, findings: TakeFindings)
    throws(TapeError)
  {
    let header = try TakeHeader.read(from: connection, path: path)
    self.path = path
    self.findings = findings
    label = header.label
    start = header.startText
    let facts = findings.facts
    end = facts.end
    packets = facts.packets
    isReported = !facts.peers.isEmpty && facts.peers.allSatisfy(\.isReported)
    do throws(SQLiteError) {
      try readConnections(connection, facts)
      try readMedia(connection, facts)
    } catch {
      throw TapeError(path: path, error)
    }
  }

  private mutating func readConnections(
    _ connection: borrowing SQLiteConnection, _ facts: CallFacts
  ) throws(SQLiteError) {
    var pairs: [Int64: Pair] = [:]
    let selected = try connection.prepare(
      """
      SELECT peer, local, local_type, remote, remote_type FROM selected_pair ORDER BY from_ns
      LIMIT 10000
      """)
    while try selected.step() {
      let (peer, local, localType, remote, remoteType) = selected.values(
        Int64.self, String.self, String.self, String.self, String.self)
      pairs[peer] = Pair(
        local: local, localType: localType, remote: remote, remoteType: remoteType,
        changes: (pairs[peer]?.changes ?? -1) +| 1)
    }
    var trips: [Int64: [Double]] = [:]
    let measured = try connection.prepare(
      """
      SELECT peer, round_trip_ms FROM round_trip
      UNION ALL SELECT peer, round_trip_ms FROM media_round_trip LIMIT \(CallFacts.most)
      """)
    while try measured.step() {
      trips[measured.integer(0), default: []].append(measured.real(1))
    }
    var begun: [Int64: Int64] = [:]
    let geneses = try connection.prepare("SELECT peer, at_ns FROM peer LIMIT 10000")
    while try geneses.step() { begun[geneses.integer(0)] = geneses.integer(1) }
    for peer in facts.peers {
      let own = facts.states.filter { $0.peer == peer.number }
      let hasOwn = own.contains { $0.machine == "connection" && $0.to != "closed" }
      let machine = hasOwn ? "connection" : "ice-connection"
      let times = (trips[peer.number] ?? []).sorted()
      var connected = own.first {
        $0.machine == machine && ["connected", "completed"].contains($0.to)
      }?.at
      // An observed peer has no combined state. It is connected once ICE and DTLS are (W3C
      // RTCPeerConnectionState), or once ICE is if the take has no handshake.
      if !hasOwn, own.contains(where: { $0.machine == "dtls" }) {
        let secured = own.first { $0.machine == "dtls" && $0.to == "connected" }?.at
        connected = connected.flatMap { ice in secured.map { max(ice, $0) } }
      }
      connections.append(
        Connection(
          peer: peer.number, name: findings.names.end(peer.number),
          other: findings.names.otherEnd(of: peer.number), isObserved: peer.isObserved,
          state: own.last { $0.machine == machine }?.to ?? "",
          connectedNanoseconds: connected.map { $0 &- (begun[peer.number] ?? 0) },
          pair: pairs[peer.number],
          roundTrip: times.last.map { RoundTrip(median: times[times.count / 2], most: $0) }))
    }
  }

  private struct LevelName: Hashable {
    var peer: Int64
    var track: Int64
    var direction: String
  }

  private mutating func readMedia(
    _ connection: borrowing SQLiteConnection, _ facts: CallFacts
  ) throws(SQLiteError) {
    var levels: [LevelName: Double] = [:]
    let rows = try connection.prepare(
      """
      SELECT peer, track, direction,
        round(10 * log10(sum(energy) / (sum(samples) * 1073741824.0)), 1)
      FROM level WHERE energy > samples * 107.4 GROUP BY peer, track, direction
      """)
    while try rows.step() {
      let name = LevelName(
        peer: rows.integer(0), track: rows.integer(1), direction: rows.text(2) ?? "")
      levels[name] = rows.real(3)
    }
    let losses = try KnownLosses(connection)
    for stream in facts.streams where stream.role == .media {
      // A stream with both ends in the take is listed once, at its receiver.
      guard stream.direction == .inbound || facts.otherEnd(of: stream) == nil else { continue }
      media.append(described(stream, facts, levels, losses))
    }
    for absent in try AbsentMedia.all(facts, connection) {
      let detection = absent.detection(rule: "")
      media.append(
        Media(
          peer: absent.peer, name: findings.names.media(of: detection),
          direction: absent.direction, kind: absent.kind, codec: "", ssrc: 0, track: nil))
    }
  }

  private func described(
    _ stream: CallFacts.Stream, _ facts: CallFacts, _ levels: [LevelName: Double],
    _ losses: KnownLosses
  ) -> Media {
    let detection = Detection(
      "", peer: stream.peer, from: 0, to: 0, "", ssrc: stream.ssrc, track: stream.track,
      direction: stream.direction, kind: stream.kind)
    var media = Media(
      peer: stream.peer, name: findings.names.media(of: detection), direction: stream.direction,
      kind: stream.kind, codec: stream.codec, ssrc: stream.ssrc, track: stream.track)
    let seconds = Double(stream.last &- stream.first) / 1e9
    let bytes = max(0, stream.bytes -| (stream.counted?.bytesBefore ?? 0))
    media.bitsPerSecond = seconds > 0.1 ? (Double(bytes) * 8 / seconds).rounded() : nil
    media.packets = stream.packets
    let loss = losses.loss(of: stream)
    (media.lost, media.lossShare, media.refused) = (loss.lost, loss.share, loss.refused)
    let spaced = stream.buckets.reduce(0) { $0 +| Int64($1.spaced) }
    let jitter = stream.buckets.reduce(0) { $0 +| Int64($1.jitterMicroseconds) }
    if spaced > 0 { media.jitterMilliseconds = Double(jitter) / Double(spaced) / 1e3 }
    if let counted = stream.counted {
      (media.width, media.height) = (counted.width, counted.height)
      media.framesPerSecond = counted.framesPerSecond
      media.jitterMilliseconds = counted.jitterSeconds.map { $0 * 1e3 }
      (media.freezes, media.frozenSeconds) = (Int(counted.freezes), counted.frozenSeconds)
      media.concealedShare = counted.concealedShare
      // freezeCount increases when a freeze ends, so a freeze that lasts until the end is added
      // here.
      let stopped = findings.detections.filter {
        $0.rule == "video-stopped" && $0.peer == stream.peer && $0.ssrc == stream.ssrc
          && $0.direction == stream.direction
          && $0.toNanoseconds >= stream.last -| 3_000_000_000
      }
      media.freezes +|= stopped.count
      media.frozenSeconds += stopped.reduce(0) { $0 + Double($1.length) / 1e9 }
    }
    guard let number = stream.track, let track = facts.track(stream.peer, number, stream.direction)
    else { return media }
    media.level =
      levels[
        LevelName(peer: stream.peer, track: number, direction: stream.direction.rawValue)]
    let shown = track.pictures.filter(\.isGood)
    if let first = shown.first, let last = shown.last, last.at > first.at {
      media.framesPerSecond = Double(shown.count - 1) * 1e9 / Double(last.at - first.at)
      (media.width, media.height) = (last.width, last.height)
    }
    let frozen = findings.detections.filter {
      ["freeze", "video-stopped"].contains($0.rule) && $0.peer == stream.peer
        && $0.track == number && stream.direction == .inbound
    }
    if stream.counted == nil {
      media.freezes = frozen.count
      media.frozenSeconds =
        Double(Finding.union(frozen.map { ($0.fromNanoseconds, $0.toNanoseconds) })) / 1e9
    }
    let blocks = track.voices.reduce(0) { $0 +| Int64($1.blocks) }
    let concealed = track.voices.reduce(0) { $0 +| Int64($1.concealed -| $1.spared) }
    if blocks > 0, stream.direction == .inbound {
      media.concealedShare = Double(concealed) / Double(blocks)
    }
    return media
  }
}

extension TakeSummary {
  private static let mediaColumns = [
    "media", "codec", "picture", "kbit/s", "loss", "jitter", "frozen", "concealed", "level",
  ]

  /// The maximum number of streams in the printed table; the rest is only counted.
  private static let mediaMaximum = 16

  /// Formats the summary for the terminal.
  ///
  /// - Parameter name: the name to print for the take; nil prints its path.
  package func text(_ look: TableLook = TableLook(), named name: String? = nil) -> String {
    var text = lines(named: name ?? path).map { look.paragraph($0, indent: 4) + "\n" }.joined()
    if !media.isEmpty {
      let rows = media.prefix(Self.mediaMaximum).map(cells)
      text +=
        "\n"
        + TextTable(
          columns: Self.mediaColumns, rows: rows,
          alignsRight: [false, false, false, true, true, true, true, true, true], wraps: true
        ).text(look.reading) { _, _ in nil }
      let rest = media.count -| Self.mediaMaximum
      if rest > 0 { text += "and \(counted(Int64(rest), "more stream"))\n" }
    }
    return text + "\n" + findings.shortText(look, take: name ?? path)
  }

  /// The lines about participants, time and path, without media and problems.
  package var head: String { lines(named: path).joined(separator: "\n") }

  private func lines(named name: String) -> [String] {
    var lines = [
      "\(name): \(label.isEmpty ? "a call" : label), \(thousandths(end / 1_000_000)) s, "
        + "\(counted(packets, "packet")) of RTP\(isReported ? " by its statistics" : ""), \(start)"
    ]
    for one in connections.prefix(12) {
      let state = one.state.isEmpty ? "state not seen" : one.state
      var line = "  \(one.name) with \(one.other): \(state)"
      if let after = one.connectedNanoseconds {
        line += ", connected after \(thousandths(after / 1_000_000)) s"
      }
      if let pair = one.pair {
        line += ", \(pair.local) (\(pair.localType)) to \(pair.remote) (\(pair.remoteType))"
        if pair.changes > 0 { line += " after \(counted(Int64(pair.changes), "change"))" }
      }
      if let trip = one.roundTrip {
        line += ", round trip \(decimal(trip.median)) ms, at most \(decimal(trip.most)) ms"
      }
      lines.append(line)
    }
    if connections.count > 12 { lines.append("  and \(connections.count - 12) more peers") }
    return lines.map(PrintableText.line)
  }

  private func cells(_ media: Media) -> [String] {
    // The size may be unknown if no local codec processed the video.
    let size = media.width > 0 ? "\(media.width)x\(media.height), " : ""
    let picture =
      media.width > 0 || media.framesPerSecond > 0
      ? "\(size)\(decimal(media.framesPerSecond)) fps" : ""
    guard media.packets > 0 else {
      return [media.name, media.codec, "no packets", "", "", "", "", "", ""]
    }
    return [
      media.name, media.codec, picture, media.bitsPerSecond.map { decimal($0 / 1e3) } ?? "?",
      Self.lossText(media.lossShare, refused: media.refused),
      media.jitterMilliseconds.map { "\(decimal($0)) ms" } ?? "",
      media.freezes > 0 ? "\(decimal(media.frozenSeconds)) s (\(media.freezes))" : "",
      media.concealedShare.map { "\(decimal($0 * 100)) %" } ?? "",
      media.level.map { "\(decimal($0)) dBov" } ?? "",
    ]
  }

  /// Formats the share of lost packets, and how many were refused; `?` if the share is unknown.
  static func lossText(_ share: Double?, refused: Int64) -> String {
    guard let share else { return "?" }
    return (share > 0 && share < 0.0005 ? "under 0.1 %" : "\(decimal(share * 100)) %")
      + (refused > 0 ? ", \(refused) refused" : "")
  }

  /// The maximum size of the JSON in bytes, which keeps it small enough for language models.
  private static let largest = 19_000

  /// The summary as a JSON object of less than 20 kB; a shortened list states how many entries it
  /// lacks.
  package var json: String {
    for (streams, count, depth) in [(40, 20, 3), (24, 12, 2), (12, 8, 2), (8, 5, 1), (4, 3, 0)] {
      let text = json(streams, count, depth, length: 600)
      if text.utf8.count <= Self.largest { return text }
    }
    return json(2, 2, 0, length: 200)
  }

  private func json(_ streams: Int, _ count: Int, _ depth: Int, length: Int) -> String {
    func short(_ text: String) -> JSONText {
      .text(text.count > length ? text.prefix(length) + "..." : text)
    }
    func tree(_ finding: Finding, _ depth: Int) -> JSONText {
      let symptoms = depth > 0 ? finding.symptoms.prefix(6) : []
      var members: [(String, JSONText?)] = [
        ("id", .text(finding.id)), ("severity", .text(finding.severity.name)),
        ("text", short(finding.text)), ("from_ns", .integer(finding.fromNanoseconds)),
        ("to_ns", .integer(finding.toNanoseconds)),
        ("side", finding.side.map { .text($0.rawValue) }),
        ("side_name", finding.sideWords.isEmpty ? nil : .text(finding.sideWords)),
        ("confidence", finding.confidence.map { .text($0.name) }),
      ]
      if !symptoms.isEmpty {
        members.append(("symptoms", .list(symptoms.map { tree($0, depth -| 1) })))
      }
      members.append(("symptoms_cut", cut(finding.symptoms.count, symptoms.count)))
      return .object(members)
    }
    let shown = findings.findings.prefix(count).map { tree($0, depth) }
    let ends = connections.prefix(streams).map { object($0, short) }
    let flows = media.prefix(streams).map { object($0, short) }
    var members: [(String, JSONText?)] = [
      ("take", short(path)), ("label", label.isEmpty ? nil : short(label)),
      ("start", .text(start)), ("duration_ns", .integer(end)),
    ]
    members.append(("connections", .list(ends)))
    members.append(("connections_cut", cut(connections.count, streams)))
    members.append(("media", .list(flows)))
    members.append(("media_cut", cut(media.count, streams)))
    members.append(("findings", .list(shown)))
    members.append(("findings_cut", cut(findings.findings.count, count)))
    members.append(("looked_at", .text(findings.looked)))
    members.append(("unseen", .list(findings.unseen.prefix(10).map(short))))
    return JSONText.object(members).text
  }

  private func cut(_ count: Int, _ shown: Int) -> JSONText? {
    count > shown ? .integer(count -| shown) : nil
  }

  private func object(_ one: Connection, _ short: (String) -> JSONText) -> JSONText {
    var members: [(String, JSONText?)] = [
      ("peer", .integer(one.peer)), ("name", short(one.name)), ("other", short(one.other)),
      ("state", .text(one.state)),
    ]
    members.append(("connected_ns", one.connectedNanoseconds.map { .integer($0) }))
    if let pair = one.pair {
      members.append(("local", short(pair.local)))
      members.append(("local_type", .text(pair.localType)))
      members.append(("remote", short(pair.remote)))
      members.append(("remote_type", .text(pair.remoteType)))
      members.append(("pair_changes", .integer(pair.changes)))
    }
    if let trip = one.roundTrip {
      members.append(("round_trip_ns", Self.nanoseconds(trip.median)))
      members.append(("longest_round_trip_ns", Self.nanoseconds(trip.most)))
    }
    return .object(members)
  }

  /// The media and connections for the page: the facts in `json`, and the cells of the printed
  /// table.
  package var pageObject: String {
    func whole(_ text: String) -> JSONText { .text(text) }
    let flows = media.prefix(Self.pageMaximum).map { one in
      JSONText.object([
        ("cells", .list(cells(one).map { .text($0) })), ("facts", object(one, whole)),
      ])
    }
    return JSONText.object([
      ("columns", .list(Self.mediaColumns.map { .text($0) })), ("media", .list(flows)),
      ("media_cut", cut(media.count, flows.count)),
      ("connections", .list(connections.prefix(Self.pageMaximum).map { object($0, whole) })),
    ]).text
  }

  /// The maximum number of streams on the page, and of connections.
  private static let pageMaximum = 200

  /// Converts milliseconds to whole nanoseconds.
  private static func nanoseconds(_ milliseconds: Double) -> JSONText {
    .integer(Int64(saturating: max(min(milliseconds, 9e9), 0) * 1e6))
  }

  private func object(_ one: Media, _ short: (String) -> JSONText) -> JSONText {
    func tenths(_ value: Double) -> JSONText { .number((value * 10).rounded() / 10) }
    func share(_ value: Double) -> JSONText { .number((value * 1e4).rounded() / 1e4) }
    var members: [(String, JSONText?)] = [
      ("name", short(one.name)), ("peer", .integer(one.peer)),
      ("direction", .text(one.direction.rawValue)), ("kind", .text(one.kind)),
      ("codec", .text(one.codec)), ("ssrc", one.packets > 0 ? .integer(one.ssrc) : nil),
      ("packets", .integer(one.packets)),
    ]
    members.append(("track", one.track.map { .integer($0) }))
    if one.width > 0 {
      members.append(("width", .integer(one.width)))
      members.append(("height", .integer(one.height)))
      members.append(("frames_per_second", tenths(one.framesPerSecond)))
    }
    members.append(("bits_per_second", one.bitsPerSecond.map { .number($0) }))
    members.append(("packets_lost", one.lost.map { .integer($0) }))
    members.append(("loss_share", one.lossShare.map(share)))
    if one.refused > 0 { members.append(("packets_refused", .integer(one.refused))) }
    members.append(
      ("jitter_ns", one.jitterMilliseconds.map(Self.nanoseconds)))
    if one.freezes > 0 {
      members.append(("frozen_ns", .integer(Int64(saturating: one.frozenSeconds * 1e9))))
      members.append(("freezes", .integer(one.freezes)))
    }
    members.append(("concealed_share", one.concealedShare.map(share)))
    members.append(("level_dbov", one.level.map(tenths)))
    return .object(members)
  }
}
