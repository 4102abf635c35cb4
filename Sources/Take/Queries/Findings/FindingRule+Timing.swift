import Tape
import Wire

// Rules about arrival times: jitter, queues, path changes.

extension FindingRule {
  /// Finds RFC 3550 jitter above 30 ms (the limit of Twilio, Telnyx and testRTC) in three of five
  /// seconds (as Twilio counts).
  ///
  /// For video, only the first packet of each frame counts, because the others are sent one after
  /// another. A queue or a stalled process delays many packets equally, so jitter stays low.
  static let highJitter = FindingRule(
    id: "high-jitter", severity: .medium, title: "Jitter", scope: .flow,
    thresholds: [
      Threshold("most_ms", 30, "ms", "Twilio, Telnyx, testRTC: 30 ms"),
      Threshold("off_ms", 20, "ms", "it is over below; our choice"),
      Threshold("least_seconds", 3, "s", "of five, as Twilio"),
      Threshold("least_swings", 0.2, "", "of the packets 15 ms off their distance; our choice"),
      Threshold("reordered_swings", 0.6, "", "the same where packets are overtaken; our choice"),
    ],
    causes: [
      "standing-queue", "process-starved", "peer-starved", "path-stalled", "media-in-bursts",
    ],
    sql: """
      SELECT peer, ssrc, second, jitter_ms FROM jitter WHERE jitter_ms > :most_ms
      """,
    detector: findJitter)

  private static func findJitter(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    var found: [Detection] = []
    for (place, stream) in facts.streams.enumerated()
    where stream.direction == .inbound && stream.role == .media {
      let seconds = facts.network.timings[place].seconds
      var open: (from: Int, to: Int, hits: Int)?
      func close() {
        defer { open = nil }
        guard let run = open, run.hits >= limits.count("least_seconds") else { return }
        let part = seconds[run.from...run.to]
        let most = (part.map(\.jitter).max() ?? 0) / 1000
        found.append(
          Detection(
            "high-jitter", peer: stream.peer,
            from: max(stream.first, part[run.from].second *| 1_000_000_000),
            to: min(stream.last, (part[run.to].second +| 1) *| 1_000_000_000),
            "the jitter reached \(most) ms",
            ssrc: stream.ssrc, track: stream.track, direction: .inbound, kind: stream.kind,
            impact: FindingImpact(delay: Double(most))))
      }
      for (index, second) in seconds.enumerated() {
        let jitter = Double(second.jitter) / 1000
        // When packets overtake each other, the spacing of only a few changes, but by a lot.
        let isReordered = reordered(stream, second.second, facts) >= 0.02
        let share = isReordered ? limits["reordered_swings"] : limits["least_swings"]
        let isHit =
          second.packets >= 5 && jitter > limits["most_ms"]
          && Double(second.swings) >= share * Double(second.packets)
        if isHit {
          open = (open?.from ?? index, index, (open?.hits ?? 0) +| 1)
        } else if let run = open,
          jitter < limits["off_ms"] || seconds[index].second -| seconds[run.to].second > 2
        {
          close()
        }
      }
      close()
    }
    return found + findJitterAtPeer(facts, limits)
  }

  /// Returns the share of a second's packets that arrived after later ones.
  private static func reordered(
    _ stream: CallFacts.Stream, _ second: Int64, _ facts: CallFacts
  ) -> Double {
    let sum = facts.sum(
      of: stream, from: second *| 1_000_000_000, to: (second +| 1) *| 1_000_000_000 -| 1)
    return Double(sum.reordered) / Double(max(1, sum.packets))
  }

  // MARK: Queues

  /// The minimum additional delay across all of a direction's streams in a second, relative to the
  /// lowest delay in the call.
  private struct Wait {
    var second: Int64
    var least: Int64
    var median: Int64
    var spread: Int64
    var leap: Int64
  }

  /// Returns, for each second, the delay of packets to a peer in excess of their lowest delay.
  ///
  /// Delays at the sender are subtracted if the take has the sender.
  private static func waits(to peer: CallFacts.Peer, _ facts: CallFacts) -> [Wait] {
    var waits: [Int64: Wait] = [:]
    for (place, stream) in facts.streams.enumerated()
    where stream.peer == peer.number && stream.direction == .inbound && stream.role == .media
      && slowRuns(place, facts).isEmpty
    {
      let timing = facts.network.timings[place]
      var held: [Int64: Int64] = [:]
      if let other = peer.other, !peer.isObserved,
        let twin = facts.streams.firstIndex(where: {
          $0.peer == other && $0.direction == .outbound && $0.ssrc == stream.ssrc
        })
      {
        let sender = facts.network.timings[twin]
        for (second, excess) in zip(sender.seconds, sender.excess) {
          held[second.second] = excess
        }
      }
      for (second, excess) in zip(timing.seconds, timing.excess) where second.packets >= 5 {
        // The part's lowest delay: the second's median delay without its excess over the lowest.
        let best = second.median -| excess
        let own = held[second.second] ?? 0
        let wait = Wait(
          second: second.second, least: second.low -| best -| own, median: excess -| own,
          spread: second.high -| second.low, leap: second.leap)
        guard let known = waits[second.second] else {
          waits[second.second] = wait
          continue
        }
        // A queue delays all streams; a delay of one stream alone has another reason.
        waits[second.second] = Wait(
          second: wait.second, least: min(known.least, wait.least),
          median: min(known.median, wait.median), spread: min(known.spread, wait.spread),
          leap: max(known.leap, wait.leap))
      }
    }
    return waits.values.sorted { $0.second < $1.second }
  }

