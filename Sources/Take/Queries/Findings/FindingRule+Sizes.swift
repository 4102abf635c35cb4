import Tape
import Wire

// The rule about a link that drops large packets.

extension FindingRule {
  /// Finds paths that lose nearly all packets above a certain size while smaller ones arrive: a
  /// tunnel or VPN has a smaller MTU, and its ICMP messages do not get through (RFC 8899 section
  /// 1).
  static let largePacketsLost = FindingRule(
    id: "large-packets-lost", severity: .high, title: "Large packets lost", scope: .flow,
    thresholds: [
      Threshold("least_lost", 12, "packets", "larger than all that arrive; our choice"),
      Threshold("least_share", 0.9, "", "of the lost are among the largest, and of these are lost"),
      Threshold("most_share", 0.03, "", "of the smaller ones are lost; as `loss`"),
    ],
    causes: ["path-dead"], silentUnder: ["path-dead"],
    sql: """
      SELECT peer, ssrc, size, count(*) AS packets FROM packet
      WHERE protocol = 'rtp' AND direction = 'in' GROUP BY peer, ssrc, size
      """,
    detector: findLostSizes)

  /// A sent packet's size, and whether it arrived.
  private struct Sent {
    var at: Int64
    var size: Int64
    var hasArrived: Bool
  }

  private static func findLostSizes(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    var found: [Detection] = []
    for peer in facts.peers {
      let isWhole = peer.other.map { facts.peer($0)?.isObserved == false } ?? false
      if !isWhole {
        found += try findMissingSizes(peer, limits, facts, connection)
        found += try findBlockedSizes(peer, limits, facts, connection)
      }
      if let other = peer.other, facts.peer(other)?.isObserved == false {
        // Both ends are in the take, so the packets that this end sent can be compared with the
        // packets that the other end received.
        let lost = facts.streams.filter {
          $0.peer == other && $0.direction == .inbound && $0.kind == "video"
        }.reduce(Int64(0)) { $0 +| $1.lost }
        guard Double(lost) >= limits["least_lost"] else { continue }
        // Audio without losses is left out: it may arrive even where video of any size is lost. If
        // too little video is small, it is all that shows that small packets arrive.
        let hasMore = facts.streams.contains {
          $0.peer == other && $0.direction == .inbound && $0.lost == 0
        }
        for isAll in hasMore ? [false, true] : [false] {
          let sent = try sentPackets(of: peer.number, to: other, isAll, facts, connection)
          guard let one = lostSizes(sent, limits, peer.number, "", facts) else { continue }
          found.append(one)
          break
        }
      } else if hasLoss(peer.number, limits, facts) {
        let sent = try requestedPackets(of: peer.number, connection)
        if let one = lostSizes(sent, limits, peer.number, ", by its requests", facts) {
          found.append(one)
        }
      }
    }
    return found
  }

