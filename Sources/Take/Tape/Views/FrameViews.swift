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
    /// How many numbers.
    var packets: Int64 = 0
    var first = Int64.max
    var last = Int64.min
    var repairs: Int64 = 0

    mutating func add(_ carried: CarriedFrames.Carried, isNew: Bool) {
      packets += isNew ? 1 : 0
      first = min(first, carried.at)
      last = max(last, carried.at)
      repairs += carried.isRepair ? 1 : 0
    }
  }

  /// When media was captured, by track and step.
  private struct Captures {
    private var tracks = PlaceTable()
    private var trackCount = 0
    private var places = PlaceTable()
    private var times: [Int64] = []

    init(_ facts: ViewFacts) throws(SQLiteError) {
      let rows = try facts.prepare("SELECT peer, track, row >> 16, at_ns FROM capture")
      while try rows.step() {
        let (peer, track) = (rows.integer(0), rows.integer(1))
        let (step, at) = (UInt64(bitPattern: rows.integer(2)), rows.integer(3))
        let number = trackNumber(peer, track) ?? trackCount
        if number == trackCount {
          tracks.update(UInt64(bitPattern: peer), UInt64(bitPattern: track), to: number)
          trackCount += 1
        }
        if let place = places[UInt64(number), step] {
          times[place] = min(times[place], at)
        } else {
          places.update(UInt64(number), step, to: times.count)
          times.append(at)
        }
      }
    }

    private func trackNumber(_ peer: Int64, _ track: Int64) -> Int? {
      tracks[UInt64(bitPattern: peer), UInt64(bitPattern: track)]
    }

    func time(of frame: CarriedFrames.Frame) -> Int64? {
      guard let number = trackNumber(frame.peer, frame.track) else { return nil }
      return places[UInt64(number), UInt64(bitPattern: frame.row >> 16)].map { times[$0] }
    }
  }

  private static let frameJourney: ComputedView = ComputedView(
    name: "frame_journey",
    columns: ComputedView.columns(
      "frame_row from_peer to_peer track kind:t ssrc rtp_time key size captured_ns encoded_ns "
        + "packets first_sent_ns last_sent_ns arrived_packets repairs first_arrived_ns "
        + "last_arrived_ns decoded_row decoded_ns delay_ms:r")
  ) { (facts, _) throws(SQLiteError) in
    var rows = frameJourney.empty()
    let loads = try allLoads(facts)
    // The received ones of each picture: the first, and from each the next.
    var came = PlaceTable(capacity: loads.count / 2)
    var next = [Int32](repeating: -1, count: loads.count)
    for place in loads.indices.reversed() where !loads[place].frame.isOut {
      let frame = loads[place].frame
      let later = came.update(UInt64(frame.ssrc), UInt64(frame.rtpTime), to: place)
      next[place] = Int32(later ?? -1)
    }
    let captures = try Captures(facts)
    rows.reserve(loads.count / 2)
    for load in loads where load.frame.isOut {
      let frame = load.frame
      let captured = captures.time(of: frame)
      var hasArrived = false
      var place = came[UInt64(frame.ssrc), UInt64(frame.rtpTime)] ?? -1
      while place >= 0 {
        if loads[place].frame.peer != frame.peer {
          hasArrived = true
          add(load, loads[place], captured: captured, to: &rows)
        }
        place = Int(next[place])
      }
      if !hasArrived { add(load, nil, captured: captured, to: &rows) }
    }
    return rows
  }

  /// What the packets of all frames come to, in the order of the frames.
  private static func allLoads(_ facts: ViewFacts) throws(SQLiteError) -> [Load] {
    var loads: [Load] = []
    // Which frame had a sequence number last, counted from 1.
    var met = [Int](repeating: 0, count: 1 << 16)
    try CarriedFrames(facts).forEach { carried in
      if loads.last?.frame.row != carried.frame.row { loads.append(Load(frame: carried.frame)) }
      let number = Int(carried.sequence)
      loads[loads.count - 1].add(carried, isNew: met[number] != loads.count)
      met[number] = loads.count
    }
    return loads
  }

  private static func add(
    _ sent: Load, _ came: Load?, captured: Int64?, to rows: inout ComputedRows
  ) {
    let frame = sent.frame
    rows.add(frame.row)
    rows.add(frame.peer)
    rows.add(came?.frame.peer)
    rows.add(frame.track)
    rows.add(text: frame.kind)
    rows.add(Int64(frame.ssrc))
    rows.add(Int64(frame.rtpTime))
    rows.add(frame.key)
    rows.add(frame.size)
    rows.add(captured)
    rows.add(frame.at)
    rows.add(sent.packets)
    rows.add(sent.first)
    rows.add(sent.last)
    rows.add(came?.packets)
    rows.add(came?.repairs)
    rows.add(came?.first)
    rows.add(came?.last)
    rows.add(came?.frame.row)
    rows.add(came?.frame.at)
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
      rows.add(frame.row)
      rows.add(row)
      rows.add(frame.peer)
      rows.add(text: frame.isOut ? "out" : "in")
      rows.add(frame.track)
      rows.add(text: frame.kind)
      rows.add(Int64(frame.ssrc))
      rows.add(Int64(sequence))
      rows.add(Int64(frame.rtpTime))
      rows.add(at)
      rows.add(size)
      rows.add(marker)
      rows.add(isRepair ? 1 : 0)
    }
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
  private let times: PacketTimes
  private var repairs: [Time: [(row: Int64, sequence: UInt16, at: Int64, size: Int64)]] = [:]

  init(_ facts: ViewFacts) throws(SQLiteError) {
    self.facts = facts
    packets = try facts.packets()
    times = PacketTimes(packets)
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

  /// The frames of one format: what they have in common, and whether they were encoded.
  private struct Format {
    var frame: Frame
    var isEncoded: Bool
    /// Whose packets carry them; nil where the take has none of that end.
    var stream: UInt64?
  }

  /// Formats of frames that packets carry, and their places by their numbers.
  private func readFormats() throws(SQLiteError) -> (formats: [Format], places: PlaceTable) {
    var outs: [Int64: Int32] = [:]
    var ins: [Int64: Int32] = [:]
    for (place, end) in packets.ends.enumerated() {
      if end.direction == "out" { outs[end.peer] = Int32(place) }
      if end.direction == "in" { ins[end.peer] = Int32(place) }
    }
    var (formats, places): ([Format], PlaceTable) = ([], PlaceTable())
    let rows = try facts.prepare(
      """
      SELECT 0, 0, peer, direction, track, kind, ssrc, 0, key, 0, outcome, format FROM format
      WHERE outcome NOT IN ('concealed', 'recovered') AND kind IN ('audio', 'video')
      """)
    while try rows.step() {
      let frame = Self.frame(rows)
      let end = (frame.isOut ? outs : ins)[frame.peer]
      places.update(UInt64(bitPattern: rows.integer(11)), 0, to: formats.count)
      formats.append(
        Format(
          frame: frame, isEncoded: rows.text(10) == "encoded",
          stream: end.map { PacketFacts.stream($0, frame.ssrc) }))
    }
    return (formats, places)
  }

  /// Goes through the packets of all frames, frame by frame.
  func forEach(_ body: (Carried) -> Void) throws(SQLiteError) {
    let (formats, places) = try readFormats()
    var firstPackets = PlaceTable()
    for place in packets.packets.indices {
      let stream = packets.packets[place].stream
      if firstPackets[stream, 0] == nil { firstPackets.update(stream, 0, to: place) }
    }
    // The offset that a sender adds to the RTP times of its frames, per stream.
    var shifts: [UInt32] = []
    var shiftPlaces = PlaceTable()
    let rows = try facts.prepare(
      "SELECT row, at_ns, format, rtp_time, size FROM frame_store ORDER BY row")
    while try rows.step() {
      guard let place = places[UInt64(bitPattern: rows.integer(2)), 0] else { continue }
      let format = formats[place]
      guard let stream = format.stream else { continue }
      var frame = format.frame
      (frame.row, frame.at, frame.size) = (rows.integer(0), rows.integer(1), rows.integer(4))
      frame.rtpTime = UInt32(truncatingIfNeeded: rows.integer(3))
      if frame.isOut {
        if format.isEncoded, shiftPlaces[stream, 0] == nil, let first = firstPackets[stream, 0] {
          shiftPlaces.update(stream, 0, to: shifts.count)
          shifts.append(packets.packets[first].rtpTime &- frame.rtpTime)
        }
        frame.rtpTime = frame.rtpTime &+ (shiftPlaces[stream, 0].map { shifts[$0] } ?? 0)
      }
      carry(frame, stream, body)
    }
  }

  private func carry(_ frame: Frame, _ stream: UInt64, _ body: (Carried) -> Void) {
    times.forEach(ofStream: stream, rtpTime: frame.rtpTime) { packet in
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
