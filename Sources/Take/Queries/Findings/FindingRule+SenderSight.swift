import Tape
import Wire

// Problems on the path to a receiver that only its sender can see, from feedback, reports and
// requests. If the take has the receiver too, the receiver's view is better.

extension FindingRule {
  /// Returns the peers whose receiver was not recorded separately: the take lacks it, or both ends
  /// were observed at the same place.
  static func lonelySenders(_ facts: CallFacts) -> [CallFacts.Peer] {
    facts.peers.filter { $0.other == nil || $0.isObserved }
  }

  // MARK: Queues

  /// By how much the one-way delay of a peer's packets exceeds its minimum in a period.
  struct OutboundWait {
    var from: Int64
    var to: Int64
    /// The excess at the 20th percentile and at the median, in microseconds.
    var low: Int64
    var wait: Int64
  }

  /// Returns the delays of a peer's packets by transport-wide feedback, or without feedback, by
  /// round trips.
  static func outboundWaits(of peer: CallFacts.Peer, _ facts: CallFacts)
    -> (waits: [OutboundWait], isByFeedback: Bool)
  {
    var waits: [Int64: OutboundWait] = [:]
    for isVideo in [false, true] {
      let seconds = facts.network.sending.seconds(of: peer.number, isVideo: isVideo)
      for wait in feedbackWaits(seconds) {
        // A queue delays both kinds of media; a delay of one kind alone has another reason.
        if let other = waits[wait.from], other.low < wait.low { continue }
        waits[wait.from] = wait
      }
    }
    if waits.count >= 3 { return (waits.values.sorted { $0.from < $1.from }, true) }
    return (roundTripWaits(of: peer, facts), false)
  }

  /// Returns the excess delays computed from feedback; as in `StreamTiming.excess`, clock drift up
  /// to 150 ppm adds nothing.
  private static func feedbackWaits(_ seconds: [SenderFacts.Second]) -> [OutboundWait] {
    func waits(_ delay: KeyPath<SenderFacts.Second, Int64>) -> [Int64] {
      var best = seconds.map { $0[keyPath: delay] }
      func relax(_ place: Int, from other: Int) {
        guard seconds[place].part == seconds[other].part else { return }
        let apart = abs(seconds[place].second &- seconds[other].second)
        best[place] = min(best[place], best[other] &+ apart &* 150)
      }
      for place in seconds.indices.dropFirst() { relax(place, from: place -| 1) }
      for place in seconds.indices.dropLast().reversed() { relax(place, from: place +| 1) }
      return zip(seconds, best).map { $0[keyPath: delay] &- $1 }
    }
    return zip(seconds, zip(waits(\.low), waits(\.delay))).map { second, wait in
      OutboundWait(
        from: second.second *| 1_000_000_000, to: (second.second +| 1) *| 1_000_000_000,
        low: wait.0, wait: wait.1)
    }
  }

  /// Returns the part of round trips that the return path does not explain.
  private static func roundTripWaits(of peer: CallFacts.Peer, _ facts: CallFacts)
    -> [OutboundWait]
  {
    let trips = facts.network.sending.roundTrips[peer.number] ?? []
    guard let best = trips.map(\.nanoseconds).min() else { return [] }
    let back = inboundWaits(to: peer, facts)
    // Answers are also late if the remote process stalls, or if the path back holds packets up.
    let silences = facts.network.way(peer.number, .inbound)?.silences ?? []
    let waits = trips.map { trip in
      let second = trip.at / 1_000_000_000
      let from = trip.at &- trip.nanoseconds
      let silent = silences.reduce(Int64(0)) {
        $0 &+ max(0, min($1.to, trip.at) &- max($1.from, from))
      }
      let wait = (trip.nanoseconds &- best &- silent) / 1000 &- (back[second] ?? 0)
      return OutboundWait(
        from: trip.sent, to: trip.sent &+ trip.nanoseconds, low: wait, wait: wait)
    }
    // Several reports that refer to one sender report measured its way once.
    var least: [Int64: OutboundWait] = [:]
    for wait in waits where (least[wait.from]?.wait ?? .max) > wait.wait { least[wait.from] = wait }
    return least.values.sorted { $0.from < $1.from }
  }