  /// Finds lost large packets from the receiver's packets alone: large packets stopped arriving,
  /// and requested retransmissions do not arrive either.
  private static func findMissingSizes(
    _ peer: CallFacts.Peer, _ limits: Limits, _ facts: CallFacts,
    _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    var found: [Detection] = []
    for stream in facts.streams
    where stream.peer == peer.number && stream.direction == .inbound && stream.role == .media
      && stream.kind == "video" && Double(stream.lost) >= limits["least_lost"]
    {
      let holes = facts.runs(of: stream, where: { $0.lost > 0 })
      guard let hole = holes.first?.lowerBound, let last = holes.last?.upperBound else { continue }
      // If every packet of video is too large, none arrives for a while, and the loss is noticed
      // only when one does. Audio arrives meanwhile.
      let gap = stream.gaps.first { gap in
        gap.from < hole && gap.to.map { (hole...(hole +| 200_000_000)).contains($0) } ?? false
      }
      let hasAudio = gap.map { Self.hasAudio(peer.number, $0.from, hole, limits, facts) } ?? false
      let first = hasAudio ? gap?.from ?? hole : hole
      guard last &- first >= 2_000_000_000,
        facts.repairs(of: stream, from: first, to: last &+ 1_000_000_000) *| 10 <= stream.lost,
        facts.streams.contains(where: { $0.role == .repair && $0.original == stream.ssrc })
          || facts.demands.contains(where: {
            $0.kind == .nack && $0.peer == peer.number && $0.direction == .outbound
              && $0.ssrc == stream.ssrc
          })
      else { continue }
      var before: [Int64] = []
      var since: [Int64] = []
      var later: [Int64] = []
      try forEachPacket(of: peer.number, .inbound, connection) { packet in
        guard packet.ssrc == stream.ssrc else { return }
        // Ignores packets around the first loss, which shows only when a later packet arrives.
        if packet.at < first &- 100_000_000 {
          before.append(packet.size)
        } else if packet.at > hole &+ 200_000_000 {
          if packet.at <= last { since.append(packet.size) } else { later.append(packet.size) }
        }
      }
      // Once the encoder's packets fit, nothing is lost any more, so later packets count as well.
      for passed in [since, hasAudio ? since + later : []] {
        let most = passed.max() ?? 0
        let large = before.filter { $0 > most &+ most / 50 }
        // The number of large packets that would have arrived since then, if their share had not
        // changed.
        let expected = Double(passed.count) * Double(large.count) / Double(max(1, before.count))
        guard passed.count >= 30, large.count >= 20, expected >= limits["least_lost"] else {
          continue
        }
        found.append(
          Detection(
            "large-packets-lost", peer: peer.number, from: first, to: last,
            "no packet of more than \(most) bytes arrived any more, while \(large.count) of "
              + "\(before.count) were larger before; \(stream.lost) packets are missing, and none "
              + "of them was repaired: a link on the path drops larger packets",
            ssrc: stream.ssrc, track: stream.track, direction: .inbound, kind: "video",
            impact: FindingImpact(count: stream.lost)))
        break
      }
    }
    return found
  }

  /// Finds large packets that do not arrive, from the sender's packets alone: by the receiver's
  /// reports, hardly any video arrives although audio does.
  ///
  /// Both take the same path, which cannot tell them apart but by their size.
  private static func findBlockedSizes(
    _ peer: CallFacts.Peer, _ limits: Limits, _ facts: CallFacts,
    _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    let paths = facts.network.pathUses.filter {
      $0.peer == peer.number && $0.direction == .outbound && $0.media > 0
    }
    guard paths.count == 1 else { return [] }
    let sent = facts.streams.filter {
      $0.peer == peer.number && $0.direction == .outbound && $0.role == .media
    }
    var found: [Detection] = []
    for stream in sent where stream.kind == "video" {
      let reports = facts.reports(on: stream)
      let blocked = blockedTimes(reports, of: stream, facts)
      for run in blocked.isEmpty ? standing(reports, of: stream, facts) : blocked
      where run.to &- run.from >= 2_000_000_000
        && reports.contains(where: { $0.at < run.from && $0.highest > 0 })
        && sent.contains(where: { arrives($0, run.from, run.to, limits, facts) })
      {
        var video: [Int64] = []
        var audioMost: Int64 = 0
        let audio = Set(sent.filter { $0.kind == "audio" }.map(\.ssrc))
        try forEachPacket(of: peer.number, .outbound, connection) { packet in
          guard packet.at >= run.from, packet.at <= run.to else { return }
          if packet.ssrc == stream.ssrc { video.append(packet.size) }
          if audio.contains(packet.ssrc) { audioMost = max(audioMost, packet.size) }
        }
        let large = video.filter { $0 > audioMost }
        guard let smallest = large.min(), Double(large.count) >= limits["least_lost"],
          Double(large.count) >= limits["least_share"] * Double(video.count),
          // If small video does not arrive either, something else blocks it.
          video.count - large.count < 2 || arrived(reports, run.from, run.to) > 0
        else { continue }
        found.append(
          Detection(
            "large-packets-lost", peer: peer.number, from: run.from, to: run.to,
            "hardly any of \(video.count) packets of video, nearly all of \(smallest) bytes and "
              + "more, arrived, by \(run.count) reports of the receiver, while audio of up to "
              + "\(audioMost) bytes did on the same path: a link on the path drops larger packets",
            ssrc: stream.ssrc, track: stream.track, direction: .outbound, kind: "video",
            impact: FindingImpact(share: 1, count: Int64(video.count))))
      }
    }
    return found
  }

  /// Returns how many packets of a stream arrived in a period, by its receiver's reports.
  private static func arrived(_ reports: [CallFacts.Report], _ from: Int64, _ to: Int64) -> Int64 {
    let inside = reports.filter { $0.at >= from && $0.at <= to }
    guard let first = inside.first, let last = inside.last else { return 0 }
    return (last.highest &- first.highest) &- (last.lost &- first.lost)
  }

