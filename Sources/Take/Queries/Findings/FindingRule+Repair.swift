import Tape
import Wire

// Rules about late, duplicate and retransmitted packets.

extension FindingRule {
  /// Finds packets that arrive out of order.
  ///
  /// libwebrtc counts a late packet as lost until it arrives; LiveKit then subtracts it from the
  /// lost packets.
  static let reordering = FindingRule(
    id: "reordering", severity: .low, title: "Packets out of order", scope: .flow,
    thresholds: [
      Threshold("least_share", 0.01, "", "of the packets; our choice"),
      Threshold("least_packets", 10, "packets", "our choice"),
      Threshold("medium_share", 0.05, "", "our choice"),
    ],
    causes: ["high-jitter", "path-stalled"],
    sumsUp: true,
    sql: """
      SELECT peer, ssrc, row, at_ns, sequence FROM packet
      WHERE protocol = 'rtp' AND direction = 'in' ORDER BY peer, ssrc, row
      """,
    detector: findReordering)

  private static func findReordering(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    var found: [Detection] = []
    for (place, stream) in facts.streams.enumerated()
    where stream.direction == .inbound && stream.role == .media {
      let asked = requests(for: stream, facts)
      // Arriving a few milliseconds after the following packets does no harm.
      let displaced = facts.perception.displaced[place]?.packets ?? 0
      let hasRepairs = facts.streams.contains {
        $0.role == .repair && $0.peer == stream.peer && $0.direction == .inbound
          && $0.original == stream.ssrc
      }
      // Without a repair stream, retransmissions arrive late in the media stream itself.
      let late = min(
        displaced,
        hasRepairs || asked == 0 ? stream.reordered : max(0, stream.reordered -| asked))
      let share = Double(late) / Double(max(1, stream.packets))
      guard Double(late) >= limits["least_packets"], share >= limits["least_share"],
        let span = span(of: stream, facts, where: { $0.reordered > 0 })
      else { continue }
      found.append(
        Detection(
          "reordering", peer: stream.peer, from: span.from, to: span.to,
          "\(late) of \(stream.packets) packets (\(percentage(share)) %) arrived 10 ms or more "
            + "after later ones"
            + (asked > stream.lost && stream.kind == "video"
              ? "; \(asked) were requested again, and \(max(0, stream.lost)) were lost" : ""),
          ssrc: stream.ssrc, track: stream.track, direction: .inbound, kind: stream.kind,
          impact: FindingImpact(share: share, count: late),
          severity: share >= limits["medium_share"] ? .medium : .low))
    }
    return try found + findReorderingAtPeer(facts, limits, connection)
  }

  /// Finds duplicate packets, which Wireshark marks and SRTP's replay protection drops.
  static let duplicates = FindingRule(
    id: "duplicates", severity: .low, title: "Duplicate packets", scope: .flow,
    thresholds: [
      Threshold("least_share", 0.01, "", "of the packets; our choice"),
      Threshold("least_packets", 10, "packets", "our choice"),
    ],
    sumsUp: true,
    sql: """
      SELECT peer, ssrc, sequence, rtp_time, count(*) AS times FROM packet
      WHERE protocol = 'rtp' AND direction = 'in' GROUP BY peer, ssrc, sequence, rtp_time
      HAVING count(*) > 1
      """,
    detector: findDuplicates)

  private static func findDuplicates(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    var found: [Detection] = []
    for stream in facts.streams where stream.direction == .inbound && stream.role == .media {
      let asked = requests(for: stream, facts)
      let twice = max(0, stream.duplicates -| asked)
      let share = Double(twice) / Double(max(1, stream.packets))
      guard Double(twice) >= limits["least_packets"], share >= limits["least_share"],
        let span = span(of: stream, facts, where: { $0.duplicates > 0 })
      else { continue }
      found.append(
        Detection(
          "duplicates", peer: stream.peer, from: span.from, to: span.to,
          "\(twice) of \(stream.packets) packets (\(percentage(share)) %) arrived again",
          ssrc: stream.ssrc, track: stream.track, direction: .inbound, kind: stream.kind,
          impact: FindingImpact(share: share, count: twice)))
    }
    return found
  }

