import Tape
import Wire

// Rules about lost packets and restarted sequence numbers.

extension FindingRule {
  static let lossThresholds = [
    Threshold(
      "least_share", 2, "%", "less is no loss that anybody hears; RKB has 1 to 4 %, ORC 5 %"),
    Threshold("least_lost", 4, "packets", "fewer show nothing"),
    Threshold("least_expected", 50, "packets", "of fewer no share is stated"),
    Threshold("calm_s", 2, "s", "without a loss ends a time of loss"),
    Threshold(
      "few_lost", 8, "packets", "fewer are low where the whole stream lost little; our choice"),
    Threshold("few_share", 1, "%", "of the whole stream is little; our choice"),
    Threshold("burst_share", 70, "%", "of the missing packets in bursts make it one of bursts"),
    Threshold("path_share", 20, "%", "of the checks make it a loss of all protocols; our choice"),
    Threshold("path_lost", 8, "", "checks, responses and handshake messages; fewer show nothing"),
    Threshold("path_times", 4, "times", "between which some arrive: no outage; our choice"),
  ]

  static let burstThresholds = [
    Threshold("least_burst", 5, "packets", "missing in a row; concealment and FEC bridge fewer")
  ]

  /// Finds periods in which a stream lost packets, joining periods that are a short time apart.
  ///
  /// Losses that occur mostly in bursts are reported as bursts.
  static func findLoss(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    var found: [Detection] = []
    let interval = facts.intervalNanoseconds
    let calm = Int(saturating: limits["calm_s"] * 1e9) / Int(interval)
    for stream in facts.streams where stream.direction == .inbound && stream.role != .repair {
      for run in facts.runs(of: stream, tolerance: calm, where: { $0.holes > 0 && $0.lost > 0 }) {
        // Includes at least a second around the period, so that a few lost packets are not a large
        // share.
        let around = max(0, 1_000_000_000 -| (run.upperBound -| run.lowerBound)) / 2
        let (from, to) = (run.lowerBound -| around, run.upperBound +| around)
        let sum = facts.sum(of: stream, from: from, to: to -| 1)
        let (lost, expected) = (Int64(sum.lost), Int64(sum.packets +| sum.lost))
        guard Double(lost) >= limits["least_lost"], sum.holes >= 2 else { continue }
        // If the period has few packets, the share of the entire stream is used instead.
        let isLong = Double(expected) >= limits["least_expected"]
        let share = isLong ? (lost, expected) : (stream.lost, stream.expected)
        guard Double(share.1) >= limits["least_expected"],
          Double(share.0) * 100 >= limits["least_share"] * Double(share.1)
        else { continue }
        let bursts = stream.bursts.filter {
          $0.missing >= 5 && $0.to >= run.lowerBound && $0.to <= run.upperBound
        }
        let inBursts = bursts.reduce(0) { $0 +| $1.missing }
        guard Double(inBursts) * 100 < limits["burst_share"] * Double(lost) else { continue }
        let repaired = facts.repairs(of: stream, from: run.lowerBound, to: run.upperBound)
        // If the period has nearly all packets, the stream's totals are used, as in the summary.
        let isWhole = expected *| 10 >= stream.expected *| 9
        let counts = isWhole ? (stream.lost, stream.expected) : (lost, expected)
        found.append(
          Detection(
            "loss", peer: stream.peer, from: run.lowerBound, to: run.upperBound,
            "\(counts.0) of \(counts.1) packets lost (\(percent(counts.0, of: counts.1)))"
              + (isWhole
                ? ""
                : " from \(decimal(Double(run.lowerBound) / 1e9)) to "
                  + "\(decimal(Double(run.upperBound) / 1e9)) s, "
                  + "\(stream.lost) of \(stream.expected) "
                  + "(\(percent(stream.lost, of: stream.expected))) over the whole call")
              + (repaired > 0 ? "; \(counted(repaired, "retransmission")) arrived" : ""),
            ssrc: stream.ssrc, track: stream.track, direction: .inbound, kind: stream.kind,
            impact: FindingImpact(
              share: Double(counts.0) / Double(max(counts.1, 1)), count: counts.0),
            severity: isOrdinary(lost, of: (stream.lost, stream.expected), limits) ? .low : nil))
      }
    }
    return found
      + facts.peers.compactMap {
        pathLoss(from: $0, facts, limits) ?? pathLoss(to: $0, facts, limits)
      }
  }

