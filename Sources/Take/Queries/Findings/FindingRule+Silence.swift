import RTP
import Tape
import Wire

// Rules about silences of all protocols, and which side causes them.

extension FindingRule {
  /// The query for the times between a connection's packets of any protocol; each rule appends a
  /// condition.
  private static let pauseQuery = """
    SELECT peer, at_ns - gap_ns AS from_ns, at_ns AS to_ns, gap_ns / 1000000 AS gap_ms FROM (
      SELECT path_end.peer AS peer, at_ns,
        at_ns - lag(at_ns) OVER (PARTITION BY path_end.peer ORDER BY packet_store.row) AS gap_ns
      FROM packet_store JOIN path_end USING (path) WHERE path_end.direction = 'in'
    ) WHERE\u{20}
    """

  /// Finds periods in which no packets of any protocol arrive: neither media nor checks nor
  /// reports.
  ///
  /// Missing sequence numbers distinguish a dead path from a sender that stopped.
  static let pathDead = FindingRule(
    id: "path-dead", severity: .high, title: "Dead path", scope: .connection,
    thresholds: [
      Threshold(
        "least_ms", 1_000, "ms", "our choice; Chromium's event log viewer has 500 ms for RTP"),
      Threshold("least_expected", 15, "packets", "that should have come, by the pace before"),
      Threshold("least_share", 0.3, "", "of these that are missing; fewer, and they were not sent"),
    ],
    sql: pauseQuery + "gap_ns >= :least_ms * 1000000",
    detector: findDeadPaths)

  private static func findDeadPaths(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    let least = Int64(saturating: limits["least_ms"]) *| 1_000_000
    var found: [Detection] = []
    for peer in facts.peers {
      guard let live = peer.live, let way = facts.network.way(peer.number, .inbound) else {
        continue
      }
      var silences = way.silences.filter { $0.length >= least && live.contains($0.from) }
      let last = min(live.upperBound, facts.end)
      // A silence at the end has no missing packets, because no packet follows.
      var isTail = false
      if last -| way.last >= least, live.contains(way.last) {
        silences.append(
          NetworkFacts.Silence(
            from: way.last, to: last, pace: way.pace.packets(before: way.last)))
        isTail = true
      }
      for (place, silence) in silences.enumerated() {
        let expected = Double(silence.pace) * Double(silence.length) / 1e9
        guard expected >= limits["least_expected"] else { continue }
        // The path is not responsible for the time in which the other end's process did not run.
        guard silence.length -| sleep(to: peer, silence, facts) >= least else { continue }
        let isOpen = isTail && place == silences.count - 1
        let sent = sentMeanwhile(to: peer, silence, facts)
        if let sent {
          guard sent >= Int64(saturating: expected * limits["least_share"]) else { continue }
        } else if !isOpen {
          guard Double(silence.missing) >= expected * limits["least_share"] else { continue }
        } else if saidGoodbye(peer.number, silence.from, facts)
          || peer.isObserved && !goesOn(peer.number, silence, facts)
        {
          // A capture may end before the call does.
          continue
        }
        found.append(deadPath(peer, silence, isOpen, facts))
      }
    }
    return found
  }

  /// Returns whether a peer still sent media five seconds into a silence; if so, neither the call
  /// nor the capture had ended.
  ///
  /// Five seconds is the longest interval of consent checks (RFC 7675 section 5.1).
  private static func goesOn(
    _ peer: Int64, _ silence: NetworkFacts.Silence, _ facts: CallFacts
  ) -> Bool {
    media(to: peer, silence.from +| 5_000_000_000, silence.to, facts, .outbound) >= 20
  }

  private static func deadPath(
    _ peer: CallFacts.Peer, _ silence: NetworkFacts.Silence, _ isOpen: Bool, _ facts: CallFacts
  ) -> Detection {
    let seconds = Double(silence.length) / 1e9
    var words =
      "nothing arrived for \(rounded(seconds)) s\(isOpen ? facts.ending(at: silence.to) : "")"
    if silence.missing > 0 { words += ", and \(silence.missing) media packets are missing" }
    if let other = peer.other, let way = facts.network.way(other, .inbound) {
      let isBoth =
        way.silences.contains {
          min($0.to, silence.to) -| max($0.from, silence.from) > silence.length / 2
        } || way.last < silence.from +| silence.length / 2
      words +=
        isBoth
        ? "; nothing arrived in the other direction either"
        : "; the other direction continued"
    }
    return Detection(
      "path-dead", peer: peer.number, from: silence.from, to: silence.to, words,
      impact: FindingImpact(withoutMedia: seconds, count: silence.missing))
  }

