import Lab
import Media
import Peer
import Tape
import Testing
import Wire

@testable import Replay

/// Records a call with three layers over a lossy path that becomes narrow, and replays it with and
/// without codecs.
struct SimulcastReplayTests {
  @Test(arguments: [true, false])
  func threeLayersUnderLossReplay(keepsMedia: Bool) throws {
    let folder = try MachineFolder()
    let path = folder.file("layers.take")
    var link = LinkSettings()
    link.lossPerMille = 40
    link.delay = .milliseconds(25)
    let recording = try RecordedVirtualCall(
      path: path, seed: 71, links: [link, link], labels: ["a", "b"], keepsMedia: keepsMedia)
    let call = recording.call
    call.addLayers(
      [
        RTPEncoding(rid: "q", scalabilityMode: "L1T3"), RTPEncoding(rid: "h"),
        RTPEncoding(rid: "f"),
      ],
      .pattern(width: 320, height: 180, framesPerSecond: 10))
    #expect(call.negotiate(edit: VirtualCall.accepting("q;h;f")) == nil)
    recording.run(for: .seconds(2))
    call.call(0, .limitBitrate(minimum: nil, current: nil, maximum: 60_000))
    recording.run(for: .seconds(2))
    call.call(0, .limitBitrate(minimum: nil, current: 1_000_000, maximum: 2_000_000))
    guard case .parameters(var parameters) = call.call(0, .getParameters(transceiver: 1)) else {
      Issue.record("no parameters")
      return
    }
    parameters.encodings[1].active = false
    #expect(call.call(0, .setParameters(transceiver: 1, parameters)).error == nil)
    recording.run(for: .seconds(2))
    _ = try recording.finish()

    let connection = try TakeFile.open(path)
    let widths = try connection.integer(
      """
      SELECT count(DISTINCT width) FROM frame WHERE direction = 'out' AND kind = 'video'
      """)
    #expect(widths == 3)
    let rids = try connection.integer(
      """
      SELECT count(DISTINCT members ->> '$.rid') FROM stat
      WHERE type = 'outbound-rtp' AND members ->> '$.framesSent' > 5
      """)
    #expect(rids == 3)
    for skipsCodecs in [false, true] {
      var options = Replayer.Options()
      options.skipsCodecs = skipsCodecs
      let report = try replay(path, options)
      guard case .identical = report.verdict else {
        Issue.record("\(report)")
        continue
      }
    }
  }
}
