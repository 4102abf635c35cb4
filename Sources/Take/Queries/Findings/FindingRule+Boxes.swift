import Tape
import Wire

// Rules about middleboxes: NATs that change mappings, boxes that alter packets, so that SRTP
// refuses them, and firewalls that block data channels.

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

  // MARK: Refused packets

  /// Finds received packets that SRTP refused because they were altered, protected with another
  /// key, replayed or too early.
  ///
  /// Refusals are recorded only when their number reaches a power of two. If the take has
  /// statistics, the exact number is the excess of `packetsLost` over the loss on the wire.
  static let srtpRefused = FindingRule(
    id: "srtp-refused", severity: .medium, title: "Packets rejected by SRTP", scope: .flow,
    thresholds: [
      Threshold("least_rows", 4, "", "8 packets and more"),
      Threshold("early_rows", 7, "", "64 and more before the keys were known"),
    ],
    causes: ["duplicates", "sequence-restart"],
    sql: """
      SELECT peer, at_ns, detail ->> '$.reason' AS reason FROM event
      WHERE type = 'refused' AND detail ->> '$.layer' = 'srtp'
        AND detail ->> '$.reason' NOT LIKE 'own packet%'
      ORDER BY row LIMIT \(CallFacts.most)
      """,
    detector: findRefusals)

  private struct Refusals {
    var peer: Int64
    var reason: String
    var times: [Int64] = []

    /// Whether the packets were changed on the way or protected with another key.
    var isForged: Bool { reason.hasPrefix("authentication") }
    var isEarly: Bool { reason.hasPrefix("packet before") }
    var isReplayed: Bool { reason.contains("replay") }
  }

  private static func findRefusals(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    var all: [Refusals] = []
    let rows = try connection.prepare(srtpRefused.sql)
    while try rows.step() {
      let (peer, reason) = (rows.integer(0), rows.text(2) ?? "")
      let place = all.firstIndex { $0.peer == peer && $0.reason == reason } ?? all.count
      if place == all.count { all.append(Refusals(peer: peer, reason: reason)) }
      all[place].times.append(rows.integer(1))
    }
    var found: [Detection] = []
    for one in all {
      let least = limits[one.isEarly ? "early_rows" : "least_rows"]
      guard Double(one.times.count) >= least, let first = one.times.first,
        let last = one.times.last
      else { continue }
      // Row n reports refused packet number 2^(n - 1), so n rows mean at least that many packets,
      // but fewer than twice as many.
      let fewest = Int64(1) << Int64(min(one.times.count - 1, 40))
      let counted = one.isForged ? try counted(at: one.peer, facts, connection) : nil
      let isExact = counted.map { $0.count >= fewest } ?? false
      let text =
        if isExact, let counted {
          "\(counted.count) packets that came were refused, by the statistics until "
            + "\(decimal(Double(counted.until) / 1e9)) s"
        } else {
          "\(fewest) to \(2 *| fewest -| 1) packets that came were refused, the \(fewest)th at "
            + "\(decimal(Double(last) / 1e9)) s"
        }
      found.append(
        Detection(
          "srtp-refused", peer: one.peer, from: first,
          to: isExact ? max(last, counted?.last ?? last) : last,
          "\(text): \(one.reason)"
            + (one.isForged
              ? ", so that they were changed on the way or protected with another key" : ""),
          direction: .inbound,
          impact: FindingImpact(count: isExact ? counted?.count ?? fewest : fewest),
          severity: one.isReplayed || one.isEarly ? .low : .high,
          basis: one.isForged ? .ambiguous : nil))
    }
    return found
  }

  /// Returns how many of a peer's received packets its statistics count as lost although they
  /// arrived.
  ///
  /// `until` is the time of the last sample, and `last` the time of the last sample in which the
  /// number had grown.
  private static func counted(
    at peer: Int64, _ facts: CallFacts, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> (count: Int64, last: Int64, until: Int64)? {
    let rows = try connection.prepare(
      """
      SELECT at_ns, CAST(members ->> '$.ssrc' AS BIGINT) & 4294967295,
        CAST(members ->> '$.packetsLost' AS BIGINT)
      FROM stat WHERE peer = \(peer) AND type = 'inbound-rtp'
        AND members ->> '$.packetsLost' IS NOT NULL
      ORDER BY row LIMIT \(CallFacts.most)
      """)
    var counts: [Int64: Int64] = [:]
    var found: (last: Int64, until: Int64)?
    while try rows.step() {
      let (at, ssrc, lost) = (rows.integer(0), rows.integer(1), rows.integer(2))
      guard
        let stream = facts.streams.first(where: {
          $0.peer == peer && $0.direction == .inbound && $0.ssrc == ssrc && $0.role == .media
        })
      else { continue }
      let count = lost -| Int64(facts.sum(of: stream, from: .min, to: at).lost)
      found = (count > counts[ssrc] ?? 0 ? at : found?.last ?? at, at)
      counts[ssrc] = max(count, counts[ssrc] ?? 0)
    }
    let sum = counts.values.reduce(0, +|)
    return found.map { (sum, $0.last, $0.until) }
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
