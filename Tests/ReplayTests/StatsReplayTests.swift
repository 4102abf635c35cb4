import Lab
import Media
import Peer
import Queries
import Stats
import Tape
import Testing
import Wire

@testable import Replay

struct StatsReplayTests {
  private func stats(_ path: String, until stop: Replayer.Stop?) throws -> StatsReplay {
    try StatsReplay(path: path, until: stop, toolchain: nil, codecs: { LibraryCodecs() })
  }

  @Test func theStatsOfAReplayAreTheRowsThatWereRecorded() throws {
    var link = LinkSettings()
    link.lossPerMille = 60
    link.jitter = .milliseconds(30)
    let call = try RecordedCall(seed: 14, link: link, seconds: 4)
    let instants = try StatSamples.instants(path: call.path)
    #expect(instants.map(\.peer) == [1, 1, 1, 1])
    for sampled in instants {
      let at = Wire.Instant(nanoseconds: sampled.atNanoseconds)
      let recorded = try StatSamples(path: call.path, at: at).peers[0]
      let replayed = try stats(call.path, until: .step(sampled.step + 1)).peers[0].report
      #expect(replayed.objects.count == Int(sampled.objectCount))
      #expect(recorded.objects.count == replayed.objects.count)
      for object in replayed.objects {
        let row = try #require(recorded.objects.first { $0.id == object.id }, "\(object.type)")
        #expect(row.members == object.membersJSON, "\(object.type)")
      }
    }
  }

  @Test func anInstantBetweenTwoSamplesHasItsOwnStats() throws {
    let call = try RecordedCall.shared.get()
    func received(_ milliseconds: Int64) throws -> Int64 {
      let found = try stats(call.path, until: .time(.zero + .milliseconds(milliseconds)))
      #expect(found.at == .zero + .milliseconds(milliseconds))
      let stream = found.peers[1].report.objects.first { $0.type == "inbound-rtp" }
      guard case .integer(let count)? = stream?["packetsReceived"] else { return 0 }
      return count
    }
    let counts = try [1250, 1500, 1750].map(received)
    #expect(counts[0] > 0 && counts[0] < counts[1] && counts[1] < counts[2])
    #expect(try stats(call.path, until: .time(.zero)).peers.map(\.label).count == 2)
  }

  @Test func atTheEndAndBeyondItAreTheLastStats() throws {
    let call = try RecordedCall.shared.get()
    let end = try stats(call.path, until: nil)
    let beyond = try stats(call.path, until: .time(.zero + .seconds(100)))
    #expect(end.at == beyond.at)
    #expect(end.peers.map(\.report) == beyond.peers.map(\.report))
    #expect(end.peers[0].report.objects.contains { $0.type == "outbound-rtp" })
  }

  /// Without its `ending` row, a take ends at its last step, not at the start of the last
  /// transaction.
  @Test func aTakeThatWasCutShortHasStatsUpToItsLastStep() throws {
    let call = try RecordedCall.shared.get()
    let path = try call.copy("cut")
    try SQLiteConnection(path: path, mode: .readWrite).execute("DELETE FROM ending")
    let end = try stats(call.path, until: nil).at
    #expect(try stats(path, until: nil).at == end)
    #expect(try stats(path, until: .time(end - .milliseconds(1))).at == end - .milliseconds(1))
    let walk = try TapeWalk(path: path, skipsCodecs: true, codecs: { LibraryCodecs() })
    #expect(walk.end == end)
  }
}
