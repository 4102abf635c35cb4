import Foundation
import Retake
import Testing

/// The code in the article "Getting started", which imports only the public product.
struct GettingStartedTests {
  @Test func theArticleOpensAsksAndReplays() async throws {
    let path = capture("virtual-loss")
    let folder = FileManager.default.temporaryDirectory.path + "/article-" + UUID().uuidString
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let take = try Take.open(path)
    for peer in take.peers {
      print(peer.number, peer.label, peer.role)
    }
    print("\(take.stepCount) steps in \(take.duration.seconds) s")

    let frames = try take.query(
      "SELECT peer, kind, since_connected_ms FROM first_frame ORDER BY peer, kind",
      as: UInt32.self, String.self, Double?.self)
    while let (peer, kind, delay) = try frames.next() {
      print("peer \(peer): first \(kind) frame after \(delay ?? 0) ms")
    }

    let changes = try take.rows(of: StateChange.self)
    while let change = try changes.next() {
      guard change.machine == "connection" else { continue }
      print(change.at.nanoseconds, change.from, "->", change.to)
    }

    let result = try await take.replay()
    switch result.outcome {
    case .identical: print("identical: \(result.steps) steps")
    case .diverged(let divergence): print(divergence)
    case .altered(let step, let reason): print("step \(step): \(reason)")
    }

    for peer in try await take.stats(at: Instant(nanoseconds: 1_500_000_000)) {
      let received = peer.report.objects.filter { $0.type == "inbound-rtp" }
      print(peer.label, received.count)
    }

    try await take.exportPackets(to: folder + "/clear.pcap", .inTheClear, peer: 1)
    try await take.exportMedia(into: folder + "/media", peer: 1)
    let written = try FileManager.default.contentsOfDirectory(atPath: folder + "/media").sorted()
    #expect(written == ["peer1-caller-track1-audio.wav", "peer1-caller-track2-video.y4m"])
  }
}