  /// Finds a path from a peer that loses packets of every protocol, by the connectivity checks and
  /// the handshake messages that it loses.
  ///
  /// While these are lost, there is no connection, and no media whose loss could be counted. Only a
  /// take with both ends shows which of them arrived.
  private static func pathLoss(
    from sender: CallFacts.Peer, _ facts: CallFacts, _ limits: Limits
  ) -> Detection? {
    guard let receiver = sender.other, !sender.isObserved, !sender.isReported else { return nil }
    let checks = facts.checksSent(from: sender.number, to: receiver)
    let messages = facts.handshakeMessages(from: sender.number, to: receiver)
    // A few checks are enough if the handshake lost messages too.
    let least = limits.count("path_times") / (Double(messages.lost) >= limits["path_times"] ? 2 : 1)
    let lost = checks.lost +| messages.lost
    guard let first = checks.times.first, let last = checks.times.last,
      Double(lost) >= limits["path_lost"], checks.times.count >= least,
      Double(checks.lost) * 100 >= limits["path_share"] * Double(checks.sent)
    else { return nil }
    let isHandshakeLost = messages.lost > 0
    return Detection(
      "loss", peer: receiver, from: first, to: last,
      "\(checks.lost) of \(checks.sent) connectivity checks and responses"
        + (isHandshakeLost ? " and \(messages.lost) of \(messages.sent) handshake messages" : "")
        + " lost (\(percent(lost, of: checks.sent +| (isHandshakeLost ? messages.sent : 0))))",
      direction: .inbound,
      impact: FindingImpact(
        share: Double(checks.lost) / Double(max(checks.sent, 1)), count: lost),
      severity: .high)
  }

  /// Finds the same at one end alone: handshake messages had to be sent again, and the media that
  /// followed was lost from its beginning on.
  private static func pathLoss(
    to receiver: CallFacts.Peer, _ facts: CallFacts, _ limits: Limits
  ) -> Detection? {
    guard receiver.other == nil || receiver.isObserved, !receiver.isReported else { return nil }
    let messages = facts.network.datagrams.messages.filter { $0.peer == receiver.number }
    let repeated = messages.count { $0.isRepeat }
    guard repeated >= limits.count("path_times"), let first = messages.first?.at,
      let last = messages.last?.at
    else { return nil }
    func isLossy(_ lost: Int64, _ expected: Int64) -> Bool {
      Double(lost) >= limits["path_lost"]
        && Double(lost) * 100 >= limits["path_share"] * Double(expected)
    }
    let lossy = facts.streams.filter { stream in
      guard stream.peer == receiver.number, stream.direction == .inbound, stream.role == .media,
        isLossy(stream.lost, stream.expected), stream.first &- last < 3_000_000_000
      else { return false }
      let begin = facts.sum(of: stream, from: stream.first, to: stream.first +| 3_000_000_000)
      return isLossy(Int64(begin.lost), Int64(begin.packets +| begin.lost))
    }
    let again = "\(counted(Int64(repeated), "handshake message")) had to be sent again, and "
    guard let end = lossy.map(\.last).max() else {
      // Without media, the checks show it: the path loses some of them, or their responses.
      let checks = facts.checksAnswered(to: receiver.number)
      guard let last = checks.times.last, Double(checks.lost) >= limits["path_lost"],
        // A check and its response make two ways.
        Double(checks.lost) * 100 >= limits["path_share"] * 1.5 * Double(checks.sent)
      else { return nil }
      return Detection(
        "loss", peer: receiver.number, from: first, to: max(last, facts.end),
        again + "\(checks.lost) of \(checks.sent) connectivity checks stayed unanswered, on a path "
          + "that answered others",
        impact: FindingImpact(
          share: Double(checks.lost) / Double(max(checks.sent, 1)), count: checks.lost),
        severity: .high)
    }
    let lost = lossy.reduce(Int64(0)) { $0 +| $1.lost }
    let expected = lossy.reduce(Int64(0)) { $0 +| $1.expected }
    return Detection(
      "loss", peer: receiver.number, from: first, to: end,
      again + "\(lost) of \(expected) packets of media were lost (\(percent(lost, of: expected)))",
      direction: .inbound,
      impact: FindingImpact(share: Double(lost) / Double(max(expected, 1)), count: lost),
      severity: .high)
  }

  static func findBursts(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    var found: [Detection] = []
    for stream in facts.streams where stream.direction == .inbound && stream.role != .repair {
      for burst in stream.bursts
      // If the burst ends before it begins, packets were reordered rather than lost.
      where Double(burst.missing) >= limits["least_burst"] && burst.to >= burst.from {
        let length = (burst.to -| burst.from) / 1_000_000
        found.append(
          Detection(
            "loss-burst", peer: stream.peer, from: burst.from, to: burst.to,
            "\(burst.missing) packets in a row lost within \(length) ms", ssrc: stream.ssrc,
            track: stream.track, direction: .inbound, kind: stream.kind,
            impact: FindingImpact(count: burst.missing)))
      }
    }
    return found
  }