  /// A period in which a peer's packets were delayed.
  struct OutboundQueue {
    var from: Int64
    var to: Int64
    /// The median excess delay in microseconds.
    var wait: Int64
    /// Whether all packets were delayed equally.
    var isStep: Bool
    /// Whether it is so short that a stalled process may have caused it, or a single round trip.
    var isShort: Bool
  }

  static func outboundQueues(
    _ waits: [OutboundWait], isByFeedback: Bool, on: Int64, off: Int64
  ) -> [OutboundQueue] {
    var queues: [OutboundQueue] = []
    var run: [OutboundWait] = []
    func close() {
      defer { run = [] }
      guard run.count >= (isByFeedback ? 2 : 3), let first = run.first, let last = run.last
      else { return }
      let inner = (run.count > 4 ? Array(run.dropFirst().dropLast()) : run).map(\.wait).sorted()
      let middle = inner[inner.count / 2]
      let swing = inner[inner.count - 1] &- inner[0]
      // The resolution of feedback reference times is 64 ms.
      let isFlat = swing < max(isByFeedback ? 40_000 : 15_000, middle / (isByFeedback ? 8 : 20))
      queues.append(
        OutboundQueue(
          from: first.from, to: last.to, wait: middle, isStep: isFlat, isShort: run.count < 3))
    }
    for wait in waits {
      if let last = run.last, wait.low < off || wait.from &- last.to > 8_000_000_000 { close() }
      if run.isEmpty ? wait.low >= on : wait.low >= off { run.append(wait) }
    }
    close()
    return queues
  }

  /// Finds queues on the path from a peer, by the feedback that it receives or by round trips.
  static func findOutboundQueues(_ facts: CallFacts, _ limits: Limits) -> [Detection] {
    var found: [Detection] = []
    for peer in lonelySenders(facts) {
      let (waits, isByFeedback) = outboundWaits(of: peer, facts)
      let queues = outboundQueues(
        waits, isByFeedback: isByFeedback, on: Int64(saturating: limits["feedback_ms"] * 1000),
        off: Int64(saturating: limits["feedback_ms"] * 500))
      for queue in queues {
        guard Double(queue.to &- queue.from) >= limits["least_seconds"] * 1e9 else { continue }
        let (lost, expected) = facts.lossAtPeer(of: peer.number, queue.from, queue.to)
        let isLossy = lost >= 4 && lost *| 50 >= expected
        // Loss means a full queue: a process that stalls sends late, but loses nothing.
        guard isLossy || !queue.isStep && !queue.isShort,
          isLossy || !followsInboundStep(queue, peer, facts),
          !isByFeedback || isConfirmed(queue, of: peer, on: limits["feedback_ms"] * 1e6, facts),
          !isJitter(queue, of: peer.number, facts)
        else { continue }
        var words = "half of the packets waited \(queue.wait / 1000) ms or more, by "
        words += isByFeedback ? "the receiver's feedback" : "the round trips"
        if lost > 0 { words += ", and \(lost) of \(expected) were lost" }
        found.append(
          Detection(
            "standing-queue", peer: peer.number, from: queue.from, to: min(queue.to, facts.end),
            words, direction: .outbound, impact: FindingImpact(delay: Double(queue.wait) / 1000),
            severity: Double(queue.wait) / 1000 >= limits["high_ms"] ? .high : .medium))
      }
    }
    return found
  }

  /// Returns whether the path to this peer became longer by a similar amount when a queue seems to
  /// begin.
  ///
  /// In that case, both directions probably changed to another route, and there is no queue.
  private static func followsInboundStep(
    _ queue: OutboundQueue, _ peer: CallFacts.Peer, _ facts: CallFacts
  ) -> Bool {
    steps(to: peer, facts).contains {
      ($0.from &- queue.from).magnitude <= 3_000_000_000 && $0.wait *| 10 >= queue.wait *| 6
        && $0.wait *| 6 <= queue.wait *| 10
    }
  }

  /// Returns whether round trips during a queue are longer as well; true if there are fewer than
  /// three.
  ///
  /// Feedback has only the delay of the first of several packets, and that packet may have waited
  /// longest.
  private static func isConfirmed(
    _ queue: OutboundQueue, of peer: CallFacts.Peer, on: Double, _ facts: CallFacts
  ) -> Bool {
    let waits = roundTripWaits(of: peer, facts)
    let inside = waits.filter { $0.from >= queue.from && $0.to <= queue.to }.map(\.wait).sorted()
    guard inside.count >= 3 else { return true }
    return Double(inside[inside.count / 4]) * 1000 >= on / 2
  }

