/// Finds the packets that carried each of a take's frames.
struct CarriedFrames {
  /// The properties that all frames of a format share.
  struct Format {
    var peer: Int64
    var isOut: Bool
    var track: Int64
    var isVideo: Bool
    var ssrc: UInt32
    var key: Int64
    fileprivate var isMedia: Bool
    /// The index in `sources` of the packets that carry the frames; nil if the peer has no packets
    /// in the frames' direction.
    fileprivate var source: Int?
  }

  struct Frame {
    var row: Int64
    var at: Int64
    var size: Int64
    /// The RTP time on the wire; for a sent frame, it differs from the row's by the sender's
    /// offset.
    var rtpTime: UInt32
    /// The index of the frame's format in `formats`.
    var format: Int32
  }

  struct Packet {
    var row: Int64
    var at: Int64
    var size: Int64
    var sequence: UInt16
    /// The marker bit; nil for a retransmission.
    var marker: UInt8?

    var isRepair: Bool { marker == nil }
  }

  /// The packets with one SSRC at one end.
  private struct Source {
    /// The indexes of the packets, by RTP time.
    var places = OrderedTable<Int32>()
    var repairs = OrderedTable<Packet>()
    /// The RTP time of the first packet; nil if there is none.
    var firstTime: UInt32?
    /// The offset between RTP times in rows and in packets; nil until it is known.
    var shift: UInt32?
  }

  private struct SourceName: Hashable {
    var end: Int
    var ssrc: UInt32
  }

  /// The SQL condition for sent frames that reveal the offset between RTP times in packets and in
  /// rows: all frames except telephone events, which are passed on as audio.
  private static let isMedia =
    "(format.outcome = 'encoded' OR format.outcome = 'passed on' AND format.kind = 'video')"
  private static let formatColumns =
    "format.peer, format.direction = 'out', format.track, format.kind = 'video', format.ssrc, "
    + "format.key, \(isMedia)"
  private static let isCarried =
    "format.outcome NOT IN ('concealed', 'recovered') AND format.kind IN ('audio', 'video')"

  private let packets: PacketFacts
  private(set) var formats: [Format] = []
  /// The indexes in `formats`, by the number of the format.
  private var formatPlaces = PlaceTable()
  private var sources: [Source] = []
  private var sourcePlaces: [SourceName: Int] = [:]

  init(_ facts: ViewFacts) throws(SQLiteError) {
    packets = try facts.packets()
    let rows = try facts.prepare(
      "SELECT \(Self.formatColumns), format FROM format WHERE \(Self.isCarried)")
    while try rows.step() {
      var format = Self.format(rows)
      let end = ViewFacts.End(peer: format.peer, direction: format.isOut ? "out" : "in")
      if let place = packets.paths.place(of: end) { format.source = source(place, format.ssrc) }
      formatPlaces.update(UInt64(bitPattern: rows.integer(7)), 0, to: formats.count)
      formats.append(format)
    }
    try readRepairs(facts)
  }

  /// The number of packets that can belong to frames, over all sources.
  var packetCount: Int { sources.reduce(0) { $0 + $1.places.keys.count + $1.repairs.keys.count } }

  private static func format(_ row: borrowing SQLiteStatement) -> Format {
    Format(
      peer: row.integer(0), isOut: row.integer(1) == 1, track: row.integer(2),
      isVideo: row.integer(3) == 1, ssrc: UInt32(truncatingIfNeeded: row.integer(4)),
      key: row.integer(5), isMedia: row.integer(6) == 1)
  }

  /// Returns the index of the source with the given SSRC at an end, collecting its packets if it is
  /// new.
  private mutating func source(_ end: Int, _ ssrc: UInt32) -> Int {
    let name = SourceName(end: end, ssrc: ssrc)
    if let known = sourcePlaces[name] { return known }
    var source = Source()
    if let stream = packets.stream(end, ssrc) {
      let places = packets.places(ofStream: stream)
      source.firstTime = places.first.map { packets.packets[Int($0)].rtpTime }
      source.places.reserve(places.count)
      for place in places {
        source.places.append(place, at: UInt64(packets.packets[Int(place)].rtpTime))
      }
      source.places.sort()
    }
    sourcePlaces[name] = sources.count
    sources.append(source)
    return sources.count - 1
  }

