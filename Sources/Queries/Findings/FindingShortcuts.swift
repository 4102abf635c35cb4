import Tape

/// What some rules find, in one pass over the packets.
///
/// Their queries sort every packet of a take, several times over. A test holds that both come to
/// the same.
struct FindingShortcuts {
  /// The packets of RTP of one peer and direction.
  private struct End: Hashable {
    var peer: Int64
    var direction: String
  }

  /// A packet of a source.
  private struct Packet {
    /// Which part of the stream it is of: a sender that begins its sequence numbers anew begins
    /// one.
    var part: Int64
    /// The number without the wrap of its 16 bits, within its part.
    var position: Int64
    var at: Int64
    var sequence: Int64
  }

  /// One source among them.
  private struct Stream {
    var end: Int
    var ssrc: Int64
    var sequence: Int64 = 0
    var rtpTime: Int64 = 0
    var first: Int64 = 0
    /// Each packet, in the order in which they came.
    var packets: [Packet] = []
    /// The same in the order of their numbers.
    var sorted: [Packet] = []
    var isSorted = true
    /// The last packet that came, whatever its number.
    var last: (at: Int64, row: Int64, payloadType: Int64)?
    var pauses: [Pause] = []

    /// Adds a packet, as the queries have it.
    mutating func add(
      _ next: Int64, rtpTime time: Int64, at: Int64, row: Int64, payloadType: Int64
    ) {
      defer {
        (sequence, rtpTime) = (next, time)
        last = (at, row, payloadType)
      }
      guard let before = packets.last else {
        first = at
        packets.append(Packet(part: 0, position: 0, at: at, sequence: next))
        return
      }
      if let last, at &- last.at >= FindingShortcuts.leastPause {
        pauses.append(
          Pause(
            from: last.at, to: at, fromRow: last.row, toRow: row,
            missing: (next &- sequence &- 1) & 65_535, payloadType: last.payloadType))
      }
      let step = ((next &- sequence &+ 32_768) & 65_535) &- 32_768
      let ticks = ((time &- rtpTime &+ 0x8000_0000) & 0xffff_ffff) &- 0x8000_0000
      let begins = begins(step, ticks, before.at, at)
      let position = begins ? 0 : before.position &+ step
      isSorted = isSorted && (begins || position >= before.position)
      packets.append(
        Packet(part: before.part + (begins ? 1 : 0), position: position, at: at, sequence: next))
    }

    private func begins(_ step: Int64, _ ticks: Int64, _ before: Int64, _ at: Int64) -> Bool {
      guard abs(step) >= 3000 || step <= -100 && ticks > 0 else { return false }
      guard step > 0 else { return true }
      let missing = Double(step) * Double(before &- first)
      let usual = Double(packets.count) * Double(at &- before)
      return !(missing >= usual / 2 && missing <= usual * 2)
    }

    mutating func sort() {
      sorted = packets
      guard !isSorted else { return }
      sorted.sort { ($0.part, $0.position, $0.at) < ($1.part, $1.position, $1.at) }
    }
  }

  /// A time in which nothing of a stream came, and how many packets are missing after it.
  private struct Pause {
    var from: Int64
    var to: Int64
    var fromRow: Int64
    var toRow: Int64
    var missing: Int64
    /// That of the packet before it.
    var payloadType: Int64
  }

  private static let leastPause: Int64 = 2_000_000_000

  private var ends: [End] = []
  private var streams: [Stream] = []
  /// When each packet of each end passed, and its row, in the order of time.
  private var times: [[(at: Int64, row: Int64)]] = []

  /// Reads the packets of RTP.
  init(_ connection: borrowing SQLiteConnection) throws(SQLiteError) {
    var endsOfPath: [Int64: [Int]] = [:]
    let paths = try connection.prepare(
      "SELECT path, peer, direction FROM path_end ORDER BY path, peer, direction")
    while try paths.step() {
      let (path, peer, direction) = paths.values(Int64.self, Int64.self, String.self)
      let end = End(peer: peer, direction: direction)
      let place = ends.firstIndex(of: end) ?? ends.count
      if place == ends.count {
        ends.append(end)
        times.append([])
      }
      endsOfPath[path, default: []].append(place)
    }
    try readPackets(connection, endsOfPath)
    for place in streams.indices { streams[place].sort() }
    for place in times.indices { times[place].sort(by: <) }
  }

