import RTP
import Stats
import Tape

/// A take's packets by peer, direction and stream; each `read` continues where the last one ended.
struct PacketSeries {
  /// The kind of a datagram (RFC 7983).
  private enum Kind {
    case rtp, rtcp, stun, dtls, turn, other
  }

  /// One peer and one direction; an observed packet belongs to two ends.
  private struct End: Hashable {
    var peer: Int64
    var direction: String
  }

  private struct Stream {
    var end: Int
    var kind: Kind
    var ssrc: Int64?
    var payloadType: Int64?
    /// Whether the stream's payload type is for media rather than repair or padding.
    var isMedia = true
    var at = PageColumn(.steps)
    /// The size in bytes; for RTP, twice the size, plus 1 if the marker is set.
    var size = PageColumn(.values)
    var sequence = PageColumn(.steps)
    var rtpTime = PageColumn(.steps)
    var losses = LossLog()
    var bins = PacketBins()
  }

  private struct Key: Hashable {
    var end: Int
    var kind: Kind
    var ssrc: Int64?
  }

  /// Identifies packets of the same source: they belong to one stream at each end of their path.
  private struct Source: Hashable {
    var path: Int64
    var kind: Kind
    var ssrc: Int64?
  }

  /// A peer's totals in one direction.
  struct Total {
    let peer: Int64
    let direction: String
    fileprivate(set) var packets: Int64 = 0
    fileprivate(set) var bytes: Int64 = 0
  }

  /// The totals of each end, in the order of `ends`.
  private(set) var totals: [Total] = []
  private var ends: [End] = []
  private var isIncoming: [Bool] = []
  private var endsOfPath: [Int64: [Int]] = [:]
  private var streams: [Stream] = []
  private var places: [Key: Int] = [:]
  /// The indices in `streams` of each source's streams.
  private var placesOfSource: [Source: [Int]] = [:]
  /// A hash table of recent sources, which usually makes a search in `placesOfSource` unnecessary.
  private var latest = [(source: Source, places: [Int])?](repeating: nil, count: latestCount)
  private var row: Int64 = 0
  /// Payload types of media by end; other types carry repair or padding.
  private var media: [End: Set<Int64>] = [:]

  /// The size of `latest`: a power of two, above the number of concurrent streams in a call.
  private static let latestCount = 64

  /// The number of packets read so far.
  private(set) var count = 0

  /// Returns a copy that also includes packets up to a row.
  func read(_ path: String, through last: Int64) throws(TapeError) -> PacketSeries {
    var later = self
    // Rows refer to other tables, so all tables are read from one snapshot.
    let connection = try TakeFile.openSnapshot(path)
    do throws(SQLiteError) {
      try later.read(connection, through: last)
    } catch {
      throw TapeError(path: path, error)
    }
    return later
  }

  /// Reads the packets added since the last call, up to a row.
  mutating func read(_ connection: borrowing SQLiteConnection, through last: Int64 = .max)
    throws(SQLiteError)
  {
    try readEnds(connection)
    let rows = try connection.prepare(
      """
      SELECT row, at_ns, path, ssrc, marker_type, sequence, rtp_time, size,
        CASE WHEN ssrc IS NULL AND size > 0 THEN (
          SELECT substr(bytes, position % 8152 + 1, 1) FROM wire WHERE piece = position / 8152
        ) END
      FROM packet_store WHERE row > ? AND row <= ? ORDER BY row
      """)
    rows.bind(row, at: 1)
    rows.bind(last, at: 2)
    while try rows.step() { add(rows) }
  }

