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

/// Tests encoded video frames from the application, which are recorded as inputs and sent
/// unchanged.
struct H264ReplayTests {
  /// Parameter sets for 64x44 pixels, and a slice too large for one packet.
  private static let front: [UInt8] = [
    0, 0, 0, 1, 0x67, 0x42, 0xc0, 0x1e, 0xda, 0x11, 0xfe, 0xd0, 0, 0, 0, 1, 0x68, 0xce, 0x3c, 0x80,
  ]

  private func slice(isKey: Bool, number: Int) -> [UInt8] {
    [0, 0, 0, 1, isKey ? 0x65 : 0x41, isKey ? 0xb0 : 0xe0]
      + (0..<(isKey ? 4000 : 300)).map { UInt8(truncatingIfNeeded: 1 + ($0 * 7 + number) % 250) }
  }

  /// Sends ten encoded video frames per second; one of each ten is a key frame.
  private func send(_ codec: String, over call: VirtualCall, for seconds: Int) {
    call.call(0, .addTrack(kind: .video, streamIDs: ["s"], source: .application))
    let codecs = RTPCodec.capabilities(.video).filter { $0.mimeType == "video/\(codec)" }
    #expect(call.call(0, .setCodecPreferences(transceiver: 1, codecs)).error == nil)
    #expect(call.negotiate() == nil)
    for number in 0..<seconds * 10 {
      call.run(for: .milliseconds(100))
      let isKey = number % 10 == 3
      let stream = (isKey ? H264ReplayTests.front : []) + slice(isKey: isKey, number: number)
      call.step(0, .captured(transceiver: 1, .encoded(.h264, stream)))
    }
    call.run(for: .milliseconds(200))
  }

  private func recorded(
    _ codec: String, judge: (VirtualCall, borrowing SQLiteConnection) throws -> Void
  ) throws {
    let path = FileManager.default.temporaryDirectory.path + "/\(UUID().uuidString).take"
    defer { try? FileManager.default.removeItem(atPath: path) }
    let recording = try RecordedVirtualCall(
      path: path, seed: 12, links: [LinkSettings(), LinkSettings()], labels: ["a", "b"])
    send(codec, over: recording.call, for: 3)
    recording.call.call(0, .getStats())
    _ = try recording.finish()
    let report = try replay(path, Replayer.Options())
    if case .identical = report.verdict {} else { Issue.record("\(report)") }
    try judge(recording.call, try TakeFile.open(path))
  }

  @Test func encodedVideoFramesAreSentUnchangedAndReplay() throws {
    try recorded("H264") { call, take in
      // Nothing is sent before the first key frame.
      let sent = call.frames(of: 0, kind: .video, isInbound: false)
      #expect(sent.count == 27 && sent[0].isKey && sent[0].width == 64 && sent[0].height == 44)
      #expect(sent.allSatisfy { $0.outcome == "passed on" && $0.ssrc == sent[0].ssrc })
      let came = call.frames(of: 1, kind: .video, isInbound: true)
      #expect(came.map(\.bytes) == sent.map(\.bytes))
      let captured = try take.integer("SELECT count(*) FROM capture WHERE kind = 'h264'")
      #expect(captured == 30)
      let told = try take.integer(
        "SELECT count(*) FROM stat WHERE type = 'media-source' AND members ->> 'width' = 64"
          + " AND members ->> 'frames' = 30")
      #expect(told == 1)
    }
  }

  /// Video of 1.2 Mbit/s, which cannot be re-encoded, over a path of 300 kbit/s or to a peer with
  /// such a limit.
  @Test(arguments: [true, false])
  func excessVideoIsThinnedAndTheCallReplays(isPathNarrow: Bool) throws {
    let path = FileManager.default.temporaryDirectory.path + "/\(UUID().uuidString).take"
    defer { try? FileManager.default.removeItem(atPath: path) }
    var narrow = LinkSettings()
    if isPathNarrow { narrow.bitsPerSecond = 300_000 }
    let recording = try RecordedVirtualCall(
      path: path, seed: 13, links: [narrow, LinkSettings()], labels: ["a", "b"])
    let call = recording.call
    call.call(0, .addTrack(kind: .video, streamIDs: ["s"], source: .application))
    let codecs = RTPCodec.capabilities(.video).filter { $0.mimeType == "video/H264" }
    #expect(call.call(0, .setCodecPreferences(transceiver: 1, codecs)).error == nil)
    let limit = isPathNarrow ? "" : "b=TIAS:300000\r\n"
    #expect(call.negotiate(edit: { $0.replacing(/c=[^\r]*\r\n/) { $0.output + limit } }) == nil)
    for number in 0..<500 {
      call.run(for: .milliseconds(40))
      let isKey = number % 25 == 0
      let bytes = (0..<6000).map { UInt8(truncatingIfNeeded: 1 + ($0 * 7 + number) % 250) }
      let stream = (isKey ? H264ReplayTests.front : []) + slice(isKey: isKey, number: number)
      call.step(0, .captured(transceiver: 1, .encoded(.h264, Array(stream.prefix(26) + bytes))))
      if number % 25 == 24 { call.call(0, .getStats()) }
    }
    call.call(0, .getStats())
    let lost = call.network.lost
    _ = try recording.finish()
    let report = try replay(path, Replayer.Options())
    if case .identical = report.verdict {} else { Issue.record("\(report)") }
    let sent = call.frames(of: 0, kind: .video, isInbound: false)
    // Only part of the video is sent, because after the first seconds the sender no longer tries
    // the full rate.
    #expect(sent.count > 60 && sent.count < 250, "\(sent.count)")
    #expect(sent.filter(\.isKey).count > 4)
    #expect(isPathNarrow ? lost < 1_000 : lost == 0, "\(lost)")
    let take = try TakeFile.open(path)
    let limitations = try take.integer(
      "SELECT count(*) FROM stat WHERE type = 'outbound-rtp'"
        + " AND members ->> 'qualityLimitationReason' = 'bandwidth'")
    #expect(limitations ?? 0 > 5, "\(limitations ?? -1)")
    // All frames count except those offered before the connection existed.
    let came = try take.integer(
      "SELECT max(members ->> 'frames') FROM stat WHERE type = 'media-source'")
    #expect(came ?? 0 > 490)
    let told = try take.integer(
      "SELECT max(members ->> 'framesSent') FROM stat WHERE type = 'outbound-rtp'")
    #expect(told == Int64(sent.count))
  }

  @Test func whereAnotherCodecWasAgreedOnThisIsReportedAndNothingIsSent() throws {
    try recorded("VP8") { call, take in
      #expect(call.frames(of: 0, kind: .video, isInbound: false).isEmpty)
      let told = try take.integer(
        "SELECT count(*) FROM event WHERE type = 'refused' AND detail LIKE '%H.264%agreed on%'"
      )
      #expect(told ?? 0 > 0)
    }
  }
}
