/// Views that follow single packets.
enum PacketViews {
  static let all = [oneWayDelay, packetLife]

  // MARK: One-way delay

  /// Identifies a packet at both of its ends.
  private struct Wire: Hashable {
    var ssrc: UInt32
    var rtpTime: UInt32
    var sequence: UInt16
    var markerType: UInt8
    var size: Int32

    init(_ row: borrowing SQLiteStatement) {
      ssrc = UInt32(truncatingIfNeeded: row.integer(3))
      markerType = UInt8(truncatingIfNeeded: row.integer(4))
      sequence = UInt16(truncatingIfNeeded: row.integer(5))
      rtpTime = UInt32(truncatingIfNeeded: row.integer(6))
      size = Int32(truncatingIfNeeded: row.integer(2))
    }
  }

  private static let oneWayDelay: ComputedView = ComputedView(
    name: "one_way_delay",
    columns: ComputedView.columns("step from_peer to_peer at_ns ssrc sequence size delay_ms:r")
  ) { (facts, _) throws(SQLiteError) in
    var peers: [Int64: (peer: Int64, isOut: Bool)] = [:]
    let paths = try facts.prepare("SELECT path, peer, direction FROM path")
    while try paths.step() {
      peers[paths.integer(0)] = (paths.integer(1), paths.text(2) == "out")
    }
    let columns = "row, at_ns, size, ssrc, marker_type, sequence, rtp_time, path"
    let query =
      "SELECT \(columns) FROM packet_store WHERE marker_type IS NOT NULL ORDER BY row"
    // Linked lists of arrivals per packet: the last arrival, and the one before each.
    var came: [Wire: Int32] = [:]
    var arrivals: [(peer: Int64, at: Int64, before: Int32)] = []
    let first = try facts.prepare(query)
    while try first.step() {
      guard let path = peers[first.integer(7)], !path.isOut else { continue }
      let place = Int32(arrivals.count)
      let before = came.updateValue(place, forKey: Wire(first)) ?? -1
      arrivals.append((path.peer, first.integer(1), before))
    }
    var rows = oneWayDelay.empty()
    let second = try facts.prepare(query)
    while try second.step() {
      guard let path = peers[second.integer(7)], path.isOut else { continue }
      let at = second.integer(1)
      var place = came[Wire(second)] ?? -1
      var hasArrived = false
      while place >= 0 {
        let end = arrivals[Int(place)]
        place = end.before
        guard end.peer != path.peer else { continue }
        hasArrived = true
        add(second, path.peer, at, (end.peer, end.at), to: &rows)
      }
      if !hasArrived { add(second, path.peer, at, nil, to: &rows) }
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
    var lives = try PacketLives(facts)
    return try lives.rows(into: packetLife.empty(), facts)
  }
}

/// Follows each media packet from sending to decoding.
private struct PacketLives {
  /// A packet of a peer.
  private struct Key: Hashable {
    var peer: Int64
    var ssrc: UInt32
    var sequence: UInt16
    var rtpTime: UInt32
  }

  /// A sequence number in a NACK that a peer sends or receives.
  private struct Asked: Hashable {
    var peer: Int64
    var isOut: Bool
    var ssrc: UInt32
    var sequence: UInt16
  }

  private struct Source: Hashable {
    var peer: Int64
    var ssrc: UInt32
  }

  private struct Shown: Hashable {
    var peer: Int64
    var ssrc: UInt32
    var rtpTime: UInt32
  }

  private struct Arrival {
    var row: Int64
    var at: Int64
    var size: Int64
    var copies: Int64
  }

  private let packets: PacketFacts
  private var came: [Key: Arrival] = [:]
  private var order: [Key] = []
  private var newest: [Source: Int64] = [:]
  private var senders: [UInt32: Set<Int64>] = [:]
  private var receivers: [UInt32: Set<Int64>] = [:]
  private var asked: [Asked: [Int64]] = [:]
  private var sentAgain: [Key: (row: Int64, at: Int64)] = [:]
  private var cameAgain: [Key: (row: Int64, at: Int64)] = [:]
  private var shown: [Shown: (row: Int64, at: Int64)] = [:]

  init(_ facts: ViewFacts) throws(SQLiteError) {
    packets = try facts.packets()
    for packet in packets.packets where packets.isMedia(packet) {
      let end = packets.ends[packet.direction]
      if end.direction == "out" {
        senders[packet.ssrc, default: []].insert(end.peer)
      } else {
        receivers[packet.ssrc, default: []].insert(end.peer)
        record(packet, end.peer)
      }
    }
    try readRequests(facts)
    try readRepairs(facts)
    try readFrames(facts)
  }

  private mutating func record(_ packet: PacketFacts.Packet, _ peer: Int64) {
    let key = Key(
      peer: peer, ssrc: packet.ssrc, sequence: packet.sequence, rtpTime: packet.rtpTime)
    let source = Source(peer: peer, ssrc: packet.ssrc)
    newest[source] = max(newest[source] ?? packet.at, packet.at)
    guard var known = came[key] else {
      came[key] = Arrival(row: packet.row, at: packet.at, size: packet.size, copies: 1)
      return order.append(key)
    }
    known.copies += 1
    known.at = min(known.at, packet.at)
    came[key] = known
  }

  private mutating func readRequests(_ facts: ViewFacts) throws(SQLiteError) {
    let rows = try facts.prepare("SELECT peer, direction, ssrc, sequence, at_ns FROM nack")
    while try rows.step() {
      let key = Asked(
        peer: rows.integer(0), isOut: rows.text(1) == "out",
        ssrc: UInt32(truncatingIfNeeded: rows.integer(2)),
        sequence: UInt16(truncatingIfNeeded: rows.integer(3)))
      asked[key, default: []].append(rows.integer(4))
    }
  }