  /// Returns the period from the first to the last interval that satisfies a condition; nil if none
  /// does.
  private static func span(
    of stream: CallFacts.Stream, _ facts: CallFacts, where holds: (CallFacts.Bucket) -> Bool
  ) -> (from: Int64, to: Int64)? {
    let runs = facts.runs(of: stream, where: holds)
    guard let first = runs.first, let last = runs.last else { return nil }
    return (max(first.lowerBound, stream.first), min(last.upperBound, stream.last))
  }

  /// Returns how many of a stream's packets its receiver requested with NACKs while the stream was
  /// arriving and in the second after that.
  private static func requests(for stream: CallFacts.Stream, _ facts: CallFacts) -> Int64 {
    let time = stream.first...max(stream.first, stream.last +| 1_000_000_000)
    return facts.demands.reduce(0) { sum, demand in
      demand.kind == .nack && demand.peer == stream.peer
        && demand.direction != stream.direction && demand.ssrc == stream.ssrc
        && time.contains(demand.at)
        ? sum +| demand.packets : sum
    }
  }

  static func percentage(_ share: Double) -> String { rounded(share * 100) }

  // MARK: Repairs

  /// Finds video loss that nothing repairs: without NACK, a lost packet damages the picture until
  /// the next key frame.
  static let lossWithoutRepair = FindingRule(
    id: "no-repair", severity: .medium, title: "Loss without repair",
    thresholds: [
      Threshold("least_share", 0.01, "", "of the packets lost; Twilio and Telnyx: 1 %"),
      Threshold("least_packets", 5, "packets", "our choice"),
    ],
    sumsUp: true,
    sql: """
      SELECT peer, direction, ssrc, expected, lost FROM loss WHERE direction = 'in' AND lost > 0
      """,
    detector: findUnrepaired)

  private static func findUnrepaired(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    var found: [Detection] = []
    for stream in facts.streams
    where stream.direction == .inbound && stream.role == .media && stream.kind == "video" {
      let share = Double(stream.lost) / Double(max(1, stream.expected))
      guard share >= limits["least_share"], Double(stream.lost) >= limits["least_packets"],
        let missing = missingRepairs(stream, facts),
        let span = span(of: stream, facts, where: { $0.lost > 0 })
      else { continue }
      found.append(
        Detection(
          "no-repair", peer: stream.peer, from: span.from, to: span.to,
          "\(stream.lost) of \(stream.expected) packets (\(percentage(share)) %) were lost, and "
            + "\(missing) was negotiated",
          ssrc: stream.ssrc, track: stream.track, direction: .inbound, kind: stream.kind,
          impact: FindingImpact(share: share, count: stream.lost)))
    }
    return found + findUnrepairedAtPeer(facts, limits)
  }

  /// Finds unrepaired loss in the receiver's reports.
  private static func findUnrepairedAtPeer(_ facts: CallFacts, _ limits: Limits) -> [Detection] {
    var found: [Detection] = []
    for peer in lonelySenders(facts) {
      for stream in facts.streams
      where stream.peer == peer.number && stream.direction == .outbound && stream.kind == "video"
        && stream.role == .media
      {
        let reports = facts.reports.filter {
          $0.peer == peer.number && $0.direction == .inbound && $0.ssrc == stream.ssrc
        }
        guard let first = reports.first, let last = reports.last else { continue }
        let (lost, expected) = (last.lost &- first.lost, last.highest &- first.highest)
        let share = Double(lost) / Double(max(1, expected))
        guard share >= limits["least_share"], Double(lost) >= limits["least_packets"],
          let missing = missingRepairs(stream, facts),
          let from = reports.first(where: { $0.lost > first.lost })?.at
        else { continue }
        let to = reports.last { $0.fractionLost > 0 }?.at ?? last.at
        found.append(
          Detection(
            "no-repair", peer: peer.number, from: from &- 1_000_000_000, to: to,
            "the receiver reports \(lost) of \(expected) packets (\(percentage(share)) %) lost, "
              + "and \(missing) was negotiated",
            ssrc: stream.ssrc, track: stream.track, direction: .outbound, kind: stream.kind,
            impact: FindingImpact(share: share, count: lost)))
      }
    }
    return found
  }

