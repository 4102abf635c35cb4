/// Views that follow packets from one end to the other.
enum PacketViews {
  static let all = [oneWayDelay, packetLife]

  // MARK: One-way delay

  private struct Sent {
    var row: Int64
    var at: Int64
    var peer: Int64
    var marks: Marks
  }

  /// Two numbers that identify a packet at both ends.
  private struct Marks {
    /// The SSRC and the RTP time.
    var stream: UInt64
    /// The size, the marker with the payload type, and the sequence number.
    var packet: UInt64

    init(_ row: RowValues) {
      let ssrc = UInt64(UInt32(truncatingIfNeeded: row.integer(3)))
      let markerType = UInt64(UInt8(truncatingIfNeeded: row.integer(4)))
      let sequence = UInt64(UInt16(truncatingIfNeeded: row.integer(5)))
      let rtpTime = UInt64(UInt32(truncatingIfNeeded: row.integer(6)))
      let size = UInt64(UInt32(truncatingIfNeeded: row.integer(2)))
      stream = ssrc << 32 | rtpTime
      packet = size << 32 | markerType << 16 | sequence
    }
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
    var sent: [Sent] = []
    // The arrivals of a packet form a linked list: `came` has the last arrival, and each arrival
    // refers to the one before it.
    var came = PlaceTable()
    var arrivals: [(peer: Int64, at: Int64, before: Int32)] = []
    try facts.forEachRow(
      of: "packet_store", "row, at_ns, size, ssrc, marker_type, sequence, rtp_time, path"
    ) { row in
      guard !row.isNull(4), let path = places[UInt64(bitPattern: row.integer(7)), 0] else {
        return true
      }
      let (peer, isOut) = peers[path]
      let marks = Marks(row)
      if isOut {
        sent.append(Sent(row: row.integer(0), at: row.integer(1), peer: peer, marks: marks))
      } else {
        let before = came.update(marks.stream, marks.packet, to: arrivals.count)
        arrivals.append((peer, row.integer(1), Int32(before ?? -1)))
      }
      return sent.count + arrivals.count < PacketFacts.limit
    }
    var rows = oneWayDelay.empty()
    rows.reserve(sent.count)
    for packet in sent {
      var place = came[packet.marks.stream, packet.marks.packet] ?? -1
      var hasArrived = false
      while place >= 0 {
        let end = arrivals[place]
        place = Int(end.before)
        guard end.peer != packet.peer else { continue }
        hasArrived = true
        add(packet, (end.peer, end.at), to: &rows)
      }
      if !hasArrived { add(packet, nil, to: &rows) }
    }
    return rows
  }

  /// Adds a row for a packet and one of its arrivals; `end` is nil if it never arrived.
  private static func add(
    _ sent: Sent, _ end: (peer: Int64, at: Int64)?, to rows: inout ComputedRows
  ) {
    rows.add(sent.row >> 16)
    rows.add(sent.peer)
    rows.add(end?.peer)
    rows.add(sent.at)
    rows.add(Int64(sent.marks.stream >> 32))
    rows.add(Int64(sent.marks.packet & 0xffff))
    rows.add(Int64(sent.marks.packet >> 32))
    rows.add(real: end.map { Double($0.at - sent.at) / 1e6 })
  }

  // MARK: Packet lives

  private static let packetLife: ComputedView = ComputedView(
    name: "packet_life",
    columns: ComputedView.columns(
      "peer to_peer ssrc sequence rtp_time size sent_row sent_ns arrived_row arrived_ns copies "
        + "lost asked_ns requests repair_row repair_sent_ns repaired_row repaired_ns frame_row "
        + "decoded_ns")
  ) { (facts, _) throws(SQLiteError) in
    var lives = try PacketLives(facts)
    return try lives.rows(into: packetLife.empty(), facts)
  }
}

// MARK: - PacketLives

/// Computes what happened to each media packet: the rows of `packet_life`.
struct PacketLives {
  private struct Arrival {
    /// The index of the copy that arrived first.
    var packet: Int32
    var copies: Int32
    var at: Int64
  }

  /// The first row about a packet or frame, and its time.
  private struct Sight {
    var row: Int64
    var at: Int64

    mutating func join(_ other: Sight) {
      row = min(row, other.row)
      at = min(at, other.at)
    }
  }

  /// A media stream that a peer receives.
  private struct Reception {
    var source: Source
    /// The number of the source in `numbers`.
    var number: Int
    /// The arrivals by RTP time and sequence number.
    var arrivals = OrderedTable<Arrival>()
    /// When the last packet arrived, in nanoseconds.
    var newest = Int64.min
    /// The complete frames that were received, whether decoded or not, by RTP time.
    var shown = OrderedTable<Sight>()
  }