  /// Returns the number of media packets that the other end sent during a silence; nil if the take
  /// did not record that end, or if the silence is too short for a reliable count.
  private static func sentMeanwhile(
    to peer: CallFacts.Peer, _ silence: NetworkFacts.Silence, _ facts: CallFacts
  ) -> Int64? {
    guard let other = peer.other, !peer.isObserved else { return nil }
    let margin: Int64 = 100_000_000
    guard silence.length > 3 *| margin else { return nil }
    return facts.streams.reduce(0) { sum, stream in
      stream.peer == other && stream.direction == .outbound
        ? sum
          +| Int64(
            facts.sum(of: stream, from: silence.from +| margin, to: silence.to -| margin).packets)
        : sum
    }
  }

  /// Returns the longest time for which the other end's process did not run during a silence, in
  /// nanoseconds; 0 if the take did not record that end.
  private static func sleep(
    to peer: CallFacts.Peer, _ silence: NetworkFacts.Silence, _ facts: CallFacts
  ) -> Int64 {
    guard let other = peer.other.flatMap({ facts.peer($0) }), !other.isObserved else { return 0 }
    return facts.network.lateSteps.reduce(0) { longest, late in
      late.actor == other.actor
        ? max(longest, min(late.at, silence.to) -| max(late.due, silence.from)) : longest
    }
  }

  /// Returns whether the remote peer closed DTLS or SCTP before the connection ended.
  private static func saidGoodbye(_ peer: Int64, _ at: Int64, _ facts: CallFacts) -> Bool {
    facts.states.contains {
      $0.peer == peer && $0.at >= at -| 2_000_000_000 && $0.to == "closed"
        && ($0.machine.hasPrefix("dtls") || $0.machine == "sctp")
        && $0.at < (facts.peer(peer)?.live?.upperBound ?? .max) -| 500_000_000
    }
  }

  // MARK: Stalled processes

  /// Finds a machine that did not run at its deadline: the processor was busy, or the previous step
  /// took too long.
  ///
  /// A take has both the deadline and the time at which the machine ran.
  static let processStarved = FindingRule(
    id: "process-starved", severity: .low, title: "Process did not run in time", scope: .end,
    thresholds: [
      Threshold("least_ms", 100, "ms", "our choice; half a jitter buffer"),
      Threshold("medium_ms", 200, "ms", "at once, longer than audio buffers"),
      Threshold("sum_ms", 1_000, "ms", "together within a time without pauses of 2 s: medium"),
      Threshold("often_ms", 50, "ms", "if together they are as much: low; our choice"),
    ],
    sql: """
      SELECT first_step, steps, at_ns, at_ns - lag(at_ns) OVER (ORDER BY first_step) AS gap_ns
      FROM tape ORDER BY gap_ns DESC LIMIT 20
      """,
    detector: findStarved)

  private static func findStarved(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    var found: [Detection] = []
    for peer in facts.peers where !peer.isObserved {
      var stops = Self.stops(of: peer, facts.network.lateSteps, least: limits["least_ms"])
      // A short stop does no harm by itself; many of them mean that the processor is too slow.
      let areShort = stops.isEmpty
      if areShort {
        stops = Self.stops(of: peer, facts.network.slightlyLateSteps, least: limits["often_ms"])
      }
      for group in grouped(stops, pause: 2_000_000_000) {
        guard let first = group.first, let last = group.last else { continue }
        let longest = group.map { $0.to -| $0.from }.max() ?? 0
        let sum = group.reduce(0) { $0 +| $1.to -| $1.from }
        let isLong = Double(sum) / 1e6 >= limits["sum_ms"]
        guard isLong || !areShort else { continue }
        let isMedium = !areShort && (isLong || Double(longest) / 1e6 >= limits["medium_ms"])
        found.append(
          Detection(
            "process-starved", peer: peer.number, from: first.from, to: last.to,
            "it ran \(longest / 1_000_000) ms late"
              + (group.count == 1
                ? "" : " at worst, \(group.count) times, \(sum / 1_000_000) ms together"),
            impact: FindingImpact(
              delay: Double(longest) / 1e6, count: Int64(group.count)),
            severity: isMedium ? .medium : .low))
      }
    }
    return found
  }

