import Tape
import Wire

// Rules about media that does not arrive.

extension FindingRule {
  /// Finds media in one direction only, for the rule `oneWay`.
  static func findOneWay(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    var found: [Detection] = []
    for gap in facts.silentWays() where Double(gap.others) * 1e9 >= 5 * Double(gap.length) {
      let seconds = Double(gap.length) / 1e9
      if gap.direction == .inbound {
        guard wasSent(gap, facts), arrivedThere(gap, facts) else { continue }
      } else if try hadNothingToSend(gap, connection) {
        continue
      }
      let way = gap.direction == .inbound ? "arrived" : "was sent"
      let other = gap.direction == .inbound ? "went" : "arrived"
      found.append(
        Detection(
          "one-way-media", peer: gap.peer, from: gap.from, to: gap.to,
          "no media \(way) for \(decimal(seconds)) s while \(gap.others) packets \(other) in the "
            + "other direction",
          direction: gap.direction, impact: FindingImpact(withoutMedia: seconds)))
    }
    return found + standingReports(facts)
  }

  /// Returns whether the missing media had been sent, because sequence numbers are missing or a
  /// sender report counts the media; true if nothing ever arrived.
  private static func wasSent(_ gap: CallFacts.SilentWay, _ facts: CallFacts) -> Bool {
    let streams = facts.streams.filter { $0.peer == gap.peer && $0.direction == .inbound }
    if gap.isWhole, !streams.contains(where: { $0.first < gap.from }) { return true }
    for stream in streams {
      for pause in stream.gaps where pause.from <= gap.from && (pause.to ?? .min) >= gap.to {
        if (1...32_767).contains(pause.missing) { return true }
      }
    }
    var former: [Int64: CallFacts.SenderReport] = [:]
    for report in facts.senderReports
    where report.peer == gap.peer && report.direction == .inbound {
      guard report.at <= gap.to else { break }
      if report.at > gap.from {
        if let before = former[report.ssrc] {
          if before.at >= gap.from, report.packets > before.packets { return true }
        } else if report.packets > 0, !streams.contains(where: { $0.ssrc == report.ssrc }) {
          return true
        }
      }
      former[report.ssrc] = report
    }
    return false
  }

  /// Returns whether the other direction worked meanwhile; another rule reports a path that is dead
  /// in both directions.
  private static func arrivedThere(_ gap: CallFacts.SilentWay, _ facts: CallFacts) -> Bool {
    // Reports on that time arrive within six seconds of its end.
    let after = gap.to &+ 6_000_000_000
    guard facts.reports(to: gap.peer, from: gap.to, to: after).count > 0 else {
      return facts.way(gap.peer, .inbound)?.hasOther(from: gap.from, to: gap.to) ?? false
    }
    let lost = max(0, facts.reports(to: gap.peer, from: gap.from, to: after).lost)
    return Double(gap.others - lost) * 1e9 >= 5 * Double(gap.length)
  }