  /// Returns whether most audio reports during a queue show jitter, whereas packets that wait in
  /// one queue keep their spacing.
  private static func isJitter(_ queue: OutboundQueue, of peer: Int64, _ facts: CallFacts) -> Bool {
    let clocks = facts.streams.filter {
      $0.peer == peer && $0.direction == .outbound && $0.kind == "audio" && $0.clockRate > 0
    }
    let reports = facts.reports.filter { report in
      report.peer == peer && report.direction == .inbound && report.at >= queue.from
        && report.at <= queue.to && clocks.contains { $0.ssrc == report.ssrc }
    }
    let jittery = reports.filter { report in
      clocks.contains {
        $0.ssrc == report.ssrc && Double(report.jitter) > 0.03 * Double($0.clockRate)
      }
    }
    return reports.count >= 2 && jittery.count *| 2 > reports.count
  }

  /// Finds the times after which every packet takes longer by the same amount.
  ///
  /// Only feedback is used, because a round trip does not show which direction became slower.
  static func findOutboundSteps(_ facts: CallFacts, _ limits: Limits) -> [Detection] {
    var found: [Detection] = []
    for peer in lonelySenders(facts) {
      let (waits, isByFeedback) = outboundWaits(of: peer, facts)
      guard isByFeedback else { continue }
      let queues = outboundQueues(
        waits, isByFeedback: true, on: Int64(saturating: limits["least_ms"] * 1000),
        off: Int64(saturating: limits["off_ms"] * 1000))
      for queue in queues where queue.isStep && !queue.isShort {
        let (lost, expected) = facts.lossAtPeer(of: peer.number, queue.from, queue.to)
        guard Double(queue.to &- queue.from) >= limits["least_seconds"] * 1e9,
          lost < 4 || lost *| 50 < expected,
          isConfirmed(queue, of: peer, on: limits["least_ms"] * 1e6, facts),
          !isJitter(queue, of: peer.number, facts)
        else { continue }
        found.append(
          Detection(
            "path-became-longer", peer: peer.number, from: queue.from,
            to: min(queue.to, facts.end),
            "every packet took \(queue.wait / 1000) ms more than before, by the receiver's "
              + "feedback",
            direction: .outbound, impact: FindingImpact(delay: Double(queue.wait) / 1000),
            severity: Double(queue.wait) / 1000 >= limits["medium_ms"] ? .medium : .low))
      }
    }
    return found
  }

  // MARK: Jitter

  /// Finds periods in which the receiver's reports show jitter (RFC 3550 section 6.4.1).
  ///
  /// For video, the receiver also counts the packets within a frame, which are sent one after
  /// another. At a low bit rate, the sender spreads them, and this spread is not due to the path.
  static func findJitterAtPeer(_ facts: CallFacts, _ limits: Limits) -> [Detection] {
    var found: [Detection] = []
    for peer in lonelySenders(facts) {
      for stream in facts.streams
      where stream.peer == peer.number && stream.direction == .outbound && stream.role == .media
        && stream.clockRate > 0
      {
        let most = limits["most_ms"] * (stream.kind == "video" ? 2 : 1)
        let reports = facts.reports(on: stream)
        func jitter(_ report: CallFacts.Report) -> Double {
          Double(report.jitter) * 1000 / Double(stream.clockRate)
        }
        for run in reports.split(whereSeparator: { jitter($0) <= most }) {
          guard let first = run.first, let last = run.last, run.count >= 2,
            Double(last.at &- first.at) >= 1e9
          else { continue }
          let worst = Int64(saturating: run.map(jitter).max() ?? 0)
          let sent = facts.sum(of: stream, from: first.at &- 1_000_000_000, to: last.at)
          let spread = Double(sent.jitterMicroseconds) / Double(max(1, sent.spaced)) / 1000
          guard stream.kind != "video" || Double(worst) > most + 2 * spread else { continue }
          found.append(
            Detection(
              "high-jitter", peer: peer.number, from: first.at &- 1_000_000_000, to: last.at,
              "the receiver reports an average jitter of \(worst) ms",
              ssrc: stream.ssrc, track: stream.track, direction: .outbound, kind: stream.kind,
              impact: FindingImpact(delay: Double(worst))))
        }
      }
    }
    return found
  }

