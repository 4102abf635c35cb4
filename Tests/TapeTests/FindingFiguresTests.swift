import FaultyCalls
import Foundation
import Lab
import Media
import Testing
import Wire

@testable import Queries
@testable import Tape

/// Freezes, loss rates and times have the same value wherever they are printed.
struct FindingFiguresTests {
  private static let captures = FileManager.default.currentDirectoryPath + "/Captures/"

  private func rows(_ path: String, _ sql: String) throws -> [[String]] {
    var text = ""
    try SQLConsole.run(path: path, sql: sql, format: .csv) { text += $0 }
    return text.split(separator: "\r\n").dropFirst()
      .map { $0.split(separator: ",", omittingEmptySubsequences: false).map(String.init) }
  }

  private func all(_ findings: [Finding]) -> [Detection] {
    findings.flatMap { $0.detections + all($0.symptoms) }
  }

  // MARK: Freezes

  /// Expects each row of the view `freeze` to be one detection in one finding: of a freeze, or of a
  /// sender that had nothing to send.
  private func expectEveryFreeze(_ path: String, sourceLocation: SourceLocation = #_sourceLocation)
    throws
  {
    let counted = try rows(path, "SELECT peer, track, from_ns, to_ns FROM freeze")
      .map { $0.joined(separator: " ") }.sorted()
    let found = try TakeFindings(path: path)
    let detections = all(found.findings).filter {
      $0.rule == "freeze" || $0.rule == "video-paused" && $0.severity == .info
    }
    let named = detections.map {
      "\($0.peer) \($0.track ?? 0) \($0.fromNanoseconds) \($0.toNanoseconds)"
    }.sorted()
    #expect(named == counted, sourceLocation: sourceLocation)
    // The summary counts freezes with missing or late packets, and video that never resumed.
    let summary = try TakeSummary(path: path, findings: found)
    let freezes = found.detections.filter { ["freeze", "video-stopped"].contains($0.rule) }
    #expect(
      summary.media.reduce(0) { $0 + $1.freezes } == freezes.count, sourceLocation: sourceLocation)
  }

  @Test(arguments: ["virtual-heavy-loss", "virtual-loss", "live-loopback", "chromium-negotiates"])
  func everyFreezeOfACaptureIsInOneFinding(name: String) throws {
    try expectEveryFreeze(Self.captures + name + ".take")
  }

  @Test func freezesInBothDirectionsAreFound() throws {
    let found = try TakeFindings(path: Self.captures + "virtual-heavy-loss.take").detections
      .filter { $0.rule == "freeze" }
    #expect(found.map(\.peer).sorted() == [1, 1, 2])
    #expect(found.map(\.evidence).contains { $0.hasPrefix("froze for 265 ms") })
  }

  @Test func everyFreezeOfALossyCallIsInOneFinding() throws {
    let folder = try TakeFolder()
    let call = try TapeTests.FaultyCall(folder, seed: 31)
    call.run(1500)
    for link in 0..<2 { call.call.network.links[link].lossPerMille = 300 }
    call.run(6000)
    try call.finish()
    try #require(!rows(call.path, "SELECT * FROM freeze").isEmpty)
    try expectEveryFreeze(call.path)
  }

  // MARK: Connections

