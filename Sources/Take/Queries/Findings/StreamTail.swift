import RTP
import Tape
import Wire

/// A stream's state while its packets are being read.
struct StreamTail: Sendable {
  /// The highest sequence number so far, extended beyond 16 bits, and that packet's timestamp.
  var highest: Int64 = 0
  /// The lowest sequence number since the stream began or restarted, extended likewise.
  var lowest: Int64 = 0
  var highestRTPTime: Int64 = 0
  var sequence: Int64 = 0
  var rtpTime: Int64 = 0
  var at: Int64 = 0
  var payloadType: Int64 = 0
  var partFirst: Int64 = 0
  var partPackets: Int64 = 0
  /// A bitmap of the 1,024 sequence numbers up to the highest; a bit is set if the packet arrived.
  var window = [UInt64](repeating: 0, count: 16)
  /// The recent gaps in the sequence numbers, in order.
  var holes: [Hole] = []
  /// The minimum delay so far: arrival time minus media time, in nanoseconds.
  var leastDelay = Int64.max
  /// A packet with an unexpected sequence number; the next packet shows whether the sender
  /// restarted.
  var pending: PacketSight?
  /// Whether the pending packet's number is so little below the highest that it may just be late.
  var pendingIsNear = false
  var nearRestarts = NearRestarts()
  /// Whether timestamps should advance by whole packet lengths, in which case deviations are
  /// counted.
  var judgesSteps = false
  var steps: [StepLength] = []
  /// How far the stream's media time has advanced, in units of its clock.
  var mediaTicks: Int64 = 0

  /// A gap in the sequence numbers.
  struct Hole: Sendable {
    /// The first missing number, extended, and how many were missing.
    var first: Int64
    var count: Int64
    /// How many have not arrived late.
    var missing: Int64
    /// The index of the interval in which they were counted as lost.
    var bucket: Int
  }

  /// The maximum number of gaps to remember; `window` has room for no more, because at least one
  /// packet separates two gaps.
  private static let holesMaximum = 512

  /// Remembers a gap, so that packets that arrive late are known to be a part of it.
  mutating func addHole(first: Int64, _ count: Int64, in bucket: Int) {
    if holes.count >= Self.holesMaximum { holes.removeFirst(Self.holesMaximum / 2) }
    let hole = Hole(first: first, count: count, missing: count, bucket: bucket)
    holes.insert(hole, at: holes.last.map { $0.first < first } ?? true ? holes.count : 0)
  }

  /// Records that a missing packet arrived late.
  ///
  /// - Returns: the interval of its gap, and whether the gap is filled; nil for an unknown gap.
  mutating func fillHole(at position: Int64) -> (bucket: Int, isFilled: Bool)? {
    guard let place = holes.lastIndex(where: { $0.first <= position }),
      position &- holes[place].first < holes[place].count
    else { return nil }
    holes[place].missing -= 1
    return (holes[place].bucket, holes[place].missing == 0)
  }

  /// A step between timestamps, how many times it occurred, and when.
  struct StepLength: Sendable {
    var ticks: Int64
    var count: Int64 = 0
    var first: Int64
    var last: Int64
    /// How many times the packet after the step arrived in less than 60 percent of the time that
    /// the step implies.
    var early: Int64 = 0
  }

  /// Counts a step between two consecutive packets; `pause` is the time between them in
  /// nanoseconds.
  mutating func count(_ ticks: Int64, _ at: Int64, _ pause: Int64, _ rate: Int64) {
    guard ticks > 0 else { return }
    let place = steps.firstIndex { $0.ticks == ticks } ?? steps.count
    if place == steps.count {
      guard place < 500 else { return }
      steps.append(StepLength(ticks: ticks, first: at, last: at))
    }
    steps[place].count +|= 1
    steps[place].last = at
    if Double(pause) * 1e-9 * Double(rate) < 0.6 * Double(ticks) { steps[place].early += 1 }
  }

  mutating func mark(_ position: Int64, _ isThere: Bool) {
    let place = Int(position & 1023)
    if isThere {
      window[place >> 6] |= 1 << UInt64(place & 63)
    } else {
      window[place >> 6] &= ~(1 << UInt64(place & 63))
    }
  }

