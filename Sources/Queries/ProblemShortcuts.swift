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

  /// One source among them.
  private struct Stream {
    var end: Int
    var ssrc: Int64
    var sequence: Int64
    /// The number of each packet without the wrap of its 16 bits, and when it came.
    var packets: [(position: Int64, at: Int64)] = []
    var isSorted = true

    mutating func add(_ next: Int64, at: Int64) {
      let before = packets.last?.position ?? 0
      // (difference + 32768 & 65535) - 32768, as the queries have it.
      let position = before &+ ((next &- sequence &+ 32_768) & 65_535) &- 32_768
      isSorted = isSorted && position >= before
      packets.append((packets.isEmpty ? 0 : position, at))
      sequence = next
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
    for place in streams.indices where !streams[place].isSorted {
      streams[place].packets.sort { ($0.position, $0.at) < ($1.position, $1.at) }
    }
    for place in times.indices { times[place].sort() }
  }

  private mutating func readPackets(
    _ connection: borrowing SQLiteConnection, _ endsOfPath: [Int64: [Int]]
  ) throws(SQLiteError) {
    var places: [[Int64: Int]] = Array(repeating: [:], count: ends.count)
    let rows = try connection.prepare(
      """
      SELECT path, at_ns, ssrc & 0xffffffff, sequence & 0xffff FROM packet_store
      WHERE marker_type IS NOT NULL ORDER BY row
      """)
    while try rows.step() {
      let (at, ssrc, sequence) = (rows.integer(1), rows.integer(2), rows.integer(3))
      for end in endsOfPath[rows.integer(0)] ?? [] {
        times[end].append(at)
        guard ends[end].direction == "in" else { continue }
        let place = places[end][ssrc] ?? streams.count
        if place == streams.count {
          streams.append(Stream(end: end, ssrc: ssrc, sequence: sequence))
          places[end][ssrc] = place
        }
        streams[place].add(sequence, at: at)
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
      guard let first = stream.packets.first, let last = stream.packets.last else { continue }
      var received: Int64 = 0
      var position = Int64.min
      var (from, to) = (Int64.max, Int64.min)
      for packet in stream.packets {
        if packet.position != position { received += 1 }
        position = packet.position
        from = min(from, packet.at)
        to = max(to, packet.at)
      }
      let expected = last.position - first.position + 1
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
      for (before, packet) in zip(stream.packets, stream.packets.dropFirst()) {
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
