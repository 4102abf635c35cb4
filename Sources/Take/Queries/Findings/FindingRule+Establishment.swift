import Tape
import Wire

// Rules about connection establishment, the DTLS handshake and consent.

extension FindingRule {
  /// Finds connections that took long to establish (ObserveRTC's longPcConnectionEstablishment).
  ///
  /// The evidence states how long ICE and DTLS each took.
  static let slowConnect = FindingRule(
    id: "slow-connect", severity: .medium, title: "Slow to connect", scope: .connection,
    thresholds: [
      Threshold("least_ms", 5_000, "ms", "ObserveRTC longPcConnectionEstablishment")
    ],
    causes: [
      "slow-handshake", "name-unresolved", "turn-unreachable", "negotiation-open", "slow-signaling",
      "path-dead", "process-starved",
    ],
    sql: """
      WITH
        milestone AS (
          SELECT peer,
            min(iif(machine IN ('connection', 'ice-connection')
              AND to_state IN ('connecting', 'checking'), at_ns, NULL)) AS begin_ns,
            min(iif(machine = 'ice-connection' AND to_state IN ('connected', 'completed'),
              at_ns, NULL)) AS ice_ns,
            coalesce(
              min(iif(machine = 'connection' AND to_state = 'connected', at_ns, NULL)),
              -- In statistics, the DTLS state is only known at the next sample.
              min(iif(machine = 'dtls' AND to_state = 'connected'
                AND peer NOT IN (SELECT peer FROM peer WHERE role = 'reported'), at_ns, NULL)))
              AS done_ns
          FROM state GROUP BY peer
        )
      SELECT peer, begin_ns AS from_ns, done_ns AS to_ns,
        'it took ' || round((done_ns - begin_ns) / 1e9, 1) || ' s: ICE '
          || round((ice_ns - begin_ns) / 1e9, 1) || ' s, DTLS '
          || round((done_ns - ice_ns) / 1e9, 1) || ' s' AS evidence,
        (done_ns - begin_ns) / 1e6 AS delay_ms, (done_ns - begin_ns) / 1e9 AS without_media_s
      FROM milestone
      WHERE done_ns >= ice_ns AND ice_ns >= begin_ns AND done_ns - begin_ns > :least_ms * 1000000
      """)

  // MARK: DTLS

  /// Finds certificates that differ from the signaled fingerprint: the peer on the path is not the
  /// one in the description (RFC 8827 section 6.5).
  static let fingerprintMismatch = FindingRule(
    id: "fingerprint-mismatch", severity: .high, title: "Certificate differs from its fingerprint",
    scope: .connection,
    sql: """
      SELECT peer, min(at_ns) AS from_ns, max(at_ns) AS to_ns,
        min(detail ->> '$.reason') AS evidence
      FROM event
      WHERE type = 'refused' AND detail ->> '$.layer' = 'dtls'
        AND detail ->> '$.reason' LIKE '%certificate does not match%'
      GROUP BY peer
      """)

  static let dtlsFailed = FindingRule(
    id: "dtls-failed", severity: .high, title: "DTLS handshake failed", scope: .connection,
    causes: ["fingerprint-mismatch", "path-dead", "process-starved"],
    sql: """
      SELECT state.peer AS peer, state.at_ns AS from_ns, state.at_ns AS to_ns,
        'the handshake failed' || coalesce((
          SELECT ': ' || min(detail ->> '$.reason') FROM event
          WHERE event.peer = state.peer AND type = 'refused' AND detail ->> '$.layer' = 'dtls'
            AND detail ->> '$.reason' NOT LIKE '%certificate does not match%'
        ), '') AS evidence
      FROM state
      WHERE machine LIKE 'dtls%' AND to_state = 'failed' AND from_state <> 'connected'
      """,
    detector: findFailedHandshakes)

