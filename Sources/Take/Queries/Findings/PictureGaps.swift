import Tape
import Wire

/// A long time between one shown video frame and the next.
struct PictureGap: Sendable {
  var peer: Int64
  var track: Int64
  var ssrc: Int64
  var from: Int64
  var to: Int64
  /// Whether it goes on to the end of the connection.
  var isLast: Bool
  /// The mean of the thirty frame times before it, in nanoseconds; nil where it is no freeze by the
  /// rule of freezeCount.
  var freezeMean: Double?
  /// How many packets of the stream came meanwhile, how many are missing, and for how long its
  /// sender sent nothing: no packet came, and its clock went on as long.
  var packets: Int64 = 0
  var missing: Int64 = 0
  var paused: Int64 = 0
  fileprivate var earlyRow: Int64
  fileprivate var fromRow: Int64
  fileprivate var toRow: Int64

  var length: Int64 { to -| from }
  var seconds: Double { Double(length) / 1e9 }
  /// Whether the sender had nothing to send, as of a screen on which nothing changes.
  var isPause: Bool { missing == 0 && Double(paused) >= 0.8 * Double(length) }

  fileprivate static let least: Int64 = 150_000_000
  /// Gaps of more than that are pauses and no freezes (freezeCount of webrtc-stats).
  static let longestFreeze: Int64 = 5_000_000_000
  private static let most = 5000

  /// All of a take, in order.
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
    // The frame times before, as freezeCount has them.
    var times: [Int64] = []
    var sum: Int64 = 0
    // The first frame within a second before each.
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
          isLast: false, freezeMean: mean,
          earlyRow: min(shown[second].row, place >= 2 ? shown[place -| 2].row : 0),
          fromRow: before.row, toRow: next.row))
    }
    let end = facts.lastMoment(of: track.peer)
    if end -| last.at >= least {
      while second < shown.count - 1, shown[second].at < last.at -| 1_000_000_000 { second +|= 1 }
      found.append(
        PictureGap(
          peer: track.peer, track: track.track, ssrc: ssrc, from: last.at, to: end, isLast: true,
          earlyRow: min(shown[second].row, shown.count >= 2 ? shown[shown.count -| 2].row : 0),
          fromRow: last.row, toRow: .max))
    }
    return found
  }

  /// The packets of a stream from a little before the gap on.
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
          paused = max(paused, at -| former.at)
        }
        if at >= from -| 300_000_000, (2..<32_768).contains(step) { missing +|= step -| 1 }
      }
      former = (at, sequence, time)
    }
  }
}

extension CallFacts {
  /// The end of the take for a peer, or that of its connection.
  func lastMoment(of peer: Int64) -> Int64 {
    let closed = states.first {
      $0.peer == peer && $0.machine == "connection" && $0.to == "closed"
    }
    return min(end, closed?.at ?? end)
  }
}