  /// Returns when a peer's process was late by at least `least` milliseconds while it was
  /// connected.
  private static func stops(
    of peer: CallFacts.Peer, _ lateSteps: [StepTimes.Late], least: Double
  ) -> [(from: Int64, to: Int64)] {
    guard let live = peer.live else { return [] }
    var stops: [(from: Int64, to: Int64)] = []
    for late in lateSteps
    where late.actor == peer.actor && live.contains(late.due)
      && late.at -| late.due >= Int64(saturating: least) *| 1_000_000
    {
      if let last = stops.last, late.due <= last.to {
        stops[stops.count - 1].to = max(last.to, late.at)
      } else {
        stops.append((late.due, late.at))
      }
    }
    return stops
  }

  /// The rules that detect periods without a packet of any protocol.
  fileprivate static let silencing = [pathDead, peerStarved, pathStalled]

  /// Groups spans that are less than `pause` apart.
  private static func grouped(_ spans: [(from: Int64, to: Int64)], pause: Int64)
    -> [[(from: Int64, to: Int64)]]
  {
    var groups: [[(from: Int64, to: Int64)]] = []
    for span in spans {
      if let last = groups.last?.last, span.from -| last.to < pause {
        groups[groups.count - 1].append(span)
      } else {
        groups.append([span])
      }
    }
    return groups
  }

  /// What caused a silence of all protocols that ended without loss.
  private enum Silencer { case sender, path, unknown }

  /// Finds silences of all protocols that end with a burst and without loss: the packets were not
  /// sent in time.
  static let peerStarved = FindingRule(
    id: "peer-starved", severity: .low, title: "Process stalled",
    scope: .flow,
    thresholds: [
      Threshold("least_ms", 200, "ms", "of no protocol; our choice"),
      Threshold("medium_ms", 350, "ms", "longer than a jitter buffer hides; our choice"),
      Threshold(
        "least_lateness_ms", 40, "ms", "of the first packets after it, or a burst; our choice"),
      Threshold("least_burst", 1.5, "", "times the usual packets in 60 ms after it; our choice"),
    ],
    causes: ["process-starved"], silentUnder: ["path-dead"],
    sql: pauseQuery + "gap_ns >= :least_ms * 1000000",
    detector: findStarvedPeers)

  private static func findStarvedPeers(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    try heldSilences(facts, limits).filter { $0.silencer != .path }.map { held in
      let milliseconds = held.silence.length / 1_000_000
      return Detection(
        "peer-starved", peer: held.peer, from: held.silence.from, to: held.silence.to,
        "nothing of any protocol arrived for \(milliseconds) ms, and then \(held.silence.burst) "
          + "media packets at once; none is missing"
          + (held.silencer == .unknown
            ? "; what was sent meanwhile may have waited on the path" : ""),
        direction: .inbound,
        impact: FindingImpact(delay: Double(milliseconds), count: held.silence.burst),
        severity: Double(milliseconds) >= limits["medium_ms"] ? .medium : .low,
        basis: held.silencer == .unknown ? .ambiguous : nil)
    }
  }

  /// Finds repeated short silences of all protocols, each followed by a burst of packets that
  /// should have come during the silence: the sender's process gets too little processor time.
  ///
  /// A link that aggregates packets looks the same, except for their sending times.
  static let mediaInBursts = FindingRule(
    id: "media-in-bursts", severity: .low, title: "Packets sent in bursts", scope: .flow,
    thresholds: [
      Threshold("most_ms", 200, "ms", "longer ones are of `peer-starved`"),
      Threshold("least_count", 10, "times", "one after another; our choice"),
      Threshold("most_apart_ms", 400, "ms", "from one to the next; our choice"),
      Threshold("least_share", 0.6, "", "of what should have come, which came right after"),
    ],
    causes: ["process-starved", "peer-starved", "path-stalled"],
    silentUnder: ["path-dead", "standing-queue", "loss", "reordering"],
    sql: pauseQuery + "gap_ns BETWEEN 90000000 AND :most_ms * 1000000",
    detector: findMediaInBursts)

