import Live
import Media
import Peer
import Replay
import Room
import RoomClient
import RoomServers
import Stats
import Tape
import Testing
import Wire

/// Layers are sent as a Sora server requests them, even if the application used other names.
@Suite(.timeLimit(.minutes(10))) struct SoraLayersTests {
  @Test(arguments: [nil, ["l", "m", "h"]])
  func aServersOfferDecidesOnTheLayers(own: [String]?) async throws {
    let channel = try await SoraChannel()
    let ear = Ear()
    let room = channel.room(delegate: ear)
    var options = LocalMediaOptions()
    options.videoLayers = own
    options.hasAudio = false
    let media = LocalMedia(
      video: VideoSource(.pattern(width: 160, height: 120, framesPerSecond: 10)), audio: nil,
      options: options)
    try await room.publish(media)
    try await room.connect(roomId: "channel")
    #expect(channel.connectMessage?["simulcast"]?.flag == true)
    var sent: [String: Int64] = [:]
    func look() async {
      for object in await room.getLocalStatsReport().statistics.values
      where object.type == "outbound-rtp" {
        guard case .text(let rid)? = object.values["rid"],
          case .integer(let frames)? = object.values["framesSent"]
        else { continue }
        sent[rid] = frames
      }
    }
    let clock = ContinuousClock()
    let end = clock.now + .seconds(180)
    while sent["r0"] ?? 0 < 5 || sent["r2"] ?? 0 < 5, clock.now < end {
      try await clock.sleep(for: .milliseconds(50))
      await look()
    }
    await room.disconnect()
    try await channel.end()
    #expect(sent["r0"] ?? 0 >= 5 && sent["r2"] ?? 0 >= 5 && sent["r1"] ?? 0 == 0, "\(sent)")

    let take = try TakeFile.open(channel.path)
    let widths = """
      SELECT group_concat(width, ' ') FROM (
        SELECT DISTINCT width FROM frame WHERE direction = 'out' AND kind = 'video' ORDER BY width)
      """
    let rows = try take.prepare(widths)
    let found = try rows.step() ? rows.text(0) : nil
    #expect(found == "40 160")
    let report = try Replayer(
      path: channel.path, codecs: { LibraryCodecs() }, peer: { PeerMachine(codecs: $0) }
    ).run()
    guard case .identical = report.verdict else {
      Issue.record("\(report)")
      return
    }
  }
}

extension SoraChannel {
  func room(delegate: Ear) -> Room {
    var configuration = configuration(.sendonly)
    configuration.simulcastEnabled = true
    return Room(.sora(configuration), session: clients, label: "client", delegate: delegate)
  }
}
