import Tape

// Facts about peers, their states, and what streams carry.

extension CallFacts {
  mutating func readPeers(_ connection: borrowing SQLiteConnection) throws(SQLiteError) {
    let rows = try connection.prepare(
      "SELECT peer, label, role, coalesce(actor, peer) FROM peer ORDER BY row LIMIT 10000")
    var legs: [Int64] = []
    while try rows.step() {
      let (peer, label, role, actor) = rows.values(
        Int64.self, String.self, String.self, Int64.self)
      if role == "relay" { legs.append(peer) }
      peers.append(
        Peer(
          number: peer, label: label, isObserved: role == "observed",
          isReported: role == "reported", actor: actor))
    }
    // A relay names its legs `near 1` and `far 1`, and the ends with which they talk `near end 1`
    // and `far end 1`.
    var ends: [String: Int64] = [:]
    for peer in peers where peer.isObserved { ends[peer.label] = peer.number }
    for leg in legs {
      guard let place = peers.firstIndex(where: { $0.number == leg }) else { continue }
      peers[place].end = ends[peers[place].label.replacing(" ", with: " end ")]
    }
  }

  mutating func readStates(_ connection: borrowing SQLiteConnection) throws(SQLiteError) {
    let rows = try connection.prepare(
      """
      SELECT peer, at_ns, machine, from_state, to_state FROM state ORDER BY row
      LIMIT \(Self.most)
      """)
    while try rows.step() {
      let (peer, at, machine, from, to) = rows.values(
        Int64.self, Int64.self, String.self, String.self, String.self)
      states.append(State(peer: peer, at: at, machine: machine, from: from, to: to))
    }
  }

  /// Determines what streams carry, from track and format rows and from SSRC lines in descriptions.
  mutating func nameStreams(_ connection: borrowing SQLiteConnection) throws(SQLiteError) {
    let rows = try connection.prepare(
      """
      SELECT peer, direction, coalesce(ssrc & 0xffffffff, -1), payload_type, kind, codec, track,
        mid, clock_rate FROM track ORDER BY row LIMIT \(Self.most)
      """)
    while try rows.step() {
      let (ssrc, type) = (rows.integer(2), rows.integer(3))
      let (peer, direction) = (rows.integer(0), WireDirection(rawValue: rows.text(1) ?? ""))
      for place in streams.indices
      where streams[place].peer == peer && streams[place].direction == direction {
        let hasType = streams[place].payloadTypes.contains { $0.type == type }
        // A row without an SSRC applies to the streams whose packets have its payload type.
        guard ssrc >= 0 ? streams[place].ssrc == ssrc : hasType else { continue }
        guard ssrc >= 0 || streams[place].track == nil else { continue }
        streams[place].kind = rows.text(4) ?? ""
        streams[place].track = rows.integer(6)
        streams[place].mid = rows.text(7) ?? ""
        if hasType || streams[place].codec.isEmpty {
          streams[place].codec = rows.text(5) ?? ""
          streams[place].clockRate = rows.integer(8)
        }
      }
    }
    let formats = try connection.prepare(
      """
      SELECT DISTINCT peer, direction, ssrc & 0xffffffff, kind, track, codec FROM format
      WHERE kind IN ('audio', 'video') AND ssrc <> 0 LIMIT \(Self.most)
      """)
    while try formats.step() {
      let direction = WireDirection(rawValue: formats.text(1) ?? "")
      guard
        let place = streams.firstIndex(where: {
          $0.peer == formats.integer(0) && $0.direction == direction
            && $0.ssrc == formats.integer(2)
        })
      else { continue }
      streams[place].kind = formats.text(3) ?? ""
      streams[place].track = formats.integer(4)
      // RED only wraps other packets (RFC 2198); the frames' format names the codec inside.
      if streams[place].codec.isEmpty || streams[place].codec == "red" {
        streams[place].codec = formats.text(5) ?? ""
      }
    }
    try findRepairs(connection)
  }

  /// Assigns repair streams to the streams that they repair: by `a=ssrc-group:FID` (RFC 5576
  /// section 4.2), or else to the only video stream in the same direction.
  private mutating func findRepairs(_ connection: borrowing SQLiteConnection) throws(SQLiteError) {
    var groups: [Int64: Int64] = [:]
    let texts = try connection.prepare(
      """
      SELECT CAST(message AS TEXT) FROM signaling WHERE instr(message, 'ssrc-group:FID') > 0
      UNION ALL
      SELECT arguments FROM call_request
      WHERE name IN ('setLocalDescription', 'setRemoteDescription')
        AND instr(arguments, 'ssrc-group:FID') > 0
      LIMIT 1000
      """)
    while try texts.step() {
      for part in (texts.text(0) ?? "").split(separator: "ssrc-group:FID ").dropFirst() {
        let numbers = part.prefix(40).split(whereSeparator: { !$0.isNumber })
        guard numbers.count >= 2, let media = Int64(numbers[0]), let repair = Int64(numbers[1])
        else { continue }
        groups[repair] = media
      }
    }
    let redundancy: Set<String> = ["ulpfec", "flexfec", "flexfec-03"]
    for place in streams.indices {
      let stream = streams[place]
      if let media = groups[stream.ssrc] {
        streams[place].role = .repair
        streams[place].original = media
      } else if stream.codec == "rtx" {
        streams[place].role = .repair
      } else if redundancy.contains(stream.codec), stream.kind == "video" {
        streams[place].role = .redundancy
      }
    }
    for place in streams.indices
    where streams[place].role == .repair
      || streams[place].kind.isEmpty && streams[place].original == nil
    {
      adopt(place)
    }
  }

