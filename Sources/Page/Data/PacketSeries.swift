import Stats
import Tape

/// The packets of a take by peer, direction and stream, read in one pass that can go on later.
struct PacketSeries {
  /// What a datagram is (RFC 7983).
  private enum Kind: String {
    case rtp, rtcp, stun, dtls, turn, other
  }

  /// A peer and a direction; what an observer saw belongs to two of them.
  private struct End: Hashable {
    var peer: Int64
    var direction: String
  }

  private struct Stream {
    var end: End
    var kind: Kind
    var ssrc: Int64?
    var payloadType: Int64?
    var at = PageColumn(.steps)
    /// Of RTP twice the size, and the marker in the lowest bit.
    var size = PageColumn(.values)
    var sequence = PageColumn(.steps)
    var rtpTime = PageColumn(.steps)
    var losses = LossLog()
  }

  private struct Key: Hashable {
    var end: Int
    var kind: Kind
    var ssrc: Int64?
  }

  /// What passed a peer in one direction.
  struct Total {
    let peer: Int64
    let direction: String
    fileprivate(set) var packets: Int64 = 0
    fileprivate(set) var bytes: Int64 = 0
  }

  /// Of each end, in the order of `ends`.
  private(set) var totals: [Total] = []
  private var ends: [End] = []
  private var endsOfPath: [Int64: [Int]] = [:]
  private var streams: [Stream] = []
  private var places: [Key: Int] = [:]
  /// Packets come in runs of one stream, whose place needs no search.
  private var latest: (key: Key, place: Int)?
  private var row: Int64 = 0
  /// Payload types of media by end: everything else repairs or pads.
  private var media: [End: Set<Int64>] = [:]

  /// How many packets were read so far.
  private(set) var count = 0

  /// The packets with what came since the last time.
  func read(_ path: String) throws(TapeError) -> PacketSeries {
    var later = self
    // A row names what other tables say of it, so all of them are read as of one moment.
    let connection = try TakeFile.openSnapshot(path)
    do throws(SQLiteError) {
      try later.read(connection)
    } catch {
      throw TapeError(path: path, error)
    }
    return later
  }

  private mutating func read(_ connection: borrowing SQLiteConnection) throws(SQLiteError) {
    try readEnds(connection)
    let rows = try connection.prepare(
      """
      SELECT row, at_ns, path, ssrc, marker_type, sequence, rtp_time, size,
        CASE WHEN ssrc IS NULL AND size > 0 THEN (
          SELECT substr(bytes, position % 8152 + 1, 1) FROM wire WHERE piece = position / 8152
        ) END
      FROM packet_store WHERE row > ? ORDER BY row
      """)
    rows.bind(row, at: 1)
    while try rows.step() { add(rows) }
  }

  private mutating func readEnds(_ connection: borrowing SQLiteConnection) throws(SQLiteError) {
    endsOfPath.removeAll()
    let rows = try connection.prepare(
      "SELECT path, peer, direction FROM path_end ORDER BY path, peer, direction")
    while try rows.step() {
      let (path, peer, direction) = rows.values(Int64.self, Int64.self, String.self)
      let end = End(peer: peer, direction: direction)
      let place = ends.firstIndex(of: end) ?? ends.count
      if place == ends.count {
        ends.append(end)
        totals.append(Total(peer: peer, direction: direction))
      }
      endsOfPath[path, default: []].append(place)
    }
    let tracks = try connection.prepare(
      """
      SELECT DISTINCT peer, direction, payload_type FROM track
      WHERE codec NOT IN ('rtx', 'ulpfec', 'flexfec-03')
      """)
    while try tracks.step() {
      let (peer, direction, type) = tracks.values(Int64.self, String.self, Int64.self)
      media[End(peer: peer, direction: direction), default: []].insert(type)
    }
  }

  private mutating func add(_ rows: borrowing SQLiteStatement) {
    row = rows.integer(0)
    count += 1
    let at = PageTime.units(rows.integer(1))
    let isRTP = !rows.isNull(4)
    let ssrc = rows.isNull(3) ? nil : rows.integer(3) & 0xffff_ffff
    let kind: Kind = isRTP ? .rtp : ssrc != nil ? .rtcp : kind(of: rows.blob(8))
    for end in endsOfPath[rows.integer(2)] ?? [] {
      totals[end].packets += 1
      totals[end].bytes &+= rows.integer(7)
      let place = place(of: Key(end: end, kind: kind, ssrc: isRTP ? ssrc : nil))
      streams[place].at.append(at)
      guard isRTP else {
        streams[place].size.append(rows.integer(7))
        continue
      }
      let (type, sequence) = (rows.integer(4), rows.integer(5) & 0xffff)
      let rtpTime = rows.integer(6) & 0xffff_ffff
      streams[place].payloadType = type & 127
      streams[place].size.append(rows.integer(7) << 1 | (type >> 7) & 1)
      streams[place].sequence.append(sequence)
      streams[place].rtpTime.append(rtpTime)
      guard ends[end].direction == "in" else { continue }
      if isMedia(streams[place]) {
        streams[place].losses.came(sequence: sequence, rtpTime: rtpTime, at: at)
      } else {
        repair(by: rtpTime, at: end)
      }
    }
  }

  private func kind(of first: RawSpan) -> Kind {
    guard first.byteCount > 0 else { return .other }
    return switch first.unsafeLoad(fromByteOffset: 0, as: UInt8.self) {
    case 0..<4: .stun
    case 0x14..<0x40: .dtls
    case 0x40..<0x50: .turn
    default: .other
    }
  }

  private mutating func place(of key: Key) -> Int {
    if let latest, latest.key == key { return latest.place }
    let place = places[key] ?? streams.count
    if place == streams.count {
      streams.append(Stream(end: ends[key.end], kind: key.kind, ssrc: key.ssrc))
      places[key] = place
    }
    latest = (key, place)
    return place
  }

  /// Without a track that says otherwise, what comes is media.
  private func isMedia(_ stream: Stream) -> Bool {
    guard let type = stream.payloadType, let types = media[stream.end] else { return true }
    return types.contains(type)
  }

  private mutating func repair(by rtpTime: Int64, at end: Int) {
    for place in streams.indices
    where streams[place].end == ends[end] && streams[place].kind == .rtp
      && isMedia(streams[place])
    {
      if streams[place].losses.repaired(rtpTime: rtpTime) { return }
    }
  }

  /// What was read since the last time, and all losses.
  mutating func drain(into list: inout PageSeriesList) {
    for place in streams.indices {
      let stream = streams[place]
      var facts: [(String, StatsValue?)] = [
        ("peer", .integer(stream.end.peer)), ("direction", .text(stream.end.direction)),
      ]
      let at = streams[place].at.drain()
      let size = streams[place].size.drain()
      guard stream.kind == .rtp else {
        list.add(
          PageSeries(
            what: "packets", facts: facts + [("protocol", .text(stream.kind.rawValue))],
            columns: [("at", at), ("size", size)]))
        continue
      }
      facts.append(("ssrc", stream.ssrc.map { .integer($0) }))
      list.add(
        PageSeries(
          what: "packets",
          facts: facts + [
            ("protocol", .text("rtp")), ("payloadType", stream.payloadType.map { .integer($0) }),
            ("isMedia", .flag(isMedia(stream))),
          ],
          columns: [
            ("at", at), ("size", size), ("sequence", streams[place].sequence.drain()),
            ("rtpTime", streams[place].rtpTime.drain()),
          ]))
      list.add(PageSeries(what: "lost", facts: facts, columns: stream.losses.columns))
    }
  }
}
