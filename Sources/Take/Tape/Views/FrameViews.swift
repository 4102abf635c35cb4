/// Views that join frames with the packets that carried them.
enum FrameViews {
  static let all = [framePacket, frameJourney]

  private static let framePacket: ComputedView = ComputedView(
    name: "frame_packet",
    columns: ComputedView.columns(
      "frame_row packet_row peer direction:t track kind:t ssrc sequence rtp_time at_ns size marker "
        + "is_repair"),
    key: "frame_row"
  ) { (facts, key) throws(SQLiteError) in
    var rows = framePacket.empty()
    if let key {
      for carried in try CarriedFrames.packets(ofFrame: key, facts) { carried.write(to: &rows) }
    } else {
      try CarriedFrames(facts).forEach { carried in carried.write(to: &rows) }
    }
    return rows
  }

  // MARK: Journeys

  /// The packets of a frame, added up.
  private struct Load {
    var frame: CarriedFrames.Frame
    var sequences: Set<UInt16> = []
    var first = Int64.max
    var last = Int64.min
    var repairs: Int64 = 0

    mutating func add(_ carried: CarriedFrames.Carried) {
      sequences.insert(carried.sequence)
      first = min(first, carried.at)
      last = max(last, carried.at)
      repairs += carried.isRepair ? 1 : 0
    }
  }

  private struct Picture: Hashable {
    var ssrc: UInt32
    var rtpTime: UInt32
  }

  private struct Capture: Hashable {
    var peer: Int64
    var track: Int64
    var step: Int64
  }

  private static let frameJourney: ComputedView = ComputedView(
    name: "frame_journey",
    columns: ComputedView.columns(
      "frame_row from_peer to_peer track kind:t ssrc rtp_time key size captured_ns encoded_ns "
        + "packets first_sent_ns last_sent_ns arrived_packets repairs first_arrived_ns "
        + "last_arrived_ns decoded_row decoded_ns delay_ms:r")
  ) { (facts, _) throws(SQLiteError) in
    var rows = frameJourney.empty()
    var loads: [Load] = []
    try CarriedFrames(facts).forEach { carried in
      if loads.last?.frame.row != carried.frame.row { loads.append(Load(frame: carried.frame)) }
      loads[loads.count - 1].add(carried)
    }
    var came: [Picture: [Int]] = [:]
    for (place, load) in loads.enumerated() where !load.frame.isOut {
      came[Picture(ssrc: load.frame.ssrc, rtpTime: load.frame.rtpTime), default: []].append(place)
    }
    var captured: [Capture: Int64] = [:]
    let captures = try facts.prepare("SELECT peer, track, row >> 16, at_ns FROM capture")
    while try captures.step() {
      let key = Capture(
        peer: captures.integer(0), track: captures.integer(1), step: captures.integer(2))
      captured[key] = min(captured[key] ?? Int64.max, captures.integer(3))
    }
    for load in loads where load.frame.isOut {
      let frame = load.frame
      let picture = Picture(ssrc: frame.ssrc, rtpTime: frame.rtpTime)
      let others = came[picture]?.filter { loads[$0].frame.peer != frame.peer } ?? []
      let at = captured[Capture(peer: frame.peer, track: frame.track, step: frame.row >> 16)]
      for other in others.isEmpty ? [nil] : others.map({ Optional(loads[$0]) }) {
        add(load, other, captured: at, to: &rows)
      }
    }
    return rows
  }

  private static func add(
    _ sent: Load, _ came: Load?, captured: Int64?, to rows: inout ComputedRows
  ) {
    let frame = sent.frame
    for number in [frame.row, frame.peer, came?.frame.peer, frame.track] { rows.add(number) }
    rows.add(text: frame.kind)
    for number in [
      Int64(frame.ssrc), Int64(frame.rtpTime), frame.key, frame.size, captured, frame.at,
      Int64(sent.sequences.count), sent.first, sent.last,
    ] {
      rows.add(number)
    }
    for number in [
      came.map { Int64($0.sequences.count) }, came?.repairs, came?.first, came?.last,
      came?.frame.row, came?.frame.at,
    ] {
      rows.add(number)
    }
    rows.add(real: came.map { Double($0.frame.at - (captured ?? frame.at)) / 1e6 })
  }
}

/// Frames with their packets.
struct CarriedFrames {
  struct Frame {
    var row: Int64
    var at: Int64
    var peer: Int64
    var isOut: Bool
    var track: Int64
    var kind: String
    var ssrc: UInt32
    /// As on the wire, with the sender's offset.
    var rtpTime: UInt32
    var key: Int64
    var size: Int64
  }