  /// An observed peer is connected once ICE and DTLS both are; any other peer is connected when its
  /// `connection` state says so.
  @Test(arguments: ["observed-aiortc", "observed-clear-h264", "chromium-peer-offers"])
  func aConnectionIsEstablishedWithItsHandshake(name: String) throws {
    let path = Self.captures + name + ".take"
    let expected = try rows(
      path,
      """
      SELECT peer.peer,
        coalesce(min(iif(machine = 'connection' AND to_state = 'connected', state.at_ns, NULL)),
          max(
            min(iif(machine = 'ice-connection' AND to_state = 'connected', state.at_ns, NULL)),
            coalesce(min(iif(machine = 'dtls' AND to_state = 'connected', state.at_ns, NULL)), 0)))
          - peer.at_ns
      FROM peer JOIN state USING (peer) GROUP BY peer.peer ORDER BY 1
      """)
    let summary = try TakeSummary(path: path, findings: try TakeFindings(path: path))
    #expect(!expected.isEmpty)
    #expect(
      summary.connections.map { ["\($0.peer)", $0.connectedNanoseconds.map { "\($0)" } ?? ""] }
        == expected)
  }

  /// Video that stops together with everything else is a freeze, not a pause, even in a take that
  /// contains only one end.
  @Test(arguments: [FaultSight.victim, .both])
  func aPictureThatStoodStillWithEverythingElseIsAFreeze(sight: FaultSight) throws {
    let folder = try TakeFolder()
    var isHeld = false
    for seed in UInt64(300)..<306 {
      let path = folder.file("\(seed).take")
      let plan = FaultPlan(.peerProcess, seed: seed, severity: 700, sight: sight)
      guard try FaultyCalls.FaultyCall.make(plan, path: path).isTouched else { continue }
      try expectEveryFreeze(path)
      let found = try TakeFindings(path: path)
      let held = found.facts.pictureGaps.filter { $0.isHeld && $0.freezeMean != nil }
      isHeld = isHeld || !held.isEmpty
      for gap in held {
        #expect(
          found.detections.contains {
            $0.rule == "freeze" && $0.peer == gap.peer && $0.fromNanoseconds == gap.from
          })
        let causes = found.findings.filter { $0.id == "peer-starved" || $0.id == "process-starved" }
        #expect(causes.contains { $0.ids.contains("freeze") }, "\(found.text())")
      }
    }
    #expect(isHeld)
  }

  // MARK: Sent streams

  @Test func aSentStreamHasTheLossThatItsReceiverReported() throws {
    let folder = try TakeFolder()
    let path = folder.file("sent.take")
    let plan = FaultPlan(.videoLoss, seed: 41, severity: 800, sight: .culprit)
    _ = try FaultyCalls.FaultyCall.make(plan, path: path)
    func sent() throws -> [TakeSummary.Media] {
      try TakeSummary(path: path, findings: TakeFindings(path: path)).media.filter {
        $0.direction == .outbound
      }
    }
    let reported = try rows(
      path,
      """
      SELECT ssrc, lost FROM (
        SELECT each.value ->> '$.ssrc' AS ssrc, each.value ->> '$.lost' AS lost,
          row_number() OVER (PARTITION BY each.value ->> '$.ssrc' ORDER BY rtcp.row DESC) AS place
        FROM rtcp, json_each(rtcp.fields, '$.blocks') AS each
        WHERE rtcp.type IN ('sr', 'rr') AND rtcp.direction = 'in')
      WHERE place = 1
      """)
    let media = try sent()
    #expect(media.contains { ($0.lost ?? 0) > 0 && $0.kind == "video" })
    for one in media {
      let last = reported.first { $0[0] == "\(one.ssrc)" }.flatMap { Int64($0[1]) }
      #expect(one.lost == last, "\(one.name)")
    }
    // Without any report, a stream's loss is unknown, not zero.
    try folder.alter(path, "DELETE FROM rtcp; DELETE FROM stat WHERE type = 'remote-inbound-rtp'")
    #expect(try sent().allSatisfy { $0.lost == nil && $0.lossShare == nil })
    let text = try TakeSummary(path: path, findings: TakeFindings(path: path))
    #expect(text.text().contains(" ?"))
    let count = text.json.components(separatedBy: "\"packets_lost\"").count - 1
    #expect(count == text.media.count { $0.direction == .inbound })
  }

  @Test func negotiatedMediaWithoutAPacketHasALine() throws {
    let folder = try TakeFolder()
    let path = try NetworkScene.littleJitter.record(in: folder)
    try folder.alter(
      path,
      """
      DELETE FROM packet_store WHERE marker_type & 127 = 111
        AND path IN (SELECT path FROM path WHERE peer = 2 AND direction = 'in')
      """)
    let summary = try TakeSummary(path: path, findings: TakeFindings(path: path))
    let absent = summary.media.filter { $0.packets == 0 }
    #expect(absent.map(\.name) == ["caller's audio to callee"])
    #expect(summary.text().contains("no packets"))
  }

  @Test func packetsThatWereRefusedAreInTheSummary() throws {
    let folder = try TakeFolder()
    let path = folder.file("refused.take")
    let plan = FaultPlan(.corruptPackets, seed: 77, severity: 600, sight: .victim)
    _ = try FaultyCalls.FaultyCall.make(plan, path: path)
    let counted = try rows(
      path,
      """
      SELECT ssrc, max(lost) FROM (
        SELECT members ->> '$.ssrc' AS ssrc, members ->> '$.packetsLost' AS lost FROM stat
        WHERE type = 'inbound-rtp') GROUP BY ssrc
      """)
    let summary = try TakeSummary(path: path, findings: TakeFindings(path: path))
    let refused = summary.media.filter { $0.refused > 0 }
    #expect(!refused.isEmpty)
    for one in refused {
      let last = try #require(
        counted.first { $0[0] == "\(one.ssrc)" }.flatMap { Int64($0[1]) })
      #expect((one.lost ?? 0) + one.refused == last, "\(one.name)")
      let known = try rows(
        path,
        """
        SELECT packets_lost, packets_refused FROM stream
        WHERE direction = 'in' AND ssrc = \(one.ssrc)
        """)
      #expect(known == [["\(one.lost ?? -1)", "\(one.refused)"]], "\(one.name)")
    }
    #expect(summary.text().contains(" refused"))
    // The sender lowers its rate because of the loss, so the lower rate is not a separate cause.
    let ids = try TakeFindings(path: path).findings.map(\.id)
    #expect(!ids.contains("video-held-down"))
    // Refused packets are counted only up to the last sample of statistics, so packets that are
    // missing after it change nothing.
    let view = try #require(TakeSchema.views.first { $0.name == "loss" }?.query)
    let both = ["loss", "(\(view))"].map { "SELECT ssrc, refused FROM \($0) WHERE refused > 0" }
    try folder.alter(path, "DELETE FROM stat WHERE row > (SELECT max(row) / 2 FROM stat)")
    let until = try both.map { try rows(path, $0) }
    try folder.alter(
      path, "DELETE FROM packet_store WHERE row > (SELECT max(row) FROM stat) AND row % 3 = 0")
    #expect(try until == both.map { try rows(path, $0) } && until[0] == until[1])
    #expect(!until[0].isEmpty)
  }

  // MARK: Names, severities and sides

  @Test(arguments: ["chromium-negotiates", "virtual-heavy-loss", "janus-room", "observed-firefox"])
  func noTwoStreamsHaveOneName(name: String) throws {
    let path = Self.captures + name + ".take"
    let names = try TakeSummary(path: path, findings: TakeFindings(path: path)).media.map(\.name)
    #expect(Set(names).count == names.count, "\(names)")
  }

  @Test func whatNobodyNoticedIsNotHigh() throws {
    let folder = try TakeFolder()
    let path = try folder.record(SampleSteps.call(packets: 0, payload: 0))
    func severity(_ seconds: Double) throws -> FindingSeverity? {
      let rule = FindingRule(
        id: "stop", severity: .high, title: "Stop", scope: .end,
        sql: """
          SELECT 1 AS peer, 0 AS from_ns, 2000000000 AS to_ns, 'x' AS evidence,
            \(seconds) AS frozen_s
          """)
      return try TakeFindings(path: path, rules: [rule]).findings.first?.severity
    }
    #expect(try severity(0.2) == .medium)
    #expect(try severity(0.8) == .high)
    // If a detection does not state how long the picture stood still, it keeps its severity.
    #expect(try severity(0) == .high)
  }

  @Test func whyACallCannotConnectIsSaid() throws {
    let folder = try TakeFolder()
    func evidence(_ scene: NetworkScene, _ rule: String, _ change: String = "") throws -> [String] {
      let path = try scene.record(in: folder)
      if !change.isEmpty { try folder.alter(path, change) }
      return try TakeFindings(path: path).detections.filter { $0.rule == rule }.map(\.evidence)
    }
    let open = try evidence(.noAnswer, "negotiation-open")
    #expect(open.first?.contains("may never have received it") == true, "\(open)")
    let ended = try evidence(
      .noCandidates, "no-remote-candidates",
      "UPDATE signaling SET message = message || 'a=end-of-candidates' WHERE direction = 'in'")
    #expect(ended.first?.contains("signaled the end of candidates") == true, "\(ended)")
    let relayed = try evidence(
      .wrongPassword, "turn-refused",
      """
      UPDATE peer SET configuration = json_set(configuration, '$.iceTransportPolicy', 'relay')
      """)
    #expect(relayed.contains { $0.contains("it cannot connect") }, "\(relayed)")
    #expect(
      try evidence(.turnRefuses, "turn-refused").allSatisfy { !$0.contains("cannot connect") })
    // The finding names the request that the response rejects.
    #expect(relayed.allSatisfy { $0.contains(" answered Allocate with 401 ") }, "\(relayed)")
  }

  // MARK: Causes that have ended

  private func rule(
    _ id: String, from: Int, to: Int, causes: [String] = [], endsForPeople: Bool = false
  ) -> FindingRule {
    FindingRule(
      id: id, severity: .medium, title: id, scope: .end, causes: causes,
      endsForPeople: endsForPeople,
      sql: """
        SELECT 1 AS peer, \(from)00000000 AS from_ns, \(to)00000000 AS to_ns, 'x' AS evidence
        """)
  }

  @Test func aPerceivedEndExplainsNothingThatBeginsLater() throws {
    let folder = try TakeFolder()
    let path = try folder.record(SampleSteps.call(packets: 0, payload: 0))
    func found(_ begin: Int, endsForPeople: Bool) throws -> [[String]] {
      try TakeFindings(
        path: path,
        rules: [
          rule("wait", from: 10, to: 20, endsForPeople: endsForPeople),
          rule("freeze", from: begin, to: begin + 5, causes: ["wait"]),
        ]
      ).findings.map(\.ids)
    }
    #expect(try found(18, endsForPeople: true) == [["wait", "freeze"]])
    #expect(try found(20, endsForPeople: true).sorted { $0[0] < $1[0] } == [["freeze"], ["wait"]])
    // A packet lost on the wire is missed only once the jitter buffer has run empty.
    #expect(try found(22, endsForPeople: false) == [["wait", "freeze"]])
  }

  @Test func aFreezeIsNoSymptomOfAnEarlierKeyFrame() throws {
    let found = try TakeFindings(path: Self.captures + "virtual-heavy-loss.take")
    func waits(_ findings: [Finding]) -> [Finding] {
      findings.flatMap { ($0.id == "key-frame-late" ? [$0] : []) + waits($0.symptoms) }
    }
    for wait in waits(found.findings) {
      #expect(
        all(wait.symptoms).allSatisfy { $0.fromNanoseconds < wait.toNanoseconds }, "\(wait.text)")
    }
  }

  // MARK: Concealment

  /// A tenth of one direction's audio is concealed, and never 200 ms in one piece.
  @Test func spreadConcealmentIsReportedSeparately() throws {
    let folder = try TakeFolder()
    func found(_ share: String) throws -> [Detection] {
      let path = try folder.record(
        SampleSteps.call(packets: 0, payload: 0), as: "\(UUID().uuidString).take")
      let numbers = "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 499)"
      try folder.alter(
        path,
        """
        DELETE FROM format; DELETE FROM frame_store; DELETE FROM packet_store; DELETE FROM path;
        INSERT INTO path VALUES (1, 131072, 1, 'in', '192.0.2.1:1', '192.0.2.2:2');
        INSERT INTO format
          (format, row, peer, track, kind, direction, codec, ssrc, outcome, key, voice) VALUES
          (1, 786432, 1, 2, 'audio', 'in', 'opus', 7, 'decoded', 1, 0),
          (2, 786433, 1, 2, 'audio', 'in', 'opus', 0, 'concealed', 1, 0);
        \(numbers)
        INSERT INTO frame_store
          (row, at_ns, format, rtp_time, size, quantiser, audio_level, peak, energy)
          SELECT (20 + i) << 16, i * 20000000, iif(\(share), 2, 1), i * 960, 9, 0,
            NULL, 9, 99 FROM n;
        \(numbers)
        INSERT INTO packet_store
          SELECT ((20 + i) << 16) + 1, i * 20000000, 1, 7, 111, i, i * 960, NULL, 9, 0, NULL
          FROM n WHERE NOT (\(share));
        """)
      return try TakeFindings(path: path).detections.filter { $0.rule == "concealed-audio" }
    }
    let spread = try found("i % 10 = 5")
    #expect(spread.map(\.severity) == [.low])
    #expect(spread.first?.evidence.hasPrefix("1.00 of 10.00 s of it (10.0 %)") == true)
    #expect(try found("i % 50 = 5") == [])
    #expect(try found("i % 4 = 1").map(\.severity) == [nil])
  }

  // MARK: Shares and times

  @Test func theShareOfAFindingIsThatOfTheSummary() throws {
    let path = Self.captures + "virtual-heavy-loss.take"
    let found = try TakeFindings(path: path)
    let summary = try TakeSummary(path: path, findings: found)
    for detection in found.detections where detection.rule == "loss" {
      let media = try #require(
        summary.media.first { $0.peer == detection.peer && $0.ssrc == detection.ssrc })
      let (lost, lossShare) = (try #require(media.lost), try #require(media.lossShare))
      let share = percent(lost, of: Int64((Double(lost) / lossShare).rounded()))
      #expect(
        detection.evidence.contains("(\(share))")
          && detection.evidence.hasPrefix("\(lost) of "), "\(detection.evidence)")
    }
    for detection in found.detections where detection.rule == "concealed-audio" {
      let media = try #require(
        summary.media.first { $0.peer == detection.peer && $0.track == detection.track })
      let share = try #require(media.concealedShare)
      #expect(
        detection.evidence.contains(" s of it (\(decimal(100 * share)) %)"),
        "\(detection.evidence)")
    }
    // With both ends in the take, loss is counted by packets, and `loss-at-peer` would repeat it.
    #expect(!found.findings.flatMap(\.ids).contains("loss-at-peer"))
  }

  @Test func aTimeOfLossHasTheFigureOfTheWholeBesideIt() throws {
    let folder = try TakeFolder()
    let call = try TapeTests.FaultyCall(folder, seed: 8)
    call.run(4000)
    call.call.network.links[0].lossPerMille = 200
    call.run(2000)
    call.call.network.links[0].lossPerMille = 0
    call.run(4000)
    try call.finish()
    let found = try TakeFindings(path: call.path).detections.filter { $0.rule == "loss" }
    #expect(!found.isEmpty)
    #expect(found.allSatisfy { $0.evidence.contains(" s, ") && $0.evidence.contains(") from ") })
    #expect(found.allSatisfy { $0.evidence.contains(") over the whole call") })
  }

  /// A few packets lost close together are normal on any path, and of low severity; more are not.
  @Test(arguments: [(40, FindingSeverity.low), (12, .medium)])
  func fewLostPacketsAreLow(every: Int, severity: FindingSeverity) throws {
    let folder = try TakeFolder()
    let call = try TapeTests.FaultyCall(folder, seed: 8)
    call.run(20_000)
    try call.finish()
    try folder.alter(
      call.path,
      """
      DELETE FROM packet_store WHERE row IN (
        SELECT row FROM (
          SELECT packet_store.row AS row,
            row_number() OVER (ORDER BY packet_store.row) AS number
          FROM packet_store JOIN path_end USING (path)
          WHERE path_end.peer = 2 AND direction = 'in' AND marker_type & 127 = 111
            AND at_ns BETWEEN 6000000000 AND 9500000000)
        WHERE number % \(every) = 5)
      """)
    let found = try TakeFindings(path: call.path).findings.filter { $0.id == "loss" }
    #expect(found.map(\.severity) == [severity], "\(found.map(\.text))")
  }

  @Test func neitherSomeNorNearlyAllIsRoundedAway() {
    #expect(percent(1, of: 10_000) == "under 0.1 %")
    #expect(percent(9_999, of: 10_000) == "over 99.9 %")
    #expect(percent(0, of: 10) == "0.0 %" && percent(10, of: 10) == "100.0 %")
    #expect(percent(32, of: 125) == "25.6 %")
  }

  @Test func aRoundTripAtTheThresholdDoesNotContradictItself() throws {
    let folder = try TakeFolder()
    let call = try TapeTests.FaultyCall(
      folder, seed: 6, audio: .tone(hertz: 440, pauseSeconds: 1), delay: .milliseconds(150),
      hasVideo: false)
    call.run(6000)
    try call.finish()
    let found = try TakeFindings(path: call.path).detections.filter { $0.rule == "high-round-trip" }
    #expect(!found.isEmpty)
    #expect(found.allSatisfy { $0.evidence.contains(" took 300 ms or more, the longest ") })
  }

  @Test func countsOfSamplesAreSummedWithTheirTime() {
    func freeze(_ from: Int64, _ seconds: Double, _ count: Int64) -> Detection {
      Detection(
        "freeze", peer: 1, from: from, to: from + 1_000_000_000, "froze for 610 ms", ssrc: 7,
        direction: .inbound, kind: "video", impact: FindingImpact(frozen: seconds, count: count))
    }
    var finding = Finding(
      id: "freeze", title: "Freeze", severity: .high, scope: .stream,
      subject: "bob's video to alice",
      detections: [freeze(0, 0.61, 1), freeze(5_000_000_000, 0.9, 2)],
      impact: FindingImpact(frozen: 1.51), symptoms: [])
    #expect(
      finding.text
        == "Freeze, bob's video to alice, three times, 1.5 s frozen in all; worst: "
        + "froze for 610 ms")
    finding.detections.removeLast()
    #expect(finding.text == "Freeze, bob's video to alice: froze for 610 ms")
  }

  @Test func nobodyMissesMediaForLongerThanItIsMissing() throws {
    let folder = try TakeFolder()
    let call = try TapeTests.FaultyCall(folder, seed: 4)
    call.run(1500)
    call.run(4000, losing: [0, 1])
    call.run(3000)
    try call.finish()
    let found = try TakeFindings(path: call.path).findings
    #expect(found.contains { $0.impact.withoutMediaSeconds > 3 }, "\(found.map(\.text))")
    // All streams in both directions were silent for four seconds.
    for finding in found {
      #expect(finding.impact.withoutMediaSeconds < 6, "\(finding.text)")
    }
  }

  @Test func aTruncatedTableSaysHowToSeeTheRest() throws {
    let folder = try TakeFolder()
    let path = try folder.record(SampleSteps.call(packets: 0, payload: 0))
    func text(_ count: Int) throws -> String {
      let rules = (0..<count).map { rule("rule-\($0 + 10)", from: $0, to: $0 + 1) }
      return try TakeFindings(path: path, rules: rules).shortText(TableLook(), take: "a b.take")
    }
    #expect(try text(13).contains("and 1 more finding: retake findings 'a b.take'\n"))
    #expect(try text(14).contains("and 2 more findings: retake findings 'a b.take'\n"))
    #expect(try !text(12).contains("more finding"))
  }

  @Test func packetsThatBothEndsHaveCountOnce() throws {
    let path = Self.captures + "observed-aiortc.take"
    let found = try TakeFindings(path: path)
    let sent = try rows(
      path,
      """
      SELECT count(*) FROM (
        SELECT DISTINCT row FROM packet_store WHERE marker_type IS NOT NULL)
      """)
    #expect(found.looked.contains(" \(sent[0][0]) packets of RTP and "), "\(found.looked)")
    #expect(
      try TakeSummary(path: path, findings: found).head.contains(" \(sent[0][0]) packets of RTP"))
  }
}
