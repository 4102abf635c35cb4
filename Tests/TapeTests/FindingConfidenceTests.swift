import FaultyCalls
import Foundation
import Testing

@testable import Queries
@testable import Tape

/// Tests to which side a finding attributes its cause, and with what confidence.
struct FindingConfidenceTests {
  private static let captures = FileManager.default.currentDirectoryPath + "/Captures/"

  @Test func aFindingSaysWhereItsCauseIs() throws {
    let found = try TakeFindings(path: Self.captures + "virtual-heavy-loss.take")
    #expect(found.findings.filter { $0.id == "loss" }.allSatisfy { $0.side == .network })
    #expect(found.json(take: "a.take").contains("\"side\":\"network\""))
    #expect(found.text().contains("  network  Packet loss from callee to caller"))
    // Sides are stated only for rules that exist.
    let ids = Set(FindingRule.all.map(\.id))
    #expect(FindingSide.ids.subtracting(ids) == [])
  }

  @Test func everyRuleStatesWhatItsEvidenceShows() {
    #expect(FindingBasis.ids.sorted() == FindingRule.all.map(\.id).sorted())
  }

  /// The same fault, seen at the end where it occurs, at the other end, and at both.
  @Test(arguments: [
    (FaultKind.cameraBlack, "camera-black", FaultSight.victim, FindingConfidence.possible),
    (.cameraBlack, "camera-black", .culprit, .certain),
    (.cameraRepeats, "picture-still", .victim, .possible),
    (.cameraRepeats, "camera-repeats", .culprit, .certain),
    (.inactiveDirection, "media-never-came", .victim, .possible),
    (.tinyBitrate, "video-held-down", .victim, .likely),
    (.videoLoss, "loss", .victim, .certain),
    (.videoLoss, "loss-at-peer", .culprit, .likely),
    (.corruptPackets, "srtp-refused", .victim, .possible),
  ])
  func aFindingSaysHowSureItIs(
    kind: FaultKind, id: String, sight: FaultSight, confidence: FindingConfidence
  ) throws {
    let folder = try TakeFolder()
    let path = folder.file("fault.take")
    for seed: UInt64 in 70..<80 {
      try? FileManager.default.removeItem(atPath: path)
      let plan = FaultPlan(kind, seed: seed, severity: 700, sight: sight)
      if try FaultyCalls.FaultyCall.make(plan, path: path).isTouched { break }
    }
    let found = try TakeFindings(path: path)
    func every(_ findings: [Finding]) -> [Finding] {
      findings.flatMap { [$0] + every($0.symptoms) }
    }
    let named = every(found.findings).filter { $0.id == id }
    #expect(named.contains { $0.confidence == confidence }, "\(found.text())")
    for one in named where one.confidence == confidence {
      #expect(one.text.contains("(\(confidence.name)") == (confidence != .certain), "\(one.text)")
      #expect(one.reservation.isEmpty == (confidence == .certain))
    }
  }

  @Test func whatCouldNotBeSeenMakesAFindingLessSure() throws {
    let folder = try TakeFolder()
    let path = folder.file("loss.take")
    let plan = FaultPlan(.videoLoss, seed: 71, severity: 800, sight: .victim)
    _ = try FaultyCalls.FaultyCall.make(plan, path: path)
    func loss() throws -> Finding {
      try #require(try TakeFindings(path: path).findings.first { $0.id == "loss" })
    }
    #expect(try loss().confidence == .certain && !loss().text.contains("weakened"))
    try folder.alter(
      path,
      """
      INSERT INTO coverage (row, actor, at_ns, peer, from_ns, to_ns, what, reason)
      SELECT max(first_step) << 16 | 99, 1, max(at_ns), NULL, 0, max(at_ns), 'dropped', '12'
      FROM tape
      """)
    let weakened = try loss()
    #expect(weakened.confidence == .likely)
    #expect(weakened.text.contains(" (likely; weakened: "), "\(weakened.text)")
  }
}