  /// Returns the repair mechanisms that were not negotiated for a stream; nil if one was, or if the
  /// negotiation is unknown.
  private static func missingRepairs(_ stream: CallFacts.Stream, _ facts: CallFacts) -> String? {
    guard let type = stream.payloadTypes.max(by: { $0.packets < $1.packets })?.type else {
      return nil
    }
    let all = facts.network.descriptions(of: stream.peer)
    let sides = [true, false].map { isLocal in
      all.filter { $0.isLocal == isLocal }.flatMap(\.sections).filter { $0.formats.contains(type) }
    }
    guard sides.allSatisfy({ !$0.isEmpty }) else { return nil }
    let hasDemands = sides.allSatisfy { side in
      side.contains { $0.nacked.contains(type) || $0.nacked.contains(-1) }
    }
    let asked = requests(for: stream, facts)
    if !hasDemands && asked == 0 { return "no NACK" }
    // Some stacks retransmit within the stream, which shows as late or duplicate packets.
    let hasStream = sides.allSatisfy { side in side.contains { $0.repaired.contains(type) } }
    let isCorrected = sides.allSatisfy { side in
      side.contains { $0.codecs.values.contains { ["ulpfec", "flexfec-03"].contains($0) } }
    }
    if !hasStream && !isCorrected && stream.reordered +| stream.duplicates == 0 && asked > 0 {
      return "no retransmission (RTX)"
    }
    return nil
  }

  /// Finds requests without effect: the retransmissions are lost, too, or the sender no longer has
  /// the packets.
  static let repairsMissing = FindingRule(
    id: "repairs-missing", severity: .medium, title: "Retransmissions lost",
    thresholds: [
      Threshold("least_lost", 10, "packets", "lost; our choice"),
      Threshold(
        "few_lost", 5, "packets", "are enough if none came, or asked again and again; our choice"),
      Threshold("insistence", 4, "", "requests for each of so few; our choice"),
      Threshold("most_share", 0.3, "", "of them that came again; our choice"),
      Threshold(
        "least_requests", 2.5, "", "for each of them, seen by their sender alone; our choice"),
    ],
    causes: ["path-dead", "one-way-media", "standing-queue"],
    silentUnder: ["path-dead", "no-repair"],
    sql: """
      SELECT peer, at_ns, direction, ssrc, fields FROM rtcp WHERE type = 'nack' ORDER BY row
      """,
    detector: findMissingRepairs)

  private static func findMissingRepairs(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    var found: [Detection] = []
    for stream in facts.streams
    where stream.direction == .inbound && stream.role == .media && stream.kind == "video" {
      let asked = facts.demands.filter {
        $0.kind == .nack && $0.peer == stream.peer && $0.direction == .outbound
          && $0.ssrc == stream.ssrc
      }
      guard let first = asked.first, let last = asked.last,
        Double(stream.lost) >= limits["few_lost"]
      else { continue }
      let repairs = facts.streams.filter {
        $0.role == .repair && $0.peer == stream.peer && $0.direction == .inbound
          && $0.original == stream.ssrc
      }
      let lost = Int64(
        max(0, facts.sum(of: stream, from: first.at -| 500_000_000, to: last.at).lost))
      let came = repairs.reduce(0) {
        $0 +| Int64(facts.sum(of: $1, from: first.at, to: last.at +| 1_000_000_000).packets)
      }
      let times = asked.reduce(Int64(0)) { $0 +| $1.packets }
      // Even a few lost packets make a detection if they were requested repeatedly, or if nothing
      // was retransmitted at all.
      let least = came == 0 ? 1 : limits["insistence"]
      let isInsistent =
        Double(lost) >= limits["few_lost"] && Double(times) >= least * Double(lost)
      guard Double(lost) >= limits["least_lost"] || isInsistent,
        Double(came) <= limits["most_share"] * Double(lost),
        stream.reordered *| 2 < lost
      else { continue }
      found.append(
        Detection(
          "repairs-missing", peer: stream.peer, from: first.at, to: last.at,
          "\(lost) packets were lost; its receiver sent \(counted(Int64(asked.count), "request")) "
            + "(NACK) for them, and \(came == 0 ? "none" : "\(came)") arrived",
          ssrc: stream.ssrc, track: stream.track, direction: .inbound, kind: stream.kind,
          impact: FindingImpact(share: 1 - Double(came) / Double(lost), count: lost)))
    }
    return try found + findRepairsLostAtPeer(facts, limits, connection)
  }