  func has(_ position: Int64) -> Bool {
    let place = Int(position & 1023)
    return window[place >> 6] & (1 << UInt64(place & 63)) != 0
  }
}

// MARK: - PictureGaps

/// A long time without a new frame on a video track.
struct PictureGap: Sendable {
  var peer: Int64
  var track: Int64
  var ssrc: Int64
  var from: Int64
  var to: Int64
  /// Whether the gap lasts until the connection or the take ends.
  var isLast: Bool
  /// The mean of up to thirty preceding frame intervals in nanoseconds; nil if the gap is not a
  /// freeze as defined for W3C `freezeCount`.
  var freezeMean: Double?
  /// The packets received and missing in the gap, and the sender's longest pause in nanoseconds.
  ///
  /// During a pause, no packet arrives, and the stream's clock advances by the length of the pause.
  var packets: Int64 = 0
  var missing: Int64 = 0
  var paused: Int64 = 0
  /// The number of the sender's pauses of `least` or longer, and their total length.
  var pauses: Int64 = 0
  var allPaused: Int64 = 0
  /// How many nanoseconds of the gap a dead path or a stopped process accounts for.
  var held: Int64 = 0
  /// The RTP timestamp of the last frame before the gap; any missing packets up to that frame were
  /// repaired.
  fileprivate var beforeTime: Int64
  fileprivate var earlyRow: Int64
  fileprivate var fromRow: Int64
  fileprivate var toRow: Int64

  var length: Int64 { to -| from }
  var seconds: Double { Double(length) / 1e9 }
  /// Whether the sender had nothing to send during the gap, as with a static screen.
  ///
  /// A stopped process also sends nothing while its clock advances, but that does not count as a
  /// pause.
  var isPause: Bool {
    !isHeld && missing == 0 && Double(paused) >= 0.8 * Double(length)
  }

  /// Whether a dead path or a stopped process accounts for more than half of the gap.
  var isHeld: Bool { held *| 2 > length }

  /// Whether the gap is a freeze as defined for W3C `freezeCount` even if the sender's pauses are
  /// subtracted.
  ///
  /// There is always some pause between two frames. Only clearly longer pauses are subtracted, and
  /// only if no packet is missing.
  var isFreeze: Bool {
    guard let mean = freezeMean, !isPause else { return false }
    if isHeld { return true }
    let isExcused = missing == 0 && Double(allPaused) > 1.5 * mean * Double(pauses)
    return Double(length) - (isExcused ? Double(allPaused) : 0) >= max(3 * mean, mean + 150e6)
  }

  /// Whether `freezeCount` counts the gap although its sender had nothing to send.
  var isCountedPause: Bool { freezeMean != nil && !isFreeze }

  fileprivate static let least: Int64 = 150_000_000
  /// The longest gap that `freezeCount` counts, in nanoseconds; anything longer is a pause
  /// (webrtc-stats).
  static let longestFreeze: Int64 = 5_000_000_000
  private static let most = 5000

  /// Returns the gaps on all received video tracks of a take.
  static func all(_ facts: CallFacts, _ connection: borrowing SQLiteConnection)
    throws(SQLiteError) -> [PictureGap]
  {
    var found: [PictureGap] = []
    for track in facts.tracks where track.kind == "video" && track.direction == .inbound {
      found += gaps(of: track, facts)
    }
    var packets = try connection.prepare(packetQuery)
    for place in found.indices.prefix(most) {
      try found[place].count(&packets)
    }
    return found
  }