  private mutating func readRepairs(_ facts: ViewFacts) throws(SQLiteError) {
    let rows = try facts.prepare(
      """
      SELECT peer, direction, original_ssrc, original_sequence, rtp_time, row, at_ns FROM repair
      WHERE original_ssrc IS NOT NULL
      """)
    while try rows.step() {
      let key = Key(
        peer: rows.integer(0), ssrc: UInt32(truncatingIfNeeded: rows.integer(2)),
        sequence: UInt16(truncatingIfNeeded: rows.integer(3)),
        rtpTime: UInt32(truncatingIfNeeded: rows.integer(4)))
      let (row, at) = (rows.integer(5), rows.integer(6))
      if rows.text(1) == "out" {
        let known = sentAgain[key] ?? (row, at)
        sentAgain[key] = (min(known.row, row), min(known.at, at))
      } else {
        let known = cameAgain[key] ?? (row, at)
        cameAgain[key] = (min(known.row, row), min(known.at, at))
      }
    }
  }

  private mutating func readFrames(_ facts: ViewFacts) throws(SQLiteError) {
    let rows = try facts.prepare(
      """
      SELECT format.peer, format.ssrc, frame_store.rtp_time & 4294967295, frame_store.row,
        frame_store.at_ns
      FROM frame_store JOIN format USING (format)
      WHERE direction = 'in' AND outcome IN ('decoded', 'not decoded', 'passed on')
      """)
    while try rows.step() {
      let key = Shown(
        peer: rows.integer(0), ssrc: UInt32(truncatingIfNeeded: rows.integer(1)),
        rtpTime: UInt32(truncatingIfNeeded: rows.integer(2)))
      let (row, at) = (rows.integer(3), rows.integer(4))
      let known = shown[key] ?? (row, at)
      shown[key] = (min(known.row, row), min(known.at, at))
    }
  }

  /// One transmission of a packet.
  private struct Way {
    var peer: Int64?
    var toPeer: Int64?
    var ssrc: UInt32
    var sequence: UInt16
    var rtpTime: UInt32?
    var size: Int64?
    var sentRow: Int64?
    var sentAt: Int64?
    var noticedAt: Int64?
  }

  mutating func rows(
    into rows: ComputedRows, _ facts: ViewFacts
  ) throws(SQLiteError) -> ComputedRows {
    var rows = rows
    for packet in packets.packets where packets.isMedia(packet) {
      let end = packets.ends[packet.direction]
      guard end.direction == "out" else { continue }
      let others = (receivers[packet.ssrc] ?? []).filter { $0 != end.peer }.sorted()
      for other in others.isEmpty ? [nil] : others.map({ Optional($0) }) {
        add(
          Way(
            peer: end.peer, toPeer: other, ssrc: packet.ssrc, sequence: packet.sequence,
            rtpTime: packet.rtpTime, size: packet.size, sentRow: packet.row, sentAt: packet.at),
          to: &rows)
      }
    }
    for key in order where !hasSender(key.ssrc, but: key.peer) {
      add(
        Way(
          toPeer: key.peer, ssrc: key.ssrc, sequence: key.sequence, rtpTime: key.rtpTime,
          size: came[key]?.size), to: &rows)
    }
    try addLost(to: &rows, facts)
    return rows
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
      let peer = lost.integer(0)
      let ssrc = UInt32(truncatingIfNeeded: lost.integer(1))
      guard receivers[ssrc]?.contains(peer) ?? false, !hasSender(ssrc, but: peer) else { continue }
      add(
        Way(
          toPeer: peer, ssrc: ssrc, sequence: UInt16(truncatingIfNeeded: lost.integer(2)),
          rtpTime: lost.isNull(4) ? nil : UInt32(truncatingIfNeeded: lost.integer(4)),
          noticedAt: lost.integer(3)), to: &rows)
    }
  }

  private func add(_ way: Way, to rows: inout ComputedRows) {
    func key(_ peer: Int64?) -> Key? {
      guard let peer, let time = way.rtpTime else { return nil }
      return Key(peer: peer, ssrc: way.ssrc, sequence: way.sequence, rtpTime: time)
    }
    let arrival = key(way.toPeer).flatMap { came[$0] }
    // Sequence numbers recur after 65,536 packets; a NACK within 10 s means this one.
    let moment = way.sentAt ?? arrival?.at ?? way.noticedAt ?? 0
    let requests =
      (way.toPeer ?? way.peer).flatMap { peer in
        asked[
          Asked(
            peer: peer, isOut: way.toPeer != nil, ssrc: way.ssrc, sequence: way.sequence)]
      }?.filter { ($0 - moment).magnitude <= 10_000_000_000 } ?? []
    let last = way.toPeer.flatMap { newest[Source(peer: $0, ssrc: way.ssrc)] }
    let isLost =
      arrival == nil
      && (!requests.isEmpty || way.sentAt == nil || (way.sentAt ?? 0) < last ?? Int64.min)
    let frame = way.toPeer.flatMap { peer in
      way.rtpTime.flatMap { shown[Shown(peer: peer, ssrc: way.ssrc, rtpTime: $0)] }
    }
    let again = key(way.peer).flatMap { sentAgain[$0] }
    for number in [way.peer, way.toPeer, Int64(way.ssrc), Int64(way.sequence)] { rows.add(number) }
    for number in [
      way.rtpTime.map { Int64($0) }, way.size, way.sentRow, way.sentAt, arrival?.row, arrival?.at,
      arrival?.copies ?? 0, isLost ? 1 : 0, requests.min(), Int64(requests.count), again?.row,
      again?.at, key(way.toPeer).flatMap { cameAgain[$0] }?.at, frame?.row, frame?.at,
    ] {
      rows.add(number)
    }
  }
}