  /// Finds retransmissions that arrive so long after the request that they are too late for their
  /// frame.
  static let lateRepair = FindingRule(
    id: "late-repair", severity: .low, title: "Late retransmissions",
    thresholds: [
      Threshold("least_ms", 250, "ms", "from the request on, in the middle; our choice"),
      Threshold("least_repairs", 5, "", "our choice"),
    ],
    causes: ["standing-queue", "path-became-longer", "high-round-trip", "repairs-missing"],
    silentUnder: ["repairs-missing", "path-dead"],
    sql: """
      SELECT peer, at_ns, direction, ssrc, fields FROM rtcp WHERE type = 'nack' ORDER BY row
      """,
    detector: findLateRepairs)

  private static func findLateRepairs(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    var found: [Detection] = []
    for repair in facts.streams
    where repair.direction == .inbound && repair.role == .repair && repair.original != nil {
      let asked = facts.demands.filter {
        $0.kind == .nack && $0.peer == repair.peer && $0.direction == .outbound
          && $0.ssrc == repair.original
      }
      let origin = repair.first / facts.intervalNanoseconds
      let filled = repair.buckets.indices.filter { repair.buckets[$0].packets > 0 }
      // Matches each request with the next repair; of a repair, only the interval is known, usually
      // a tenth of a second.
      var delays: [Int64] = []
      var place = 0
      for demand in asked.prefix(5000) {
        let bucket = Int(demand.at / facts.intervalNanoseconds -| origin)
        while place < filled.count, filled[place] < bucket { place +|= 1 }
        guard place < filled.count else { break }
        delays.append(
          max(0, (origin +| Int64(filled[place])) *| facts.intervalNanoseconds -| demand.at))
      }
      guard delays.count >= limits.count("least_repairs") else { continue }
      let middle = delays.sorted()[delays.count / 2] / 1_000_000
      guard Double(middle) >= limits["least_ms"], let first = asked.first, let last = asked.last
      else { continue }
      found.append(
        Detection(
          "late-repair", peer: repair.peer, from: first.at, to: last.at,
          "half of \(delays.count) retransmissions arrived \(middle) ms or more after its receiver "
            + "had requested them",
          ssrc: repair.original, track: repair.track, direction: .inbound, kind: "video",
          impact: FindingImpact(delay: Double(middle), count: Int64(delays.count))))
    }
    return found
  }

  /// Finds requests for more than a tenth of the packets, which load the reverse path and show that
  /// repairs do not help.
  static let nackStorm = FindingRule(
    id: "nack-storm", severity: .medium, title: "Many retransmissions requested",
    thresholds: [
      Threshold("least_share", 0.1, "", "of the packets; our choice, nobody publishes one"),
      Threshold("window_s", 5, "s", "our choice"),
      Threshold("least_packets", 30, "packets", "our choice"),
    ],
    causes: ["loss", "loss-burst", "standing-queue", "reordering", "repairs-missing"],
    sql: """
      SELECT peer, at_ns, direction, ssrc, fields FROM rtcp WHERE type = 'nack' ORDER BY row
      """,
    detector: findNackStorms)

  private static func findNackStorms(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    let window = max(1, Int64(saturating: limits["window_s"] * 1e9))
    var found: [Detection] = []
    for stream in facts.streams where stream.direction == .inbound && stream.role == .media {
      let asked = facts.demands.filter {
        $0.kind == .nack && $0.peer == stream.peer && $0.direction == .outbound
          && $0.ssrc == stream.ssrc
      }
      var span: (from: Int64, to: Int64, most: Int64)?
      var begin = 0
      var sum: Int64 = 0
      for demand in asked {
        sum +|= demand.packets
        while asked[begin].at <= demand.at -| window {
          sum -= asked[begin].packets
          begin +|= 1
        }
        let came = facts.sum(of: stream, from: demand.at -| window, to: demand.at).packets
        guard Double(sum) >= limits["least_packets"],
          Double(sum) > limits["least_share"] * Double(came)
        else { continue }
        span = (span?.from ?? asked[begin].at, demand.at, max(span?.most ?? 0, sum))
      }
      guard let span else { continue }
      let seconds = min(limits["window_s"], Double(span.to -| span.from) / 1e9)
      found.append(
        Detection(
          "nack-storm", peer: stream.peer, from: span.from, to: span.to,
          "its receiver requested packets \(span.most) times (NACK, each repeat counted) within "
            + (seconds < 1 ? "\(whole(seconds * 1000)) ms" : "\(decimal(seconds)) s"),
          ssrc: stream.ssrc, track: stream.track, direction: .inbound, kind: stream.kind,
          impact: FindingImpact(count: span.most)))
    }
    return found
  }
}