  /// Finds losses at the remote peer by its reports, or by statistics if there are none.
  static func findLossAtPeer(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    var reported: [Source: [(at: Int64, lost: Int64, received: Int64)]] = [:]
    var order: [Source] = []
    func add(_ name: Source, _ at: Int64, _ lost: Int64, _ received: Int64) {
      if reported[name] == nil { order.append(name) }
      reported[name, default: []].append((at, lost, received))
    }
    for report in facts.reports where report.direction == .inbound {
      add(
        Source(peer: report.peer, ssrc: report.ssrc), report.at, report.lost,
        report.highest &- report.lost)
    }
    let withReports = Set(order.map(\.peer))
    // A take that another stack reported has statistics samples instead of RTCP reports.
    let samples = try connection.prepare(
      """
      SELECT peer, at_ns, members ->> '$.ssrc', members ->> '$.packetsLost',
        members ->> '$.packetsReceived'
      FROM stat WHERE type = 'remote-inbound-rtp' AND members ->> '$.packetsReceived' IS NOT NULL
      ORDER BY row LIMIT \(CallFacts.most)
      """)
    while try samples.step() {
      guard !withReports.contains(samples.integer(0)) else { continue }
      add(
        Source(peer: samples.integer(0), ssrc: samples.integer(2)), samples.integer(1),
        samples.integer(3), samples.integer(4))
    }
    return order.flatMap { lossAtPeer($0, reported[$0] ?? [], facts, limits) }
  }

  private struct Source: Hashable {
    var peer: Int64
    var ssrc: Int64
  }

  /// Returns whether a few packets lost close together are no more than an ordinary path loses by
  /// chance.
  private static func isOrdinary(
    _ lost: Int64, of whole: (lost: Int64, expected: Int64), _ limits: Limits
  ) -> Bool {
    Double(lost) < limits["few_lost"]
      && Double(whole.lost) * 100 < limits["few_share"] * Double(whole.expected)
  }

  private static func lossAtPeer(
    _ source: Source, _ reports: [(at: Int64, lost: Int64, received: Int64)], _ facts: CallFacts,
    _ limits: Limits
  ) -> [Detection] {
    let stream = facts.stream(source.peer, .outbound, source.ssrc)
    guard stream?.role != .repair else { return [] }
    var found: [Detection] = []
    var run: (from: Int64, to: Int64, lost: Int64, expected: Int64)?
    let whole = reports.last.map { ($0.lost, $0.lost +| $0.received) } ?? (0, 0)
    func end() {
      guard let ended = run else { return }
      run = nil
      guard Double(ended.expected) >= limits["least_expected"],
        Double(ended.lost) >= limits["least_lost"],
        Double(ended.lost) * 100 >= limits["least_share"] * Double(ended.expected)
      else { return }
      found.append(
        Detection(
          "loss-at-peer", peer: source.peer, from: ended.from, to: ended.to,
          "its receiver's reports count \(ended.lost) of \(ended.expected) packets as lost "
            + "(\(percent(ended.lost, of: ended.expected)))",
          ssrc: source.ssrc, track: stream?.track, direction: .outbound, kind: stream?.kind ?? "",
          impact: FindingImpact(
            share: Double(ended.lost) / Double(max(ended.expected, 1)), count: ended.lost),
          severity: isOrdinary(ended.lost, of: whole, limits) ? .low : nil))
    }
    for (before, report) in zip(reports, reports.dropFirst()) {
      let lost = report.lost &- before.lost
      let received = report.received &- before.received
      // A report's counters start at zero again when the stream restarts.
      guard lost >= 0, received >= 0, lost &+ received < 1 << 31 else {
        end()
        continue
      }
      if lost > 0 {
        run = (
          run?.from ?? before.at, report.at, (run?.lost ?? 0) +| lost,
          (run?.expected ?? 0) +| lost +| received
        )
      } else if let open = run {
        if Double(report.at - open.to) > limits["calm_s"] * 1.5e9 {
          end()
        } else if let open = run {
          run = (open.from, open.to, open.lost, open.expected +| received)
        }
      }
    }
    end()
    return found
  }

  static func findRestarts(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    findRestartsAtPeer(facts)
      + facts.streams.filter { $0.direction == .inbound }.flatMap { stream in
        stream.restarts.prefix(1000).map {
          Detection(
            "sequence-restart", peer: stream.peer, from: $0.at, to: $0.at,
            "its sequence numbers went from \($0.before) to \($0.after); an SRTP receiver may "
              + "reject such packets as replayed", ssrc: stream.ssrc, track: stream.track,
            direction: .inbound, kind: stream.kind)
        }
      }
  }