  /// A packet of a frame.
  struct Carried {
    var frame: Frame
    var row: Int64
    var sequence: UInt16
    var at: Int64
    var size: Int64
    /// nil for a repair packet.
    var marker: Int64?
    var isRepair: Bool

    func write(to rows: inout ComputedRows) {
      for number in [frame.row, row, frame.peer] { rows.add(number) }
      rows.add(text: frame.isOut ? "out" : "in")
      rows.add(frame.track)
      rows.add(text: frame.kind)
      for number in [
        Int64(frame.ssrc), Int64(sequence), Int64(frame.rtpTime), at, size, marker,
        isRepair ? 1 : 0,
      ] {
        rows.add(number)
      }
    }
  }

  private struct Source: Hashable {
    var peer: Int64
    var ssrc: UInt32
  }

  private struct Time: Hashable {
    var peer: Int64
    var isOut: Bool
    var ssrc: UInt32
    var rtpTime: UInt32
  }

  private static let query = """
    SELECT frame_store.row, frame_store.at_ns, format.peer, format.direction, format.track,
      format.kind, format.ssrc, frame_store.rtp_time, format.key, frame_store.size, format.outcome
    FROM frame_store JOIN format USING (format)
    WHERE format.outcome NOT IN ('concealed', 'recovered') AND format.kind IN ('audio', 'video')
    """

  private let facts: ViewFacts
  private let packets: PacketFacts
  private var repairs: [Time: [(row: Int64, sequence: UInt16, at: Int64, size: Int64)]] = [:]

  init(_ facts: ViewFacts) throws(SQLiteError) {
    self.facts = facts
    packets = try facts.packets()
    let rows = try facts.prepare(
      """
      SELECT peer, direction, original_ssrc, rtp_time, row, original_sequence, at_ns, size
      FROM repair WHERE original_ssrc IS NOT NULL
      """)
    while try rows.step() {
      let time = Time(
        peer: rows.integer(0), isOut: rows.text(1) == "out",
        ssrc: UInt32(truncatingIfNeeded: rows.integer(2)),
        rtpTime: UInt32(truncatingIfNeeded: rows.integer(3)))
      repairs[time, default: []].append(
        (
          rows.integer(4), UInt16(truncatingIfNeeded: rows.integer(5)), rows.integer(6),
          rows.integer(7)
        ))
    }
  }

  private static func frame(_ row: borrowing SQLiteStatement) -> Frame {
    Frame(
      row: row.integer(0), at: row.integer(1), peer: row.integer(2), isOut: row.text(3) == "out",
      track: row.integer(4), kind: row.text(5) ?? "",
      ssrc: UInt32(truncatingIfNeeded: row.integer(6)),
      rtpTime: UInt32(truncatingIfNeeded: row.integer(7)), key: row.integer(8),
      size: row.integer(9))
  }

  /// Visits the packets of all frames, frame by frame.
  func forEach(_ body: (Carried) -> Void) throws(SQLiteError) {
    var firstPackets: [Source: UInt32] = [:]
    var places: [Source: Int32] = [:]
    var outs: [Int64: Int32] = [:]
    var ins: [Int64: Int32] = [:]
    for (place, end) in packets.ends.enumerated() {
      if end.direction == "out" { outs[end.peer] = Int32(place) }
      if end.direction == "in" { ins[end.peer] = Int32(place) }
    }
    for packet in packets.packets {
      let end = packets.ends[packet.direction]
      let source = Source(peer: end.peer, ssrc: packet.ssrc)
      guard end.direction == "out", places[source] == nil else { continue }
      places[source] = packet.end
      firstPackets[source] = packet.rtpTime
    }
    // The offset that a sender adds to the RTP times of its frames, per stream.
    var shifts: [Source: UInt32] = [:]
    let rows = try facts.prepare(Self.query + " ORDER BY frame_store.row")
    while try rows.step() {
      var frame = Self.frame(rows)
      if frame.isOut {
        let source = Source(peer: frame.peer, ssrc: frame.ssrc)
        if shifts[source] == nil, rows.text(10) == "encoded", let first = firstPackets[source] {
          shifts[source] = first &- frame.rtpTime
        }
        frame.rtpTime = frame.rtpTime &+ (shifts[source] ?? 0)
      }
      carry(frame, end: (frame.isOut ? outs : ins)[frame.peer], body)
    }
  }