  private static func findFailedHandshakes(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    var reasons: [Int64: String] = [:]
    let rows = try connection.prepare(
      """
      SELECT peer, detail ->> '$.reason' FROM event
      WHERE type = 'refused' AND detail ->> '$.layer' = 'dtls' ORDER BY row LIMIT 1000
      """)
    while try rows.step() {
      if reasons[rows.integer(0)] == nil { reasons[rows.integer(0)] = rows.text(1) }
    }
    var found: [Detection] = []
    for state in facts.states
    where state.machine.hasPrefix("dtls") && state.to == "failed" && state.from != "connected" {
      let alert = facts.network.datagrams.alerts.first { $0.peer == state.peer && $0.isFatal }
      var words = reasons[state.peer].map { ": \($0)" } ?? ""
      if words.isEmpty, let alert {
        let whose = alert.direction == .inbound ? "the remote peer" : "its own"
        words = ": alert \(alert.code) (\(name(ofAlert: alert.code))) of \(whose)"
      }
      let known = (1...UInt8(127)).first { words.contains("alert \(name(ofAlert: $0))") }
      words += meaning(ofAlert: known ?? alert?.code ?? 0)
      found.append(
        Detection(
          "dtls-failed", peer: state.peer, from: state.at, to: state.at,
          "the handshake failed" + words))
    }
    // An observed peer's handshake failed if it was never completed and there was a fatal alert.
    for peer in facts.peers where peer.isObserved {
      let isDone = facts.states.contains {
        $0.peer == peer.number && $0.machine.hasPrefix("dtls") && $0.to == "connected"
      }
      guard !isDone,
        let alert = facts.network.datagrams.alerts.first(where: {
          $0.peer == peer.number && $0.isFatal && $0.direction == .outbound
        })
      else { continue }
      found.append(
        Detection(
          "dtls-failed", peer: peer.number, from: alert.at, to: alert.at,
          "it ended the handshake with alert \(alert.code) (\(name(ofAlert: alert.code)))"
            + meaning(ofAlert: alert.code)))
    }
    return found
  }

  /// Returns what an alert means in WebRTC, where certificates are known by their fingerprints;
  /// empty if the alert's name says enough.
  private static func meaning(ofAlert code: UInt8) -> String {
    switch code {
    case 42...46, 48: ": the certificate is not the one whose fingerprint was signaled"
    case 40, 71: ": the two ends may have no cipher suite in common"
    case 70: ": the two ends have no version of DTLS in common"
    default: ""
    }
  }

  /// Returns an alert's name (RFC 8446 section 6).
  private static func name(ofAlert code: UInt8) -> String {
    switch code {
    case 10: "unexpected message"
    case 20: "bad record MAC"
    case 40: "handshake failure"
    case 42: "bad certificate"
    case 43: "unsupported certificate"
    case 44: "certificate revoked"
    case 45: "certificate expired"
    case 46: "certificate unknown"
    case 47: "illegal parameter"
    case 48: "unknown CA"
    case 50: "decode error"
    case 51: "decrypt error"
    case 70: "protocol version"
    case 71: "insufficient security"
    case 80: "internal error"
    case 109: "missing extension"
    case 116: "certificate required"
    default: "unassigned"
    }
  }

  /// Finds DTLS handshakes of more than a second, DTLS 1.2's first timeout (RFC 6347 section
  /// 4.2.4.1): a flight was lost or delayed.
  static let slowHandshake = FindingRule(
    id: "slow-handshake", severity: .low, title: "Slow DTLS handshake", scope: .connection,
    thresholds: [
      Threshold("least_ms", 1_000, "ms", "the first timeout of RFC 6347"),
      Threshold("medium_ms", 2_000, "ms", "nearly two timeouts; our choice"),
    ],
    causes: ["path-dead", "process-starved", "high-round-trip", "slow-signaling"],
    sql: """
      SELECT peer, from_ns, to_ns, seconds FROM state_time
      WHERE machine LIKE 'dtls%' AND state = 'connecting' ORDER BY seconds DESC
      """,
    detector: findSlowHandshakes)

  private static func findSlowHandshakes(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    let samples = try sampleTimes(facts, connection)
    var found: [Detection] = []
    for (place, begin) in facts.states.enumerated()
    where begin.machine.hasPrefix("dtls") && begin.to == "connecting" {
      let next = facts.states[(place +| 1)...].first {
        $0.peer == begin.peer && $0.machine == begin.machine
      }
      let isOpen = next == nil || next?.to == "closed"
      guard next?.to == "connected" || isOpen else { continue }
      if let times = samples[begin.peer],
        times.contains(begin.at) || next.map({ times.contains($0.at) }) ?? true
      {
        found += slowHandshake(sampled: times, begin, next, facts, limits)
        continue
      }
      let to = next?.at ?? facts.end
      let from = handshakeBegin(begin, facts)
      let time = Double(to -| from) / 1e6
      guard time > limits["least_ms"] else { continue }
      let repeated = facts.network.datagrams.messages.filter {
        $0.peer == begin.peer && $0.isRepeat && $0.at >= begin.at && $0.at <= to
      }
      let late = Double(begin.at -| from) / 1e6
      found.append(
        Detection(
          "slow-handshake", peer: begin.peer, from: from, to: to,
          (isOpen ? "the handshake was not done after " : "the handshake took ")
            + "\(rounded(time / 1000)) s" + words(on: repeated)
            + facts.lostHandshakeMessages(of: begin.peer, from: from, to: to)
            + (late > limits["least_ms"]
              ? "; its first message arrived \(rounded(late / 1000)) s after ICE connected" : ""),
          impact: FindingImpact(delay: time, count: Int64(repeated.count)),
          severity: isOpen ? .high : time >= limits["medium_ms"] ? .medium : .low))
    }
    return found + missingHandshakes(facts, limits)
  }