  private static func gaps(of track: CallFacts.Track, _ facts: CallFacts) -> [PictureGap] {
    let shown = track.pictures.filter(\.isGood)
    guard let last = shown.last else { return [] }
    let ssrc = track.sources.last ?? 0
    var found: [PictureGap] = []
    // The intervals between earlier frames; `freezeCount` averages the last thirty.
    var times: [Int64] = []
    var sum: Int64 = 0
    // The index of the first frame within a second before the gap.
    var second = 0
    for place in shown.indices.dropFirst() {
      let (before, next) = (shown[place -| 1], shown[place])
      while second < place -| 1, shown[second].at < before.at -| 1_000_000_000 { second +|= 1 }
      let length = next.at -| before.at
      var mean: Double?
      if length <= longestFreeze {
        let count = min(times.count, 30)
        if count >= 5 {
          let usual = Double(sum) / Double(count)
          if Double(length) >= max(3 * usual, usual + 150e6) { mean = usual }
        }
        times.append(length)
        sum +|= length
        if times.count > 30 { sum -= times[times.count -| 31] }
      }
      guard length >= least else { continue }
      found.append(
        PictureGap(
          peer: track.peer, track: track.track, ssrc: ssrc, from: before.at, to: next.at,
          isLast: false, freezeMean: mean, beforeTime: before.rtpTime,
          earlyRow: min(shown[second].row, place >= 2 ? shown[place -| 2].row : 0),
          fromRow: before.row, toRow: next.row))
    }
    let end = facts.lastMoment(of: track.peer)
    if end -| last.at >= least {
      while second < shown.count - 1, shown[second].at < last.at -| 1_000_000_000 { second +|= 1 }
      found.append(
        PictureGap(
          peer: track.peer, track: track.track, ssrc: ssrc, from: last.at, to: end, isLast: true,
          beforeTime: last.rtpTime,
          earlyRow: min(shown[second].row, shown.count >= 2 ? shown[shown.count -| 2].row : 0),
          fromRow: last.row, toRow: .max))
    }
    return found
  }

  /// Sets `held` from the periods in which a path was dead or a process had stopped.
  mutating func hold(by times: [(peer: Int64, from: Int64, to: Int64)]) {
    let spans = times.filter { $0.peer == peer && $0.to > from && $0.from < to }
      .map { (max($0.from, from), min($0.to, to)) }
    held = Finding.union(spans)
  }

  /// Selects a stream's received packets, from shortly before the gap to its end.
  private static let packetQuery = """
    SELECT packet_store.row, at_ns, sequence & 0xffff, packet_store.rtp_time & 0xffffffff
    FROM packet_store JOIN path_end USING (path)
    WHERE packet_store.row BETWEEN ?1 AND ?2 AND marker_type IS NOT NULL
      AND packet_store.ssrc & 0xffffffff = ?3 AND path_end.peer = ?4 AND path_end.direction = 'in'
    ORDER BY packet_store.row
    """

  private mutating func count(_ rows: inout SQLiteStatement) throws(SQLiteError) {
    defer { rows.reset() }
    for (index, value) in [earlyRow, toRow, ssrc, peer].enumerated() {
      rows.bind(value, at: Int32(index +| 1))
    }
    var former: (at: Int64, sequence: Int64, time: Int64)?
    while try rows.step() {
      let (row, at, sequence, time) = (
        rows.integer(0), rows.integer(1), rows.integer(2), rows.integer(3)
      )
      if row >= fromRow { packets +|= 1 }
      if let former {
        let step = (sequence &- former.sequence) & 65_535
        let ticks = (time &- former.time) & 0xffff_ffff
        if step == 1, Double(ticks) / 9e4 >= 0.8e-9 * Double(at - former.at) {
          let pause = at -| former.at
          paused = max(paused, pause)
          if pause >= Self.least { (pauses, allPaused) = (pauses +| 1, allPaused +| pause) }
        }
        let isNew = (1..<0x8000_0000).contains((time &- beforeTime) & 0xffff_ffff)
        if isNew, at >= from -| 300_000_000, (2..<32_768).contains(step) { missing +|= step -| 1 }
      }
      former = (at, sequence, time)
    }
  }
}

extension CallFacts {
  /// Returns when the take or the peer's connection ended, whichever is earlier.
  ///
  /// An observer may keep running after a call, so an observed peer's connection ends with the last
  /// datagram in either direction. Both directions count, because one end may keep sending over a
  /// failed path.
  func lastMoment(of peer: Int64) -> Int64 {
    let closed = states.first {
      $0.peer == peer && $0.machine == "connection" && $0.to == "closed"
    }
    let last =
      self.peer(peer)?.isObserved == true
      ? ways.filter { $0.peer == peer }.map { max($0.last, $0.others.last ?? 0) }.max() : nil
    return min(end, closed?.at ?? end, last ?? end)
  }
}
