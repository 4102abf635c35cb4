import Foundation
import RTP
import Tape
import Testing
import Wire

@testable import Reenactment

/// Plans made from takes: what a recorded receiver received, and when.
struct PlanTests {
  static let folder =
    URL(filePath: #filePath).deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent().path + "/Captures/"

  /// Returns the SSRC, sequence number and time of each packet that a query selects.
  private static func rows(_ take: String, _ query: String) throws -> [[Int64]] {
    let connection = try TakeFile.openForQueries(take)
    let statement = try connection.prepare(query)
    var rows: [[Int64]] = []
    while try statement.step() {
      let (ssrc, sequence, at) = statement.values(Int64.self, Int64.self, Int64.self)
      rows.append([ssrc, sequence, at])
    }
    return rows
  }

  private static func rows(_ plan: ReenactmentPlan, from origin: Int64) throws -> [[Int64]] {
    try plan.packets.filter { !$0.isRTCP }.map { packet in
      let header = try RTPHeader(parsing: packet.bytes.span.bytes)
      return [Int64(header.ssrc), Int64(header.sequence), packet.distance.nanoseconds + origin]
    }
  }

  @Test func lostPacketsStayLostAndLateOnesLate() throws {
    let take = Self.folder + "virtual-heavy-loss.take"
    let plan = try ReenactmentPlan(take: take, peer: 1)
    let received = try Self.rows(
      take,
      "SELECT ssrc, sequence, at_ns FROM rtp WHERE peer = 1 AND direction = 'in' "
        + "ORDER BY at_ns, \"row\"")
    #expect(try Self.rows(plan, from: 460_000_000) == received)
    let sent = try Self.rows(
      take, "SELECT ssrc, sequence, at_ns FROM rtp WHERE peer = 2 AND direction = 'out'")
    #expect(received.count < sent.count - 20)
    #expect(plan.sections.map(\.kind) == [.audio, .video])
    #expect(plan.messages.count == 2 && plan.channels.map(\.isRemote) == [false])
  }

  @Test func packetsThatOnlyTheRecordedSenderHasCanBeRetransmitted() throws {
    let take = Self.folder + "virtual-heavy-loss.take"
    let plan = try ReenactmentPlan(take: take, peer: 1, hasSpares: true)
    let lost = try Self.rows(
      take,
      """
      SELECT ssrc, sequence, at_ns FROM rtp AS sent WHERE peer = 2 AND direction = 'out'
        AND ssrc IN (1139907048, 2989732754) AND NOT EXISTS (
          SELECT 1 FROM rtp WHERE rtp.peer = 1 AND rtp.direction = 'in' AND rtp.ssrc = sent.ssrc
            AND rtp.sequence = sent.sequence)
      """)
    #expect(!lost.isEmpty)
    for row in lost {
      let key = ReenactmentPlan.key(UInt32(row[0]), UInt16(row[1]))
      #expect(plan.reserve[key] != nil)
    }
  }

  @Test(arguments: [("observed-clear-vp8", 1), ("observed-aiortc", 2), ("observed-late", 1)])
  func observedReceiversHaveTheirPacketsInTheClear(name: String, peer: Int64) throws {
    let take = Self.folder + name + ".take"
    let plan = try ReenactmentPlan(take: take, peer: peer)
    let counts = try Self.rows(
      take, "SELECT count(*), 0, 0 FROM rtp WHERE peer = \(peer) AND direction = 'in'")
    #expect(Int64(plan.mediaPackets + plan.unexplained) == counts[0][0])
    #expect(plan.streams.contains { $0.repairs == nil })
    for stream in plan.streams where stream.repairs != nil {
      #expect(plan.streams.contains { $0.ssrc == stream.repairs && $0.repairs == nil })
    }
    #expect(plan.packets.map(\.distance) == plan.packets.map(\.distance).sorted())
  }

  @Test func aPeerIsNamedWhereSeveralReceived() throws {
    let take = Self.folder + "virtual-heavy-loss.take"
    let unnamed = #expect(throws: TapeError.self) { try ReenactmentPlan(take: take, peer: nil) }
    #expect(unnamed?.reason.contains("1 (caller), 2 (callee)") == true)
    let wrong = #expect(throws: TapeError.self) { try ReenactmentPlan(take: take, peer: 9) }
    #expect(wrong?.reason.contains("no peer 9") == true)
  }
}