  /// A stream, identified by its SSRC and one of the peers that send or receive it.
  private struct Source: Hashable {
    var peer: Int64
    var ssrc: UInt32
  }

  private let packets: PacketFacts
  private var receptions: [Reception] = []
  private var places: [Source: Int] = [:]
  /// The number of each source, which is part of table keys.
  private var numbers: [Source: Int] = [:]
  /// For each stream, the number of its source.
  private var streamNumbers: [Int] = []
  /// The peers that send each SSRC, and the peers that receive it.
  private var senders: [UInt32: Set<Int64>] = [:]
  private var receivers: [UInt32: Set<Int64>] = [:]
  private var sentStreams: [Source: Int] = [:]
  /// The legs of a relay, which only forward packets, and the ends of observed calls.
  private let legs: Set<Int64>
  private let observed: Set<Int64>
  // NACKs by source and sequence number; retransmissions by source, RTP time and sequence number.
  private var requestPlaces = PlaceTable()
  private var requests: [[Int64]] = []
  private var repairPlaces = PlaceTable()
  private var repairs: [Sight] = []

  init(_ facts: ViewFacts) throws(SQLiteError) {
    packets = try facts.packets()
    legs = try Self.peers(facts, "relay")
    observed = try Self.peers(facts, "observed")
    for stream in packets.streams {
      streamNumbers.append(
        number(of: Source(peer: packets.ends[stream.end].peer, ssrc: stream.ssrc)))
    }
    for place in packets.streams.indices { readStream(place) }
    try readRequests(facts)
    try readRepairs(facts)
    try readFrames(facts)
  }

  private static func peers(
    _ facts: ViewFacts, _ role: String
  ) throws(SQLiteError) -> Set<Int64> {
    var peers: Set<Int64> = []
    let rows = try facts.prepare("SELECT peer FROM peer WHERE role = '\(role)'")
    while try rows.step() { peers.insert(rows.integer(0)) }
    return peers
  }

  private mutating func number(of source: Source) -> Int {
    if let known = numbers[source] { return known }
    numbers[source] = numbers.count
    return numbers.count - 1
  }

  /// Returns the part of a table key that identifies a source and a direction.
  private static func key(_ number: Int, isOut: Bool) -> UInt64 {
    UInt64(number) << 1 | (isOut ? 1 : 0)
  }

  // MARK: Reading

  private mutating func readStream(_ place: Int) {
    let stream = packets.streams[place]
    let end = packets.ends[stream.end]
    let all = packets.places(ofStream: place)
    guard !legs.contains(end.peer),
      all.contains(where: { packets.isMedia(packets.packets[Int($0)]) })
    else { return }
    guard end.direction != "out" else {
      sentStreams[Source(peer: end.peer, ssrc: stream.ssrc)] = place
      senders[stream.ssrc, default: []].insert(end.peer)
      return
    }
    receivers[stream.ssrc, default: []].insert(end.peer)
    let source = Source(peer: end.peer, ssrc: stream.ssrc)
    var reception = Reception(source: source, number: streamNumbers[place])
    reception.arrivals.reserve(all.count)
    for place in all {
      let packet = packets.packets[Int(place)]
      guard packets.isMedia(packet) else { continue }
      reception.newest = max(reception.newest, packet.at)
      reception.arrivals.append(
        Arrival(packet: place, copies: 1, at: packet.at), at: packet.moment)
    }
    reception.arrivals.sort { first, next in
      first.copies += next.copies
      first.at = min(first.at, next.at)
    }
    places[source] = receptions.count
    receptions.append(reception)
  }

  private mutating func readRequests(_ facts: ViewFacts) throws(SQLiteError) {
    let rows = try facts.prepare(
      "SELECT peer, direction = 'out', ssrc, sequence, at_ns FROM nack")
    while try rows.step() {
      let source = Source(
        peer: rows.integer(0), ssrc: UInt32(truncatingIfNeeded: rows.integer(2)))
      let key = Self.key(number(of: source), isOut: rows.integer(1) == 1)
      let sequence = UInt64(UInt16(truncatingIfNeeded: rows.integer(3)))
      if let known = requestPlaces[key, sequence] {
        requests[known].append(rows.integer(4))
      } else {
        requestPlaces.update(key, sequence, to: requests.count)
        requests.append([rows.integer(4)])
      }
    }
  }