  private mutating func readPackets(
    _ connection: borrowing SQLiteConnection, _ endsOfPath: [Int64: [Int]]
  ) throws(SQLiteError) {
    var places: [[Int64: Int]] = Array(repeating: [:], count: ends.count)
    let rows = try connection.prepare(
      """
      SELECT path, at_ns, ssrc & 0xffffffff, sequence & 0xffff, rtp_time & 0xffffffff, row,
        marker_type & 127
      FROM packet_store
      WHERE marker_type IS NOT NULL ORDER BY row
      """)
    while try rows.step() {
      let (at, ssrc, sequence) = (rows.integer(1), rows.integer(2), rows.integer(3))
      for end in endsOfPath[rows.integer(0)] ?? [] {
        times[end].append((at, rows.integer(5)))
        guard ends[end].direction == "in" else { continue }
        let place = places[end][ssrc] ?? streams.count
        if place == streams.count {
          streams.append(Stream(end: end, ssrc: ssrc))
          places[end][ssrc] = place
        }
        streams[place].add(
          sequence, rtpTime: rows.integer(4), at: at, row: rows.integer(5),
          payloadType: rows.integer(6))
      }
    }
  }

  /// What a rule finds; nil for a rule that is left to its query.
  func found(by rule: String, _ connection: borrowing SQLiteConnection) throws(SQLiteError)
    -> [Detection]?
  {
    switch rule {
    case "loss": try loss(connection)
    case "loss-burst": try bursts(connection)
    case "one-way-media": try judged(rule, FindingRule.oneWayOfFound, connection)
    case "stream-gap": try judged(rule, FindingRule.streamGapOfFound, connection)
    case "audio-paused": try judged(rule, FindingRule.pausedAudioOfFound, connection)
    case "sequence-restart": try restarts(connection)
    default: nil
    }
  }

  private func problem(
    _ rule: String, _ peer: Int64, _ from: Int64, _ to: Int64, _ evidence: inout SQLiteStatement,
    _ numbers: Int64...
  ) throws(SQLiteError) -> Detection {
    defer { evidence.reset() }
    for (index, number) in numbers.enumerated() {
      evidence.bind(number, at: Int32(truncatingIfNeeded: index + 1))
    }
    // The words are SQLite's, which rounds as the query does.
    let text = try evidence.step() ? evidence.text(0) ?? "" : ""
    return Detection(rule, peer: peer, from: from, to: to, text)
  }

  // MARK: Rules

  private func loss(_ connection: borrowing SQLiteConnection) throws(SQLiteError)
    -> [Detection]
  {
    var words = try connection.prepare(
      """
      SELECT ?1 || ' of ' || ?2 || ' packets of ssrc ' || ?3 || ' did not come ('
        || round(100.0 * ?1 / ?2, 1) || ' %)'
      """)
    var found: [Detection] = []
    for stream in streams {
      var received: Int64 = 0
      var expected: Int64 = 0
      var before: Packet?
      var (from, to) = (Int64.max, Int64.min)
      for packet in stream.sorted {
        if let before, before.part == packet.part {
          expected += packet.position - before.position
          if packet.position != before.position { received += 1 }
        } else {
          expected += 1
          received += 1
        }
        before = packet
        from = min(from, packet.at)
        to = max(to, packet.at)
      }
      let lost = expected - received
      guard expected >= 50, lost * 50 >= expected else { continue }
      found.append(
        try problem("loss", ends[stream.end].peer, from, to, &words, lost, expected, stream.ssrc))
    }
    return found
  }

  private func bursts(_ connection: borrowing SQLiteConnection) throws(SQLiteError)
    -> [Detection]
  {
    var words = try connection.prepare(
      "SELECT ?1 || ' packets of ssrc ' || ?2 || ' in a row did not come'")
    var found: [Detection] = []
    for stream in streams {
      for (before, packet) in zip(stream.sorted, stream.sorted.dropFirst())
      where before.part == packet.part {
        let missing = packet.position - before.position - 1
        // What came before the packet that it follows was reordered, or began anew.
        guard missing >= 5, packet.at >= before.at else { continue }
        found.append(
          try problem(
            "loss-burst", ends[stream.end].peer, before.at, packet.at, &words, missing,
            stream.ssrc))
      }
    }
    return found
  }