  /// Returns when a handshake could begin: for an observed peer, when ICE connected, because the
  /// first messages may have been lost before they reached the observer.
  private static func handshakeBegin(_ begin: CallFacts.State, _ facts: CallFacts) -> Int64 {
    guard facts.peer(begin.peer)?.isObserved == true,
      facts.states.first(where: { $0.peer == begin.peer && $0.machine.hasPrefix("dtls") })?.at
        == begin.at,
      let ready = iceConnected(begin.peer, facts), ready < begin.at
    else { return begin.at }
    return ready
  }

  private static func iceConnected(_ peer: Int64, _ facts: CallFacts) -> Int64? {
    facts.states.first {
      $0.peer == peer && $0.machine == "ice-connection"
        && ($0.to == "connected" || $0.to == "completed")
    }?.at
  }

  /// Finds observed peers that ICE connected but that exchanged neither handshake messages nor
  /// media.
  private static func missingHandshakes(_ facts: CallFacts, _ limits: Limits) -> [Detection] {
    var found: [Detection] = []
    for peer in facts.peers where peer.isObserved {
      guard let ready = iceConnected(peer.number, facts),
        Double(facts.end -| ready) / 1e6 > limits["medium_ms"],
        !facts.states.contains(where: {
          $0.peer == peer.number && $0.machine.hasPrefix("dtls") && $0.to != "new"
        }),
        !facts.streams.contains(where: { $0.peer == peer.number })
      else { continue }
      found.append(
        Detection(
          "slow-handshake", peer: peer.number, from: ready, to: facts.end,
          "no handshake message arrived in the \(rounded(Double(facts.end -| ready) / 1e9)) s "
            + "after ICE connected",
          impact: FindingImpact(delay: Double(facts.end -| ready) / 1e6), severity: .high))
    }
    return found
  }

  /// Returns the times of transports' statistics in order, for peers whose own stack reported them.
  private static func sampleTimes(
    _ facts: CallFacts, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Int64: [Int64]] {
    guard facts.peers.contains(where: \.isReported) else { return [:] }
    var times: [Int64: [Int64]] = [:]
    let rows = try connection.prepare(
      """
      SELECT DISTINCT stat.peer, stat.at_ns FROM stat JOIN peer USING (peer)
      WHERE role = 'reported' AND type = 'transport' ORDER BY 1, 2 LIMIT \(CallFacts.most)
      """)
    while try rows.step() { times[rows.integer(0), default: []].append(rows.integer(1)) }
    return times
  }

  /// Finds a slow handshake whose states are known only from samples.
  ///
  /// The handshake ended after the last sample in which it was in progress, and before the next
  /// sample or the connection's `connected` event.
  private static func slowHandshake(
    sampled times: [Int64], _ begin: CallFacts.State, _ next: CallFacts.State?,
    _ facts: CallFacts, _ limits: Limits
  ) -> [Detection] {
    let own = facts.states.filter { $0.peer == begin.peer }
    let connected = own.first {
      $0.machine == "connection" && $0.to == "connected" && $0.at >= begin.at
    }?.at
    let end = min(next?.at ?? times.last ?? begin.at, connected ?? .max)
    let isOpen = next?.to != "connected" && connected == nil
    // The state in the last sample lasted at least until that sample.
    let known = isOpen ? end : times.last { $0 < end && $0 >= begin.at } ?? begin.at
    let (least, most) = (Double(known -| begin.at) / 1e6, Double(end -| begin.at) / 1e6)
    guard least > limits["least_ms"] else { return [] }
    let range =
      isOpen || rounded(least / 1000) == rounded(most / 1000)
      ? rounded(least / 1000) : "between \(rounded(least / 1000)) and \(rounded(most / 1000))"
    return [
      Detection(
        "slow-handshake", peer: begin.peer, from: begin.at, to: max(known, begin.at),
        (isOpen ? "the handshake was not done after " : "the handshake took ")
          + "\(range) s, by samples of its statistics",
        impact: FindingImpact(delay: least),
        severity: isOpen ? .high : least >= limits["medium_ms"] ? .medium : .low)
    ]
  }