  private func carry(_ frame: Frame, end: Int32?, _ body: (Carried) -> Void) {
    guard let end else { return }
    let time = PacketFacts.Time(end: end, ssrc: frame.ssrc, rtpTime: frame.rtpTime)
    for place in packets.places(of: time) {
      let packet = packets.packets[place]
      body(
        Carried(
          frame: frame, row: packet.row, sequence: packet.sequence, at: packet.at,
          size: packet.size, marker: Int64(packet.marker), isRepair: false))
    }
    guard !repairs.isEmpty else { return }
    let again = Time(
      peer: frame.peer, isOut: frame.isOut, ssrc: frame.ssrc, rtpTime: frame.rtpTime)
    for repair in repairs[again] ?? [] {
      body(
        Carried(
          frame: frame, row: repair.row, sequence: repair.sequence, at: repair.at,
          size: repair.size, marker: nil, isRepair: true))
    }
  }

  // MARK: One frame

  /// The maximum time in nanoseconds between a packet and the decoding or encoding of its frame.
  private static let span: Int64 = 15_000_000_000

  /// Finds the packets of one frame without going through all frames.
  static func packets(ofFrame row: Int64, _ facts: ViewFacts) throws(SQLiteError) -> [Carried] {
    let found = try facts.prepare(query + " AND frame_store.row = \(row)")
    guard try found.step() else { return [] }
    var frame = frame(found)
    if frame.isOut { frame.rtpTime = frame.rtpTime &+ (try shift(of: frame, facts)) }
    let lower = try step(at: frame.isOut ? frame.at - 1_000_000_000 : frame.at - span, facts)
    let upper = try step(at: frame.isOut ? frame.at + span : frame.at + 1_000_000_000, facts)
    let rows = try facts.prepare(
      """
      SELECT packet_store.row, packet_store.at_ns, sequence, size, marker_type >> 7 & 1,
        ssrc & 4294967295 = \(frame.ssrc)
      FROM packet_store JOIN path_end USING (path)
      WHERE packet_store.row BETWEEN \(lower << 16) AND \((upper + 5_000) << 16)
        AND marker_type IS NOT NULL AND rtp_time & 4294967295 = \(frame.rtpTime)
        AND path_end.peer = \(frame.peer)
        AND path_end.direction = '\(frame.isOut ? "out" : "in")'
      ORDER BY packet_store.row
      """)
    var carried: [Carried] = []
    var hasOthers = false
    while try rows.step() {
      guard rows.integer(5) == 1 else {
        hasOthers = true
        continue
      }
      carried.append(
        Carried(
          frame: frame, row: rows.integer(0),
          sequence: UInt16(truncatingIfNeeded: rows.integer(2)), at: rows.integer(1),
          size: rows.integer(3), marker: rows.integer(4), isRepair: false))
    }
    guard hasOthers else { return carried }
    let again = try facts.prepare(
      """
      SELECT row, original_sequence, at_ns, size FROM repair
      WHERE rtp_time = \(frame.rtpTime) AND original_ssrc = \(frame.ssrc)
        AND peer = \(frame.peer) AND direction = '\(frame.isOut ? "out" : "in")'
      """)
    while try again.step() {
      carried.append(
        Carried(
          frame: frame, row: again.integer(0),
          sequence: UInt16(truncatingIfNeeded: again.integer(1)), at: again.integer(2),
          size: again.integer(3), marker: nil, isRepair: true))
    }
    return carried
  }

  /// The RTP time offset of a frame's stream, from its first frame and first packet.
  private static func shift(of frame: Frame, _ facts: ViewFacts) throws(SQLiteError) -> UInt32 {
    let frames = try facts.prepare(
      query + " AND format.peer = \(frame.peer) AND format.direction = 'out'"
        + " AND format.outcome = 'encoded' AND format.ssrc = \(frame.ssrc)"
        + " ORDER BY frame_store.row LIMIT 1")
    let packets = try facts.prepare(
      """
      SELECT rtp_time FROM packet_store JOIN path_end USING (path)
      WHERE marker_type IS NOT NULL AND ssrc & 4294967295 = \(frame.ssrc)
        AND path_end.peer = \(frame.peer) AND path_end.direction = 'out'
      ORDER BY packet_store.row LIMIT 1
      """)
    guard try frames.step(), try packets.step() else { return 0 }
    return UInt32(truncatingIfNeeded: packets.integer(0))
      &- UInt32(truncatingIfNeeded: frames.integer(7))
  }

  /// The step at or before an instant.
  private static func step(at instant: Int64, _ facts: ViewFacts) throws(SQLiteError) -> Int64 {
    let steps = try facts.prepare(
      "SELECT first_step FROM tape WHERE at_ns <= \(instant) ORDER BY first_step DESC LIMIT 1")
    return try steps.step() ? steps.integer(0) : 0
  }
}