  static func findForeignReports(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    var found: [Detection] = []
    for peer in facts.peers {
      let reports = facts.senderReports.filter {
        $0.peer == peer.number && $0.direction == .inbound
      }
      let streams = facts.streams.filter {
        $0.peer == peer.number && $0.direction == .inbound && $0.role != .repair
      }
      let reporting = Set(reports.map(\.ssrc))
      guard let silent = streams.map(\.ssrc).filter({ !reporting.contains($0) }).min() else {
        continue
      }
      let known = Set(streams.map(\.ssrc))
      for ssrc in reporting.subtracting(known).sorted()
      where facts.stream(peer.number, .inbound, ssrc) == nil {
        let own = reports.filter { $0.ssrc == ssrc }
        // A paused stream's reports show that nothing is sent.
        guard let first = own.first, let last = own.last,
          own.contains(where: { $0.packets > first.packets })
        else { continue }
        let stream = facts.stream(peer.number, .inbound, silent)
        found.append(
          Detection(
            "rtcp-other-ssrc", peer: peer.number, from: first.at, to: last.at,
            "\(counted(Int64(own.count), "sender report")) of a source without packets, and none "
              + "of the received stream: a receiver cannot tell whose clock they state",
            ssrc: silent, track: stream?.track, direction: .inbound, kind: stream?.kind ?? ""))
      }
    }
    return found
  }

  static func findUnevenSteps(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    facts.streams.compactMap { stream in
      guard stream.direction == .inbound, let time = stream.unevenTime,
        Double(stream.unevenSteps) >= limits["least_steps"],
        Double(stream.unevenSteps) * 100 >= limits["least_share"] * Double(stream.steps)
      else { return nil }
      return Detection(
        "uneven-timestamps", peer: stream.peer, from: time.lowerBound, to: time.upperBound,
        "\(stream.unevenSteps) of \(stream.steps) steps between timestamps match no packet length, "
          + "although no packet is missing: a receiver conceals or cuts the difference",
        ssrc: stream.ssrc, track: stream.track, direction: .inbound, kind: "audio",
        impact: FindingImpact(
          share: Double(stream.unevenSteps) / Double(max(stream.steps, 1)),
          count: stream.unevenSteps))
    }
  }
}

extension CallFacts {
  /// Returns the number of a stream's repair packets that were received in a period.
  func repairs(of stream: Stream, from: Int64, to: Int64) -> Int64 {
    streams.filter {
      $0.role == .repair && $0.original == stream.ssrc && $0.peer == stream.peer
        && $0.direction == stream.direction
    }.reduce(0) { $0 +| Int64(sum(of: $1, from: from, to: to).packets) }
  }
}

extension CallFacts {
  /// Returns how many copies of connectivity checks and of responses to checks one end sent to the
  /// other, how many of them were lost, and when the path lost them: each time begins after a
  /// copy arrived.
  ///
  /// Candidate pairs through which nothing arrived do not count, nor what a pair lost before its
  /// first and after its last arrival: such a pair is blocked, or it ended.
  fileprivate func checksSent(
    from sender: Int64, to receiver: Int64
  ) -> (sent: Int64, lost: Int64, times: [Int64]) {
    var paths: [Int64: [(at: Int64, copies: DatagramFacts.Copies)]] = [:]
    for check in network.datagrams.checks {
      if check.peer == sender {
        paths[check.path, default: []].append((check.at, check.exchange.requests))
      } else if check.peer == receiver {
        paths[check.path, default: []].append((check.at, check.exchange.responses))
      }
    }
    return mixed(paths)
  }

  /// Returns the same for the checks that an end sent, each of which arrived if it was answered.
  fileprivate func checksAnswered(
    to sender: Int64
  ) -> (sent: Int64, lost: Int64, times: [Int64]) {
    var paths: [Int64: [(at: Int64, copies: DatagramFacts.Copies)]] = [:]
    for check in network.datagrams.checks where check.peer == sender {
      // A check may be sent again before its response arrives; then it was answered all the same.
      let copies =
        check.answered == nil
        ? DatagramFacts.Copies(sent: check.exchange.requests.sent, arrived: 0)
        : DatagramFacts.Copies(sent: 1, arrived: 1)
      paths[check.path, default: []].append((check.at, copies))
    }
    return mixed(paths)
  }

  private func mixed(
    _ paths: [Int64: [(at: Int64, copies: DatagramFacts.Copies)]]
  ) -> (sent: Int64, lost: Int64, times: [Int64]) {
    var (sent, lost, times): (Int64, Int64, [Int64]) = (0, 0, [])
    for path in paths.keys.sorted() {
      let copies = paths[path] ?? []
      guard let first = copies.firstIndex(where: { $0.copies.arrived > 0 }),
        let last = copies.lastIndex(where: { $0.copies.arrived > 0 })
      else { continue }
      var isLosing = false
      for one in copies[first...last] {
        sent +|= one.copies.sent
        lost +|= one.copies.lost
        if one.copies.lost > 0, !isLosing || one.copies.arrived > 0 { times.append(one.at) }
        isLosing = one.copies.lost > 0
      }
    }
    return (sent, lost, times.sorted())
  }
}
