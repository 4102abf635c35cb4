import Foundation
import Testing
import Wire

@testable import Queries
@testable import Tape

/// Tests each rule on signaling, setup and the network with a call in which it must fire, and with
/// a similar call in which it must not.
struct NetworkFindingTests {
  /// A scene, the rule that names its fault, and rules that must not fire.
  struct Case: Sendable, CustomTestStringConvertible {
    let scene: NetworkScene
    let fires: [String]
    let silent: [String]
    var testDescription: String { scene.rawValue }

    init(_ scene: NetworkScene, _ fires: [String], not silent: [String] = []) {
      (self.scene, self.fires, self.silent) = (scene, fires, silent)
    }
  }

  static let cases: [Case] = [
    Case(.noAnswer, ["negotiation-open"], not: ["restart-unfinished"]),
    Case(.lateAnswer, ["slow-signaling"], not: ["negotiation-open"]),
    Case(.refusedDescription, ["description-refused"], not: ["answer-without-offer"]),
    Case(.secondAnswer, ["answer-without-offer"], not: ["description-refused"]),
    Case(.storm, ["renegotiation-storm"], not: ["slow-signaling"]),
    Case(
      .openRestart, ["restart-unfinished"],
      not: ["negotiation-open", "renegotiation-storm", "duplicate-lines"]),
    Case(
      .rejectedSection, ["section-rejected"], not: ["direction-refused"]),
    Case(.unwantedMedia, ["direction-refused"], not: ["section-rejected"]),
    Case(.remappedPayloadType, ["payload-type-unknown"]),
    Case(.doubledLines, ["duplicate-lines"]),
    Case(.wrongFingerprint, ["fingerprint-mismatch", "dtls-failed"], not: ["slow-handshake"]),
    Case(
      .lostFlights, ["slow-handshake"],
      not: ["dtls-failed", "slow-connect", "fingerprint-mismatch"]),
    Case(.deadAtFirst, ["slow-connect"], not: ["checks-unanswered", "slow-handshake"]),
    Case(.wrongPassword, ["turn-refused"], not: ["turn-unreachable"]),
    Case(.turnRefuses, ["turn-refused"], not: ["turn-unreachable"]),
    Case(.turnIsGone, ["turn-unreachable"], not: ["turn-refused"]),
    Case(.unknownName, ["name-unresolved"], not: ["no-remote-candidates"]),
    Case(.behindNATs, ["checks-unanswered"], not: ["family-mismatch", "only-host-candidates"]),
    Case(.noCandidates, ["no-remote-candidates"], not: ["name-unresolved"]),
    Case(.narrowBottleneck, ["standing-queue"], not: ["path-became-longer", "clock-drift"]),
    Case(.jitter, ["high-jitter"], not: ["standing-queue", "path-became-longer"]),
    Case(.duplicates, ["duplicates"], not: ["reordering"]),
    Case(.reordered, ["reordering"], not: ["duplicates", "data-behind-loss"]),
    Case(.lossWithoutRepair, ["no-repair"], not: ["repairs-missing", "nack-storm"]),
    Case(.heavyLoss, ["nack-storm"], not: ["no-repair"]),
    Case(.deadPath, ["path-dead"], not: ["peer-starved", "path-stalled", "sent-not-arriving"]),
    Case(.deadOneWay, ["path-dead"]),
    Case(.shortSilence, [], not: ["path-dead", "peer-starved", "path-stalled"]),
    Case(.checksLost, ["consent-lost"], not: ["path-dead", "consent-nearly-lost"]),
    Case(.oneStreamLost, ["sent-not-arriving"], not: ["path-dead", "rtcp-silence"]),
    Case(.reportsLost, ["rtcp-silence"], not: ["sent-not-arriving"]),
    Case(.ownStop, ["process-starved", "peer-starved"], not: ["path-stalled", "path-dead"]),
    Case(.peerStop, ["process-starved", "peer-starved"], not: ["path-stalled", "path-dead"]),
    Case(.heldUp, ["path-stalled"], not: ["peer-starved", "process-starved", "path-dead"]),
    Case(.longerWay, ["path-became-longer"], not: ["standing-queue", "high-jitter"]),
    Case(.churn, ["path-dead"], not: ["consent-lost"]),
    Case(.replayed, ["srtp-refused"]),
    Case(.dataBehindLoss, ["data-behind-loss"]),
    Case(.skewedClock, ["clock-drift"], not: ["standing-queue"]),
  ]

