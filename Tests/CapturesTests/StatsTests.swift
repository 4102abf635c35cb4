import Foundation
import Media
import Peer
import Queries
import Replay
import Stats
import Tape
import Testing
import Wire

/// A replay to the same instant must report the same stats as the recording.
struct StatsTests {
  /// Observed peers never request stats; every replay compares their samples anyway.
  private static let endpoints = CapturesTests.takes.filter { !$0.hasPrefix("observed") }

  @Test(arguments: endpoints)
  func theStatsByReplayAreTheRecordedRows(name: String) throws {
    let path = CapturesTests.folder.appendingPathComponent(name).path
    let toolchain = try Toolchain.current(for: path)
    let header = try TapeReader(path: path).header
    if !toolchain.differences(from: header.toolchain).isEmpty, !header.keepsMedia {
      print("\(name): made with another toolchain and without media, so it is not compared")
      return
    }
    let all = try StatSamples.instants(path: path)
    #expect(all.count >= 2)
    // Compares only the first, a middle and the last sample, because each costs a replay.
    for place in Set([0, all.count / 2, all.count - 1]).sorted() {
      let sampled = all[place]
      let at = Wire.Instant(nanoseconds: sampled.atNanoseconds)
      // Peers are matched by number: in the replay, a relay's observed ends precede its legs.
      let number = Int64(sampled.peer)
      let recorded = try #require(
        try StatSamples(path: path, at: at).peers.first { $0.number == number })
      let replay = try StatsReplay(
        path: path, until: .step(sampled.step + 1), toolchain: toolchain,
        codecs: { LibraryCodecs() })
      guard case .identical = replay.replay.verdict else {
        Issue.record("\(replay.replay)")
        return
      }
      let replayed = try #require(replay.peers.first { $0.number == number }).report
      #expect(replayed.objects.count == Int(sampled.objectCount))
      for object in replayed.objects {
        let row = try #require(recorded.objects.first { $0.id == object.id }, "\(object.type)")
        #expect(row.members == object.membersJSON, "\(name) \(at.nanoseconds) \(object.type)")
      }
    }
  }
}