  /// Returns the periods in which a receiver's reports count hardly any packet of a stream.
  private static func blockedTimes(
    _ reports: [CallFacts.Report], of stream: CallFacts.Stream, _ facts: CallFacts
  ) -> [(from: Int64, to: Int64, count: Int)] {
    var times: [(from: Int64, to: Int64, count: Int)] = []
    var isOpen = false
    for (before, after) in zip(reports, reports.dropFirst()) {
      let sent = facts.sum(of: stream, from: before.at, to: after.at).packets
      let (grown, lost) = (after.highest &- before.highest, after.lost &- before.lost)
      let isBlocked = sent >= 10 && grown >= 0 && lost *| 10 >= grown *| 8
      if isBlocked, isOpen {
        times[times.count - 1].to = after.at
        times[times.count - 1].count += 1
      } else if isBlocked {
        times.append((before.at, after.at, 2))
      }
      isOpen = isBlocked
    }
    return times
  }

  /// Returns whether a stream of audio arrives without much loss in a period, by the receiver's
  /// reports.
  private static func arrives(
    _ stream: CallFacts.Stream, _ from: Int64, _ to: Int64, _ limits: Limits, _ facts: CallFacts
  ) -> Bool {
    guard stream.kind == "audio" else { return false }
    let reports = facts.reports(on: stream).filter { $0.at >= from && $0.at <= to }
    guard let first = reports.first, let last = reports.last else { return false }
    let (grown, lost) = (last.highest &- first.highest, last.lost &- first.lost)
    return grown >= 20 && Double(lost) <= limits["most_share"] * Double(grown)
  }

  /// Returns whether a peer received audio without much loss in a period.
  private static func hasAudio(
    _ peer: Int64, _ from: Int64, _ to: Int64, _ limits: Limits, _ facts: CallFacts
  ) -> Bool {
    facts.streams.contains { stream in
      guard stream.peer == peer, stream.direction == .inbound, stream.kind == "audio" else {
        return false
      }
      let sum = facts.sum(of: stream, from: from, to: to)
      return sum.packets >= 20
        && Double(sum.lost) <= limits["most_share"] * Double(sum.packets +| sum.lost)
    }
  }

  private static func hasLoss(_ peer: Int64, _ limits: Limits, _ facts: CallFacts) -> Bool {
    facts.reports.contains {
      $0.peer == peer && $0.direction == .inbound && Double($0.lost) >= limits["least_lost"]
    }
  }

  /// The fields by which a packet is recognized at both ends, its time and its size.
  private struct Carried {
    var at: Int64
    var ssrc: Int64
    var sequence: Int64
    var rtpTime: Int64
    var size: Int64
  }

  /// Passes each RTP packet that a peer sent or received to a closure.
  private static func forEachPacket(
    of peer: Int64, _ direction: WireDirection, _ connection: borrowing SQLiteConnection,
    _ body: (Carried) -> Void
  ) throws(SQLiteError) {
    let rows = try connection.prepare(
      """
      SELECT at_ns, ssrc & 0xffffffff, sequence & 0xffff, rtp_time & 0xffffffff, size
      FROM packet_store WHERE marker_type IS NOT NULL AND path IN (
        SELECT path FROM path_end WHERE peer = \(peer) AND direction = '\(direction.rawValue)')
      LIMIT 2000000
      """)
    while try rows.step() {
      body(
        Carried(
          at: rows.integer(0), ssrc: rows.integer(1), sequence: rows.integer(2),
          rtpTime: rows.integer(3), size: rows.integer(4)))
    }
  }

  /// Returns the sent packets of all streams, or only of those that lost some.
  private static func sentPackets(
    of peer: Int64, to other: Int64, _ isAll: Bool, _ facts: CallFacts,
    _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Sent] {
    var lossy: [Int64: UInt64] = [:]
    for stream in facts.streams
    where stream.peer == other && stream.direction == .inbound && (isAll || stream.lost > 0) {
      lossy[stream.ssrc] = UInt64(lossy.count & 0xffff)
    }
    func name(_ packet: Carried) -> UInt64? {
      lossy[packet.ssrc].map {
        $0 << 48 | UInt64(packet.sequence) << 32 | UInt64(packet.rtpTime)
      }
    }
    var arrived: Set<UInt64> = []
    try forEachPacket(of: other, .inbound, connection) { packet in
      if let name = name(packet) { arrived.insert(name) }
    }
    var sent: [Sent] = []
    try forEachPacket(of: peer, .outbound, connection) { packet in
      guard let name = name(packet) else { return }
      sent.append(Sent(at: packet.at, size: packet.size, hasArrived: arrived.contains(name)))
    }
    return sent
  }

