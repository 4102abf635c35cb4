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

    init(_ rule: RepairRule) throws {
      folder = FileManager.default.temporaryDirectory.appending(path: "reenact-\(UUID())")
      try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
      plan = try ReenactmentPlan(take: PlayingTests.source, peer: 1, hasSpares: rule == .honest)
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
      try await connection.waitForGatheringComplete()
      return try #require(try await connection.localDescription)
    }

    /// Waits for the end of the re-enactment, and completes both takes.
    func finish() async throws -> ReenactmentReport {
      for await _ in service.finished { break }
      let outcome = try #require(await service.outcome)
      await service.close()
      try await session.finish()
      try await client.finish()
      return try ReenactmentReport(plan, outcome, repair: .asRecorded, recording: played)
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
    // Recorded retransmissions, which the recorded receiver requested, are replaced by those that
    // this client requests.
    #expect(report.packetsLeftOut > 0)
    #expect(
      try Self.number(stage.received, Self.frames) > Self.number(Self.source, Self.frames))
  }
}