  private mutating func readRepairs(_ facts: ViewFacts) throws(SQLiteError) {
    let rows = try facts.prepare(
      """
      SELECT peer, direction = 'out', original_ssrc, original_sequence, rtp_time, row, at_ns
      FROM repair WHERE original_ssrc IS NOT NULL
      """)
    while try rows.step() {
      let source = Source(
        peer: rows.integer(0), ssrc: UInt32(truncatingIfNeeded: rows.integer(2)))
      let key = Self.key(number(of: source), isOut: rows.integer(1) == 1)
      let moment = PacketFacts.moment(
        UInt32(truncatingIfNeeded: rows.integer(4)), UInt16(truncatingIfNeeded: rows.integer(3)))
      let sight = Sight(row: rows.integer(5), at: rows.integer(6))
      if let known = repairPlaces[key, moment] {
        repairs[known].join(sight)
      } else {
        repairPlaces.update(key, moment, to: repairs.count)
        repairs.append(sight)
      }
    }
  }

  private mutating func readFrames(_ facts: ViewFacts) throws(SQLiteError) {
    var formats = PlaceTable()
    let found = try facts.prepare(
      """
      SELECT format, peer, ssrc FROM format
      WHERE direction = 'in' AND outcome IN ('decoded', 'not decoded', 'passed on')
      """)
    while try found.step() {
      let source = Source(
        peer: found.integer(1), ssrc: UInt32(truncatingIfNeeded: found.integer(2)))
      guard let place = places[source] else { continue }
      formats.update(UInt64(bitPattern: found.integer(0)), 0, to: place)
    }
    try facts.forEachRow(of: "frame_store", "format, rtp_time, row, at_ns") { row in
      if let place = formats[UInt64(bitPattern: row.integer(0)), 0] {
        receptions[place].shown.append(
          Sight(row: row.integer(2), at: row.integer(3)),
          at: UInt64(UInt32(truncatingIfNeeded: row.integer(1))))
      }
      return true
    }
    for place in receptions.indices { receptions[place].shown.sort { $0.join($1) } }
  }

  // MARK: Rows

  /// A packet on its way from one peer to another.
  private struct Way {
    /// The index of the sender's stream; nil if the take lacks the sender.
    var stream: Int?
    /// The index of the reception; nil if the take lacks the receiver.
    var reception: Int?
    var ssrc: UInt32
    var sequence: UInt16
    var rtpTime: UInt32?
    var size: Int64?
    var sentRow: Int64?
    var sentAt: Int64?
    var noticedAt: Int64?
  }

  mutating func rows(
    into empty: ComputedRows, _ facts: ViewFacts
  ) throws(SQLiteError) -> ComputedRows {
    var rows = empty
    rows.reserve(packets.packets.count / 2)
    let isOut = packets.ends.map { $0.direction == "out" && !legs.contains($0.peer) }
    let lists = packets.streams.map { destinations(of: $0) }
    for packet in packets.packets where packets.isMedia(packet) {
      guard isOut[Int(packet.end)] else { continue }
      for reception in lists[Int(packet.stream)] {
        add(
          Way(
            stream: Int(packet.stream), reception: reception, ssrc: packet.ssrc,
            sequence: packet.sequence,
            rtpTime: packet.rtpTime, size: packet.size, sentRow: packet.row, sentAt: packet.at),
          to: &rows)
      }
    }
    addArrived(to: &rows)
    try addLost(to: &rows, facts)
    return rows
  }

  /// Adds rows for packets that arrived from a sender that the take lacks, in order of arrival.
  private mutating func addArrived(to rows: inout ComputedRows) {
    var arrived: [(packet: Int32, reception: Int)] = []
    for (place, reception) in receptions.enumerated()
    where !hasSender(reception.source.ssrc, but: reception.source.peer) {
      for arrival in reception.arrivals.values { arrived.append((arrival.packet, place)) }
    }
    arrived.sort { $0.packet < $1.packet }
    for (place, reception) in arrived {
      let packet = packets.packets[Int(place)]
      add(
        Way(
          reception: reception, ssrc: packet.ssrc, sequence: packet.sequence,
          rtpTime: packet.rtpTime, size: packet.size), to: &rows)
    }
  }

  /// Returns the receptions of a stream; nil stands for a receiver that the take lacks.
  private func destinations(of stream: PacketFacts.Stream) -> [Int?] {
    let sender = packets.ends[stream.end].peer
    let others = (receivers[stream.ssrc] ?? []).filter { $0 != sender }.sorted()
    return others.isEmpty ? [nil] : others.map { places[Source(peer: $0, ssrc: stream.ssrc)] }
  }

