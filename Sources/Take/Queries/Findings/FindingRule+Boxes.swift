import Tape
import Wire

// Rules about middleboxes: NATs that change mappings, tunnels that drop large packets, and
// firewalls that block data channels.

extension FindingRule {
  /// Finds media that arrives from a new address that was not signaled: a NAT restarted or lost a
  /// mapping, or a machine moved to another network.
  ///
  /// A path that ICE negotiated, or selected among candidates, does not count.
  static let addressChanged = FindingRule(
    id: "address-changed", severity: .medium, title: "Network address changed",
    scope: .connection,
    thresholds: [
      Threshold("least_packets", 20, "packets", "of media from either address; our choice"),
      Threshold("overlap_ms", 1_000, "ms", "for which both may be in use; our choice"),
    ],
    sql: """
      SELECT path_end.peer AS peer, remote, min(at_ns) AS from_ns, max(at_ns) AS to_ns,
        count(*) AS packets
      FROM packet_store JOIN path_end USING (path)
      WHERE marker_type IS NOT NULL AND path_end.direction = 'in' GROUP BY path_end.peer, remote
      """,
    detector: findChangedAddresses)

  private static func findChangedAddresses(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    var found: [Detection] = []
    for peer in facts.peers {
      let uses = facts.network.pathUses.filter {
        $0.peer == peer.number && $0.direction == .inbound
          && Double($0.media) >= limits["least_packets"]
      }.sorted { ($0.firstMedia, $0.path) < ($1.firstMedia, $1.path) }
      if peer.isObserved, let one = continuation(of: peer, limits, facts) { found.append(one) }
      for (before, after) in zip(uses, uses.dropFirst())
      where before.remote != after.remote && before.local == after.local
        && Double(after.firstMedia &- before.lastMedia) / 1e6 >= -limits["overlap_ms"]
      {
        guard !wasNegotiated(peer.number, after.firstMedia, facts),
          try !wasSignaled(after.remote, peer.number, connection)
        else { continue }
        let isSame = host(before.remote) == host(after.remote)
        let lost = try toOld(before, facts, connection)
        found.append(
          Detection(
            "address-changed", peer: peer.number, from: before.lastMedia,
            to: max(after.firstMedia, lost.last),
            "its packets came from \(after.remote) instead of \(before.remote) from "
              + "\(rounded(Double(after.firstMedia) / 1e9)) s on"
              + (isSame ? ", as after a NAT rebinding" : ", as after a network change")
              + (lost.count > 0
                ? "; \(lost.count) packets still went to the old address, for "
                  + "\(rounded(Double(lost.last &- before.lastMedia) / 1e9)) s"
                : ""),
            impact: FindingImpact(
              withoutMedia: lost.count > 0
                ? Double(max(0, lost.last &- before.lastMedia)) / 1e9 : 0, count: lost.count)))
      }
    }
    return found
  }

  /// Returns a detection if an observed peer's inbound streams continued between other observed
  /// peers: an observer cannot know that a new pair of addresses belongs to the same call.
  private static func continuation(
    of peer: CallFacts.Peer, _ limits: Limits, _ facts: CallFacts
  ) -> Detection? {
    let overlap = Int64(saturating: limits["overlap_ms"] * 1e6)
    for stream in facts.streams
    where stream.peer == peer.number && stream.direction == .inbound && stream.role == .media
      && Double(stream.packets) >= limits["least_packets"]
    {
      let next = facts.streams.first {
        $0.peer != peer.number && $0.ssrc == stream.ssrc && $0.direction == .inbound
          && $0.kind == stream.kind && Double($0.packets) >= limits["least_packets"]
          && $0.first >= stream.last -| overlap && $0.first <= stream.last +| 3_000_000_000
      }
      guard let next, let receiver = facts.peer(next.peer), receiver.isObserved,
        let before = peer.other.flatMap({ facts.peer($0) }),
        let after = receiver.other.flatMap({ facts.peer($0) }), before.label != after.label,
        !wasNegotiated(peer.number, next.first, facts)
      else { continue }
      return Detection(
        "address-changed", peer: peer.number, from: stream.last, to: facts.end,
        "its packets came from \(after.label) instead of \(before.label) from "
          + "\(rounded(Double(next.first) / 1e9)) s on, with the same SSRC",
        impact: FindingImpact(count: next.packets))
    }
    return nil
  }