  /// Returns whether the application had removed its source before a gap in the sent media.
  private static func hadNothingToSend(
    _ gap: CallFacts.SilentWay, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> Bool {
    try connection.integer(
      """
      SELECT arguments ->> '$._1' IS NULL FROM call_request
      WHERE peer = \(gap.peer) AND name = 'replaceSource' AND at_ns <= \(gap.from) + 1000000000
      ORDER BY row DESC LIMIT 1
      """) == 1
  }

  /// Finds consecutive reports in which a sent stream's counters do not advance although it is
  /// being sent.
  private static func standingReports(_ facts: CallFacts) -> [Detection] {
    var found: [Detection] = []
    for stream in facts.streams where stream.direction == .outbound {
      let reports = facts.reports.filter {
        $0.peer == stream.peer && $0.ssrc == stream.ssrc && $0.direction == .inbound
      }
      var place = 0
      while place < reports.count {
        var last = place
        while last +| 1 < reports.count, reports[last +| 1].highest == reports[place].highest {
          last +|= 1
        }
        defer { place = last +| 1 }
        let (from, to) = (reports[place].at, reports[last].at)
        guard last > place, to -| from >= CallFacts.leastQuiet else { continue }
        let sent = Int64(facts.sum(of: stream, from: from, to: to).packets)
        let seconds = Double(to -| from) / 1e9
        guard Double(sent) >= 5 * seconds else { continue }
        found.append(
          Detection(
            "one-way-media", peer: stream.peer, from: from, to: to,
            "nothing of it arrived at the remote peer for \(decimal(seconds)) s: \(sent) packets "
              + "were sent, and \(last - place + 1) of its reports count none of them",
            ssrc: stream.ssrc, track: stream.track, direction: .outbound, kind: stream.kind,
            impact: FindingImpact(withoutMedia: seconds)))
      }
    }
    return found
  }

  /// Finds audio or video that was negotiated and announced but had no packet while other media
  /// flowed; if no media flowed, the finding is `one-way-media`.
  static func findAbsentMedia(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    try AbsentMedia.all(facts, connection).filter {
      Double($0.to -| $0.from) / 1e9 >= limits["least_s"]
        && Double($0.others) >= limits["least_others"] * Double($0.to -| $0.from) / 1e9
    }.map { $0.detection(rule: "media-absent") }
  }

  // MARK: Streams

  /// A pause of three seconds or more in a negotiated stream.
  private struct LongPause {
    var stream: CallFacts.Stream
    var from: Int64
    var to: Int64
    var isLast: Bool
    var missing: Int64
    var isSent: Bool
    var isAlive: Bool
    var payloadType: Int64
    var seconds: Double { Double(to -| from) / 1e9 }
  }

  static func findStreamGaps(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    try longPauses(facts, connection).filter { $0.isSent || $0.isLast && !$0.isAlive }.map {
      let seconds = $0.seconds
      let ending = $0.isLast ? facts.ending(at: $0.to) : ""
      var text = "no packet of it arrived for \(decimal(seconds)) s\(ending): "
      text +=
        $0.missing > 0
        ? "\($0.missing) packets of it are missing"
        : $0.isSent ? "its sender reports that it continued sending" : "nothing else arrived either"
      if $0.missing > 0, !$0.isAlive { text += ", and nothing else arrived either" }
      return Detection(
        "stream-gap", peer: $0.stream.peer, from: $0.from, to: $0.to, text, ssrc: $0.stream.ssrc,
        track: $0.stream.track, direction: .inbound, kind: $0.stream.kind,
        impact: FindingImpact(withoutMedia: seconds))
    }
  }

  static func findAudioPauses(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    try longPauses(facts, connection).filter {
      // With G.711, the last packet before a silence may be comfort noise (RFC 3389).
      $0.stream.kind == "audio" && !$0.isSent && $0.payloadType != 13 && !($0.isLast && !$0.isAlive)
    }.map {
      Detection(
        "audio-paused", peer: $0.stream.peer, from: $0.from, to: $0.to,
        "nothing was sent for \(decimal($0.seconds)) s"
          + ($0.isLast ? facts.ending(at: $0.to) : ""),
        ssrc: $0.stream.ssrc, track: $0.stream.track, direction: .inbound, kind: "audio")
    }
  }

  private static let leastPause: Int64 = 3_000_000_000

  private static func longPauses(
    _ facts: CallFacts, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [LongPause] {
    var found: [LongPause] = []
    for stream in facts.streams
    where stream.direction == .inbound && stream.role == .media && !stream.kind.isEmpty {
      guard let peer = facts.peer(stream.peer), let live = facts.live(peer) else { continue }
      for gap in stream.gaps {
        let to = gap.to ?? live.upperBound
        guard to &- gap.from >= leastPause, gap.from >= live.lowerBound,
          facts.isAgreed(stream.peer, .inbound, stream.kind, at: gap.from)
        else { continue }
        guard try !wasEnded(stream, gap.from, to, connection) else { continue }
        // If more packets seem to be missing than could have been sent, the sequence numbers must
        // have restarted.
        let isPossible = gap.missing <= 32_767 && gap.missing <= (to -| gap.from) / 500_000
        let missing = isPossible ? gap.missing : 0
        found.append(
          LongPause(
            stream: stream, from: gap.from, to: to, isLast: gap.to == nil, missing: missing,
            isSent: missing > 0 || countedOn(stream, gap.from, to, facts),
            isAlive: facts.hasOthers(than: stream, from: gap.from, to: to),
            payloadType: gap.payloadType))
      }
    }
    return found
  }

  /// Returns whether sender reports show that packets of a stream were sent in a period.
  private static func countedOn(
    _ stream: CallFacts.Stream, _ from: Int64, _ to: Int64, _ facts: CallFacts
  ) -> Bool {
    let reports = facts.senderReports.filter {
      $0.peer == stream.peer && $0.ssrc == stream.ssrc && $0.direction == .inbound
        && $0.at >= from && $0.at <= to
    }
    return zip(reports, reports.dropFirst()).contains { $0.packets < $1.packets }
  }

  /// Returns whether both sides negotiated a track's end, or the remote peer sent a BYE.
  private static func wasEnded(
    _ stream: CallFacts.Stream, _ from: Int64, _ to: Int64,
    _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> Bool {
    try connection.integer(
      """
      SELECT EXISTS (
          SELECT 1 FROM event WHERE peer = \(stream.peer) AND type = 'trackended'
            AND detail ->> '$.transceiver' = \(stream.track ?? -1)
            AND at_ns BETWEEN \(from) - 2000000000 AND \(to))
        OR EXISTS (
          SELECT 1 FROM rtcp WHERE peer = \(stream.peer) AND type = 'bye' AND direction = 'in'
            AND at_ns BETWEEN \(from) - 1000000000 AND \(to))
      """) == 1
  }
}

extension CallFacts {
  /// Returns whether a peer received anything but the silent stream in a period.
  fileprivate func hasOthers(than stream: Stream, from: Int64, to: Int64) -> Bool {
    guard let way = way(stream.peer, .inbound) else { return false }
    if way.hasOther(from: from, to: to) { return true }
    return streams.contains {
      $0.peer == stream.peer && $0.direction == .inbound && $0.ssrc != stream.ssrc
        && $0.first < to && $0.last > from
        && sum(of: $0, from: from &+ intervalNanoseconds, to: to &- intervalNanoseconds).packets > 0
    }
  }
}

/// Media of one kind that was negotiated and announced but had no packet.
struct AbsentMedia {
  var peer: Int64
  var direction: WireDirection
  var kind: String
  var from: Int64
  var to: Int64
  /// The number of packets of other media that passed in the same direction meanwhile.
  var others: Int64

  private static let least: Int64 = 3_000_000_000

  /// Returns a take's absent media, as seen by the receiver if the take has both ends.
  static func all(_ facts: CallFacts, _ connection: borrowing SQLiteConnection)
    throws(SQLiteError) -> [AbsentMedia]
  {
    var found: [AbsentMedia] = []
    for peer in facts.peers {
      guard let live = facts.live(peer) ?? peer.live else { continue }
      for direction in [WireDirection.inbound, .outbound] {
        guard direction == .inbound || peer.other == nil else { continue }
        for kind in ["audio", "video"] {
          if let one = try absent(peer, direction, kind, live, facts, connection) {
            found.append(one)
          }
        }
      }
    }
    return found
  }

  private static func absent(
    _ peer: CallFacts.Peer, _ direction: WireDirection, _ kind: String,
    _ live: ClosedRange<Int64>, _ facts: CallFacts, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> AbsentMedia? {
    let own = facts.streams.filter { $0.peer == peer.number && $0.direction == direction }
    // A stream of unknown kind may be the media in question.
    guard !own.contains(where: { $0.kind == kind || $0.kind.isEmpty && $0.role == .media }) else {
      return nil
    }
    let spans = facts.agreements.filter {
      $0.peer == peer.number && $0.direction == direction && $0.kind == kind
    }.map { (from: max($0.from, live.lowerBound), to: min($0.to, live.upperBound)) }
    guard let span = spans.max(by: { $0.to -| $0.from < $1.to -| $1.from }),
      span.to -| span.from >= least,
      isAnnounced(peer.number, direction, kind, until: span.to, facts),
      try !hasNoSource(peer.number, direction, kind, connection)
    else { return nil }
    return AbsentMedia(
      peer: peer.number, direction: direction, kind: kind, from: span.from, to: span.to,
      others: own.reduce(0) { $0 +| Int64(facts.sum(of: $1, from: span.from, to: span.to).packets) }
    )
  }

  /// Returns whether the sender's latest description has a source of the kind.
  private static func isAnnounced(
    _ peer: Int64, _ direction: WireDirection, _ kind: String, until end: Int64,
    _ facts: CallFacts
  ) -> Bool {
    let latest = facts.network.descriptions(of: peer).last {
      $0.isLocal == (direction == .outbound) && $0.at <= end
    }
    return latest?.sections.contains {
      $0.kind == kind && !$0.isRejected && $0.sends && $0.hasSource
    } ?? false
  }

  /// Returns whether the sending application removed the source of any track; false for received
  /// media, because the receiver cannot know.
  private static func hasNoSource(
    _ peer: Int64, _ direction: WireDirection, _ kind: String,
    _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> Bool {
    guard direction == .outbound else { return false }
    return try connection.integer(
      """
      SELECT EXISTS (
        SELECT 1 FROM call_request
        WHERE peer = \(peer) AND name = 'replaceSource' AND arguments ->> '$._1' IS NULL
          AND NOT EXISTS (
            SELECT 1 FROM track
            WHERE track.peer = call_request.peer AND track.kind <> '\(kind)'
              AND track.track = call_request.arguments ->> '$.transceiver'))
      """) == 1
  }

  func detection(rule: String) -> Detection {
    let seconds = Double(to -| from) / 1e9
    let words = direction == .inbound ? "arrived" : "was sent"
    return Detection(
      rule, peer: peer, from: from, to: to,
      "no packet of it \(words) in \(decimal(seconds)) s, although it was negotiated"
        + (others > 0
          ? "; \(counted(others, "packet")) of other media \(others == 1 ? "was" : "were") there"
          : ""),
      direction: direction, kind: kind, impact: FindingImpact(withoutMedia: seconds))
  }
}

/// Formats a number with one decimal.
func decimal(_ value: Double) -> String {
  let tenths = (value * 10).rounded()
  guard abs(tenths) < 9e15 else { return "\(value)" }
  let whole = Int64(saturating: tenths)
  return whole % 10 == 0 ? "\(whole / 10).0" : "\(Double(whole) / 10)"
}

/// Formats a share as a percentage with one decimal; a share is rounded neither down to 0 % nor up
/// to 100 %.
func percent(_ part: Int64, of whole: Int64) -> String {
  guard whole > 0 else { return "0.0 %" }
  let share = 100 * Double(part) / Double(whole)
  if part > 0, share < 0.05 { return "under 0.1 %" }
  if part < whole, share >= 99.95 { return "over 99.9 %" }
  return "\(decimal(share)) %"
}