  private static func findMediaInBursts(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    let most = Int64(saturating: limits["most_apart_ms"]) *| 1_000_000
    var found: [Detection] = []
    for peer in facts.peers {
      guard let live = peer.live, let way = facts.network.way(peer.number, .inbound) else {
        continue
      }
      let all = way.hitches.filter {
        Double($0.length) < limits["most_ms"] * 1e6 && live.contains($0.from) && $0.pace >= 20
      }
      for run in all.runs(where: { $1.from -| $0.from <= most }) {
        guard let first = run.first, let last = run.last,
          Double(run.count) >= limits["least_count"], run.count > 1
        else { continue }
        let expected = run.reduce(0) { sum, hitch in
          sum + Double(hitch.pace) * Double(hitch.length) / 1e9
        }
        let came = run.reduce(0) { $0 +| $1.burst }
        let missing = run.reduce(0) { $0 +| $1.missing }
        guard Double(came) >= limits["least_share"] * expected, expected >= 20,
          Double(missing) <= max(1, expected * 0.1),
          silencer(of: first, to: peer, facts) != .path,
          try isOfSender(run, to: peer.number, facts, connection)
        else { continue }
        let lengths = run.map { $0.length / 1_000_000 }.sorted()
        found.append(
          Detection(
            "media-in-bursts", peer: peer.number, from: first.from, to: last.to,
            "nothing of any protocol arrived for \(lengths[0]) to \(lengths[lengths.count - 1]) "
              + "ms, \(run.count) times in \(tenths(last.to - first.from)) s, each time followed "
              + "by the delayed packets; their abs-send-time shows that they were sent like this: "
              + "the sending process got too little processor time",
            direction: .inbound,
            impact: FindingImpact(
              delay: Double(lengths[lengths.count - 1]), count: Int64(run.count))))
      }
    }
    return found
  }

