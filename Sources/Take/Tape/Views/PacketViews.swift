/// Views that follow single packets.
enum PacketViews {
  static let all = [oneWayDelay, packetLife]

  // MARK: One-way delay

  /// By what the two ends of a packet are the same one, as two numbers.
  private static func wireMarks(_ row: borrowing SQLiteStatement) -> (UInt64, UInt64) {
    let ssrc = UInt64(UInt32(truncatingIfNeeded: row.integer(3)))
    let markerType = UInt64(UInt8(truncatingIfNeeded: row.integer(4)))
    let sequence = UInt64(UInt16(truncatingIfNeeded: row.integer(5)))
    let rtpTime = UInt64(UInt32(truncatingIfNeeded: row.integer(6)))
    let size = UInt64(UInt32(truncatingIfNeeded: row.integer(2)))
    return (ssrc << 32 | rtpTime, size << 32 | markerType << 16 | sequence)
  }

  private static let oneWayDelay: ComputedView = ComputedView(
    name: "one_way_delay",
    columns: ComputedView.columns("step from_peer to_peer at_ns ssrc sequence size delay_ms:r")
  ) { (facts, _) throws(SQLiteError) in
    var peers: [(peer: Int64, isOut: Bool)] = []
    var places = PlaceTable()
    let paths = try facts.prepare("SELECT path, peer, direction FROM path")
    while try paths.step() {
      places.update(UInt64(bitPattern: paths.integer(0)), 0, to: peers.count)
      peers.append((paths.integer(1), paths.text(2) == "out"))
    }
    let columns = "row, at_ns, size, ssrc, marker_type, sequence, rtp_time, path"
    let query =
      "SELECT \(columns) FROM packet_store WHERE marker_type IS NOT NULL ORDER BY row"
    // Linked lists of arrivals per packet: the last arrival, and the one before each.
    var came = PlaceTable()
    var arrivals: [(peer: Int64, at: Int64, before: Int32)] = []
    let first = try facts.prepare(query)
    while try first.step() {
      guard let path = places[UInt64(bitPattern: first.integer(7)), 0], !peers[path].isOut else {
        continue
      }
      let marks = wireMarks(first)
      let before = came.update(marks.0, marks.1, to: arrivals.count)
      arrivals.append((peers[path].peer, first.integer(1), Int32(before ?? -1)))
    }
    var rows = oneWayDelay.empty()
    rows.reserve(arrivals.count)
    let second = try facts.prepare(query)
    while try second.step() {
      guard let path = places[UInt64(bitPattern: second.integer(7)), 0], peers[path].isOut else {
        continue
      }
      let (peer, at) = (peers[path].peer, second.integer(1))
      let marks = wireMarks(second)
      var place = came[marks.0, marks.1] ?? -1
      var hasArrived = false
      while place >= 0 {
        let end = arrivals[place]
        place = Int(end.before)
        guard end.peer != peer else { continue }
        hasArrived = true
        add(second, peer, at, (end.peer, end.at), to: &rows)
      }
      if !hasArrived { add(second, peer, at, nil, to: &rows) }
    }
    return rows
  }

  /// Adds a packet on its way to the other end; nil arrival means lost.
  private static func add(
    _ row: borrowing SQLiteStatement, _ peer: Int64, _ at: Int64,
    _ end: (peer: Int64, at: Int64)?, to rows: inout ComputedRows
  ) {
    rows.add(row.integer(0) >> 16)
    rows.add(peer)
    rows.add(end?.peer)
    rows.add(at)
    rows.add(row.integer(3) & 0xffff_ffff)
    rows.add(row.integer(5) & 0xffff)
    rows.add(row.integer(2))
    rows.add(real: end.map { Double($0.at - at) / 1e6 })
  }

  // MARK: The life of packets

  private static let packetLife: ComputedView = ComputedView(
    name: "packet_life",
    columns: ComputedView.columns(
      "peer to_peer ssrc sequence rtp_time size sent_row sent_ns arrived_row arrived_ns copies "
        + "lost asked_ns requests repair_row repair_sent_ns repaired_ns frame_row decoded_ns")
  ) { (facts, _) throws(SQLiteError) in
    try PacketLives(facts).rows(into: packetLife.empty(), facts)
  }
}

