import FaultyCalls
import Testing

@testable import Queries
@testable import Tape

/// Tests that takes of the sender alone name faults on the path from the sender.
struct SenderSightTests {
  private func found(_ kind: FaultKind, _ seeds: Range<UInt64>) throws -> TakeFindings {
    let folder = try TakeFolder()
    var path = ""
    for seed in seeds {
      path = folder.file("\(kind.rawValue)-\(seed).take")
      let plan = FaultPlan(kind, seed: seed, severity: 500, sight: .culprit)
      if try FaultyCalls.FaultyCall.make(plan, path: path).isTouched { break }
    }
    return try TakeFindings(path: path)
  }

  /// Each fault is named by its own rule, and the rules for similar faults do not fire.
  @Test(arguments: [
    (FaultKind.mediaDeadOneWay, "sent-not-arriving", ["standing-queue", "rtcp-silence"]),
    (.bottleneck, "standing-queue", ["path-became-longer", "high-jitter", "reordering"]),
    (.dataBehindLoss, "data-behind-loss", ["path-dead"]),
    (.rtcpLost, "rtcp-silence", ["sent-not-arriving", "loss-at-peer"]),
    (.jitter, "high-jitter", ["standing-queue"]),
    (.repairsLost, "repairs-missing", ["reordering", "no-repair"]),
  ])
  func aSenderAloneNamesIt(kind: FaultKind, id: String, others: [String]) throws {
    let found = try found(kind, 40..<60)
    #expect(found.findings.first?.id == id, "\(found.text())")
    let ids = Set(found.detections.map(\.rule))
    #expect(ids.isDisjoint(with: others), "\(found.text())")
  }

  /// Loss alone is not mistaken for other faults in the same reports.
  @Test func lossIsNotReportedAsAQueueOrReordering() throws {
    let found = try found(.loss, 40..<60)
    #expect(found.findings.first?.id == "loss-at-peer", "\(found.text())")
    #expect(
      Set(found.detections.map(\.rule)).isDisjoint(with: [
        "standing-queue", "reordering", "repairs-missing", "sent-not-arriving", "high-jitter",
      ]), "\(found.text())")
  }
}