  /// Returns whether the packets around silences were also sent far apart, according to their
  /// abs-send-time.
  private static func isOfSender(
    _ silences: [NetworkFacts.Silence], to peer: Int64, _ facts: CallFacts,
    _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> Bool {
    let ids = facts.network.descriptions(of: peer).flatMap(\.sections).map(\.sendTime)
    guard let id = ids.first(where: { (1...255).contains($0) }) else { return false }
    var map = HeaderExtensionMap()
    map.absoluteSendTime = UInt8(truncatingIfNeeded: id)
    let part = silences.prefix(40)
    guard let first = part.first, let last = part.last else { return false }
    let rows = try connection.prepare(
      """
      SELECT at_ns, bytes FROM packet
      WHERE peer = \(peer) AND direction = 'in' AND ssrc IS NOT NULL
        AND at_ns BETWEEN \(first.from -| aside) AND \(last.to +| aside)
      ORDER BY row LIMIT 20000
      """)
    // Not every stream has sending times, so the nearest packets that have one are compared.
    var sent: [(at: Int64, time: Int64)] = []
    while try rows.step() {
      if let time = sendTime(rows.bytes(1), map) { sent.append((rows.integer(0), time)) }
    }
    let apart = part.compactMap { silence -> Bool? in
      guard let place = sent.firstIndex(where: { $0.at >= silence.to }), place > 0,
        sent[place].at <= silence.to +| aside, sent[place - 1].at >= silence.from -| aside
      else { return nil }
      // Units of 2^-18 s, which wrap after 64 s.
      let units = (sent[place].time &- sent[place - 1].time) & 0xff_ffff
      let length = sent[place].at &- sent[place - 1].at
      return units < 1 << 23 && (units *| 1_000_000_000 >> 18) *| 10 >= length *| 6
    }
    return apart.count >= 3 && apart.count(where: { $0 }) *| 2 > apart.count
  }

  /// How far a packet may be from a silence for its sending time to be compared, in nanoseconds.
  private static let aside: Int64 = 60_000_000

  private static func sendTime(_ bytes: [UInt8], _ map: HeaderExtensionMap) -> Int64? {
    guard let header = try? RTPHeader(parsing: bytes.span.bytes, isProtected: true) else {
      return nil
    }
    return HeaderExtensions(parsing: bytes.span.bytes, header: header, map: map)
      .absoluteSendTime.map { Int64($0) }
  }

  /// Finds silences of all protocols that end with a burst and without loss although the sender
  /// kept sending: a link holds packets up without losing them, as radio does.
  static let pathStalled = FindingRule(
    id: "path-stalled", severity: .low, title: "Packets held up on the path", scope: .flow,
    thresholds: [
      Threshold("least_ms", 200, "ms", "of no protocol; our choice"),
      Threshold("medium_ms", 350, "ms", "longer than a jitter buffer hides; our choice"),
      Threshold("least_burst", 1.5, "", "times the usual packets in 60 ms after it; our choice"),
    ],
    silentUnder: ["path-dead"],
    sql: pauseQuery + "gap_ns >= :least_ms * 1000000",
    detector: findStalledPaths)

  private static func findStalledPaths(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    try heldSilences(facts, limits).filter { $0.silencer == .path }.map { held in
      let milliseconds = held.silence.length / 1_000_000
      return Detection(
        "path-stalled", peer: held.peer, from: held.silence.from, to: held.silence.to,
        "nothing arrived for \(milliseconds) ms while the remote peer was sending, and then "
          + "\(held.silence.burst) media packets at once; none is missing",
        direction: .inbound,
        impact: FindingImpact(delay: Double(milliseconds), count: held.silence.burst),
        severity: Double(milliseconds) >= limits["medium_ms"] ? .medium : .low)
    }
  }

  private static func heldSilences(_ facts: CallFacts, _ limits: Limits) throws(SQLiteError)
    -> [(peer: Int64, silence: NetworkFacts.Silence, silencer: Silencer)]
  {
    let least = Int64(saturating: limits["least_ms"]) *| 1_000_000
    var held: [(peer: Int64, silence: NetworkFacts.Silence, silencer: Silencer)] = []
    for peer in facts.peers {
      guard let live = peer.live, let way = facts.network.way(peer.number, .inbound) else {
        continue
      }
      for silence in way.silences where silence.length >= least && live.contains(silence.from) {
        let expected = Double(silence.pace) * Double(silence.length) / 1e9
        // A sender's pause ends without a burst, and so does an increase in the path's delay.
        let usual = Double(silence.pace) * 0.06
        let isBurst = Double(silence.burst) >= limits["least_burst"] * usual + 2
        let lateness = limits["least_lateness_ms"] * 1e6
        let isLate = lateness > 0 && silence.burst >= 2 && Double(silence.lateness) >= lateness
        guard expected >= 5, Double(silence.missing) <= max(1, expected * 0.1), isBurst || isLate,
          !staysLate(silence, peer.number, facts),
          // When a call was on hold, the silence ends with a negotiation.
          !facts.perception.negotiations.contains(where: {
            $0.peer == peer.number && $0.at >= silence.from
              && ($0.at &- silence.to).magnitude <= 1_000_000_000
          })
        else { continue }
        held.append((peer.number, silence, silencer(of: silence, to: peer, facts)))
      }
    }
    return held
  }

  /// Returns whether packets long after a silence were as late as the packets right after it.
  ///
  /// In that case, nothing stalled, but the path became longer.
  private static func staysLate(
    _ silence: NetworkFacts.Silence, _ peer: Int64, _ facts: CallFacts
  ) -> Bool {
    var rises: [Int64] = []
    for (place, stream) in facts.streams.enumerated()
    where stream.peer == peer && stream.direction == .inbound && stream.role == .media {
      let seconds = facts.network.timings[place].seconds
      guard
        let before = seconds.last(where: {
          ($0.second +| 1) *| 1_000_000_000 <= silence.from && $0.packets >= 5
        }),
        let after = seconds.first(where: {
          $0.second *| 1_000_000_000 >= silence.to +| 1_000_000_000 && $0.packets >= 5
        }), before.part == after.part, after.second -| before.second <= 5
      else { continue }
      rises.append((after.low -| before.low) *| 1_000)
    }
    // If a microphone lost samples during the silence, only its own stream is delayed.
    guard let least = rises.min() else { return false }
    return least *| 10 > silence.length *| 6
  }

  private static func silencer(
    of silence: NetworkFacts.Silence, to peer: CallFacts.Peer, _ facts: CallFacts
  ) -> Silencer {
    if !peer.isObserved, let other = peer.other, let way = facts.network.way(other, .outbound) {
      let isSilent = way.silences.contains {
        min($0.to, silence.to) -| max($0.from, silence.from) > silence.length / 2
      }
      return isSilent ? .sender : .path
    }
    // If media captured during the silence arrived late, either the sender or the path held it
    // back.
    return silence.lateness *| 10 > silence.length *| 6 ? .unknown : .sender
  }
}

extension CallFacts {
  /// Records how long the path or a process at either end stalled during each picture gap.
  mutating func holdPictures(_ connection: borrowing SQLiteConnection) throws(SQLiteError) {
    guard !pictureGaps.isEmpty else { return }
    var times: [(peer: Int64, from: Int64, to: Int64)] = []
    for rule in FindingRule.silencing {
      guard let detector = rule.detector else { continue }
      times += try detector(self, rule.limits, connection).map {
        ($0.peer, $0.fromNanoseconds, $0.toNanoseconds)
      }
    }
    for peer in peers where !peer.isObserved {
      for late in network.lateSteps where late.actor == peer.actor {
        times.append((peer.number, late.due, late.at))
        if let other = peer.other { times.append((other, late.due, late.at)) }
      }
    }
    for place in pictureGaps.indices { pictureGaps[place].hold(by: times) }
  }
}