  /// Returns runs of seconds with delayed packets, and how the delay arose.
  private static func waitRuns(
    _ waits: [Wait], on: Int64, off: Int64
  ) -> [(part: ArraySlice<Wait>, isStep: Bool)] {
    var runs: [(part: ArraySlice<Wait>, isStep: Bool)] = []
    var from: Int?
    func close(_ end: Int) {
      defer { from = nil }
      guard let begin = from, begin < end else { return }
      let part = waits[begin..<end]
      let middle = part.map(\.median).sorted()[part.count / 2]
      // A longer path increases the delay from one packet to the next by the full amount, and then
      // delays every packet equally.
      let leap =
        waits[max(0, begin -| 1)...min(begin +| 1, waits.count - 1)].map(\.leap).max() ?? 0
      let inner = part.count > 2 ? part.dropFirst().dropLast() : part
      let spreads = inner.map(\.spread).sorted()
      // Tolerates the variation that the path had before: on a busy machine or a radio link, delays
      // vary anyway.
      let usual = waits[max(0, begin -| 10)..<begin].map(\.spread).sorted()
      let usualSpread = usual.count >= 3 ? usual[usual.count / 2] : 0
      let isFlat = spreads[spreads.count / 2] < max(25_000, min(usualSpread, 80_000) *| 3 / 2)
      let levels = inner.map(\.median)
      let isLevel = (levels.max() ?? 0) -| (levels.min() ?? 0) < max(30_000, middle / 5)
      runs.append((part, isFlat && isLevel && leap *| 10 > middle *| 6))
    }
    for (index, wait) in waits.enumerated() {
      if let begin = from {
        let isApart = wait.second -| waits[index -| 1].second > 3
        if wait.least < off || isApart { close(index) }
        _ = begin
      }
      if from == nil, wait.least >= on { from = index }
    }
    close(waits.count)
    return runs
  }

  /// Finds packets that queue in front of a link that is too slow for what is sent: the delay grows
  /// with the queue and differs from packet to packet.
  static let standingQueue = FindingRule(
    id: "standing-queue", severity: .medium, title: "Packets waiting in a queue", scope: .flow,
    thresholds: [
      Threshold(
        "least_ms", 80, "ms", "of wait of nine packets in ten; RFC 8867's queues are 300 ms"),
      Threshold("off_ms", 40, "ms", "it is over below; half of it"),
      Threshold("least_seconds", 2, "s", "shorter is a burst; our choice"),
      Threshold("high_ms", 400, "ms", "people talk over each other (ITU-T G.114)"),
      Threshold(
        "feedback_ms", 100, "ms", "by feedback, which states times to 64 ms, or round trips"),
    ],
    causes: ["process-starved", "peer-starved"],
    sql: """
      SELECT peer, second, ssrc, packets, bits_per_second FROM bitrate
      WHERE direction = 'in' AND protocol = 'rtp' ORDER BY peer, second
      """,
    detector: findQueues)

  private static func findQueues(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    var found: [Detection] = []
    for peer in facts.peers {
      let runs = waitRuns(
        waits(to: peer, facts), on: Int64(saturating: limits["least_ms"] * 1000),
        off: Int64(saturating: limits["off_ms"] * 1000))
      for run in runs where !run.isStep || isOverflowing(run.part, peer.number, facts) {
        guard let first = run.part.first, let last = run.part.last,
          Double(last.second -| first.second + 1) >= limits["least_seconds"]
        else { continue }
        let middle = run.part.map(\.median).sorted()[run.part.count / 2]
        let (from, to) = (first.second * 1_000_000_000, (last.second + 1) * 1_000_000_000)
        let sum = packets(to: peer.number, from, to, facts)
        var words = "half of the packets waited \(middle / 1000) ms or more"
        if sum.lost > 0 { words += ", and \(sum.lost) of \(sum.lost + sum.packets) were lost" }
        words += "; \(sum.bits / 1000) kbit/s arrived"
        found.append(
          Detection(
            "standing-queue", peer: peer.number, from: from, to: min(to, facts.end), words,
            direction: .inbound, impact: FindingImpact(delay: Double(middle) / 1000),
            severity: Double(middle) / 1000 >= limits["high_ms"] ? .high : .medium))
      }
    }
    return found + findOutboundQueues(facts, limits)
  }