  /// Returns whether a negotiation, such as an ICE restart, happened in the three seconds before a
  /// time or the half second after it.
  private static func wasNegotiated(_ peer: Int64, _ at: Int64, _ facts: CallFacts) -> Bool {
    facts.perception.negotiations.contains {
      $0.peer == peer && at -| $0.at <= 3_000_000_000 && $0.at -| at <= 500_000_000
    }
  }

  private static func host(_ address: String) -> Substring {
    address[..<(address.lastIndex(of: ":") ?? address.endIndex)]
  }

  /// Returns the number of media packets that were still sent to an address that had fallen silent,
  /// and the time of the last packet.
  private static func toOld(
    _ use: NetworkFacts.PathUse, _ facts: CallFacts, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> (count: Int64, last: Int64) {
    guard
      let back = facts.network.pathUses.first(where: {
        $0.peer == use.peer && $0.direction == .outbound && $0.remote == use.remote
          && $0.local == use.local
      }), back.lastMedia &- use.lastMedia >= 1_000_000_000
    else { return (0, use.lastMedia) }
    let sent = try connection.integer(
      """
      SELECT count(*) FROM packet_store
      WHERE path = \(back.path) AND marker_type IS NOT NULL AND at_ns > \(use.lastMedia)
      """)
    return (sent ?? 0, back.lastMedia)
  }

  /// Returns whether an address is one of the remote peer's signaled candidates.
  private static func wasSignaled(
    _ address: String, _ peer: Int64, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> Bool {
    let rows = try connection.prepare(
      """
      SELECT iif(address LIKE '%:%', '[' || address || ']', address) || ':' || port FROM candidate
      WHERE peer = \(peer) AND type = 'remote-candidate' AND candidate_type <> 'prflx' LIMIT 10000
      """)
    while try rows.step() {
      if rows.text(0) == address { return true }
    }
    return false
  }

  // MARK: Packet sizes

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
      if !isWhole { found += try findMissingSizes(peer, limits, facts, connection) }
      if let other = peer.other, facts.peer(other)?.isObserved == false {
        // Both ends are in the take, so the packets that this end sent can be compared with the
        // packets that the other end received.
        let lost = facts.streams.filter {
          $0.peer == other && $0.direction == .inbound && $0.kind == "video"
        }.reduce(Int64(0)) { $0 +| $1.lost }
        guard Double(lost) >= limits["least_lost"] else { continue }
        let sent = try sentPackets(of: peer.number, to: other, facts, connection)
        if let one = lostSizes(sent, limits, peer.number, "", facts) { found.append(one) }
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
      guard let first = holes.first?.lowerBound, let last = holes.last?.upperBound,
        last &- first >= 2_000_000_000,
        facts.repairs(of: stream, from: first, to: last &+ 1_000_000_000) *| 10 <= stream.lost,
        facts.streams.contains(where: { $0.role == .repair && $0.original == stream.ssrc })
          || facts.demands.contains(where: {
            $0.kind == .nack && $0.peer == peer.number && $0.direction == .outbound
              && $0.ssrc == stream.ssrc
          })
      else { continue }
      let rows = try connection.prepare(
        """
        SELECT at_ns, size FROM packet_store JOIN path_end USING (path)
        WHERE path_end.peer = \(peer.number) AND direction = 'in' AND marker_type IS NOT NULL
          AND packet_store.ssrc & 0xffffffff = \(stream.ssrc) LIMIT 2000000
        """)
      var before: [Int64] = []
      var since: [Int64] = []
      while try rows.step() {
        // Ignores packets around the first loss, which shows only when a later packet arrives.
        if rows.integer(0) < first &- 100_000_000 {
          before.append(rows.integer(1))
        } else if rows.integer(0) > first &+ 200_000_000, rows.integer(0) <= last {
          since.append(rows.integer(1))
        }
      }
      let most = since.max() ?? 0
      let large = before.filter { $0 > most &+ most / 50 }
      // The number of large packets that would have arrived since then, if their share had not
      // changed.
      let expected = Double(since.count) * Double(large.count) / Double(max(1, before.count))
      guard since.count >= 30, large.count >= 20, expected >= limits["least_lost"] else { continue }
      found.append(
        Detection(
          "large-packets-lost", peer: peer.number, from: first, to: last,
          "no packet of more than \(most) bytes arrived any more, while \(large.count) of "
            + "\(before.count) were larger before; \(stream.lost) packets are missing, and none of "
            + "them was repaired: a link on the path drops larger packets",
          ssrc: stream.ssrc, track: stream.track, direction: .inbound, kind: "video",
          impact: FindingImpact(count: stream.lost)))
    }
    return found
  }

  private static func hasLoss(_ peer: Int64, _ limits: Limits, _ facts: CallFacts) -> Bool {
    facts.reports.contains {
      $0.peer == peer && $0.direction == .inbound && Double($0.lost) >= limits["least_lost"]
    }
  }

  /// A packet as its sender and its receiver have it.
  private struct Carried {
    var at: Int64
    var ssrc: Int64
    var sequence: Int64
    var rtpTime: Int64
    var size: Int64
  }

  /// Calls a closure with each RTP packet of a peer in one direction.
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

  /// Returns the sent packets of streams that lost some.
  ///
  /// Audio without losses is left out: it may arrive even where video of any size is lost.
  private static func sentPackets(
    of peer: Int64, to other: Int64, _ facts: CallFacts, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Sent] {
    var lossy: [Int64: UInt64] = [:]
    for stream in facts.streams
    where stream.peer == other && stream.direction == .inbound && stream.lost > 0 {
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

  // MARK: Data channels

  /// Finds data channels that never opened although DTLS connected: SCTP does not get through, or
  /// the remote peer does not support it.
  static let channelNotOpen = FindingRule(
    id: "channel-not-open", severity: .high, title: "Data channel that does not open",
    scope: .connection,
    thresholds: [
      Threshold("least_ms", 3_000, "ms", "after DTLS connected: a timeout of SCTP (RFC 9260)")
    ],
    causes: [
      "path-dead", "consent-lost", "section-rejected", "description-refused", "disconnected",
    ],
    silentUnder: ["never-connected"],
    sql: """
      WITH
        secured AS (
          SELECT peer, min(at_ns) AS at_ns FROM state
          WHERE machine LIKE 'dtls%' AND to_state = 'connected' GROUP BY peer
        ),
        made AS (
          SELECT channel.peer AS peer, channel, min(label) AS label,
            max(min(channel.at_ns), secured.at_ns) AS from_ns,
            coalesce(min(iif(state IN ('closing', 'closed'), channel.at_ns, NULL)),
              -- A reported channel's state is unknown after the last report.
              (SELECT max(stat.at_ns) FROM stat JOIN peer USING (peer)
                WHERE role = 'reported' AND stat.peer = channel.peer), \(end)) AS to_ns
          FROM channel JOIN secured USING (peer) GROUP BY channel.peer, channel
          HAVING max(state = 'open') = 0
        )
      SELECT peer, min(from_ns) AS from_ns, max(to_ns) AS to_ns,
        iif(count(*) = 1, '"' || min(label) || '" was', count(*) || ' channels were')
          || ' not open ' || round((max(to_ns) - min(from_ns)) / 1e9, 1)
          || ' s after DTLS connected: SCTP was not answered' AS evidence,
        'data' AS kind, (max(to_ns) - min(from_ns)) / 1e9 AS without_media_s, count(*) AS count
      FROM made WHERE to_ns - from_ns >= :least_ms * 1000000 GROUP BY peer
      UNION ALL
      -- The answerer learns of channels only over SCTP.
      SELECT waiting.peer, waiting.from_ns, waiting.to_ns,
        'SCTP was still not connected ' || round(waiting.seconds, 1)
          || ' s after DTLS was: its messages were not answered, or none arrived',
        'data', waiting.seconds, 1
      FROM state_time AS waiting
      WHERE machine = 'sctp' AND state = 'connecting'
        AND to_ns - from_ns >= :least_ms * 1000000
        AND peer NOT IN (SELECT peer FROM channel)
        AND NOT EXISTS (
          SELECT 1 FROM state WHERE state.peer = waiting.peer AND machine = 'sctp'
            AND to_state = 'connected')
      """)
}
