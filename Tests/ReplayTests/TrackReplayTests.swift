import Foundation
import Lab
import Media
import Peer
import Queries
import Tape
import Testing
import Wire

@testable import Replay

/// Records and replays calls with muted tracks, volumes and removed tracks.
struct TrackReplayTests {
  private static let tone = MediaSource.tone(hertz: 440, pauseSeconds: 0)
  private static let pattern = MediaSource.pattern(width: 64, height: 48, framesPerSecond: 10)

  /// Records a call of seven seconds in which sending and listening change once a second.
  private func record(_ path: String) throws {
    var configuration = PeerConfiguration()
    configuration.notices = PeerNotice.all
    let recording = try RecordedVirtualCall(
      path: path, seed: 95, links: [LinkSettings(), LinkSettings()], labels: ["one", "two"],
      configurations: [configuration, configuration])
    let call = recording.call
    call.addMedia(audio: Self.tone, videoFrames: Self.pattern, from: [0])
    #expect(call.negotiate() == nil)
    let calls: [(peer: Int, PeerCall)] = [
      (0, .setEnabled(transceiver: 1, isInbound: false, isEnabled: false)),
      (0, .setEnabled(transceiver: 1, isInbound: false, isEnabled: true)),
      (0, .setEnabled(transceiver: 2, isInbound: false, isEnabled: false)),
      (1, .setVolume(transceiver: 1, volume: 4.5)),
      (1, .setEnabled(transceiver: 1, isInbound: true, isEnabled: false)),
      (0, .removeTrack(transceiver: 1)),
    ]
    for (peer, request) in calls {
      recording.run(for: .seconds(1))
      #expect(call.call(peer, request).error == nil)
    }
    #expect(call.negotiate() == nil)
    recording.run(for: .seconds(1))
    _ = try recording.finish()
  }

  /// Speech into a disabled track is detected in the replay without codecs, too.
  @Test(arguments: [false, true])
  func speechIntoADisabledTrackReplaysIdentical(skipsCodecs: Bool) throws {
    let folder = FileManager.default.temporaryDirectory.path + "/tracks-" + UUID().uuidString
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let path = folder + "/call.take"
    var configuration = PeerConfiguration()
    configuration.notices = PeerNotice.all
    let recording = try RecordedVirtualCall(
      path: path, seed: 96, links: [LinkSettings(), LinkSettings()], labels: ["one", "two"],
      configurations: [configuration, configuration])
    let call = recording.call
    call.addMedia(audio: .application, videoFrames: nil, from: [0])
    #expect(call.negotiate() == nil)
    call.run(for: .milliseconds(300))
    #expect(
      call.call(0, .setEnabled(transceiver: 1, isInbound: false, isEnabled: false)).error == nil)
    let samples = (0..<960).map { Int16($0 / 48 % 2 == 0 ? 8_000 : -8_000) }
    for _ in 0..<50 {
      let block = AudioBlock(samples: samples, channels: 1)
      call.step(0, .captured(transceiver: 1, .audio(block)))
      call.run(for: .milliseconds(20))
    }
    _ = try recording.finish()
    let told = try Timeline(path: path, lanes: ["event"]).entries.map(\.text)
      .filter { $0.contains("mutedspeech") }
    #expect(
      told == [
        #"mutedspeech {"phase":"began","transceiver":1}"#,
        #"mutedspeech {"phase":"ended","transceiver":1}"#,
      ])
    var options = Replayer.Options()
    options.skipsCodecs = skipsCodecs
    let report = try replay(path, options)
    guard case .identical = report.verdict else {
      Issue.record("\(report)")
      return
    }
  }

  private func inTake<Value>(_ body: (String) throws -> Value) throws -> Value {
    let folder = FileManager.default.temporaryDirectory.path + "/tracks-" + UUID().uuidString
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    try record(folder + "/call.take")
    return try body(folder + "/call.take")
  }

  /// Replays with and without codecs; without them, levels come from recorded blocks, which already
  /// include the gain.
  @Test func mutedTracksReplayIdentical() throws {
    try inTake { path in
      for skipsCodecs in [false, true] {
        var options = Replayer.Options()
        options.skipsCodecs = skipsCodecs
        let report = try replay(path, options)
        guard case .identical = report.verdict else {
          Issue.record("\(report)")
          return
        }
        #expect(report.steps > 500)
      }
      try expectSilence(path)
      try expectTimeline(path)
    }
  }

  /// Expects the receiver's levels to show silence both for muted sending and for muted listening.
  private func expectSilence(_ path: String) throws {
    let connection = try TakeFile.open(path)
    let statement = try connection.prepare(
      """
      SELECT at_ns / 1000000000, min(energy), max(energy) FROM level
      WHERE peer = 2 AND track = 1 AND direction = 'in' AND at_ns % 1000000000 > 400000000
      GROUP BY 1 ORDER BY 1
      """)
    var seconds: [Int64: (least: Int64, most: Int64)] = [:]
    while try statement.step() {
      let (second, least, most) = statement.values(Int64.self, Int64.self, Int64.self)
      seconds[second] = (least, most)
    }
    let plain = try #require(seconds[0]?.least)
    #expect(plain > 1_000_000)
    #expect(try #require(seconds[1]).most < 1_000)
    #expect(try #require(seconds[2]).least > plain / 2)
    #expect(try #require(seconds[4]).least > plain * 15)
    #expect(try #require(seconds[5]).most == 0)
    // Packets were sent all the time, with the level in their headers.
    let packets = try connection.integer(
      "SELECT count(*) FROM frame WHERE peer = 1 AND track = 1 AND audio_level = 127")
    #expect((48...52).contains(try #require(packets)))
  }

  private func expectTimeline(_ path: String) throws {
    let entries = try Timeline(path: path, lanes: ["api", "event"]).entries
    let texts = entries.map(\.text).filter {
      $0.contains("abled") || $0.contains("Volume") || $0.contains("mute")
        || $0.contains("removeTrack")
    }
    #expect(
      texts == [
        #"unmute {"transceiver":1,"direction":"in","reason":"media"}"#,
        #"unmute {"transceiver":2,"direction":"in","reason":"media"}"#,
        #"setEnabled {"isEnabled":false,"isInbound":false,"transceiver":1}"#,
        #"disabled {"transceiver":1,"direction":"out"}"#,
        #"setEnabled {"isEnabled":true,"isInbound":false,"transceiver":1}"#,
        #"enabled {"transceiver":1,"direction":"out"}"#,
        #"setEnabled {"isEnabled":false,"isInbound":false,"transceiver":2}"#,
        #"disabled {"transceiver":2,"direction":"out"}"#,
        #"setVolume {"transceiver":1,"volume":4.5}"#,
        #"setEnabled {"isEnabled":false,"isInbound":true,"transceiver":1}"#,
        #"disabled {"transceiver":1,"direction":"in"}"#,
        "removeTrack",
        #"mute {"transceiver":1,"direction":"in","reason":"removed"}"#,
      ])
  }
}