  /// Returns whether losses look like those of a queue that stays full.
  ///
  /// In a short queue that a large frame has filled, every packet waits equally long, as on a
  /// longer path; only the losses show the queue.
  private static func isOverflowing(
    _ part: ArraySlice<Wait>, _ peer: Int64, _ facts: CallFacts
  ) -> Bool {
    guard let first = part.first, let last = part.last else { return false }
    let (from, to) = (first.second *| 1_000_000_000, (last.second +| 1) *| 1_000_000_000)
    let inside = packets(to: peer, from, to, facts)
    let before = packets(to: peer, 0, from -| 1, facts)
    // Loss at the earlier rate is not due to the queue.
    let usual = Double(before.lost) / Double(max(1, before.lost +| before.packets))
    let share = Double(inside.lost) / Double(max(1, inside.lost +| inside.packets))
    return inside.lost >= 4 && share >= 0.02 + 1.5 * usual
  }

  /// Returns, for each second, the median delay on the path to a peer in excess of the lowest, in
  /// microseconds.
  static func inboundWaits(to peer: CallFacts.Peer, _ facts: CallFacts) -> [Int64: Int64] {
    var sum: [Int64: Int64] = [:]
    for wait in waits(to: peer, facts) { sum[wait.second] = max(0, wait.median) }
    return sum
  }

  private static func packets(to peer: Int64, _ from: Int64, _ to: Int64, _ facts: CallFacts)
    -> (packets: Int64, lost: Int64, bits: Int64)
  {
    var sum = (packets: Int64(0), lost: Int64(0), bits: Int64(0))
    var bytes: Int64 = 0
    for stream in facts.streams where stream.peer == peer && stream.direction == .inbound {
      let part = facts.sum(of: stream, from: from, to: to)
      sum.packets +|= Int64(part.packets)
      if stream.role == .media { sum.lost +|= max(0, Int64(part.lost)) }
      bytes +|= Int64(part.bytes)
    }
    sum.bits = Int64(saturating: Double(bytes) * 8e9 / Double(max(1, to &- from)))
    return sum
  }

  /// Finds a change to a longer path, such as another route or a handover: from one packet to the
  /// next, the delay increases, and stays the same for every packet after that.
  static let longerPath = FindingRule(
    id: "path-became-longer", severity: .low, title: "Path delay increased",
    scope: .connection,
    thresholds: [
      Threshold("least_ms", 80, "ms", "our choice"),
      Threshold("off_ms", 40, "ms", "it is over below"),
      Threshold("least_seconds", 3, "s", "our choice"),
      Threshold("medium_ms", 150, "ms", "the bound of ITU-T G.114 for good talk"),
    ],
    sql: """
      SELECT peer, at_ns, direction, round_trip_ms FROM media_round_trip ORDER BY peer, at_ns
      """,
    detector: findLongerPaths)

  /// Returns the times from which every packet to a peer was delayed equally, and by how many
  /// microseconds.
  static func steps(to peer: CallFacts.Peer, _ facts: CallFacts) -> [(from: Int64, wait: Int64)] {
    waitRuns(waits(to: peer, facts), on: 80_000, off: 40_000).compactMap { run in
      guard run.isStep, let first = run.part.first else { return nil }
      return (first.second *| 1_000_000_000, run.part.map(\.median).sorted()[run.part.count / 2])
    }
  }

  private static func findLongerPaths(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    var found: [Detection] = []
    for peer in facts.peers {
      let runs = waitRuns(
        waits(to: peer, facts), on: Int64(saturating: limits["least_ms"] * 1000),
        off: Int64(saturating: limits["off_ms"] * 1000))
      for run in runs where run.isStep && !isOverflowing(run.part, peer.number, facts) {
        guard let first = run.part.first, let last = run.part.last,
          Double(last.second - first.second + 1) >= limits["least_seconds"]
        else { continue }
        let middle = run.part.map(\.median).sorted()[run.part.count / 2]
        // A path that becomes longer leaves a gap of about the additional delay; the detection
        // begins there.
        let second = first.second *| 1_000_000_000
        let silence = facts.network.way(peer.number, .inbound)?.silences.last {
          $0.length *| 2 >= middle *| 1_000 && ($0.to &- second).magnitude <= 1_100_000_000
        }
        found.append(
          Detection(
            "path-became-longer", peer: peer.number, from: min(second, silence?.from ?? second),
            to: min((last.second +| 1) *| 1_000_000_000, facts.end),
            "every packet took \(middle / 1000) ms more than before", direction: .inbound,
            impact: FindingImpact(delay: Double(middle) / 1000),
            severity: Double(middle) / 1000 >= limits["medium_ms"] ? .medium : .low))
      }
    }
    return found + findOutboundSteps(facts, limits)
  }
}
