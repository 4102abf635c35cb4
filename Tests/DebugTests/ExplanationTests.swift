import FaultyCalls
import Foundation
import Media
import Queries
import Testing

@testable import Debug

/// Tests what `--explain` says about findings that a replay can explain only in part or not at all.
struct ExplanationTests {
  private func explanations(_ kind: FaultKind, _ sight: FaultSight) throws -> [String: String] {
    let folder = FileManager.default.temporaryDirectory.path + "/explained-\(UUID().uuidString)"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let path = folder + "/call.take"
    _ = try FaultyCall.make(FaultPlan(kind, seed: 77, severity: 600, sight: sight), path: path)
    let findings = try TakeFindings(path: path).findings
    let found = try FindingExplainer(path: path, findings: findings, codecs: { LibraryCodecs() })
      .explain { _, _ in }
    return Dictionary(
      found.map { (findings[$0.key].id, $0.value) }, uniquingKeysWith: { one, _ in one })
  }

  @Test func refusedPacketsAreNotCalledLost() throws {
    let text = try #require(try explanations(.corruptPackets, .victim)["srtp-refused"])
    #expect(text.contains("the packets arrived but SRTP rejected them"), "\(text)")
    #expect(!text.contains("too late or never") && !text.contains("were lost"), "\(text)")
  }

  @Test func anEndThatTheTakeHasIsNotCalledMissing() throws {
    let both = try #require(try explanations(.maxBitrate, .both)["encoder-capped"])
    #expect(!both.contains("is not in the take"), "\(both)")
    let alone = try #require(try explanations(.maxBitrate, .culprit)["encoder-capped"])
    #expect(alone.contains("is not in the take"), "\(alone)")
  }
}