  /// Returns the sent packets of streams for which the remote side sends NACKs; packets that a NACK
  /// names count as lost, although they may only be late.
  private static func requestedPackets(
    of peer: Int64, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Sent] {
    var asked: [Int64: Set<Int64>] = [:]
    let rows = try connection.prepare(
      """
      SELECT DISTINCT rtcp.ssrc & 0xffffffff, each.value & 0xffff
      FROM rtcp, json_each(rtcp.fields, '$.sequences') AS each
      WHERE rtcp.type = 'nack' AND rtcp.direction = 'in' AND rtcp.peer = \(peer)
      """)
    while try rows.step() { asked[rows.integer(0), default: []].insert(rows.integer(1)) }
    var sent: [Sent] = []
    try forEachPacket(of: peer, .outbound, connection) { packet in
      guard let names = asked[packet.ssrc] else { return }
      sent.append(
        Sent(at: packet.at, size: packet.size, hasArrived: !names.contains(packet.sequence)))
    }
    return sent
  }

  /// Returns a detection if lost packets are larger than a certain size, and packets that arrived
  /// are smaller.
  ///
  /// A lost packet that was not requested counts as arrived, so some of the large packets may seem
  /// to have arrived.
  private static func lostSizes(
    _ all: [Sent], _ limits: Limits, _ peer: Int64, _ source: String, _ facts: CallFacts
  ) -> Detection? {
    // The last packets sent may still be in flight.
    let known = all.filter { $0.at <= facts.end &- 1_000_000_000 }
    let times = known.filter { !$0.hasArrived }.map(\.at).sorted()
    // Leaves out the first and the last twentieth of the losses, which may have another cause.
    let spare = times.count / 20
    guard !times.isEmpty, Double(times.count) >= limits["least_lost"],
      case let (from, to) = (times[spare], times[times.count - 1 - spare]),
      // In a shorter outage, all lost packets may belong to one large frame.
      to &- from >= 2_000_000_000
    else { return nil }
    var sizes: [Int64: (arrived: Int, lost: Int)] = [:]
    for packet in known where packet.at >= from && packet.at <= to {
      if packet.hasArrived {
        sizes[packet.size, default: (0, 0)].arrived += 1
      } else {
        sizes[packet.size, default: (0, 0)].lost += 1
      }
    }
    let ordered = sizes.keys.sorted()
    let sorted = ordered.map { sizes[$0] ?? (0, 0) }
    let lost = sorted.reduce(0) { $0 + $1.lost }
    // Finds the size that best separates lost packets from smaller ones that arrived.
    var right = lost
    var best = (right: right, place: 0)
    for (place, count) in sorted.enumerated() {
      right += count.arrived - count.lost
      if right > best.right { best = (right, place + 1) }
    }
    guard best.place < ordered.count else { return nil }
    let smallest = ordered[best.place]
    let largeLost = sorted[best.place...].reduce(0) { $0 + $1.lost }
    let large = sorted[best.place...].reduce(0) { $0 + $1.arrived + $1.lost }
    let small = sorted[..<best.place].reduce(0) { $0 + $1.arrived + $1.lost }
    let smallLost = lost - largeLost
    guard Double(largeLost) >= limits["least_lost"],
      Double(largeLost) >= limits["least_share"] * Double(max(lost, large)), small >= large / 4,
      small >= 20, Double(smallLost) <= limits["most_share"] * Double(small)
    else { return nil }
    let share = largeLost == large ? "none" : "\(large - largeLost)"
    return Detection(
      "large-packets-lost", peer: peer, from: from, to: min(to, facts.end),
      "\(share) of \(large) packets of \(smallest) bytes and more arrived, and "
        + "\(small - smallLost) of \(small) smaller ones did\(source): a link on the "
        + "path drops larger packets",
      direction: .outbound,
      impact: FindingImpact(
        share: Double(largeLost) / Double(max(1, small + large)), count: Int64(largeLost)))
  }
}