  private func hasSender(_ ssrc: UInt32, but peer: Int64) -> Bool {
    senders[ssrc]?.contains { $0 != peer } ?? false
  }

  /// Returns whether a stream's lost packets are not among those that its sender sent: the take
  /// lacks the sender, or an observer saw what both ends sent and received.
  private func lacksLost(_ source: Source) -> Bool {
    observed.contains(source.peer) || !hasSender(source.ssrc, but: source.peer)
  }

  /// Adds rows for lost packets that are not among the sent ones.
  private mutating func addLost(
    to rows: inout ComputedRows, _ facts: ViewFacts
  ) throws(SQLiteError) {
    // If the take has the senders of all streams, no loss needs to be inferred.
    guard receptions.contains(where: { lacksLost($0.source) }) else { return }
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
      let source = Source(
        peer: lost.integer(0), ssrc: UInt32(truncatingIfNeeded: lost.integer(1)))
      guard let reception = places[source], lacksLost(source) else { continue }
      let sender = senders[source.ssrc]?.filter { $0 != source.peer }.min()
      add(
        Way(
          stream: sender.flatMap { sentStreams[Source(peer: $0, ssrc: source.ssrc)] },
          reception: reception, ssrc: source.ssrc,
          sequence: UInt16(truncatingIfNeeded: lost.integer(2)),
          rtpTime: lost.isNull(4) ? nil : UInt32(truncatingIfNeeded: lost.integer(4)),
          noticedAt: lost.integer(3)), to: &rows)
    }
  }

  private mutating func add(_ way: Way, to rows: inout ComputedRows) {
    var (arrival, repaired, frame): (Arrival?, Sight?, Sight?)
    let receiver = way.reception.map { receptions[$0].source.peer }
    let sender = way.stream.map { packets.ends[packets.streams[$0].end].peer }
    if let place = way.reception, let time = way.rtpTime {
      arrival = receptions[place].arrivals.value(at: PacketFacts.moment(time, way.sequence))
      frame = receptions[place].shown.value(at: UInt64(time))
      repaired = repair(of: way, at: receptions[place].number, isOut: false)
    }
    let again = way.stream.flatMap { repair(of: way, at: streamNumbers[$0], isOut: true) }
    // A sequence number is used again after 65,536 packets, so a NACK counts only within 10 s.
    let moment = way.sentAt ?? arrival?.at ?? way.noticedAt ?? 0
    let asked = requests(of: way, around: moment)
    let last = way.reception.map { receptions[$0].newest } ?? Int64.min
    let isLost =
      arrival == nil && (!asked.isEmpty || way.sentAt == nil || (way.sentAt ?? 0) < last)
    rows.add(sender)
    rows.add(receiver)
    rows.add(Int64(way.ssrc))
    rows.add(Int64(way.sequence))
    rows.add(way.rtpTime.map { Int64($0) })
    rows.add(way.size)
    rows.add(way.sentRow)
    rows.add(way.sentAt)
    rows.add(arrival.map { packets.packets[Int($0.packet)].row })
    rows.add(arrival?.at)
    rows.add(Int64(arrival?.copies ?? 0))
    rows.add(isLost ? 1 : 0)
    rows.add(asked.min())
    rows.add(Int64(asked.count))
    rows.add(again?.row)
    rows.add(again?.at)
    rows.add(repaired?.row)
    rows.add(repaired?.at)
    rows.add(frame?.row)
    rows.add(frame?.at)
  }

  /// Returns the first retransmission of a packet, as its sender or its receiver saw it; nil if
  /// there is none.
  private func repair(of way: Way, at number: Int, isOut: Bool) -> Sight? {
    guard !repairs.isEmpty, let time = way.rtpTime,
      let place = repairPlaces[
        Self.key(number, isOut: isOut), PacketFacts.moment(time, way.sequence)]
    else { return nil }
    return repairs[place]
  }

  /// Returns when a packet's receiver sent NACKs for it or, if the take lacks the receiver, when
  /// NACKs arrived at the sender.
  private func requests(of way: Way, around moment: Int64) -> [Int64] {
    let receiver = way.reception.map { receptions[$0].number }
    guard !requests.isEmpty, let number = receiver ?? way.stream.map({ streamNumbers[$0] }),
      let place = requestPlaces[Self.key(number, isOut: receiver != nil), UInt64(way.sequence)]
    else { return [] }
    return requests[place].filter { ($0 - moment).magnitude <= 10_000_000_000 }
  }
}