// MARK: - PacketLives

/// The life of each packet of media: the rows of `packet_life`.
struct PacketLives {
  /// A peer, and its number in tables.
  private struct Peer {
    var peer: Int64
    var number: UInt64

    /// A source that it sends or receives.
    func source(_ ssrc: UInt32) -> UInt64 { number << 32 | UInt64(ssrc) }
  }

  private struct Arrival {
    /// The first packet of it.
    var packet: Int
    var at: Int64
    var copies: Int64
  }

  /// The first row of something, and when it was first.
  private struct Sight {
    var row: Int64
    var at: Int64
  }

  /// Sights by two numbers.
  private struct Sights {
    private var places = PlaceTable()
    private var sights: [Sight] = []

    subscript(first: UInt64, second: UInt64) -> Sight? { places[first, second].map { sights[$0] } }

    mutating func add(_ first: UInt64, _ second: UInt64, _ row: Int64, _ at: Int64) {
      guard let place = places[first, second] else {
        places.update(first, second, to: sights.count)
        return sights.append(Sight(row: row, at: at))
      }
      sights[place] = Sight(row: min(sights[place].row, row), at: min(sights[place].at, at))
    }
  }

  private let packets: PacketFacts
  private var peers: [Int64: Peer] = [:]
  /// Of each end of the packets.
  private var peersOfEnds: [Peer] = []
  private var came: PlaceTable
  private var arrivals: [Arrival] = []
  private var newestPlaces = PlaceTable()
  private var newest: [Int64] = []
  private var senders: [UInt32: Set<Int64>] = [:]
  private var receivers: [UInt32: Set<Int64>] = [:]
  private var requestPlaces = PlaceTable()
  private var requests: [[Int64]] = []
  private var sentAgain = Sights()
  private var cameAgain = Sights()
  private var shown = Sights()

  init(_ facts: ViewFacts) throws(SQLiteError) {
    packets = try facts.packets()
    came = PlaceTable(capacity: packets.packets.count / 2)
    for end in packets.ends { peersOfEnds.append(peer(end.peer)) }
    var known = PlaceTable()
    for place in packets.packets.indices {
      let packet = packets.packets[place]
      guard packets.isMedia(packet) else { continue }
      let end = packets.ends[packet.direction]
      let isOut = end.direction == "out"
      if known.update(packet.stream, 0, to: 0) == nil {
        if isOut {
          senders[packet.ssrc, default: []].insert(end.peer)
        } else {
          receivers[packet.ssrc, default: []].insert(end.peer)
        }
      }
      if !isOut { receive(packet, at: place) }
    }
    try readRequests(facts)
    try readRepairs(facts)
    try readFrames(facts)
  }

  private mutating func peer(_ number: Int64) -> Peer {
    if let known = peers[number] { return known }
    let peer = Peer(peer: number, number: UInt64(peers.count))
    peers[number] = peer
    return peer
  }

  private static func packet(_ sequence: UInt16, _ rtpTime: UInt32) -> UInt64 {
    UInt64(sequence) << 32 | UInt64(rtpTime)
  }

  private static func request(_ sequence: UInt16, isOut: Bool) -> UInt64 {
    UInt64(sequence) | (isOut ? 1 << 16 : 0)
  }

  // MARK: Reading

  private mutating func receive(_ packet: PacketFacts.Packet, at place: Int) {
    let source = peersOfEnds[packet.direction].source(packet.ssrc)
    if let known = newestPlaces[source, 0] {
      newest[known] = max(newest[known], packet.at)
    } else {
      newestPlaces.update(source, 0, to: newest.count)
      newest.append(packet.at)
    }
    let key = Self.packet(packet.sequence, packet.rtpTime)
    if let known = came[source, key] {
      arrivals[known].copies += 1
      arrivals[known].at = min(arrivals[known].at, packet.at)
    } else {
      came.update(source, key, to: arrivals.count)
      arrivals.append(Arrival(packet: place, at: packet.at, copies: 1))
    }
  }

