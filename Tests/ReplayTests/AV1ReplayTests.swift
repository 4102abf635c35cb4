import Foundation
import JSEP
import Lab
import Media
import Peer
import RTP
import Tape
import Testing
import Wire

@testable import Replay

/// AV1 is passed through: encoded video frames are sent and received, and all of it replays.
struct AV1ReplayTests {
  private static let codecs = ["opus", "VP8", "AV1"]
  private static let delimiter: [UInt8] = [0x12, 0]
  /// A 640x360 sequence header, as a unit with its size.
  private static let sequence: [UInt8] = [
    0x0a, 8, 0, 0, 0, 0x2c, 0xc4, 0xff, 0x67, 0,
  ]

  private func videoFrame(_ number: Int) -> [UInt8] {
    let isKey = number % 10 == 3
    let length = isKey ? 4000 : 300
    return Self.delimiter + (isKey ? Self.sequence : [])
      + [0x32, UInt8(length & 0x7f | 0x80), UInt8(length >> 7), isKey ? 0x10 : 0x30]
      + (1..<length).map { UInt8(truncatingIfNeeded: $0 * 7 + number) }
  }

  @Test func videoFramesAreCarriedThroughAndReplay() throws {
    let path = FileManager.default.temporaryDirectory.path + "/\(UUID().uuidString).take"
    defer { try? FileManager.default.removeItem(atPath: path) }
    var configuration = PeerConfiguration()
    configuration.codecs = Self.codecs
    let recording = try RecordedVirtualCall(
      path: path, seed: 14, links: [LinkSettings(), LinkSettings()], labels: ["a", "b"],
      configurations: [configuration, configuration])
    let call = recording.call
    call.call(0, .addTrack(kind: .video, streamIDs: ["s"], source: .application))
    call.call(1, .addTrack(kind: .video, streamIDs: ["s"], source: .echo))
    let av1 = RTPCodec.capabilities(.video, offering: Self.codecs).filter {
      $0.mimeType == "video/AV1"
    }
    #expect(call.call(0, .setCodecPreferences(transceiver: 1, av1)).error == nil)
    #expect(call.negotiate() == nil)
    for number in 0..<30 {
      call.run(for: .milliseconds(100))
      let av1 = CodecName(rawValue: "av1")
      call.step(0, .captured(transceiver: 1, .encoded(av1, videoFrame(number))))
    }
    call.run(for: .milliseconds(400))
    call.call(1, .getStats())
    _ = try recording.finish()
    let report = try replay(path, Replayer.Options())
    if case .identical = report.verdict {} else { Issue.record("\(report)") }

    let sent = call.frames(of: 0, kind: .video, isInbound: false)
    #expect(sent.count == 27 && sent[0].isKey && sent[0].width == 640 && sent[0].height == 360)
    #expect(sent.map(\.bytes) == (3..<30).map(videoFrame))
    let came = call.frames(of: 1, kind: .video, isInbound: true)
    #expect(came.map(\.bytes) == sent.map(\.bytes) && came.map(\.isKey) == sent.map(\.isKey))
    #expect(came.allSatisfy { $0.outcome == "not decoded" && $0.width == 640 && $0.height == 360 })
    let back = call.frames(of: 0, kind: .video, isInbound: true)
    #expect(
      back.map(\.bytes) == came.map(\.bytes) && back.allSatisfy { $0.codec.rawValue == "av1" })
    let take = try TakeFile.open(path)
    #expect(try take.integer("SELECT count(*) FROM capture WHERE kind = 'av1'") == 30)
  }

  /// If packets are lost, incomplete frames are not delivered, and the call continues with a key
  /// frame.
  @Test func lostFramesAreRequestedAgainAndReplay() throws {
    let path = FileManager.default.temporaryDirectory.path + "/\(UUID().uuidString).take"
    defer { try? FileManager.default.removeItem(atPath: path) }
    var configuration = PeerConfiguration()
    configuration.codecs = Self.codecs
    var lossy = LinkSettings()
    lossy.lossPerMille = 50
    let recording = try RecordedVirtualCall(
      path: path, seed: 15, links: [lossy, LinkSettings()], labels: ["a", "b"],
      configurations: [configuration, configuration])
    let call = recording.call
    call.call(0, .addTrack(kind: .video, streamIDs: ["s"], source: .application))
    let codecs = RTPCodec.capabilities(.video, offering: Self.codecs).filter {
      $0.mimeType != "video/VP8"
    }
    #expect(call.call(0, .setCodecPreferences(transceiver: 1, codecs)).error == nil)
    #expect(call.negotiate() == nil)
    for number in 0..<100 {
      call.run(for: .milliseconds(40))
      let av1 = CodecName(rawValue: "av1")
      call.step(0, .captured(transceiver: 1, .encoded(av1, videoFrame(number))))
    }
    call.run(for: .seconds(1))
    _ = try recording.finish()
    let report = try replay(path, Replayer.Options())
    if case .identical = report.verdict {} else { Issue.record("\(report)") }
    let sent = Set(call.frames(of: 0, kind: .video, isInbound: false).map(\.bytes))
    let came = call.frames(of: 1, kind: .video, isInbound: true).map(\.bytes)
    #expect(call.network.lost > 0 && came.count > 80 && sent.isSuperset(of: came))
  }
}
