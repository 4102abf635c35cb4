import Foundation
import JSEP
import Live
import Media
import Peer
import Replay
import SDP
import Signaling
import Tape
import Testing
import Wire

@testable import Reenactment

/// Recorded calls sent again over sockets to a Retake client.
@Suite(.serialized)
struct PlayingTests {
  private static let source = PlanTests.folder + "virtual-heavy-loss.take"

  /// A re-enactment and its client, each with a take.
  private struct Stage {
    let folder: URL
    let plan: ReenactmentPlan
    let session: Session
    let service: ReenactmentService
    let client: Session
    let connection: PeerConnection

    var played: String { folder.appending(path: "played.take").path }
    var received: String { folder.appending(path: "received.take").path }

    /// - Parameter end: how far the plan is played, measured from its start; nil plays all of it.
    ///   The last six seconds have no further descriptions, because a busy client answers late.
    init(
      _ rule: RepairRule, _ source: String = PlayingTests.source, until end: Interval? = nil,
      candidates: [Interval] = []
    ) throws {
      folder = FileManager.default.temporaryDirectory.appending(path: "reenact-\(UUID())")
      try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
      var plan = try ReenactmentPlan(take: source, peer: 1, hasSpares: rule == .honest)
      if let end {
        plan.packets.removeAll { $0.distance > end }
        plan.messages.removeAll { $0.distance > end }
        plan.changes.removeAll { $0.distance > end - .seconds(6) }
      }
      // No capture has trickled candidates, so tests may pass their own.
      if !candidates.isEmpty { plan.candidates = candidates }
      self.plan = plan
      let folder = folder
      func options(_ name: String) throws -> Session.Options {
        var options = Session.Options()
        options.takePath = folder.appending(path: name).path
        options.bind = .addresses([try #require(IPAddress("127.0.0.1"))])
        return options
      }
      session = try Session(try options("played.take"))
      client = try Session(try options("received.take"))
      service = ReenactmentService(
        plan, in: session, configuration: PeerConfiguration(), repair: rule,
        connectionLimit: .seconds(60), takePath: folder.appending(path: "played.take").path)
      connection = client.makePeer(label: "client")
    }

    /// Returns the client's description, with all candidates.
    func described() async throws -> SessionDescription {
      try await connection.setLocalDescription()
      try await connection.waitForGatheringComplete(timeout: .seconds(120))
      return try #require(try await connection.localDescription)
    }

    /// Waits for the end of the re-enactment, and completes both takes.
    func finish() async throws -> ReenactmentReport {
      for await _ in service.finished { break }
      let outcome = try #require(await service.outcome)
      let changes = await service.changesSent
      await service.close()
      try await session.finish()
      try await client.finish()
      return try ReenactmentReport(
        plan, outcome, changesSent: changes, repair: .asRecorded, recording: played)
    }

    func remove() { try? FileManager.default.removeItem(at: folder) }
  }

  private static func number(_ take: String, _ query: String) throws -> Int64 {
    try TakeFile.openForQueries(take).integer(query) ?? 0
  }

  private static let lost = "SELECT sum(lost) FROM loss WHERE peer = 1 AND direction = 'in'"
  private static let frames =
    "SELECT count(*) FROM frame WHERE peer = 1 AND direction = 'in' AND kind = 'video' "
    + "AND outcome = 'decoded'"
  private static let packets = "SELECT count(*) FROM rtp WHERE peer = 1 AND direction = 'in'"

  private static let messages =
    "SELECT sum(size) FROM message WHERE peer = 1 AND direction = 'in'"

  private static let messageTime =
    "SELECT min(at_ns) FROM message WHERE peer = 1 AND direction = 'in'"
  private static let packetTime =
    "SELECT min(at_ns) FROM rtp WHERE peer = 1 AND direction = 'in'"

  @Test func aPlayerReceivesWhatTheRecordedReceiverReceived() async throws {
    let stage = try Stage(.asRecorded)
    defer { stage.remove() }
    for kind in [MediaKind.audio, .video] {
      try await stage.connection.addTransceiver(kind, direction: .recvonly)
    }
    // The recorded receiver opened this channel; the messages received on it are sent again.
    _ = try await stage.connection.createDataChannel("chat")
    let opened = try await stage.service.open(.whep, offer: try await stage.described().sdp)
    try await stage.connection.setRemoteDescription(
      SessionDescription(type: .answer, sdp: opened.answer))
    // A re-enactment serves one client.
    await #expect(throws: CallRefusal.self) { try await stage.service.makeOffer() }
    let report = try await stage.finish()
    #expect(report.isComplete && report.packetsSent == stage.plan.mediaPackets)
    #expect(report.packetsLeftOut == 0 && report.timing != nil)
    #expect(report.packetsRequested > 0 && report.packetsRepaired == 0)
    #expect(report.messagesSent == 2 && report.omissions.isEmpty)
    for query in [Self.packets, Self.lost, Self.messages] {
      #expect(try Self.number(stage.received, query) == Self.number(Self.source, query))
    }
    // Messages keep their recorded times relative to the packets.
    let firstMessage = try Self.number(stage.received, Self.messageTime)
    let firstPacket = try Self.number(stage.received, Self.packetTime)
    let distance =
      try #require(stage.plan.messages.first).distance
      - (try #require(stage.plan.packets.first { !$0.isRTCP }).distance)
    #expect(abs(firstMessage - firstPacket - distance.nanoseconds) < 100_000_000)
    // The client measures the round trip that the recorded receiver measured, not the round trip of
    // loopback.
    let known = Set(stage.plan.roundTrips.map { $0.value.nanoseconds / 1_000_000 })
    let measured = try Self.number(
      stage.received,
      "SELECT CAST(1000 * max(json_extract(members, '$.roundTripTime')) AS INTEGER) FROM stat "
        + "WHERE peer = 1 AND type = 'remote-outbound-rtp'")
    #expect(known.contains { (-3...40).contains(measured - $0) }, "\(measured) ms of \(known)")
    let (was, now) = (
      try Self.number(Self.source, Self.frames), try Self.number(stage.received, Self.frames)
    )
    #expect(abs(was - now) <= max(3, was / 5), "\(was) and \(now)")
    for take in [stage.played, stage.received] {
      let result = TakeVerification.run(path: take, mode: .exact, isStrict: true)
      #expect(result.isPassed, "\(result.details)")
    }
  }

  @Test func aClientThatAnswersIsRepairedWhereTheTakeHasThePacket() async throws {
    let stage = try Stage(.honest)
    defer { stage.remove() }
    let offer = try await stage.service.makeOffer()
    try await stage.connection.setRemoteDescription(
      SessionDescription(type: .offer, sdp: offer.sdp))
    try await stage.service.accept(answer: try await stage.described().sdp, call: offer.id)
    let report = try await stage.finish()
    #expect(report.packetsRepaired > 10)
    // Recorded retransmissions are omitted; the packets that this client requests are retransmitted
    // instead.
    #expect(report.packetsLeftOut > 0)
    #expect(
      try Self.number(stage.received, Self.frames) > Self.number(Self.source, Self.frames))
  }

  /// Chromium changed the recorded call repeatedly: it added tracks, muted and unmuted.
  @Test func laterDescriptionsAndCandidatesComeAtTheirTimes() async throws {
    let stage = try Stage(
      .asRecorded, PlanTests.folder + "chromium-negotiates.take", until: .milliseconds(10_700),
      candidates: [.milliseconds(120)])
    defer { stage.remove() }
    let changes = stage.plan.changes
    try #require(changes.count > 3)
    let routes = ReenactmentRoutes(stage.service)
    for section in stage.plan.sections {
      try await stage.connection.addTransceiver(section.kind, direction: .recvonly)
    }
    let opened = try await Self.post(
      routes, "/offer?trickle", ["type": "offer", "sdp": try await stage.described().sdp])
    let id = try #require(opened["id"] as? String)
    try await stage.connection.setRemoteDescription(
      SessionDescription(type: .answer, sdp: try #require(opened["sdp"] as? String)))
    try await Self.expect(stage, stage.plan.states(after: 0))
    var count = 0
    while true {
      let response = await routes.respond(
        to: HTTPRequest(method: "GET", target: "/next?id=\(id)"))
      if response.status == 204 { continue }
      let message = try Self.object(response)
      if let candidate = message["candidate"] as? String {
        try await stage.connection.addICECandidate(
          CandidateInit(candidate: candidate, sdpMid: message["sdpMid"] as? String))
        // The client may change the call itself.
        let again = try await Self.post(
          routes, "/offer", ["id": id, "type": "offer", "sdp": try await stage.described().sdp])
        try await stage.connection.setRemoteDescription(
          SessionDescription(type: .answer, sdp: try #require(again["sdp"] as? String)))
        continue
      }
      guard message["type"] as? String == "offer" else { break }
      count += 1
      try await stage.connection.setRemoteDescription(
        SessionDescription(type: .offer, sdp: try #require(message["sdp"] as? String)))
      let answer = try await stage.described()
      _ = try await Self.post(routes, "/answer", ["id": id, "type": "answer", "sdp": answer.sdp])
      try await Self.expect(stage, stage.plan.states(after: count))
    }
    let report = try await stage.finish()
    #expect(count == changes.count && report.changesSent == count && report.isComplete)
    let offers = try Self.numbers(
      stage.played,
      "SELECT at_ns FROM signaling WHERE type = 'offer' AND direction = 'out' ORDER BY \"row\"")
    // While an earlier offer is unanswered, the next one has to wait.
    let first = try Self.number(
      stage.played, "SELECT min(at_ns) FROM relayed WHERE protocol = 'rtp'")
    let origin =
      first - (try #require(stage.plan.packets.first { !$0.isRTCP })).distance.nanoseconds
    for (at, change) in zip(offers, changes) {
      // No offer is sent before its time, and on a busy machine it is at most six seconds late.
      let delay = at - origin - change.distance.nanoseconds
      #expect((-20_000_000...6_000_000_000).contains(delay))
    }
    // The client's own take can be re-enacted in turn.
    let heard = try ReenactmentPlan(take: stage.received, peer: 1)
    #expect(heard.changes.count == count)
    let candidate = try #require(heard.candidates.first)
    // A busy client applies the answer late, which shortens the delay of the candidate after it.
    #expect((1...6_000_000_000).contains(candidate.nanoseconds))
    for take in [stage.played, stage.received] {
      let result = TakeVerification.run(path: take, mode: .exact, isStrict: true)
      #expect(result.isPassed, "\(result.details)")
    }
  }

  @Test func candidatesOfALegHaveTheTimesOfTheRecordedOnes() throws {
    var document = try SDPDocument(
      parsing: [
        "v=0", "o=- 1 1 IN IP4 0.0.0.0", "s=-", "t=0 0", "m=audio 9 UDP/TLS/RTP/SAVPF 111",
        "a=mid:0", "a=ice-ufrag:abcd", "a=candidate:1 1 udp 9 192.0.2.1 9 typ host",
        "a=candidate:2 1 udp 8 192.0.2.2 9 typ host", "a=candidate:3 1 udp 7 192.0.2.3 9 typ host",
        "a=end-of-candidates", "",
      ].joined(separator: "\r\n"))
    let start = Instant(nanoseconds: 5)
    var candidates = TrickledCandidates(
      from: &document, at: start, [.milliseconds(10), .milliseconds(30)])
    #expect(!document.text.contains("candidate"))
    #expect(candidates.deadline == start + .milliseconds(10))
    #expect(candidates.next(at: start) == nil)
    let first = candidates.next(at: start + .milliseconds(10))
    #expect(first?.sdpMid == "0" && first?.candidate.contains("192.0.2.1") == true)
    #expect(first?.usernameFragment == "abcd")
    #expect(candidates.next(at: start + .milliseconds(29)) == nil)
    #expect(candidates.next(at: start + .milliseconds(30))?.candidate.contains("192.0.2.2") == true)
    #expect(candidates.next(at: start + .milliseconds(30)) != nil && candidates.isEmpty)
  }

  /// Expects each section to receive if and only if the recorded sender sent in it.
  private static func expect(
    _ stage: Stage, _ states: [Int: ReenactmentPlan.SectionState]
  ) async throws {
    let transceivers = try await stage.connection.transceivers
    for (index, state) in states {
      // A stopped section has no transceiver.
      let transceiver = transceivers.first { $0.mid == "\(index)" }
      if transceiver == nil, state.isStopped { continue }
      let receives = try #require(transceiver).currentDirection?.receives ?? false
      #expect(receives == (state.sends && !state.isStopped), "section \(index)")
    }
  }

  private static func post(
    _ routes: ReenactmentRoutes, _ path: String, _ body: [String: String]
  ) async throws -> [String: Any] {
    try object(
      await routes.respond(
        to: HTTPRequest(
          method: "POST", target: path, headers: [("Content-Type", "application/json")],
          body: Array(try JSONSerialization.data(withJSONObject: body)))))
  }

  private static func object(_ response: HTTPResponse) throws -> [String: Any] {
    try #require(response.status == 200, "\(response.text)")
    return try #require(
      try JSONSerialization.jsonObject(with: Data(response.body)) as? [String: Any])
  }

  private static func numbers(_ take: String, _ query: String) throws -> [Int64] {
    let statement = try TakeFile.openForQueries(take).prepare(query)
    var numbers: [Int64] = []
    while try statement.step() { numbers.append(statement.values(Int64.self)) }
    return numbers
  }
}