  /// Marks a stream as the repair of its original, and copies the original's kind and track.
  ///
  /// If no description names the original, the only other video stream in the repair stream's
  /// direction is assumed; if there is not exactly one, nothing changes.
  private mutating func adopt(_ place: Int) {
    let stream = streams[place]
    let others = streams.filter {
      $0.peer == stream.peer && $0.direction == stream.direction && $0.role == .media
        && $0.kind == "video" && $0.ssrc != stream.ssrc
    }
    let media =
      streams.first {
        $0.peer == stream.peer && $0.direction == stream.direction && $0.ssrc == stream.original
      } ?? (others.count == 1 ? others[0] : nil)
    guard let media else { return }
    streams[place].role = .repair
    streams[place].original = media.ssrc
    (streams[place].kind, streams[place].track) = (media.kind, media.track)
    streams[place].mid = media.mid
  }

  /// Pairs the peers at the two ends of a connection: by mirrored addresses, or else by streams
  /// that one sends and the other receives.
  mutating func joinPeers() {
    for (one, other) in mirrored { join(one, other) }
    var sent: [Int64: Stream] = [:]
    for stream in streams where stream.direction == .outbound { sent[stream.ssrc] = stream }
    for stream in streams where stream.direction == .inbound {
      guard let sender = sent[stream.ssrc], sender.peer != stream.peer,
        // A server forwards a stream only after receiving it.
        sender.first <= stream.first
      else { continue }
      join(stream.peer, sender.peer)
    }
    for place in peers.indices { peers[place].live = liveTime(of: peers[place]) }
  }

  /// Pairs the remaining peers by their signaling: one received what the other sent.
  mutating func joinBySignaling(_ connection: borrowing SQLiteConnection) throws(SQLiteError) {
    guard peers.contains(where: { $0.other == nil }), peers.count <= 1000 else { return }
    let rows = try connection.prepare(
      """
      SELECT DISTINCT sent.peer, came.peer FROM signaling AS sent JOIN signaling AS came
        ON came.message = sent.message AND came.direction = 'in' AND came.peer <> sent.peer
      WHERE sent.direction = 'out' AND sent.type IN ('offer', 'answer')
      ORDER BY 1, 2 LIMIT 1000
      """)
    while try rows.step() { join(rows.integer(0), rows.integer(1)) }
  }

  mutating func join(_ one: Int64, _ other: Int64) {
    guard let first = peers.firstIndex(where: { $0.number == one }),
      let second = peers.firstIndex(where: { $0.number == other }),
      peers[first].other == nil, peers[second].other == nil, peers[first].end == nil,
      peers[second].end == nil
    else { return }
    peers[first].other = other
    peers[second].other = one
  }

  private func liveTime(of peer: Peer) -> ClosedRange<Int64>? {
    let own = states.filter { $0.peer == peer.number && $0.machine == "connection" }
    // Older browsers report only `closed` for the connection, and not when it was connected.
    if own.contains(where: { $0.to != "closed" }) {
      guard let from = own.first(where: { $0.to == "connected" })?.at else { return nil }
      let to = own.last { $0.from == "connected" || $0.from == "disconnected" }
      let isLive = ["connected", "disconnected"].contains(own.last?.to ?? "")
      return from...max(from, isLive ? end : to?.at ?? end)
    }
    let streams = streams.filter { $0.peer == peer.number }
    guard let from = streams.map(\.first).min(), let to = streams.map(\.last).max() else {
      return nil
    }
    return from...max(from, to)
  }

  mutating func readUnseen(_ connection: borrowing SQLiteConnection) throws(SQLiteError) {
    // A later row's counter includes the counters of earlier rows of the same kind.
    let missing = try connection.prepare(
      """
      SELECT what, reason FROM coverage WHERE row IN (SELECT max(row) FROM coverage GROUP BY what)
      ORDER BY row LIMIT 20
      """)
    while try missing.step() {
      let (what, reason) = missing.values(String.self, String.self)
      if let text = CoverageText.text(what: what, reason: reason) { unseen.append(text) }
    }
    // Packets missing from a capture look like lost packets.
    let gaps = try connection.prepare(
      """
      SELECT peer, from_ns, to_ns, what, reason FROM coverage
      WHERE what IN ('dropped', 'one-direction', 'stream-gap', 'damaged-capture', 'cut-capture')
      ORDER BY row DESC LIMIT 1000
      """)
    while try gaps.step() {
      let (peer, from, to, what, reason) = gaps.values(
        Int64?.self, Int64.self, Int64.self, String.self, String.self)
      guard let text = CoverageText.text(what: what, reason: reason) else { continue }
      gapsOfSight.append(Unseen(peer: peer, from: from, to: to, text: "\(text) not seen"))
    }
  }
}
