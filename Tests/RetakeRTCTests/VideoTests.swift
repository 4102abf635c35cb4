import Live
import Media
import RetakeRTC
import Synchronization
import Testing

extension SharedDevices {
  @Suite struct VideoTests {
    /// Records the sizes and frames that it is shown.
    private final class Screen: RTCVideoRenderer {
      let told = Told()
      private let last = Mutex<RTCVideoFrame?>(nil)

      var frame: RTCVideoFrame? { last.withLock { $0 } }

      func setSize(_ size: CGSize) { told.note("size \(Int(size.width))x\(Int(size.height))") }
      func renderFrame(_ frame: RTCVideoFrame?) {
        if let frame { last.withLock { $0 = frame } }
        told.note(frame == nil ? "nothing" : "frame")
      }
    }

    /// Rotates every frame by 90 degrees on its way to a source.
    private final class Turn: RTCVideoCapturerDelegate {
      private let source: RTCVideoSource

      init(before source: RTCVideoSource) { self.source = source }

      func capturer(_ capturer: RTCVideoCapturer, didCapture frame: RTCVideoFrame) {
        source.capturer(
          capturer,
          didCapture: RTCVideoFrame(
            buffer: frame.buffer, rotation: ._90, timeStampNs: frame.timeStampNs))
      }
    }

    /// A camera that draws a pattern.
    private static let camera = AVCaptureDevice(
      uniqueID: "pattern", localizedName: "a pattern", position: .front,
      capturer: PatternVideoCapturer(supportedFormats: [
        VideoFormat(width: 320, height: 240, framesPerSecond: 30),
        VideoFormat(width: 160, height: 120, framesPerSecond: 30),
      ]))

    @Test func aCameraIsCapturedFilteredSentAndShown() async throws {
      AVCaptureDevice.useDevices([Self.camera])
      defer { AVCaptureDevice.useDevices(nil) }
      let pair = try LoopbackPair()
      let source = pair.factory.videoSource()
      let track = pair.factory.videoTrack(with: source, trackId: "v")
      pair.caller.add(track, streamIds: ["s"])
      try await pair.connect()
      let (preview, screen) = (Screen(), Screen())
      track.add(preview)
      let received = try #require(pair.calleeHears.streams.first?.videoTracks.first)
      received.add(screen)

      let device = try #require(
        RTCCameraVideoCapturer.captureDevices().first { $0.position == .front })
      let format = try #require(
        RTCCameraVideoCapturer.supportedFormats(for: device).min {
          CMVideoFormatDescriptionGetDimensions($0.formatDescription).width
            < CMVideoFormatDescriptionGetDimensions($1.formatDescription).width
        })
      #expect(format.videoSupportedFrameRateRanges.map(\.maxFrameRate) == [30])
      let filter = Turn(before: source)
      let capturer = RTCCameraVideoCapturer(delegate: filter)
      let begun = Told()
      capturer.startCapture(with: device, format: format, fps: 30) { error in
        begun.note("\(error == nil)")
      }
      await begun.wait(for: "true")
      await screen.told.wait(for: "frame", count: 3)
      // Rotated frames are sent upright.
      #expect(preview.told.log.first == "size 120x160")
      #expect(screen.told.log.first == "size 120x160")
      #expect(screen.frame?.rotation == ._0 && screen.frame?.buffer.width == 120)
      #expect(screen.frame?.newI420().buffer.toI420().dataY.count == 120 * 160)

      track.isEnabled = false
      let shown = preview.told.log.count { $0 == "frame" }
      await preview.told.wait(for: "frame", count: shown + 2)
      #expect(preview.frame?.buffer.toI420().dataY.allSatisfy { $0 == 16 } == true)
      capturer.stopCapture()
      pair.caller.close()
      pair.callee.close()
      await screen.told.wait(for: "nothing")
      received.remove(screen)
    }

    @Test func pixelBuffersBecomeI420() {
      let white = CVPixelBuffer(
        width: 4, height: 2, pixelFormat: kCVPixelFormatType_32BGRA,
        bytes: Array(repeating: 255, count: 32))
      let frame = RTCVideoFrame(pixelBuffer: white, rotation: ._0, timeStampNs: 1_000_000)
      #expect(frame.width == 4 && frame.height == 2 && frame.timeStamp == 90)
      let converted = frame.newI420().buffer.toI420()
      #expect(converted.dataY.allSatisfy { $0 == 235 } && converted.dataY.count == 8)
      #expect(converted.dataU == [128, 128] && converted.dataV == [128, 128])
      // The frame keeps its rotation and timestamp.
      let factory = RTCPeerConnectionFactory()
      let source = factory.videoSource()
      let track = factory.videoTrack(with: source, trackId: "v")
      let screen = Screen()
      track.add(screen)
      source.capturer(
        RTCVideoCapturer(delegate: source),
        didCapture: RTCVideoFrame(pixelBuffer: white, rotation: ._90, timeStampNs: 2_000_000))
      #expect(screen.told.log == ["size 2x4", "frame"])
      #expect(screen.frame?.timeStampNs == 2_000_000)
      // A buffer whose bytes do not match its size is displayed black, and is not sent.
      let short = CVPixelBuffer(
        width: 4, height: 2, pixelFormat: kCVPixelFormatType_32BGRA, bytes: [1, 2])
      #expect(RTCCVPixelBuffer(pixelBuffer: short).toI420().dataY.allSatisfy { $0 == 16 })
    }

    @Test func aFileThatIsNotThereIsReported() async {
      let told = Told()
      let source = RTCPeerConnectionFactory().videoSource()
      let capturer = RTCFileVideoCapturer(delegate: source)
      capturer.startCapturing(fromFileNamed: "nothing.y4m") { _ in told.note("error") }
      await told.wait(for: "error")
    }
  }
}