  // MARK: Reports

  /// Finds periods in which the remote peer refers to an old sender report although newer ones were
  /// sent: media arrives there, but RTCP does not.
  static func findReportsNotArriving(_ facts: CallFacts, _ limits: Limits) -> [Detection] {
    var found: [Detection] = []
    for peer in lonelySenders(facts) {
      let sent = facts.senderReports.filter { $0.peer == peer.number && $0.direction == .outbound }
      for stream in facts.streams
      where stream.peer == peer.number && stream.direction == .outbound && stream.role == .media {
        let own = sent.filter { $0.ssrc == stream.ssrc }.map(\.at)
        let reports = facts.reports(on: stream)
        // A peer that never refers to a sender report may not support these references.
        guard reports.contains(where: { $0.lastSent != 0 }) else { continue }
        for run in reports.runs(where: { $0.lastSent == $1.lastSent }) {
          guard let first = run.first, let last = run.last, run.count >= 3,
            last.highest &- first.highest >= Int64(saturating: limits["least_packets"])
          else { continue }
          // About a round trip after this peer sent the sender report that the first block names.
          let from = first.at &- first.sinceLastSent *| 1_000_000_000 / 65_536
          let missed = own.filter { $0 > from && $0 < last.at &- 300_000_000 }
          guard missed.count >= 3, let since = missed.first,
            Double(last.at &- since) >= limits["least_ms"] * 1e6
          else { continue }
          found.append(
            Detection(
              "rtcp-silence", peer: peer.number, from: since, to: last.at,
              "none of \(missed.count) sender reports arrived, by \(run.count) reports of the "
                + "remote peer, while media did",
              direction: .outbound, impact: FindingImpact(count: Int64(missed.count)),
              severity: .medium))
        }
      }
    }
    return found
  }

  /// Finds reports whose sequence numbers change by far more than was sent: a middlebox renumbers
  /// packets.
  static func findRestartsAtPeer(_ facts: CallFacts) -> [Detection] {
    var found: [Detection] = []
    for peer in lonelySenders(facts) {
      for stream in facts.streams
      where stream.peer == peer.number && stream.direction == .outbound && stream.role == .media {
        let reports = facts.reports(on: stream)
        for (before, after) in zip(reports, reports.dropFirst()) where after.at > before.at {
          let sent = Int64(facts.sum(of: stream, from: before.at, to: after.at).packets)
          // The tolerance allows for packets that were sent before the earlier report but received
          // after it; steps of nearly 65,536 are wraps of the sequence numbers.
          let grown = after.highest &- before.highest
          guard grown.magnitude >= UInt64(3_000 +| 4 *| max(0, sent)), grown.magnitude < 60_000
          else { continue }
          found.append(
            Detection(
              "sequence-restart", peer: peer.number, from: before.at, to: after.at,
              "the receiver's reports went from \(before.highest & 0xffff) to "
                + "\(after.highest & 0xffff) while \(sent) packets were sent: something on the "
                + "path changes the numbers",
              ssrc: stream.ssrc, track: stream.track, direction: .outbound, kind: stream.kind))
        }
      }
    }
    return found
  }

  // MARK: Repairs

  /// A receiver's NACKs for one stream.
  private struct Requested {
    var peer: Int64
    var ssrc: Int64
    /// The number of distinct packets, and the number of requests including repeated ones.
    var packets: Int64
    var requests: Int64
    var from: Int64
    var to: Int64
  }

  private static func requested(
    _ facts: CallFacts, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Requested] {
    let lonely = Set(lonelySenders(facts).map(\.number))
    let rows = try connection.prepare(
      """
      SELECT rtcp.peer, rtcp.ssrc & 0xffffffff, count(DISTINCT each.value), count(*),
        min(rtcp.at_ns), max(rtcp.at_ns)
      FROM rtcp, json_each(rtcp.fields, '$.sequences') AS each
      WHERE rtcp.type = 'nack' AND rtcp.direction = 'in' GROUP BY 1, 2 ORDER BY 1, 2
      """)
    var found: [Requested] = []
    while try rows.step() {
      guard lonely.contains(rows.integer(0)) else { continue }
      found.append(
        Requested(
          peer: rows.integer(0), ssrc: rows.integer(1), packets: rows.integer(2),
          requests: rows.integer(3), from: rows.integer(4), to: rows.integer(5)))
    }
    return found
  }