  private mutating func readRequests(_ facts: ViewFacts) throws(SQLiteError) {
    let rows = try facts.prepare("SELECT peer, direction, ssrc, sequence, at_ns FROM nack")
    while try rows.step() {
      let source = peer(rows.integer(0)).source(UInt32(truncatingIfNeeded: rows.integer(2)))
      let key = Self.request(
        UInt16(truncatingIfNeeded: rows.integer(3)), isOut: rows.text(1) == "out")
      if let known = requestPlaces[source, key] {
        requests[known].append(rows.integer(4))
      } else {
        requestPlaces.update(source, key, to: requests.count)
        requests.append([rows.integer(4)])
      }
    }
  }

  private mutating func readRepairs(_ facts: ViewFacts) throws(SQLiteError) {
    let rows = try facts.prepare(
      """
      SELECT peer, direction, original_ssrc, original_sequence, rtp_time, row, at_ns FROM repair
      WHERE original_ssrc IS NOT NULL
      """)
    while try rows.step() {
      let source = peer(rows.integer(0)).source(UInt32(truncatingIfNeeded: rows.integer(2)))
      let key = Self.packet(
        UInt16(truncatingIfNeeded: rows.integer(3)), UInt32(truncatingIfNeeded: rows.integer(4)))
      if rows.text(1) == "out" {
        sentAgain.add(source, key, rows.integer(5), rows.integer(6))
      } else {
        cameAgain.add(source, key, rows.integer(5), rows.integer(6))
      }
    }
  }

  private mutating func readFrames(_ facts: ViewFacts) throws(SQLiteError) {
    var sources = PlaceTable()
    var formats: [UInt64] = []
    let found = try facts.prepare(
      """
      SELECT format, peer, ssrc FROM format
      WHERE direction = 'in' AND outcome IN ('decoded', 'not decoded', 'passed on')
      """)
    while try found.step() {
      sources.update(UInt64(bitPattern: found.integer(0)), 0, to: formats.count)
      formats.append(peer(found.integer(1)).source(UInt32(truncatingIfNeeded: found.integer(2))))
    }
    let rows = try facts.prepare("SELECT format, rtp_time, row, at_ns FROM frame_store")
    while try rows.step() {
      guard let format = sources[UInt64(bitPattern: rows.integer(0)), 0] else { continue }
      let time = UInt32(truncatingIfNeeded: rows.integer(1))
      shown.add(formats[format], UInt64(time), rows.integer(2), rows.integer(3))
    }
  }

  /// One transmission of a packet.
  private struct Way {
    var peer: Peer?
    var toPeer: Peer?
    var ssrc: UInt32
    var sequence: UInt16
    var rtpTime: UInt32?
    var size: Int64?
    var sentRow: Int64?
    var sentAt: Int64?
    var noticedAt: Int64?
  }

  func rows(into empty: ComputedRows, _ facts: ViewFacts) throws(SQLiteError) -> ComputedRows {
    var rows = empty
    rows.reserve(packets.packets.count / 2)
    var listed = PlaceTable()
    var lists: [[Peer?]] = []
    for packet in packets.packets where packets.isMedia(packet) {
      guard packets.ends[packet.direction].direction == "out" else { continue }
      let list: Int
      if let known = listed[packet.stream, 0] {
        list = known
      } else {
        list = lists.count
        listed.update(packet.stream, 0, to: list)
        lists.append(destinations(of: packet))
      }
      for other in lists[list] {
        add(
          Way(
            peer: peersOfEnds[packet.direction], toPeer: other, ssrc: packet.ssrc,
            sequence: packet.sequence, rtpTime: packet.rtpTime, size: packet.size,
            sentRow: packet.row, sentAt: packet.at), to: &rows)
      }
    }
    for arrival in arrivals {
      let packet = packets.packets[arrival.packet]
      let peer = peersOfEnds[packet.direction]
      guard !hasSender(packet.ssrc, but: peer.peer) else { continue }
      add(
        Way(
          toPeer: peer, ssrc: packet.ssrc, sequence: packet.sequence, rtpTime: packet.rtpTime,
          size: packet.size), to: &rows)
    }
    try addLost(to: &rows, facts)
    return rows
  }