  private mutating func readEnds(_ connection: borrowing SQLiteConnection) throws(SQLiteError) {
    endsOfPath.removeAll()
    placesOfSource.removeAll()
    latest = Array(repeating: nil, count: Self.latestCount)
    let rows = try connection.prepare(
      "SELECT path, peer, direction FROM path_end ORDER BY path, peer, direction")
    while try rows.step() {
      let (path, peer, direction) = rows.values(Int64.self, Int64.self, String.self)
      let end = End(peer: peer, direction: direction)
      let place = ends.firstIndex(of: end) ?? ends.count
      if place == ends.count {
        ends.append(end)
        isIncoming.append(direction == "in")
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
    for place in streams.indices { streams[place].isMedia = isMedia(streams[place]) }
  }

  private mutating func add(_ rows: borrowing SQLiteStatement) {
    row = rows.integer(0)
    count += 1
    let at = PageTime.units(rows.integer(1))
    let isRTP = !rows.isNull(4)
    let ssrc = rows.isNull(3) ? nil : rows.integer(3) & 0xffff_ffff
    let kind: Kind = isRTP ? .rtp : ssrc != nil ? .rtcp : rows.withBlob(8) { self.kind(of: $0) }
    let size = rows.integer(7)
    let source = Source(path: rows.integer(2), kind: kind, ssrc: isRTP ? ssrc : nil)
    guard isRTP else {
      for place in places(of: source) {
        record(size, in: streams[place].end)
        streams[place].at.append(at)
        streams[place].size.append(size)
        streams[place].bins.add(size, at: at)
      }
      return
    }
    let (type, sequence) = (rows.integer(4), rows.integer(5) & 0xffff)
    let rtpTime = rows.integer(6) & 0xffff_ffff
    for place in places(of: source) {
      let end = streams[place].end
      record(size, in: end)
      streams[place].at.append(at)
      streams[place].size.append(size << 1 | (type >> 7) & 1)
      streams[place].bins.add(size, at: at)
      streams[place].sequence.append(sequence)
      streams[place].rtpTime.append(rtpTime)
      if streams[place].payloadType != type & 127 {
        streams[place].payloadType = type & 127
        streams[place].isMedia = isMedia(streams[place])
      }
      guard isIncoming[end] else { continue }
      if streams[place].isMedia {
        streams[place].losses.came(sequence: sequence, rtpTime: rtpTime, at: at)
      } else {
        repair(by: rtpTime, at: end)
      }
    }
  }

  private mutating func record(_ size: Int64, in end: Int) {
    totals[end].packets += 1
    totals[end].bytes &+= size
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

  private mutating func places(of source: Source) -> [Int] {
    let index = Int(truncatingIfNeeded: (source.ssrc ?? 0) &+ 7 &* source.path) & (latest.count - 1)
    if let latest = latest[index], latest.source == source { return latest.places }
    let places =
      placesOfSource[source]
      ?? (endsOfPath[source.path] ?? []).map {
        place(of: Key(end: $0, kind: source.kind, ssrc: source.ssrc))
      }
    placesOfSource[source] = places
    latest[index] = (source, places)
    return places
  }

  private mutating func place(of key: Key) -> Int {
    if let place = places[key] { return place }
    streams.append(Stream(end: key.end, kind: key.kind, ssrc: key.ssrc))
    places[key] = streams.count - 1
    return streams.count - 1
  }

  /// Returns whether a stream carries media; true unless a track says otherwise.
  private func isMedia(_ stream: Stream) -> Bool {
    guard let type = stream.payloadType, let types = media[ends[stream.end]] else { return true }
    return types.contains(type)
  }

  private mutating func repair(by rtpTime: Int64, at end: Int) {
    for place in streams.indices
    where streams[place].end == end && streams[place].kind == .rtp && streams[place].isMedia {
      if streams[place].losses.repaired(rtpTime: rtpTime) { return }
    }
  }

  /// Moves the packets read since the last call, and all losses, into a list.
  mutating func drain(into list: inout PageSeriesList) {
    for place in streams.indices {
      let stream = streams[place]
      let end = ends[stream.end]
      var facts: [(String, StatsValue?)] = [
        ("peer", .integer(end.peer)), ("direction", .text(end.direction)),
      ]
      let at = streams[place].at.drain()
      let size = streams[place].size.drain()
      let overview = streams[place].bins.drain()
      guard stream.kind == .rtp else {
        list.add(
          PageSeries(
            what: "packets", facts: facts + [("protocol", .text("\(stream.kind)"))],
            columns: [("at", at), ("size", size)], overview: overview))
        continue
      }
      facts.append(("ssrc", stream.ssrc.map { .integer($0) }))
      list.add(
        PageSeries(
          what: "packets",
          facts: facts + [
            ("protocol", .text("rtp")), ("payloadType", stream.payloadType.map { .integer($0) }),
            ("isMedia", .flag(stream.isMedia)),
          ],
          columns: [
            ("at", at), ("size", size), ("sequence", streams[place].sequence.drain()),
            ("rtpTime", streams[place].rtpTime.drain()),
          ], overview: overview))
      list.add(PageSeries(what: "lost", facts: facts, columns: stream.losses.columns))
    }
  }
}

// MARK: - LossLog

/// Finds a received RTP stream's missing packets by sequence number.
struct LossLog {
  /// The fate of a packet that was missing when a later one arrived.
  enum Fate: Int64 {
    case lost = 0
    /// A retransmission arrived whose timestamp may be that of the missing packet.
    case repaired = 1
    /// The packet arrived late, out of order or retransmitted.
    case late = 2
  }

  private struct Entry {
    var at: Int64
    var number: Int64
    var fate = Fate.lost
    /// The timestamps of the preceding and the following packet.
    var before: Int64
    var after: Int64
  }

  private var entries: [Entry] = []
  /// The indices in `entries`, by missing sequence number.
  private var missing: [Int64: Int] = [:]
  private var highest: Int64?
  private var lastTime: Int64 = 0
  private var lastSequence: Int64 = 0
  private var nearRestarts = NearRestarts()
  /// How far the sequence number advanced at the previous packet, if the numbers may have restarted
  /// there; nil otherwise.
  private var doubtfulStep: Int?

  /// The largest jump of sequence numbers that is not a restart (RFC 3550 appendix A.1).
  private static let jumpMaximum: Int64 = 3_000
  /// The maximum number of entries; for a stream that loses more, a list is useless.
  private static let entryMaximum = 100_000
  /// The number of recent entries that a retransmission is matched with.
  private static let searchMaximum = 512

  /// Adds the next received packet.
  mutating func came(sequence: Int64, rtpTime: Int64, at: Int64) {
    findRestart(sequence, rtpTime)
    defer { (lastTime, lastSequence) = (rtpTime, sequence) }
    guard let highest else {
      self.highest = sequence
      return
    }
    let difference = Int64(Int16(truncatingIfNeeded: sequence &- highest))
    if difference <= 0 {
      if difference <= -100, Int32(truncatingIfNeeded: rtpTime &- lastTime) > 0 {
        self.highest = sequence
        missing.removeAll()
      } else if let place = missing.removeValue(forKey: highest &+ difference) {
        entries[place].fate = .late
      } else if difference < -Self.jumpMaximum {
        self.highest = sequence
        missing.removeAll()
      }
      return
    }
    if difference <= Self.jumpMaximum, entries.count < Self.entryMaximum {
      for number in (highest + 1)..<(highest + difference) {
        missing[number] = entries.count
        entries.append(Entry(at: at, number: number, before: lastTime, after: rtpTime))
      }
    }
    self.highest = highest &+ difference
  }

  /// Starts over at the previous packet if this packet confirms that the sequence numbers restarted
  /// there.
  private mutating func findRestart(_ sequence: Int64, _ rtpTime: Int64) {
    let mayBegin = nearRestarts.mayBegin(
      UInt16(truncatingIfNeeded: sequence), UInt32(truncatingIfNeeded: rtpTime))
    let step = Int(Int16(truncatingIfNeeded: sequence &- lastSequence))
    if let former = doubtfulStep, NearRestarts.isBorneOut(step: former, next: step) {
      highest = lastSequence
      missing.removeAll()
    }
    doubtfulStep = mayBegin ? step : nil
  }

  /// Adds a retransmission from any stream; returns whether it may repeat a missing packet of this
  /// stream.
  ///
  /// A retransmission has the original packet's timestamp (RFC 4588).
  mutating func repaired(rtpTime: Int64) -> Bool {
    for place in entries.indices.suffix(Self.searchMaximum).reversed() {
      let entry = entries[place]
      guard entry.fate == .lost, isBetween(rtpTime, entry.before, entry.after) else { continue }
      entries[place].fate = .repaired
      missing.removeValue(forKey: entry.number)
      return true
    }
    return false
  }

  private func isBetween(_ time: Int64, _ before: Int64, _ after: Int64) -> Bool {
    let length = UInt32(truncatingIfNeeded: after &- before)
    // Neighbours' timestamps are close, even across the wraparound.
    return length < 1 << 31 && UInt32(truncatingIfNeeded: time &- before) <= length
  }

  /// Each missing packet's time, sequence number and fate.
  var columns: [(name: String, column: PageColumn)] {
    var at = PageColumn(.steps)
    var sequence = PageColumn(.steps)
    var fate = PageColumn(.values)
    for entry in entries {
      at.append(entry.at)
      sequence.append(entry.number & 0xffff)
      fate.append(entry.fate.rawValue)
    }
    return [("at", at), ("sequence", sequence), ("fate", fate)]
  }
}