  private mutating func readRepairs(_ facts: ViewFacts) throws(SQLiteError) {
    let rows = try facts.prepare(
      """
      SELECT peer, direction, original_ssrc, rtp_time, row, original_sequence, at_ns, size
      FROM repair WHERE original_ssrc IS NOT NULL
      """)
    while try rows.step() {
      let end = ViewFacts.End(peer: rows.integer(0), direction: rows.text(1) ?? "")
      guard let place = packets.paths.place(of: end),
        let source = sourcePlaces[
          SourceName(end: place, ssrc: UInt32(truncatingIfNeeded: rows.integer(2)))]
      else { continue }
      sources[source].repairs.append(
        Packet(
          row: rows.integer(4), at: rows.integer(6), size: rows.integer(7),
          sequence: UInt16(truncatingIfNeeded: rows.integer(5))),
        at: UInt64(UInt32(truncatingIfNeeded: rows.integer(3))))
    }
    for place in sources.indices { sources[place].repairs.sort() }
  }

  /// Calls a closure for each packet of each frame, frame by frame.
  mutating func forEach(
    _ facts: ViewFacts, _ body: (Frame, Format, Packet) -> Void
  ) throws(SQLiteError) {
    try facts.forEachRow(of: "frame_store", "row, at_ns, format, rtp_time, size") { row in
      guard let place = formatPlaces[UInt64(bitPattern: row.integer(2)), 0],
        let source = formats[place].source
      else { return true }
      let format = formats[place]
      var frame = Frame(
        row: row.integer(0), at: row.integer(1), size: row.integer(4),
        rtpTime: UInt32(truncatingIfNeeded: row.integer(3)),
        format: Int32(truncatingIfNeeded: place))
      if format.isOut {
        if format.isMedia, sources[source].shift == nil, let first = sources[source].firstTime {
          sources[source].shift = first &- frame.rtpTime
        }
        frame.rtpTime = frame.rtpTime &+ (sources[source].shift ?? 0)
      }
      carry(frame, format, source, body)
      return true
    }
  }

  private mutating func carry(
    _ frame: Frame, _ format: Format, _ source: Int, _ body: (Frame, Format, Packet) -> Void
  ) {
    let key = UInt64(frame.rtpTime)
    var next = sources[source].places.firstPlace(notBelow: key)
    while next < sources[source].places.keys.count, sources[source].places.keys[next] == key {
      let packet = packets.packets[Int(sources[source].places.values[next])]
      body(
        frame, format,
        Packet(
          row: packet.row, at: packet.at, size: packet.size, sequence: packet.sequence,
          marker: packet.marker))
      next += 1
    }
    guard !sources[source].repairs.keys.isEmpty else { return }
    next = sources[source].repairs.firstPlace(notBelow: key)
    while next < sources[source].repairs.keys.count, sources[source].repairs.keys[next] == key {
      body(frame, format, sources[source].repairs.values[next])
      next += 1
    }
  }

  // MARK: One frame

  /// How long before a received frame, or after a sent one, to search for its packets, in
  /// nanoseconds.
  private static let span: Int64 = 15_000_000_000

  private static let query =
    "SELECT \(formatColumns), frame_store.row, frame_store.at_ns, frame_store.rtp_time, "
    + "frame_store.size FROM frame_store JOIN format USING (format) WHERE \(isCarried)"