  /// To whom the packets of a stream go; nil: somebody who is not in the take.
  private func destinations(of packet: PacketFacts.Packet) -> [Peer?] {
    let sender = peersOfEnds[packet.direction].peer
    let others = (receivers[packet.ssrc] ?? []).filter { $0 != sender }.sorted()
    return others.isEmpty ? [nil] : others.map { peers[$0] }
  }

  private func hasSender(_ ssrc: UInt32, but peer: Int64) -> Bool {
    senders[ssrc]?.contains { $0 != peer } ?? false
  }

  /// Adds lost packets whose sender is not in the take.
  private func addLost(to rows: inout ComputedRows, _ facts: ViewFacts) throws(SQLiteError) {
    let lost = try facts.prepare(
      """
      SELECT lost_packet.peer, lost_packet.ssrc, lost_packet.sequence, to_ns, (
        SELECT rtp_time FROM repair
        WHERE repair.original_sequence = lost_packet.sequence AND repair.peer = lost_packet.peer
          AND repair.direction = 'in' AND repair.original_ssrc = lost_packet.ssrc
          AND repair.at_ns = lost_packet.repaired_ns)
      FROM lost_packet WHERE direction = 'in'
      """)
    while try lost.step() {
      let ssrc = UInt32(truncatingIfNeeded: lost.integer(1))
      guard let peer = peers[lost.integer(0)], receivers[ssrc]?.contains(peer.peer) ?? false,
        !hasSender(ssrc, but: peer.peer)
      else { continue }
      add(
        Way(
          toPeer: peer, ssrc: ssrc, sequence: UInt16(truncatingIfNeeded: lost.integer(2)),
          rtpTime: lost.isNull(4) ? nil : UInt32(truncatingIfNeeded: lost.integer(4)),
          noticedAt: lost.integer(3)), to: &rows)
    }
  }

  private func add(_ way: Way, to rows: inout ComputedRows) {
    let sent = way.peer?.source(way.ssrc)
    let received = way.toPeer?.source(way.ssrc)
    let key = way.rtpTime.map { Self.packet(way.sequence, $0) }
    var (arrival, again, repaired, frame): (Arrival?, Sight?, Sight?, Sight?)
    if let received, let key, let time = way.rtpTime {
      arrival = came[received, key].map { arrivals[$0] }
      repaired = cameAgain[received, key]
      frame = shown[received, UInt64(time)]
    }
    if let sent, let key { again = sentAgain[sent, key] }
    // Sequence numbers recur after 65,536 packets; a NACK within 10 s means this one.
    let moment = way.sentAt ?? arrival?.at ?? way.noticedAt ?? 0
    let asked = times(
      askedFrom: received ?? sent, way.sequence, isOut: received != nil, around: moment)
    let last = received.flatMap { newestPlaces[$0, 0] }.map { newest[$0] }
    let isLost =
      arrival == nil
      && (!asked.isEmpty || way.sentAt == nil || (way.sentAt ?? 0) < last ?? Int64.min)
    rows.add(way.peer?.peer)
    rows.add(way.toPeer?.peer)
    rows.add(Int64(way.ssrc))
    rows.add(Int64(way.sequence))
    rows.add(way.rtpTime.map { Int64($0) })
    rows.add(way.size)
    rows.add(way.sentRow)
    rows.add(way.sentAt)
    rows.add(arrival.map { packets.packets[$0.packet].row })
    rows.add(arrival?.at)
    rows.add(arrival?.copies ?? 0)
    rows.add(isLost ? 1 : 0)
    rows.add(asked.min())
    rows.add(Int64(asked.count))
    rows.add(again?.row)
    rows.add(again?.at)
    rows.add(repaired?.at)
    rows.add(frame?.row)
    rows.add(frame?.at)
  }

  /// When a packet was asked for.
  private func times(
    askedFrom source: UInt64?, _ sequence: UInt16, isOut: Bool, around moment: Int64
  ) -> [Int64] {
    guard let source, !requests.isEmpty,
      let place = requestPlaces[source, Self.request(sequence, isOut: isOut)]
    else { return [] }
    return requests[place].filter { ($0 - moment).magnitude <= 10_000_000_000 }
  }
}
