import Foundation
import Lab
import Media
import Peer
import RTP
import Tape
import Testing
import Wire

@testable import Replay

/// A recorded G.711 call replays with and without its codec.
struct G711ReplayTests {
  @Test func aCallInG711Replays() throws {
    let path = FileManager.default.temporaryDirectory.path + "/\(UUID().uuidString).take"
    defer { try? FileManager.default.removeItem(atPath: path) }
    var configuration = PeerConfiguration()
    configuration.codecs = ["PCMU", "telephone-event"]
    var lossy = LinkSettings()
    lossy.lossPerMille = 30
    let recording = try RecordedVirtualCall(
      path: path, seed: 16, links: [lossy, LinkSettings()], labels: ["a", "b"],
      configurations: [configuration, configuration])
    let call = recording.call
    let tone = MediaSource.tone(hertz: 440, pauseSeconds: 2)
    call.call(0, .addTrack(kind: .audio, streamIDs: ["s"], source: tone))
    call.call(1, .addTrack(kind: .audio, streamIDs: ["s"], source: .echo))
    #expect(call.negotiate() == nil)
    recording.run(for: .seconds(3))
    call.call(0, .insertDTMF(transceiver: 1, tones: "1*", duration: 100, gap: 70))
    recording.run(for: .seconds(1))
    _ = try recording.finish()
    for skipsCodecs in [false, true] {
      var options = Replayer.Options()
      options.skipsCodecs = skipsCodecs
      let report = try replay(path, options)
      if case .identical = report.verdict {} else { Issue.record("\(report)") }
    }
    let take = try TakeFile.open(path)
    let heard = """
      SELECT count(*) FROM frame
      WHERE direction = 'in' AND codec = 'pcmu' AND outcome = 'decoded' AND energy > 0
      """
    #expect(try take.integer(heard) ?? 0 > 100)
    let keys = """
      SELECT count(*) FROM frame WHERE direction = 'in' AND codec = 'telephone-event'
      """
    #expect(try take.integer(keys) ?? 0 > 10)
    let levels = "SELECT count(*) FROM audio_level WHERE direction = 'in' AND dbov > -30"
    #expect(try take.integer(levels) ?? 0 > 10)
  }
}
