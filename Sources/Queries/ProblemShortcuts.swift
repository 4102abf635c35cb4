import Tape

/// What some rules find, in one pass over the packets.
///
/// Their queries sort every packet of a take, several times over. A test holds that both come to
/// the same.
struct ProblemShortcuts {
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

    /// Adds a packet, as the queries have it.
    mutating func add(_ next: Int64, rtpTime time: Int64, at: Int64) {
      defer { (sequence, rtpTime) = (next, time) }
      guard let before = packets.last else {
        first = at
        packets.append(Packet(part: 0, position: 0, at: at, sequence: next))
        return
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

  private var ends: [End] = []
  private var streams: [Stream] = []
  /// When each packet of each end passed, in the order of the rows.
  private var times: [[Int64]] = []

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
    for place in times.indices { times[place].sort() }
  }

  private mutating func readPackets(
    _ connection: borrowing SQLiteConnection, _ endsOfPath: [Int64: [Int]]
  ) throws(SQLiteError) {
    var places: [[Int64: Int]] = Array(repeating: [:], count: ends.count)
    let rows = try connection.prepare(
      """
      SELECT path, at_ns, ssrc & 0xffffffff, sequence & 0xffff, rtp_time & 0xffffffff
      FROM packet_store
      WHERE marker_type IS NOT NULL ORDER BY row
      """)
    while try rows.step() {
      let (at, ssrc, sequence) = (rows.integer(1), rows.integer(2), rows.integer(3))
      for end in endsOfPath[rows.integer(0)] ?? [] {
        times[end].append(at)
        guard ends[end].direction == "in" else { continue }
        let place = places[end][ssrc] ?? streams.count
        if place == streams.count {
          streams.append(Stream(end: end, ssrc: ssrc))
          places[end][ssrc] = place
        }
        streams[place].add(sequence, rtpTime: rows.integer(4), at: at)
      }
    }
  }

  /// What a rule finds; nil for a rule that is left to its query.
  func found(by rule: String, _ connection: borrowing SQLiteConnection) throws(SQLiteError)
    -> [TakeProblems.Problem]?
  {
    switch rule {
    case "loss": try loss(connection)
    case "loss-burst": try bursts(connection)
    case "one-way-media": try oneWay(connection)
    case "sequence-restart": try restarts(connection)
    default: nil
    }
  }

  private func problem(
    _ rule: String, _ peer: Int64, _ from: Int64, _ to: Int64, _ evidence: inout SQLiteStatement,
    _ numbers: Int64...
  ) throws(SQLiteError) -> TakeProblems.Problem {
    defer { evidence.reset() }
    for (index, number) in numbers.enumerated() {
      evidence.bind(number, at: Int32(truncatingIfNeeded: index + 1))
    }
    // The words are SQLite's, which rounds as the query does.
    let text = try evidence.step() ? evidence.text(0) ?? "" : ""
    return TakeProblems.Problem(
      name: rule, peer: peer, fromNanoseconds: from, toNanoseconds: to, evidence: text)
  }

  // MARK: Rules

  private func loss(_ connection: borrowing SQLiteConnection) throws(SQLiteError)
    -> [TakeProblems.Problem]
  {
    var words = try connection.prepare(
      """
      SELECT ?1 || ' of ' || ?2 || ' packets of ssrc ' || ?3 || ' did not come ('
        || round(100.0 * ?1 / ?2, 1) || ' %)'
      """)
    var found: [TakeProblems.Problem] = []
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
    -> [TakeProblems.Problem]
  {
    var words = try connection.prepare(
      "SELECT ?1 || ' packets of ssrc ' || ?2 || ' in a row did not come'")
    var found: [TakeProblems.Problem] = []
    for stream in streams {
      for (before, packet) in zip(stream.sorted, stream.sorted.dropFirst())
      where before.part == packet.part {
        let missing = packet.position - before.position - 1
        guard missing >= 5 else { continue }
        found.append(
          try problem(
            "loss-burst", ends[stream.end].peer, before.at, packet.at, &words, missing,
            stream.ssrc))
      }
    }
    return found
  }

  private func restarts(_ connection: borrowing SQLiteConnection) throws(SQLiteError)
    -> [TakeProblems.Problem]
  {
    var words = try connection.prepare(
      """
      SELECT 'the sequence numbers of ssrc ' || ?1 || ' began anew: ' || ?2 || ' after ' || ?3
        || '; a receiver of SRTP may refuse such packets as repeated ones'
      """)
    var found: [TakeProblems.Problem] = []
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

  private func oneWay(_ connection: borrowing SQLiteConnection) throws(SQLiteError)
    -> [TakeProblems.Problem]
  {
    let ways = try connection.prepare(
      """
      SELECT DISTINCT track.peer, direction, span.from_ns, span.to_ns
      FROM track JOIN (
        SELECT peer, from_ns, to_ns FROM state_time
        WHERE machine = 'connection' AND state IN ('connected', 'disconnected')
      ) AS span ON span.peer = track.peer AND track.at_ns < span.to_ns
      """)
    var words = try connection.prepare(
      """
      SELECT 'no media came ' || iif(?1, 'in', 'out') || ' for ' || round(?2 / 1e9, 1)
        || ' s while ' || ?3 || ' packets went the other way'
      """)
    var found: [TakeProblems.Problem] = []
    while try ways.step() {
      let (peer, direction, from, to) = ways.values(
        Int64.self, String.self, Int64.self, Int64.self)
      let own = times(of: peer) { $0 == direction }
      let others = times(of: peer) { $0 != direction }
      let inside = own[own.place(of: from)..<max(own.place(of: to &+ 1), own.place(of: from))]
      var instants = [from, to]
      instants += inside
      instants.sort()
      for (begin, end) in zip(instants, instants.dropFirst()) where end &- begin >= 2_000_000_000 {
        let count = Int64(others.place(of: end) - others.place(of: begin &+ 1))
        guard Double(count) * 1e9 >= 5.0 * Double(end - begin) else { continue }
        found.append(
          try problem(
            "one-way-media", peer, begin, end, &words, direction == "in" ? 1 : 0, end - begin,
            count))
      }
    }
    return found
  }

  private func times(of peer: Int64, _ isWanted: (String) -> Bool) -> [Int64] {
    let places = ends.indices.filter { ends[$0].peer == peer && isWanted(ends[$0].direction) }
    return places.count == 1 ? times[places[0]] : places.flatMap { times[$0] }.sorted()
  }
}

extension [Int64] {
  /// The place of the first of sorted numbers that is not less than one.
  fileprivate func place(of number: Int64) -> Int {
    var (low, high) = (startIndex, endIndex)
    while low < high {
      let middle = (low + high) / 2
      if self[middle] < number { low = middle + 1 } else { high = middle }
    }
    return low
  }
}