  /// Finds one frame and its packets without going through all frames; nil for an unknown row, or a
  /// frame that has no packets, such as concealed audio.
  static func frame(
    _ row: Int64, _ facts: ViewFacts
  ) throws(SQLiteError) -> (frame: Frame, format: Format, packets: [Packet])? {
    let found = try facts.prepare(query + " AND frame_store.row = \(row)")
    guard try found.step() else { return nil }
    let format = format(found)
    var frame = Frame(
      row: found.integer(7), at: found.integer(8), size: found.integer(10),
      rtpTime: UInt32(truncatingIfNeeded: found.integer(9)), format: 0)
    if format.isOut { frame.rtpTime = frame.rtpTime &+ (try shift(of: format, facts)) }
    let lower = try step(at: format.isOut ? frame.at - 1_000_000_000 : frame.at - span, facts)
    let upper = try step(at: format.isOut ? frame.at + span : frame.at + 1_000_000_000, facts)
    let rows = try facts.prepare(
      """
      SELECT packet_store.row, packet_store.at_ns, sequence, size, marker_type >> 7 & 1,
        ssrc & 4294967295 = \(format.ssrc)
      FROM packet_store JOIN path_end USING (path)
      WHERE packet_store.row BETWEEN \(lower << 16) AND \((upper + 5_000) << 16)
        AND marker_type IS NOT NULL AND rtp_time & 4294967295 = \(frame.rtpTime)
        AND path_end.peer = \(format.peer)
        AND path_end.direction = '\(format.isOut ? "out" : "in")'
      ORDER BY packet_store.row
      """)
    var packets: [Packet] = []
    var hasOthers = false
    while try rows.step() {
      guard rows.integer(5) == 1 else {
        hasOthers = true
        continue
      }
      packets.append(
        Packet(
          row: rows.integer(0), at: rows.integer(1), size: rows.integer(3),
          sequence: UInt16(truncatingIfNeeded: rows.integer(2)),
          marker: UInt8(truncatingIfNeeded: rows.integer(4))))
    }
    guard hasOthers else { return (frame, format, packets) }
    let again = try facts.prepare(
      """
      SELECT row, original_sequence, at_ns, size FROM repair
      WHERE rtp_time = \(frame.rtpTime) AND original_ssrc = \(format.ssrc)
        AND peer = \(format.peer) AND direction = '\(format.isOut ? "out" : "in")'
      """)
    while try again.step() {
      packets.append(
        Packet(
          row: again.integer(0), at: again.integer(2), size: again.integer(3),
          sequence: UInt16(truncatingIfNeeded: again.integer(1))))
    }
    return (frame, format, packets)
  }

  /// Computes the offset between RTP times in packets and in rows, from the first packet and frame.
  private static func shift(of format: Format, _ facts: ViewFacts) throws(SQLiteError) -> UInt32 {
    let frames = try facts.prepare(
      query + " AND format.peer = \(format.peer) AND format.direction = 'out'"
        + " AND \(isMedia) AND format.ssrc = \(format.ssrc)"
        + " ORDER BY frame_store.row LIMIT 1")
    let packets = try facts.prepare(
      """
      SELECT rtp_time FROM packet_store JOIN path_end USING (path)
      WHERE marker_type IS NOT NULL AND ssrc & 4294967295 = \(format.ssrc)
        AND path_end.peer = \(format.peer) AND path_end.direction = 'out'
      ORDER BY packet_store.row LIMIT 1
      """)
    guard try frames.step(), try packets.step() else { return 0 }
    return UInt32(truncatingIfNeeded: packets.integer(0))
      &- UInt32(truncatingIfNeeded: frames.integer(9))
  }

  /// Returns the first step in the last row of `tape` that begins at or before an instant; 0 if
  /// there is none.
  private static func step(at instant: Int64, _ facts: ViewFacts) throws(SQLiteError) -> Int64 {
    let steps = try facts.prepare(
      "SELECT first_step FROM tape WHERE at_ns <= \(instant) ORDER BY first_step DESC LIMIT 1")
    return try steps.step() ? steps.integer(0) : 0
  }
}
