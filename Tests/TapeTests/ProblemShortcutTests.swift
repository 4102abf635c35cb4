import Foundation
import Lab
import Queries
import Testing
import Wire

@testable import Tape

/// The quicker ways to problems come to what the rules' own queries say.
@Suite struct ProblemShortcutTests {
  private static let captures = URL(fileURLWithPath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
    .appendingPathComponent("Captures")

  @Test(arguments: [
    "virtual-heavy-loss", "virtual-loss", "chromium-negotiates", "observed-firefox",
    "observed-late", "janus-videoroom-peer-offers", "chromium-peer-offers-tcp",
  ])
  func capturesHaveTheSameProblemsBothWays(name: String) throws {
    let path = Self.captures.appendingPathComponent(name + ".take").path
    let quick = try TakeProblems(path: path)
    let asked = try TakeProblems(path: path, asksAlways: true)
    #expect(quick.problems == asked.problems)
    // Every restart of ICE in these calls was wanted.
    #expect(!quick.problems.contains { $0.name == "ice-flapping" })
  }

  @Test func lossesBurstsAndSilencesAreTheSameBothWays() throws {
    let path = FileManager.default.temporaryDirectory
      .appendingPathComponent("shortcut-\(UInt64.random(in: 0 ... .max)).take").path
    defer { try? FileManager.default.removeItem(atPath: path) }
    var link = LinkSettings()
    link.lossPerMille = 120
    link.duplicatesPerMille = 60
    link.jitter = .milliseconds(40)
    let recorded = try RecordedVirtualCall(
      path: path, seed: 3, links: [link, link], labels: ["a", "b"])
    recorded.call.addMedia()
    recorded.call.negotiate()
    recorded.run(for: .seconds(4))
    // One way is silent for a while.
    recorded.call.network.links[0].lossPerMille = 1000
    recorded.run(for: .milliseconds(3500))
    recorded.call.network.links[0].lossPerMille = 0
    recorded.run(for: .seconds(4))
    _ = try recorded.finish()
    let quick = try TakeProblems(path: path)
    let names = Set(quick.problems.map(\.name))
    #expect(
      names.isSuperset(of: ["loss", "loss-burst", "one-way-media", "stream-gap"]), "\(names)")
    #expect(try quick.problems == TakeProblems(path: path, asksAlways: true).problems)
    // Senders whose sequence numbers begin anew in the middle, and single packets from elsewhere.
    let connection = try SQLiteConnection(path: path, mode: .readWrite)
    let middle = "(SELECT (min(row) + max(row)) / 2 FROM packet_store)"
    try connection.execute(
      """
      UPDATE packet_store SET sequence = (sequence + 20000) & 65535
      WHERE marker_type IS NOT NULL AND row > \(middle);
      UPDATE packet_store SET sequence = (sequence + 9000) & 65535
      WHERE marker_type IS NOT NULL AND row % 97 = 0
      """)
    let restarted = try TakeProblems(path: path)
    #expect(restarted.problems.contains { $0.name == "sequence-restart" })
    #expect(try restarted.problems == TakeProblems(path: path, asksAlways: true).problems)
  }
}
