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
    let texts = Texts(&rows)
    if let key {
      guard let one = try CarriedFrames.frame(key, facts) else { return rows }
      for packet in one.packets { add(one.frame, one.format, packet, texts, to: &rows) }
    } else {
      var frames = try CarriedFrames(facts)
      rows.reserve(frames.packetCount)
      try frames.forEach(facts) { frame, format, packet in
        add(frame, format, packet, texts, to: &rows)
      }
    }
    return rows
  }

  /// The strings that rows contain, each stored once.
  private struct Texts {
    private let out, inbound, audio, video: ComputedRows.StoredText

    init(_ rows: inout ComputedRows) {
      out = rows.stored("out")
      inbound = rows.stored("in")
      audio = rows.stored("audio")
      video = rows.stored("video")
    }

    func direction(_ format: CarriedFrames.Format) -> ComputedRows.StoredText {
      format.isOut ? out : inbound
    }

    func kind(_ format: CarriedFrames.Format) -> ComputedRows.StoredText {
      format.isVideo ? video : audio
    }
  }

  private static func add(
    _ frame: CarriedFrames.Frame, _ format: CarriedFrames.Format, _ packet: CarriedFrames.Packet,
    _ texts: Texts, to rows: inout ComputedRows
  ) {
    rows.add(frame.row)
    rows.add(packet.row)
    rows.add(format.peer)
    rows.add(text: texts.direction(format))
    rows.add(format.track)
    rows.add(text: texts.kind(format))
    rows.add(Int64(format.ssrc))
    rows.add(Int64(packet.sequence))
    rows.add(Int64(frame.rtpTime))
    rows.add(packet.at)
    rows.add(packet.size)
    rows.add(packet.marker.map { Int64($0) })
    rows.add(packet.isRepair ? 1 : 0)
  }

  // MARK: Journeys

  /// The totals of a frame's packets.
  private struct Load {
    var frame: CarriedFrames.Frame
    /// The number of packets, not counting copies with the same sequence number.
    var packets: Int32 = 0
    var repairs: Int32 = 0
    var first = Int64.max
    var last = Int64.min

    mutating func add(_ packet: CarriedFrames.Packet, isNew: Bool) {
      packets += isNew ? 1 : 0
      first = min(first, packet.at)
      last = max(last, packet.at)
      repairs += packet.isRepair ? 1 : 0
    }
  }

  /// The capture times of media, by track and step.
  private struct Captures {
    private struct Track: Hashable {
      var peer: Int64
      var track: Int64
    }

    private var places: [Track: Int] = [:]
    private var times: [OrderedTable<Int64>] = []

    init(_ facts: ViewFacts) throws(SQLiteError) {
      try facts.forEachRow(of: "capture", "peer, track, row, at_ns") { row in
        let track = Track(peer: row.integer(0), track: row.integer(1))
        let place = places[track] ?? times.count
        if place == times.count {
          places[track] = place
          times.append(OrderedTable())
        }
        times[place].append(row.integer(3), at: UInt64(bitPattern: row.integer(2) >> 16))
        return true
      }
      for place in times.indices { times[place].sort { $0 = min($0, $1) } }
    }

    /// Returns the index of a format's track; nil if nothing was captured for it.
    func place(of format: CarriedFrames.Format) -> Int? {
      places[Track(peer: format.peer, track: format.track)]
    }

    mutating func time(of frame: CarriedFrames.Frame, at place: Int) -> Int64? {
      times[place].value(at: UInt64(bitPattern: frame.row >> 16))
    }
  }

  /// Received frames by SSRC and RTP time.
  private struct Arrivals {
    private var places: [UInt32: Int] = [:]
    private var tables: [OrderedTable<Int32>] = []

    init(_ loads: [Load], _ formats: [CarriedFrames.Format]) {
      let tableOfFormat = formats.map { format in
        let place = places[format.ssrc] ?? tables.count
        if place == tables.count {
          places[format.ssrc] = place
          tables.append(OrderedTable())
        }
        return place
      }
      for (place, load) in loads.enumerated() {
        let format = Int(load.frame.format)
        guard !formats[format].isOut else { continue }
        tables[tableOfFormat[format]].append(
          Int32(truncatingIfNeeded: place), at: UInt64(load.frame.rtpTime))
      }
      for place in tables.indices { tables[place].sort() }
    }

    /// Calls a closure with the index of each received frame that has the RTP time of a sent frame,
    /// in order.
    mutating func forEach(_ frame: CarriedFrames.Frame, _ ssrc: UInt32, _ body: (Int) -> Void) {
      guard let table = places[ssrc] else { return }
      let key = UInt64(frame.rtpTime)
      var place = tables[table].firstPlace(notBelow: key)
      while place < tables[table].keys.count, tables[table].keys[place] == key {
        body(Int(tables[table].values[place]))
        place += 1
      }
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
    let texts = Texts(&rows)
    var frames = try CarriedFrames(facts)
    let loads = try allLoads(&frames, facts)
    let formats = frames.formats
    var arrivals = Arrivals(loads, formats)
    var captures = try Captures(facts)
    let tracks = formats.map { captures.place(of: $0) }
    rows.reserve(loads.count / 2)
    for load in loads {
      let format = formats[Int(load.frame.format)]
      guard format.isOut else { continue }
      let captured = tracks[Int(load.frame.format)].flatMap {
        captures.time(of: load.frame, at: $0)
      }
      var hasArrived = false
      arrivals.forEach(load.frame, format.ssrc) { place in
        let peer = formats[Int(loads[place].frame.format)].peer
        guard peer != format.peer else { return }
        hasArrived = true
        add(
          load, format, (load: loads[place], peer: peer), captured: captured, texts, to: &rows)
      }
      if !hasArrived { add(load, format, nil, captured: captured, texts, to: &rows) }
    }
    return rows
  }

  /// Returns the totals of each frame's packets, in the order of the frames.
  private static func allLoads(
    _ frames: inout CarriedFrames, _ facts: ViewFacts
  ) throws(SQLiteError) -> [Load] {
    var loads: [Load] = []
    // For each sequence number, the last frame that had a packet with this number, counted from 1;
    // 0 if none had.
    var met = [Int](repeating: 0, count: 1 << 16)
    var row: Int64?
    try frames.forEach(facts) { frame, _, packet in
      if row != frame.row {
        loads.append(Load(frame: frame))
        row = frame.row
      }
      let number = Int(packet.sequence)
      loads[loads.count - 1].add(packet, isNew: met[number] != loads.count)
      met[number] = loads.count
    }
    return loads
  }

  private static func add(
    _ sent: Load, _ format: CarriedFrames.Format, _ came: (load: Load, peer: Int64)?,
    captured: Int64?, _ texts: Texts, to rows: inout ComputedRows
  ) {
    let frame = sent.frame
    rows.add(frame.row)
    rows.add(format.peer)
    rows.add(came?.peer)
    rows.add(format.track)
    rows.add(text: texts.kind(format))
    rows.add(Int64(format.ssrc))
    rows.add(Int64(frame.rtpTime))
    rows.add(format.key)
    rows.add(frame.size)
    rows.add(captured)
    rows.add(frame.at)
    rows.add(Int64(sent.packets))
    rows.add(sent.first)
    rows.add(sent.last)
    rows.add(came.map { Int64($0.load.packets) })
    rows.add(came.map { Int64($0.load.repairs) })
    rows.add(came?.load.first)
    rows.add(came?.load.last)
    rows.add(came?.load.frame.row)
    rows.add(came?.load.frame.at)
    rows.add(real: came.map { Double($0.load.frame.at - (captured ?? frame.at)) / 1e6 })
  }
}