  /// Finds packets that the remote peer requests with NACKs but does not count as lost: they
  /// arrived late.
  static func findReorderingAtPeer(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    var found: [Detection] = []
    for asked in try requested(facts, connection) {
      guard let stream = facts.stream(asked.peer, .outbound, asked.ssrc) else { continue }
      let reports = facts.reports.filter {
        $0.peer == asked.peer && $0.direction == .inbound && $0.ssrc == asked.ssrc
      }
      guard let report = reports.last, let before = reports.first else { continue }
      // Retransmissions within the stream fill gaps before a report counts them.
      let hasRepairs = facts.repairs(of: asked.peer, asked.ssrc, from: .min, to: .max) > 0
      let share = Double(asked.packets) / Double(max(1, stream.packets))
      let lost = max(0, report.lost &- before.lost)
      guard hasRepairs, report.at >= asked.to, Double(asked.packets) >= limits["least_packets"],
        share >= limits["least_share"], lost *| 5 <= asked.packets
      else { continue }
      found.append(
        Detection(
          "reordering", peer: asked.peer, from: asked.from, to: asked.to,
          "its receiver requested \(asked.packets) of \(stream.packets) packets again "
            + "(\(percentage(share)) %), and counts \(lost) as lost",
          ssrc: stream.ssrc, track: stream.track, direction: .outbound, kind: stream.kind,
          impact: FindingImpact(share: share, count: asked.packets),
          severity: share >= limits["medium_share"] ? .medium : .low))
    }
    return found
  }

  /// Finds packets that the remote peer keeps requesting although they were retransmitted.
  static func findRepairsLostAtPeer(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    var found: [Detection] = []
    for asked in try requested(facts, connection) {
      guard Double(asked.packets) >= limits["least_lost"],
        Double(asked.requests) >= limits["least_requests"] * Double(asked.packets)
      else { continue }
      let stream = facts.stream(asked.peer, .outbound, asked.ssrc)
      let again = facts.repairs(
        of: asked.peer, asked.ssrc, from: asked.from, to: asked.to +| 1_000_000_000)
      // If most requests were not answered, the packets were probably too old to be retransmitted,
      // so no retransmissions were lost.
      guard again *| 2 >= asked.requests else { continue }
      found.append(
        Detection(
          "repairs-missing", peer: asked.peer, from: asked.from, to: asked.to,
          "its receiver requested \(asked.packets) packets \(asked.requests) times (NACK), "
            + "although \(again) were sent again",
          ssrc: asked.ssrc, track: stream?.track, direction: .outbound,
          kind: stream?.kind ?? "video", impact: FindingImpact(count: asked.packets)))
    }
    return found
  }
}

extension CallFacts {
  /// Returns the number of repair packets that a peer sent for a stream in a period.
  fileprivate func repairs(of peer: Int64, _ ssrc: Int64, from: Int64, to: Int64) -> Int64 {
    streams.filter {
      $0.role == .repair && $0.original == ssrc && $0.peer == peer && $0.direction == .outbound
    }.reduce(0) { $0 +| Int64(sum(of: $1, from: from, to: to).packets) }
  }

  /// Returns the loss of all packets that a peer sent in a period, according to the remote peer's
  /// reports.
  func lossAtPeer(of peer: Int64, _ from: Int64, _ to: Int64) -> (lost: Int64, expected: Int64) {
    var former: [Int64: Report] = [:]
    var (lost, expected): (Int64, Int64) = (0, 0)
    for report in reports where report.peer == peer && report.direction == .inbound {
      defer { former[report.ssrc] = report }
      guard let before = former[report.ssrc], report.at >= from,
        before.at <= to, report.highest >= before.highest
      else { continue }
      lost &+= max(0, report.lost &- before.lost)
      expected &+= report.highest &- before.highest
    }
    return (lost, expected)
  }
}

extension Array {
  /// Splits the elements into runs whose neighbours satisfy a condition.
  func runs(where belong: (Element, Element) -> Bool) -> [Self] {
    var runs: [Self] = []
    for element in self {
      if let last = runs.last?.last, belong(last, element) {
        runs[runs.count - 1].append(element)
      } else {
        runs.append([element])
      }
    }
    return runs
  }
}