  private static func words(on repeated: [DatagramFacts.Message]) -> String {
    var words: [String] = []
    for direction in [WireDirection.outbound, .inbound] {
      let names = repeated.filter { $0.direction == direction }
      guard let first = names.first else { continue }
      // Counts how often a flight was sent again, by its first message.
      let times = names.filter { $0.type == first.type }.count
      words.append(
        "\(direction == .outbound ? "its own" : "the remote peer's") "
          + "\(name(ofMessage: first.type)) was sent again "
          + (times == 1 ? "once" : "\(times) times")
      )
    }
    return words.isEmpty ? "" : "; " + words.joined(separator: ", ")
  }

  private static func name(ofMessage type: UInt8) -> String {
    switch type {
    case 1: "ClientHello"
    case 2: "ServerHello"
    case 3: "HelloVerifyRequest"
    case 4: "NewSessionTicket"
    case 11: "Certificate"
    case 12: "ServerKeyExchange"
    case 13: "CertificateRequest"
    case 14: "ServerHelloDone"
    case 15: "CertificateVerify"
    case 16: "ClientKeyExchange"
    case 20: "Finished"
    default: "message of type \(type)"
    }
  }

  // MARK: Consent

  /// Finds consent that expired although media arrived: RFC 7675 makes a sender stop if its checks
  /// are not answered.
  static let consentLost = FindingRule(
    id: "consent-lost", severity: .high, title: "Consent lost while media arrived",
    scope: .connection,
    thresholds: [
      Threshold("least_packets", 10, "packets", "of media that came meanwhile; our choice")
    ],
    sql: """
      SELECT peer, from_ns, to_ns, machine, state FROM state_time
      WHERE machine = 'ice-connection' AND state IN ('disconnected', 'failed')
      """,
    detector: findLostConsent)

  private static func findLostConsent(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    var found: [Detection] = []
    for (place, state) in facts.states.enumerated()
    where state.machine == "ice-connection" && ["disconnected", "failed"].contains(state.to) {
      let to =
        facts.states[(place +| 1)...].first {
          $0.peer == state.peer && $0.machine == "ice-connection"
        }?.at ?? facts.end
      let unanswered = openRun(of: state.peer, before: state.at, facts)
      guard let first = unanswered.first, unanswered.count >= 3 else { continue }
      // The media received while checks were unanswered, until consent expired.
      let came = media(to: state.peer, first.at, state.at, facts)
      guard Double(came) >= limits["least_packets"] * Double(periods(unanswered)) else { continue }
      let lost = media(to: state.peer, state.at, to, facts)
      found.append(
        Detection(
          "consent-lost", peer: state.peer, from: first.at, to: to,
          "\(unanswered.count) checks were not answered while \(came + lost) media packets arrived",
          impact: FindingImpact(count: Int64(unanswered.count))))
    }
    return found + observedLosses(facts, limits)
  }

  /// Finds observed peers that stopped sending media while they still received media, because their
  /// checks were not answered; an observer's states do not show that consent expired.
  private static func observedLosses(_ facts: CallFacts, _ limits: Limits) -> [Detection] {
    var found: [Detection] = []
    for peer in facts.peers where peer.isObserved {
      guard let live = peer.live else { continue }
      let checks = facts.network.datagrams.checks.filter { $0.peer == peer.number }
      for run in openRuns(checks) where run.count >= 3 {
        guard let first = run.first, let last = run.last else { continue }
        let path = checks.filter { $0.path == first.path && $0.answered != nil }
        guard path.contains(where: { $0.at < first.at }) else { continue }
        let to = min(path.first { $0.at > last.at }?.at ?? .max, live.upperBound)
        // Consent checks are at most 5 s apart (RFC 7675 section 5.1). In a shorter run, they may
        // just be in flight.
        guard to &- first.at >= 5_000_000_000,
          case let late = max(first.at, to &- 3_000_000_000),
          case let came = media(to: peer.number, first.at, to, facts),
          Double(came) >= limits["least_packets"] * Double(periods(run)),
          Double(media(to: peer.number, late, to, facts)) >= limits["least_packets"],
          media(to: peer.number, late, to -| 500_000_000, facts, .outbound) == 0,
          media(to: peer.number, first.at -| 3_000_000_000, first.at, facts, .outbound) > 0
        else { continue }
        found.append(
          Detection(
            "consent-lost", peer: peer.number, from: first.at, to: to,
            "\(run.count) checks were not answered while \(came) media packets arrived, and it "
              + "stopped sending media",
            impact: FindingImpact(count: Int64(run.count))))
      }
    }
    return found
  }