  private func restarts(_ connection: borrowing SQLiteConnection) throws(SQLiteError)
    -> [Detection]
  {
    var words = try connection.prepare(
      """
      SELECT 'the sequence numbers of ssrc ' || ?1 || ' began anew: ' || ?2 || ' after ' || ?3
        || '; a receiver of SRTP may refuse such packets as repeated ones'
      """)
    var found: [Detection] = []
    for stream in streams where (stream.packets.last?.part ?? 0) > 0 {
      for place in stream.packets.indices.dropFirst(2).dropLast() {
        let (before, packet) = (stream.packets[place - 1], stream.packets[place])
        // Single packets from elsewhere begin nothing, and nothing ends with them.
        guard before.part != packet.part, stream.packets[place - 2].part == before.part,
          stream.packets[place + 1].part == packet.part
        else { continue }
        found.append(
          try problem(
            "sequence-restart", ends[stream.end].peer, packet.at, packet.at, &words, stream.ssrc,
            packet.sequence, before.sequence))
      }
    }
    return found
  }

  /// What the query of a rule says when it is given the pauses of streams, and the times in which
  /// nothing came or went.
  private func judged(_ rule: String, _ sql: String, _ connection: borrowing SQLiteConnection)
    throws(SQLiteError) -> [Detection]?
  {
    let gaps = rule == "one-way-media" ? try gaps(connection) : "[]"
    // Numbers and words of our own, so they can stand in a statement, which may not be too long.
    guard pauses.utf8.count + gaps.utf8.count < Self.mostText else { return nil }
    let rows = try connection.prepare(
      sql.replacing("?1", with: "'\(pauses)'").replacing("?2", with: "'\(gaps)'"))
    var found: [Detection] = []
    while try rows.step() {
      let (peer, from, to, evidence) = rows.values(
        Int64.self, Int64.self, Int64.self, String.self)
      found.append(
        Detection(rule, peer: peer, from: from, to: to, evidence))
    }
    return found
  }

  /// SQLite reads statements of up to a million bytes.
  private static let mostText = 900_000

  /// The rows of `pause` as the queries have them, as JSON.
  private var pauses: String {
    var rows: [String] = []
    for stream in streams {
      let head = "[\(ends[stream.end].peer),\(stream.ssrc),"
      for pause in stream.pauses {
        rows.append(
          head + "\(pause.from),\(pause.to),\(pause.fromRow),\(pause.toRow),\(pause.missing),"
            + "\(pause.payloadType)]")
      }
      guard let last = stream.last else { continue }
      rows.append(head + "\(last.at),null,\(last.row),null,0,\(last.payloadType)]")
    }
    return "[" + rows.joined(separator: ",") + "]"
  }

  /// The rows of `gap`, as JSON.
  private func gaps(_ connection: borrowing SQLiteConnection) throws(SQLiteError) -> String {
    let ways = try connection.prepare(FindingRule.spanQuery)
    var rows: [String] = []
    while try ways.step() {
      let (peer, direction, from, to) = ways.values(
        Int64.self, String.self, Int64.self, Int64.self)
      let own = times(of: peer) { $0 == direction }
      let others = times(of: peer) { $0 != direction }
      let first = own.place(of: from)
      let inside = own[first..<max(own.place(of: to &+ 1), first)]
      var before: (at: Int64, row: Int64?) = (from, nil)
      for packet in inside.map({ (at: $0.at, row: Optional($0.row)) }) + [(at: to, row: nil)] {
        defer { before = packet }
        guard packet.at &- before.at >= Self.leastPause else { continue }
        let count = max(0, others.place(of: packet.at) - others.place(of: before.at &+ 1))
        rows.append(
          "[\(peer),\"\(direction)\",\(before.at),\(packet.at),"
            + "\(before.row.map(String.init) ?? "null"),\(packet.row.map(String.init) ?? "null"),"
            + "\(count)]")
      }
    }
    return "[" + rows.joined(separator: ",") + "]"
  }

  private func times(of peer: Int64, _ isWanted: (String) -> Bool) -> [(at: Int64, row: Int64)] {
    let places = ends.indices.filter { ends[$0].peer == peer && isWanted(ends[$0].direction) }
    return places.count == 1
      ? times[places[0]] : places.flatMap { times[$0] }.sorted(by: <)
  }
}

extension [(at: Int64, row: Int64)] {
  /// The place of the first of sorted packets that is not earlier than a time.
  fileprivate func place(of time: Int64) -> Int {
    var (low, high) = (startIndex, endIndex)
    while low < high {
      let middle = (low + high) / 2
      if self[middle].at < time { low = middle + 1 } else { high = middle }
    }
    return low
  }
}
