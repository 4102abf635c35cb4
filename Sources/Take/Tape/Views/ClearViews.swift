import RTP

/// Views of facts that packets contain in encrypted form.
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
    let told = try facts.feedback().sorted { $0.row < $1.row }
    let texts = packets.ends.map { rows.stored($0.direction) }
    rows.reserve(told.reduce(0) { $0 + Int($1.contents.count) })
    // For each end, the last packet with each transport-wide number before the current feedback.
    var newest = [NewestPackets](repeating: NewestPackets(), count: packets.ends.count)
    // Received feedback is about sent packets, and sent feedback is about received packets.
    let subjects = packets.ends.map { end in
      packets.paths.place(
        of: ViewFacts.End(peer: end.peer, direction: end.direction == "in" ? "out" : "in"))
    }
    var ticks: [Int32?] = []
    var next = 0
    for one in told {
      while next < packets.packets.count, packets.packets[next].row < one.row {
        let packet = packets.packets[next]
        if let number = UInt16(exactly: packet.transportSequence) {
          newest[Int(packet.end)].update(number, to: Int32(truncatingIfNeeded: next))
        }
        next += 1
      }
      ticks.removeAll(keepingCapacity: true)
      ticks.append(contentsOf: repeatElement(nil, count: Int(one.contents.count)))
      for arrival in one.contents.arrivals where arrival.offset < one.contents.count {
        ticks[Int(arrival.offset)] = arrival.ticks
      }
      let peer = packets.ends[one.end].peer
      for (offset, ticks) in ticks.enumerated() {
        let number = one.contents.base &+ UInt16(truncatingIfNeeded: offset)
        let place = subjects[one.end].flatMap { newest[$0][number] }
        let packet = place.map { packets.packets[Int($0)] }
        rows.add(one.row)
        rows.add(one.row >> 16)
        rows.add(peer)
        rows.add(one.at)
        rows.add(text: texts[one.end])
        rows.add(packet.map { Int64($0.ssrc) })
        rows.add(packet.map { Int64($0.sequence) })
        rows.add(Int64(number))
        rows.add(packet?.row)
        rows.add(ticks == nil ? 0 : 1)
        rows.add(real: ticks.map { Double(one.contents.reference) * 64 + Double($0) / 4 })
      }
    }
    return rows
  }

  /// The last packet with each transport-wide number at an end.
  ///
  /// Memory is allocated for 256 numbers at a time, when one of them is used.
  private struct NewestPackets {
    private var groups = [[Int32]](repeating: [], count: 256)

    subscript(number: UInt16) -> Int32? {
      let group = groups[Int(number >> 8)]
      guard !group.isEmpty, group[Int(number & 255)] >= 0 else { return nil }
      return group[Int(number & 255)]
    }

    mutating func update(_ number: UInt16, to packet: Int32) {
      let group = Int(number >> 8)
      if groups[group].isEmpty { groups[group] = [Int32](repeating: -1, count: 256) }
      groups[group][Int(number & 255)] = packet
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
    let clear = try facts.retransmissions()
    guard clear.hasKeys else { return try concluded(facts) }
    let sources = try originals(again, packets, clear, facts)
    rows.reserve(again.count)
    for place in again {
      let packet = packets.packets[place]
      let end = packets.ends[Int(packet.end)]
      let original = clear.originals[place]
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

  /// Returns the rows of `repair` that can be inferred without keys.
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

  /// Finds the media stream that each retransmission stream repairs.
  ///
  /// Each retransmission counts for the streams that have a packet with the RTP time and number of
  /// the original, or whose NACKs request the original. The stream with the highest count is
  /// chosen.
  private static func originals(
    _ again: [Int], _ packets: PacketFacts, _ clear: ClearFacts.Retransmissions,
    _ facts: ViewFacts
  ) throws(SQLiteError) -> [UInt32: UInt32] {
    var wanted: [Moment: [UInt32]] = [:]
    var asked: [UInt16: Set<UInt32>] = [:]
    for place in again {
      let packet = packets.packets[place]
      guard let sequence = clear.originals[place] else { continue }
      wanted[Moment(rtpTime: packet.rtpTime, sequence: sequence), default: []].append(packet.ssrc)
      asked[sequence] = []
    }
    guard !wanted.isEmpty else { return [:] }
    // Most packets were never retransmitted; a bitmap excludes them fast.
    var isWanted = [Bool](repeating: false, count: 1 << 16)
    for sequence in asked.keys { isWanted[Int(sequence)] = true }
    var votes: [UInt32: [UInt32: Int]] = [:]
    for packet in packets.packets
    where isWanted[Int(packet.sequence)] && packets.isMedia(packet) {
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