  /// Returns how many checks a run of unanswered checks counts as: at most one per second, because
  /// stacks send many checks per second after a failure.
  private static func periods(_ run: [DatagramFacts.Check]) -> Int64 {
    guard let first = run.first, let last = run.last else { return 1 }
    let seconds = (last.at &- first.at) / 1_000_000_000 +| 1
    return max(1, min(Int64(run.count) -| 1, seconds))
  }

  /// Finds consent that nearly expired: three of the five or so checks within RFC 7675's 30 s were
  /// not answered.
  static let consentNearlyLost = FindingRule(
    id: "consent-nearly-lost", severity: .low, title: "Consent checks not answered",
    scope: .connection,
    thresholds: [
      Threshold("least_checks", 3, "", "in a row; our choice, RFC 7675 section 5.1 has 30 s")
    ],
    causes: ["path-dead", "consent-lost", "loss"], silentUnder: ["consent-lost"],
    sql: """
      SELECT peer, at_ns, direction, substr(hex(bytes), 1, 4) AS type FROM packet
      WHERE protocol = 'stun' ORDER BY row
      """,
    detector: findNearlyLostConsent)

  private static func findNearlyLostConsent(
    _ facts: CallFacts, _ limits: Limits, _ connection: borrowing SQLiteConnection
  ) throws(SQLiteError) -> [Detection] {
    var found: [Detection] = []
    for peer in facts.peers {
      guard let live = peer.live else { continue }
      let checks = facts.network.datagrams.checks.filter {
        $0.peer == peer.number && live.contains($0.at) && $0.at < live.upperBound -| 1_000_000_000
      }
      // A pair without any successful check never had consent to lose.
      let valid = Set(
        facts.network.datagrams.checks.filter { $0.peer == peer.number && $0.answered != nil }
          .map(\.path))
      for run in openRuns(checks) where run.count >= limits.count("least_checks") {
        guard let first = run.first, let last = run.last, valid.contains(first.path) else {
          continue
        }
        let came = media(to: peer.number, first.at, last.at, facts)
        // If hardly any media arrived either, the path was dead, and consent is not the problem.
        guard came >= 10 *| periods(run) else { continue }
        found.append(
          Detection(
            "consent-nearly-lost", peer: peer.number, from: first.at, to: last.at,
            "\(run.count) checks in a row were not answered while \(came) media packets arrived",
            impact: FindingImpact(count: Int64(run.count)),
            severity: last.at -| first.at >= 10_000_000_000 ? .medium : .low))
      }
    }
    return found
  }

  /// Returns runs of consecutive unanswered checks on one path.
  private static func openRuns(_ checks: [DatagramFacts.Check]) -> [[DatagramFacts.Check]] {
    var paths: [Int64] = []
    for check in checks where !paths.contains(check.path) { paths.append(check.path) }
    return paths.flatMap { path in
      checks.filter { $0.path == path }.split { $0.answered != nil }.map(Array.init)
    }
  }

  /// Returns the last run of unanswered checks before a time; empty if the run ended ten or more
  /// seconds earlier.
  private static func openRun(of peer: Int64, before at: Int64, _ facts: CallFacts)
    -> [DatagramFacts.Check]
  {
    let checks = facts.network.datagrams.checks.filter { $0.peer == peer && $0.at <= at }
    return openRuns(checks).last { ($0.last?.at ?? 0) > at -| 10_000_000_000 } ?? []
  }

  /// Returns the number of media packets that a peer received, or sent, in a period.
  static func media(
    to peer: Int64, _ from: Int64, _ to: Int64, _ facts: CallFacts,
    _ direction: WireDirection = .inbound
  ) -> Int64 {
    guard from <= to else { return 0 }
    return facts.streams.reduce(0) { sum, stream in
      stream.peer == peer && stream.direction == direction
        ? sum +| Int64(facts.sum(of: stream, from: from, to: to).packets) : sum
    }
  }

  /// Formats a number with one decimal.
  static func rounded(_ value: Double) -> String {
    let tenths = (value * 10).rounded()
    guard abs(tenths) < 1e15 else { return "\(value)" }
    let whole = Int64(saturating: tenths)
    return "\(whole < 0 ? "-" : "")\(abs(whole) / 10).\(abs(whole) % 10)"
  }
}
