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

/// Frames of cameras and screens: their timestamps, changing sizes, and quality trade-offs.
struct CapturedFramesTests {
  private func recorded(
    _ links: [LinkSettings] = [LinkSettings(), LinkSettings()],
    during run: (VirtualCall) throws -> Void,
    judge: (VirtualCall, borrowing SQLiteConnection) throws -> Void
  ) throws {
    let path = FileManager.default.temporaryDirectory.path + "/\(UUID().uuidString).take"
    defer { try? FileManager.default.removeItem(atPath: path) }
    let recording = try RecordedVirtualCall(path: path, seed: 21, links: links, labels: ["a", "b"])
    let call = recording.call
    call.call(0, .addTrack(kind: .video, streamIDs: ["s"], source: .application))
    #expect(call.negotiate() == nil)
    call.run(for: .milliseconds(300))
    try run(call)
    call.run(for: .milliseconds(300))
    call.call(0, .getStats())
    _ = try recording.finish()
    let report = try replay(path, Replayer.Options())
    if case .identical = report.verdict {} else { Issue.record("\(report)") }
    try judge(call, try TakeFile.open(path))
  }

  private func captured(_ frame: VideoFrame) -> PeerInput {
    .captured(
      transceiver: 1, .frame(frame.videoFrame(), timestamp: frame.timestampNanoseconds))
  }

  /// Returns a numbered frame of a moving scene in NV12, as a camera delivers it.
  private func camera(_ number: Int, _ width: Int, _ height: Int, rotation: VideoRotation = .none)
    throws -> VideoFrame
  {
    let videoFrame = CameraScene(width: width, height: height).videoFrame(Int64(number))
    let (luma, chroma) = (width * height, videoFrame.samples.count - width * height)
    var bytes = Array(videoFrame.samples[..<luma])
    for index in 0..<chroma / 2 {
      bytes.append(videoFrame.samples[luma + index])
      bytes.append(videoFrame.samples[luma + chroma / 2 + index])
    }
    let buffer = try VideoFrameBuffer(
      format: .nv12, codedWidth: width, codedHeight: height, bytes: bytes)
    return try VideoFrame(
      buffer: buffer, rotation: rotation,
      timestampNanoseconds: 5_000_000_000_000 + Int64(number) * 50_000_000)
  }

  @Test func aCameraThatIsTurnedAndChangesItsSizeReplays() throws {
    try recorded { call in
      for number in 0..<12 {
        let isSmall = number >= 8
        let frame = try camera(
          number, isSmall ? 64 : 96, isSmall ? 48 : 64, rotation: number >= 4 ? .quarter : .none)
        call.step(0, captured(frame))
        // Frames arrive late by varying times, as from a busy machine.
        call.run(for: .milliseconds(number % 2 == 0 ? 40 : 60))
      }
    } judge: { call, take in
      let sent = call.frames(of: 0, kind: .video, isInbound: false)
      #expect(
        sent.map { [$0.width, $0.height] } == [[96, 64]] * 4 + [[64, 96]] * 4 + [[48, 64]] * 4)
      // The interval between the frames follows from their timestamps, not from their arrival
      // times.
      #expect(zip(sent.dropFirst(), sent).allSatisfy { $0.rtpTime &- $1.rtpTime == 4_500 })
      let shown = call.frames(of: 1, kind: .video, isInbound: true)
      #expect(shown.last.map { [$0.width, $0.height] } == [48, 64])
      let stamps = try take.integer("SELECT count(DISTINCT timestamp_ns) FROM capture") ?? 0
      #expect(stamps == 12)
      #expect(try take.integer("SELECT count(*) FROM content WHERE coding = 'jpeg-ls'") == 12)
    }
  }

  /// Returns the frames sent over a path that is too narrow for them.
  private func starved(_ preparing: (VirtualCall) throws -> Void) throws -> (
    rate: Double, widths: Set<Int>
  ) {
    var result = (rate: 0.0, widths: Set<Int>())
    try recorded { call in
      try preparing(call)
      let scene = CameraScene(width: 128, height: 96)
      let videoFrames = (0..<7).map { scene.videoFrame(Int64(9 * $0)) }
      for number in 0..<120 {
        let frame = try VideoFrame(
          videoFrames[number % 7], timestampNanoseconds: Int64(number) * 50_000_000)
        call.step(0, captured(frame))
        call.run(for: .milliseconds(50))
      }
    } judge: { call, _ in
      let sent = call.frames(of: 0, kind: .video, isInbound: false).suffix(20)
      let ticks = (sent.last?.rtpTime ?? 0) &- (sent.first?.rtpTime ?? 0)
      result = (Double(sent.count - 1) * 90_000 / Double(max(1, ticks)), Set(sent.map(\.width)))
    }
    return result
  }

  private func limit(_ call: VirtualCall, _ preference: DegradationPreference?) throws {
    guard case .parameters(var parameters) = call.call(0, .getParameters(transceiver: 1)) else {
      return
    }
    #expect(parameters.degradationPreference == nil)
    parameters.encodings[0].maxBitrate = 20_000
    parameters.degradationPreference = preference
    #expect(call.call(0, .setParameters(transceiver: 1, parameters)).error == nil)
  }

  @Test func aSenderWithoutAHintMakesNoTradeOff() throws {
    let (rate, widths) = try starved { try limit($0, nil) }
    #expect(rate > 19 && widths == [128])
  }

  @Test func aScreenKeepsItsSizeAndLosesVideoFrames() throws {
    let (rate, widths) = try starved { call in
      try limit(call, nil)
      let note = CaptureNote(
        event: .started, isScreencast: true, width: 128, height: 96, framesPerSecond: 20,
        pixelFormat: .bgra)
      #expect(call.call(0, .noteCapture(transceiver: 1, note)).error == nil)
    }
    #expect(rate < 14 && widths == [128], "\(rate) \(widths)")
  }

  @Test func aPreferenceForTheFrameRateMakesVideoFramesSmaller() throws {
    let (rate, widths) = try starved { call in
      try limit(call, .maintainFramerate)
      #expect(call.call(0, .setContentHint(transceiver: 1, .text)).error == nil)
    }
    #expect(rate > 19 && !widths.contains(128), "\(rate) \(widths)")
  }
}

private func * <Element>(list: [Element], count: Int) -> [Element] {
  (0..<count).flatMap { _ in list }
}
