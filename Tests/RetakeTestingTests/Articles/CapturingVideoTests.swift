import Foundation
import Retake
import Testing

/// The code in the article "Capture video".
@Suite(.timeLimit(.minutes(10))) struct CapturingVideoTests {
  @Test func drawnFramesAreSentShownAndRecorded() async throws {
    let folder = FileManager.default.temporaryDirectory.path + "/article-" + UUID().uuidString
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let path = folder + "/call.take"
    try await record(path)
    let take = try Take.open(path)
    #expect(take.isComplete)
    #expect(try await take.replay().isIdentical)
  }

  private func record(_ path: String) async throws {
    var options = Session.Options()
    options.takePath = path
    options.bind = .addresses([IPAddress(ipv4: 0x7f00_0001)])
    let session = try Session(options)
    let caller = session.makePeer(label: "caller", role: "offers")
    let callee = session.makePeer(label: "callee", role: "answers")

    let format = VideoFormat(width: 320, height: 240, framesPerSecond: 15, pixelFormat: .bgra)
    let drawing = PushedVideoCapturer(supportedFormats: [format], isScreencast: true)
    let source = VideoCaptureSession(drawing)

    let video = try await caller.addTrack(.video, source: .application)
    source.send(on: video.id, of: caller)
    guard await source.start(format) else { return }

    let shown = DigestRenderer()
    let subscription = callee.addRenderer(shown)
    try await connect(caller, callee)

    try await caller.setContentHint(.motion, of: video.id)
    var parameters = try await caller.getParameters(of: video.id)
    parameters.degradationPreference = .balanced
    try await caller.setParameters(parameters, of: video.id)

    let pixels = [UInt8](repeating: 200, count: 320 * 240 * 4)
    let timer = SystemCaptureTimer()
    timer.start(everyNanoseconds: 50_000_000) { try? draw(pixels, at: $0, on: drawing) }
    while shown.shown.isEmpty { await Task.yield() }
    timer.stop()
    #expect(shown.sizes == [VideoRectangle(width: 240, height: 320)])
    withExtendedLifetime(subscription) {}
    source.stop()
    try await session.finish()
  }

  @Sendable private func draw(
    _ pixels: [UInt8], at nanoseconds: Int64, on drawing: PushedVideoCapturer
  ) throws {
    let buffer = try VideoFrameBuffer(
      format: .bgra, codedWidth: 320, codedHeight: 240, bytes: pixels)
    drawing.push(
      try VideoFrame(buffer: buffer, rotation: .quarter, timestampNanoseconds: nanoseconds))
  }

  private func connect(_ caller: PeerConnection, _ callee: PeerConnection) async throws {
    try await negotiate(caller, callee)
    try await caller.waitUntilConnected()
    try await callee.waitUntilConnected()
  }
}