  @Test(arguments: cases) func aFaultIsNamedAndASimilarCallIsNot(one: Case) throws {
    let folder = try TakeFolder()
    let found = try TakeFindings(path: one.scene.record(in: folder))
    let ids = Set(found.findings.flatMap(ids(of:)))
    for id in one.fires { #expect(ids.contains(id), "\(one.scene): \(ids.sorted())") }
    for id in one.silent { #expect(!ids.contains(id), "\(one.scene): \(id)") }
    for finding in found.findings {
      #expect(!found.sentence(of: finding).isEmpty)
      #expect(finding.detections.allSatisfy { $0.fromNanoseconds <= $0.toNanoseconds })
    }
  }

  private func ids(of finding: Finding) -> [String] {
    [finding.id] + finding.symptoms.flatMap(ids(of:))
  }

  @Test(arguments: [
    NetworkScene.good, .wideBottleneck, .littleJitter, .shortStop, .openRelay, .slowAnswer,
    .renegotiated, .rightCredentials,
  ])
  func nothingAboveLowIsFoundInAGoodCall(scene: NetworkScene) throws {
    let folder = try TakeFolder()
    let found = try TakeFindings(path: scene.record(in: folder))
    for finding in found.findings where finding.severity > .low {
      Issue.record("\(scene): \(found.sentence(of: finding))")
    }
  }

  // MARK: Faults that virtual calls cannot produce

  /// A call whose rows are changed to show a fault, and the rule that then fires.
  struct Change: Sendable, CustomTestStringConvertible {
    let rule: String
    let scene: NetworkScene
    let sql: String
    var testDescription: String { rule }

    init(_ rule: String, _ scene: NetworkScene, _ sql: String) {
      (self.rule, self.scene, self.sql) = (rule, scene, sql)
    }
  }

  private static let inbound = "path IN (SELECT path FROM path WHERE peer = 2 AND direction = 'in')"
  private static let middle = "(SELECT (min(row) + max(row)) / 2 FROM packet_store)"
  private static let unused = "(SELECT max(row) + 65536 FROM packet_store)"

  static let changes: [Change] = [
    // The remote candidate is on another network.
    Change(
      "only-host-candidates", .noWay,
      "UPDATE candidate SET address = '192.168.7.5' WHERE type = 'remote-candidate'"),
    Change(
      "media-clock-jump", .renegotiated,
      """
      UPDATE packet_store SET rtp_time = rtp_time + 960000
      WHERE marker_type IS NOT NULL AND row > \(middle) AND \(inbound)
      """),
    Change(
      "wall-clock-jump", .good,
      """
      UPDATE rtcp SET fields = json_set(fields, '$.unix_us', fields ->> '$.unix_us' + 5000000)
      WHERE type = 'sr' AND direction = 'in' AND peer = 2 AND at_ns > 2000000000
      """),
    Change(
      "media-without-transceiver", .duplicates,
      """
      UPDATE packet_store SET ssrc = 12345
      WHERE marker_type IS NOT NULL AND marker_type & 127 = 111 AND row > \(middle) AND \(inbound)
      """),
    Change(
      "needless-relay", .openRelay,
      """
      INSERT INTO candidate_pair SELECT \(unused), peer, at_ns, 99, '10.0.0.1:1', 'host',
        '10.0.0.2:2', 'host', base, 'succeeded', 0, 0, priority, 1, 1, 1, 1, 0, 0.02, 0.02
      FROM candidate_pair WHERE selected = 1 AND peer = 1 ORDER BY row LIMIT 1
      """),
    Change(
      "relay-over-tcp", .openRelay,
      """
      UPDATE stat SET members = json_set(members, '$.relayProtocol', 'tcp')
      WHERE type = 'local-candidate'
      """),
    Change(
      "connection-churn", .renegotiated,
      """
      INSERT INTO state (row, peer, at_ns, machine, from_state, to_state) VALUES
        (\(unused), 1, 500000000, 'ice-connection', 'completed', 'disconnected'),
        (\(unused) + 1, 1, 900000000, 'ice-connection', 'disconnected', 'connected')
      """),
    Change(
      "ice-warm-up", .noWay,
      """
      INSERT INTO state (row, peer, at_ns, machine, from_state, to_state)
        VALUES (\(unused), 1, 4000000000, 'ice-connection', 'checking', 'failed');
      INSERT INTO candidate (row, peer, at_ns, type, candidate_type, foundation, component,
        protocol, priority, address, port, extensions)
      VALUES (\(unused) + 1, 1, 5000000000, 'local-candidate', 'srflx', '1', 1, 'udp', 1,
        '203.0.113.9', 9, '')
      """),
    Change(
      "family-mismatch", .noWay,
      "UPDATE candidate SET address = '2001:db8::1' WHERE type = 'remote-candidate'"),
    Change("no-candidates", .noWay, "DELETE FROM candidate WHERE type = 'local-candidate'"),
    Change(
      "socket-refused", .noWay,
      """
      INSERT INTO network (row, peer, at_ns, direction, kind, code)
      VALUES (\(unused), 1, 0, 'in', 'bind-failed', 13)
      """),
    Change(
      "send-failed", .renegotiated,
      """
      INSERT INTO network (row, peer, at_ns, direction, kind, code, packets)
      VALUES (\(unused), 1, 500000000, 'in', 'send-failed', 101, 30)
      """),
    Change(
      "slow-server", .openRelay,
      """
      UPDATE candidate SET at_ns = at_ns + 800000000
      WHERE type = 'local-candidate' AND candidate_type = 'relay'
      """),
    Change(
      "estimate-low", .good,
      """
      UPDATE stat SET members = json_set(members, '$.availableOutgoingBitrate', 50000)
      WHERE type = 'candidate-pair'
      """),
    Change(
      "pacer-delay", .wideBottleneck,
      """
      UPDATE stat SET members = json_set(members, '$.totalPacketSendDelay',
        0.05 * (members ->> '$.packetsSent')) WHERE type = 'outbound-rtp'
      """),
    Change(
      "late-repair", .lossWithRepair,
      "UPDATE rtcp SET at_ns = at_ns - 500000000 WHERE type = 'nack' AND direction = 'out'"),
    Change(
      "slow-description", .renegotiated,
      """
      UPDATE call_reply SET at_ns = at_ns + 700000000 WHERE call IN (
        SELECT call FROM call_request WHERE name = 'setLocalDescription')
      """),
    Change("consent-nearly-lost", .checksLost, "DELETE FROM state WHERE to_state = 'failed'"),
    // The first flights were lost before they reached the observer.
    Change(
      "slow-handshake", .good,
      """
      UPDATE peer SET role = 'observed';
      UPDATE state SET at_ns = at_ns + 1500000000 WHERE machine LIKE 'dtls%'
      """),
    Change("turn-refused-seen", .turnRefuses, "DELETE FROM event WHERE type = 'refused'"),
    Change(
      "repairs-missing", .heavyLoss,
      """
      DELETE FROM packet_store WHERE marker_type IS NOT NULL AND ssrc & 0xffffffff IN (
        SELECT members ->> '$.rtxSsrc' FROM stat WHERE type = 'inbound-rtp')
      """),
    Change(
      "payload-type-changed", .good,
      """
      UPDATE packet_store SET marker_type = marker_type & 128 | (
        SELECT CAST(substr(message, instr(message, ' VP9/90000') - 2, 2) AS INTEGER)
        FROM signaling WHERE type = 'answer' AND peer = 2)
      WHERE marker_type & 127 = (
          SELECT payload_type FROM track WHERE kind = 'video' AND peer = 2 AND direction = 'in')
        AND row > \(middle) AND \(inbound)
      """),
    Change("closed-while-checking", .noWay, "SELECT 1"),
    // Both sides agreed on audio, and only video arrived.
    Change(
      "media-absent", .littleJitter,
      "DELETE FROM packet_store WHERE marker_type & 127 = 111 AND \(inbound)"),
  ]

  /// An observer does not know an end's states, but sees that the end stops sending when consent is
  /// lost.
  @Test(arguments: [true, false]) func observedConsentIsLostWhenItsSenderStops(stops: Bool) throws {
    let folder = try TakeFolder()
    let path = try NetworkScene.checksLost.record(in: folder)
    try folder.alter(
      path,
      """
      DELETE FROM state WHERE machine = 'ice-connection' AND to_state IN ('disconnected', 'failed');
      UPDATE peer SET role = 'observed';
      """
        + (stops
          ? """
          DELETE FROM packet_store WHERE marker_type IS NOT NULL
            AND row > (SELECT min(row) FROM packet_store WHERE at_ns > 20000000000)
            AND path IN (SELECT path FROM path WHERE peer = 1 AND direction = 'out')
          """ : ""))
    let ids = Set(try TakeFindings(path: path).findings.flatMap(ids(of:)))
    #expect(ids.contains("consent-lost") == stops, "\(ids.sorted())")
  }

  /// Video of a low bit rate loses few packets.
  ///
  /// If no lost packet is recovered, or lost packets are requested repeatedly, the retransmissions
  /// are lost too.
  @Test func fewPacketsAreEnoughIfNoRequestHelps() throws {
    let folder = try TakeFolder()
    let path = try NetworkScene.heavyLoss.record(in: folder)
    var rules = FindingRule.all
    let place = try #require(rules.firstIndex { $0.id == "repairs-missing" })
    rules[place].moved = ["least_lost": 10_000]
    func isFound() throws -> Bool {
      try TakeFindings(path: path, rules: rules).detections.contains {
        $0.rule == "repairs-missing" && $0.direction == .inbound
      }
    }
    let repairs = """
      marker_type IS NOT NULL AND ssrc & 0xffffffff IN (
        SELECT members ->> '$.rtxSsrc' FROM stat WHERE type = 'inbound-rtp')
      """
    #expect(try !isFound())
    // One retransmission in six arrives.
    try folder.alter(
      path, "DELETE FROM packet_store WHERE (row >> 16) % 6 <> 0 AND \(repairs)")
    #expect(try !isFound())
    try folder.alter(
      path,
      """
      INSERT INTO rtcp (row, peer, at_ns, direction, type, ssrc, fields)
      SELECT row + (value << 40), peer, at_ns, direction, rtcp.type, ssrc, fields
      FROM rtcp, json_each('[1, 2, 3, 4, 5, 6]') WHERE rtcp.type = 'nack'
      """)
    #expect(try isFound())
    try folder.alter(path, "DELETE FROM rtcp WHERE row >= 1 << 40")
    #expect(try !isFound())
    try folder.alter(path, "DELETE FROM packet_store WHERE \(repairs)")
    #expect(try isFound())
  }

  /// A server that does not answer is named even before its client's requests have timed out.
  @Test func aServerWithoutAnAnswerIsNamedBeforeItsClientGivesUp() throws {
    let folder = try TakeFolder()
    let path = try NetworkScene.turnIsGone.record(in: folder)
    try folder.alter(
      path,
      """
      DELETE FROM event WHERE type IN ('refused', 'icecandidateerror');
      DELETE FROM state WHERE machine = 'ice-connection'
      """)
    let ids = Set(try TakeFindings(path: path).findings.flatMap(ids(of:)))
    #expect(ids.contains("turn-unreachable"), "\(ids.sorted())")
  }

  /// Descriptions passed to an observer all have the same time, and the answer may come first.
  @Test func anAnswerGivenBeforeItsOfferIsCompared() throws {
    let folder = try TakeFolder()
    let path = try NetworkScene.unwantedMedia.record(in: folder)
    try folder.alter(
      path,
      """
      DELETE FROM call_request;
      UPDATE peer SET role = 'observed';
      UPDATE signaling SET row = row + 400000 WHERE type = 'offer';
      UPDATE signaling SET at_ns = 0, type = 'description';
      """)
    let ids = Set(try TakeFindings(path: path).findings.flatMap(ids(of:)))
    #expect(ids.contains("direction-refused"), "\(ids.sorted())")
  }

  /// If a path's round trip is longer than checks wait, the responses arrive, but all of them too
  /// late.
  @Test func responsesThatComeTooLateAreNamed() throws {
    let folder = try TakeFolder()
    let call = try FaultyCall(folder, seed: 4, delay: .milliseconds(800))
    call.run(7_000)
    try call.finish()
    let found = try TakeFindings(path: call.path).detections
    let unanswered = found.filter { $0.rule == "checks-unanswered" }
    #expect(unanswered.count == 2)
    for one in unanswered {
      #expect(one.evidence.contains("responses came too late, at best after 1.6 s"))
      #expect(!one.evidence.contains("host candidates"), "\(one.evidence)")
    }
    #expect(!found.contains { $0.rule == "only-host-candidates" })
    // Nobody answers behind the NATs.
    let silent = try TakeFindings(path: NetworkScene.behindNATs.record(in: folder)).detections
    let checks = try #require(silent.first { $0.rule == "checks-unanswered" })
    #expect(checks.evidence.contains("and no check was answered"), "\(checks.evidence)")
    #expect(!checks.evidence.contains("  "))
  }

  /// Both ends' takes show which handshake messages the path lost.
  @Test func handshakeMessagesLostOnTheWayAreCounted() throws {
    let folder = try TakeFolder()
    let path = try NetworkScene.lostFlights.record(in: folder)
    let slow = try TakeFindings(path: path).detections.filter { $0.rule == "slow-handshake" }
    #expect(slow.contains { $0.evidence.contains("handshake messages were lost on the way") })
    // One end's take does not.
    try folder.alter(path, "DELETE FROM peer WHERE peer = 2")
    let alone = try TakeFindings(path: path).detections.filter { $0.rule == "slow-handshake" }
    #expect(!alone.isEmpty && !alone.contains { $0.evidence.contains("lost on the way") })
  }

  @Test(arguments: changes) func aChangedRowIsFound(change: Change) throws {
    let folder = try TakeFolder()
    let path = try change.scene.record(in: folder)
    let before = try TakeFindings(path: path)
    if change.sql != "SELECT 1" {
      #expect(!before.findings.flatMap(ids(of:)).contains(change.rule))
      try folder.alter(path, change.sql)
    }
    let found = try TakeFindings(path: path)
    #expect(
      found.findings.flatMap(ids(of:)).contains(change.rule),
      "\(found.findings.map { found.sentence(of: $0) })")
  }
}
