import RTP

/// Views over contents that are encrypted on the wire.
enum ClearViews {
  static let all = [arrival, repair]

  // MARK: Arrival

  private static let arrival: ComputedView = ComputedView(
    name: "arrival",
    columns: ComputedView.columns(
      "row step peer at_ns direction:t ssrc sequence transport_sequence packet_row arrived "
        + "arrival_ms:r")
  ) { (facts, _) throws(SQLiteError) in
    var rows = arrival.empty()
    let packets = try facts.packets()
    let told = try facts.clear().feedback.sorted { $0.row < $1.row }
    // The last packet with each transport-wide number at each end, before the feedback.
    var newest = PlaceTable()
    var next = 0
    for one in told {
      while next < packets.packets.count, packets.packets[next].row < one.row {
        let packet = packets.packets[next]
        if packet.transportSequence < 1 << 16 {
          newest.update(UInt64(packet.end), UInt64(packet.transportSequence), to: next)
        }
        next += 1
      }
      // Received feedback is about sent packets.
      let end = ViewFacts.End(
        peer: one.end.peer, direction: one.end.direction == "in" ? "out" : "in")
      let place = packets.ends.firstIndex(of: end)
      add(one, packets, to: &rows) { number in
        place.flatMap { newest[UInt64($0), UInt64(number)] }
      }
    }
    return rows
  }

  private static func add(
    _ one: ClearFacts.Feedback, _ packets: PacketFacts, to rows: inout ComputedRows,
    newest: (UInt16) -> Int?
  ) {
    var ticks = [Int32?](repeating: nil, count: Int(one.contents.count))
    for arrival in one.contents.arrivals where arrival.offset < one.contents.count {
      ticks[Int(arrival.offset)] = arrival.ticks
    }
    for offset in 0..<one.contents.count {
      let number = one.contents.base &+ offset
      let packet = newest(number).map { packets.packets[$0] }
      rows.add(one.row)
      rows.add(one.row >> 16)
      rows.add(one.end.peer)
      rows.add(one.at)
      rows.add(text: one.end.direction)
      rows.add(packet.map { Int64($0.ssrc) })
      rows.add(packet.map { Int64($0.sequence) })
      rows.add(Int64(number))
      rows.add(packet?.row)
      rows.add(ticks[Int(offset)] == nil ? 0 : 1)
      rows.add(
        real: ticks[Int(offset)].map { Double(one.contents.reference) * 64 + Double($0) / 4 })
    }
  }

  // MARK: Repairs

  private static let repair: ComputedView = ComputedView(
    name: "repair",
    columns: ComputedView.columns(
      "row step peer at_ns direction:t ssrc payload_type sequence rtp_time size original_ssrc "
        + "original_sequence")
  ) { (facts, _) throws(SQLiteError) in
    var rows = repair.empty()
    let packets = try facts.packets()
    let again = packets.packets.indices.filter { !packets.isMedia(packets.packets[$0]) }
    guard !again.isEmpty else { return rows }
    let clear = try facts.clear()
    guard clear.hasKeys else { return try concluded(facts) }
    let sources = try originals(again, packets, clear, facts)
    for place in again {
      let packet = packets.packets[place]
      let end = packets.ends[packet.direction]
      let original = clear.originals[
        ClearFacts.Retransmission(row: packet.row, peer: end.peer)]
      for number in [packet.row, packet.row >> 16, end.peer, packet.at] { rows.add(number) }
      rows.add(text: end.direction)
      for number in [
        Int64(packet.ssrc), Int64(packet.payloadType), Int64(packet.sequence),
        Int64(packet.rtpTime), packet.size,
      ] {
        rows.add(number)
      }
      let source = original == nil ? nil : sources[packet.ssrc]
      rows.add(source.map { Int64($0) })
      rows.add(source == nil ? nil : original.map { Int64($0) })
    }
    return rows
  }

  /// The rows that the view infers without keys.
  private static func concluded(_ facts: ViewFacts) throws(SQLiteError) -> ComputedRows {
    var rows = repair.empty()
    guard let view = TakeSchema.views.first(where: { $0.name == "repair" }) else { return rows }
    let found = try facts.prepare(view.query)
    while try found.step() {
      for (place, column) in repair.columns.enumerated() {
        if column.kind == .text {
          rows.add(text: found.text(place) ?? "")
        } else {
          rows.add(found.isNull(place) ? nil : found.integer(place))
        }
      }
    }
    return rows
  }

  private struct Moment: Hashable {
    var rtpTime: UInt32
    var sequence: UInt16
  }

  /// Finds the media stream of each retransmission stream: the one that most of its packets match,
  /// by RTP time and number or by NACKs.
  private static func originals(
    _ again: [Int], _ packets: PacketFacts, _ clear: ClearFacts, _ facts: ViewFacts
  ) throws(SQLiteError) -> [UInt32: UInt32] {
    var wanted: [Moment: [UInt32]] = [:]
    var asked: [UInt16: Set<UInt32>] = [:]
    for place in again {
      let packet = packets.packets[place]
      let key = ClearFacts.Retransmission(
        row: packet.row, peer: packets.ends[packet.direction].peer)
      guard let sequence = clear.originals[key] else { continue }
      wanted[Moment(rtpTime: packet.rtpTime, sequence: sequence), default: []].append(packet.ssrc)
      asked[sequence] = []
    }
    guard !wanted.isEmpty else { return [:] }
    var votes: [UInt32: [UInt32: Int]] = [:]
    for packet in packets.packets where packets.isMedia(packet) {
      let moment = Moment(rtpTime: packet.rtpTime, sequence: packet.sequence)
      for source in wanted[moment] ?? [] {
        votes[source, default: [:]][packet.ssrc, default: 0] += 2
      }
    }
    let requests = try facts.prepare("SELECT DISTINCT ssrc, sequence FROM nack")
    while try requests.step() {
      let sequence = UInt16(truncatingIfNeeded: requests.integer(1))
      asked[sequence]?.insert(UInt32(truncatingIfNeeded: requests.integer(0)))
    }
    for (moment, sources) in wanted {
      for source in sources {
        for media in asked[moment.sequence] ?? [] {
          votes[source, default: [:]][media, default: 0] += 1
        }
      }
    }
    return votes.compactMapValues { counts in
      counts.max { ($0.value, $1.key) < ($1.value, $0.key) }?.key
    }
  }
}
