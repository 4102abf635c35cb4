import Lab
import Media
import Peer
import Tape
import Wire

/// A recorded virtual call with audio and video in both directions, whose network can be made
/// faulty.
final class FaultyCall {
  let path: String
  let recorded: RecordedVirtualCall
  var call: VirtualCall { recorded.call }

  /// Connects two peers; the test provides audio for sources of `application`.
  init(
    _ folder: TakeFolder, seed: UInt64,
    audio: MediaSource = .tone(hertz: 440, pauseSeconds: 0), delay: Interval = .milliseconds(10),
    hasVideo: Bool = true, notices: [PeerNotice]? = nil
  ) throws {
    path = folder.file("call.take")
    var link = LinkSettings()
    link.delay = delay
    var configuration = PeerConfiguration()
    configuration.notices = notices
    recorded = try RecordedVirtualCall(
      path: path, seed: seed, links: [link, link], labels: ["caller", "callee"],
      configurations: [configuration, configuration])
    call.addMedia(
      audio: audio,
      videoFrames: hasVideo ? .pattern(width: 96, height: 64, framesPerSecond: 15) : nil)
    call.negotiate()
  }

  /// Advances the time while some peers' packets are lost.
  func run(_ milliseconds: Int64, losing peers: [Int] = []) {
    for peer in peers { call.network.links[peer].lossPerMille = 1000 }
    recorded.run(for: .milliseconds(milliseconds))
    for peer in peers { call.network.links[peer].lossPerMille = 0 }
  }

  /// Captures audio at both peers for a time: loud, or a room's background noise.
  func talk(_ milliseconds: Int64, speaker: Int?) {
    for _ in 0..<(milliseconds / 20) {
      for peer in 0..<2 {
        let amplitude: Int16 = peer == speaker ? 8000 : 12
        let samples = (0..<960).map { $0 / 48 % 2 == 0 ? amplitude : -amplitude }
        call.step(
          peer, .captured(transceiver: 1, .audio(AudioBlock(samples: samples, channels: 1))))
      }
      call.run(for: .milliseconds(20))
    }
  }

  func finish() throws { _ = try recorded.finish() }
}
