import AudioSession
import Foundation
import Media
import MediaFiles
import Peer
import Replay
import Stats
import Synchronization
import Tape
import Testing
import Wire

@testable import Live

/// Tests the path of video from a capturer through a call to a renderer.
@Suite(.timeLimit(.minutes(10)), .serialized) struct VideoCaptureSessionTests {
  private let format = VideoFormat(
    width: 96, height: 64, framesPerSecond: 30, pixelFormat: .nv12)

  /// A capturer whose callbacks the test makes itself, even after the session has stopped it.
  private final class Stubborn: VideoCapturer {
    let consumer = Mutex<(any VideoConsumer)?>(nil)
    var supportedFormats: [VideoFormat] {
      [VideoFormat(width: 16, height: 8, framesPerSecond: 30, pixelFormat: .bgra)]
    }
    var isScreencast: Bool { false }
    func startCapture(_ format: VideoFormat, consumer: any VideoConsumer) {
      self.consumer.withLock { $0 = consumer }
    }
    func stopCapture() {}
    var present: (any VideoConsumer)? { consumer.withLock { $0 } }
  }

  @Test func framesBeforeTheStartAndAfterTheEndAreIgnored() async throws {
    let capturer = Stubborn()
    let source = VideoCaptureSession(capturer)
    let renderer = DigestRenderer()
    let subscription = source.addRenderer(renderer)
    async let isStarted = source.start()
    while capturer.present == nil { await Task.yield() }
    #expect(source.state == .starting)
    capturer.present?.consumeCapturedFrame(try shade(1))
    capturer.present?.captureDidStart(true)
    let answer = await isStarted
    #expect(answer && source.state == .started)
    let again = await source.start()
    #expect(again)
    capturer.present?.consumeCapturedFrame(try shade(2))
    capturer.present?.consumeCapturedFrame(try shade(3, 32, 16))
    source.stop()
    capturer.present?.consumeCapturedFrame(try shade(4))
    capturer.present?.captureDidStart(true)
    #expect(source.state == .stopped)
    #expect(source.counts.frames == 2 && source.counts.ignored == 2)
    #expect(renderer.shown.count == 2 && renderer.isBlank)
    #expect(renderer.sizes == [.init(width: 16, height: 8), .init(width: 32, height: 16)])
    withExtendedLifetime(subscription) {}
  }

  @Test func aFailureToStartIsReportedToWaiters() async throws {
    let capturer = Stubborn()
    let source = VideoCaptureSession(capturer)
    async let isStarted = source.start()
    while capturer.present == nil { await Task.yield() }
    capturer.present?.captureDidStart(false)
    let answer = await isStarted
    #expect(!answer && source.state == .failed)
    let other = await VideoCaptureSession(PushedVideoCapturer(supportedFormats: [])).start()
    #expect(!other)
  }

  /// The capture program ends by itself, as ffmpeg does when its camera is removed.
  @Test func aCapturerThatEndsByItselfEndsItsSessionAndTheTakeRecordsIt() async throws {
    let folder = try CapturerTests.standIn(then: "echo gone >&2; exit 1")
    defer { try? FileManager.default.removeItem(atPath: folder) }
    try await LoopbackCall.inFolder { path in
      let call = try LoopbackCall(take: path)
      let video = try await call.caller.addTrack(.video, source: .application)
      let screen = ProcessVideoCapturer.wholeScreen(
        display: ":7", fittedInto: VideoFormat(width: 320, height: 240, framesPerSecond: 15),
        program: MediaProgram(searchPath: folder))
      let source = VideoCaptureSession(screen, startsWhenSent: false)
      let renderer = DigestRenderer()
      let subscription = source.addRenderer(renderer)
      source.send(on: video.id, of: call.caller)
      let isStarted = await source.start()
      #expect(isStarted)
      while source.state == .started { await Task.yield() }
      // The take gets its report before the renderer is cleared.
      while !renderer.isBlank { await Task.yield() }
      #expect(source.state == .stopped && renderer.shown.count == 1)
      #expect(screen.failure?.reason.hasSuffix("gone") == true)
      try await call.session.finish()
      let take = try TakeFile.openForQueries(path)
      #expect(
        try take.integer("SELECT count(*) FROM call_request WHERE arguments LIKE '%stopped%'") == 1)
      withExtendedLifetime(subscription) {}
    }
  }

  @Test func aLateReportOfAnEndDoesNotEndALaterCapture() async throws {
    let capturer = Stubborn()
    let source = VideoCaptureSession(capturer)
    async let isStarted = source.start()
    while capturer.present == nil { await Task.yield() }
    let first = try #require(capturer.present)
    first.captureDidStart(true)
    _ = await isStarted
    source.stop()
    capturer.consumer.withLock { $0 = nil }
    async let startsAgain = source.start()
    while capturer.present == nil { await Task.yield() }
    capturer.present?.captureDidStart(true)
    _ = await startsAgain
    first.captureDidEnd()
    #expect(source.state == .started)
    capturer.present?.captureDidEnd()
    #expect(source.state == .stopped)
  }

  /// A camera must not start after its session has been stopped, whatever the user answers.
  @Test(arguments: [true, false])
  func aSessionStoppedWhileTheUserIsAskedDoesNotStart(isGranted: Bool) async throws {
    let capturer = Stubborn()
    let (asked, ask) = AsyncStream.makeStream(of: Void.self)
    let (answered, answer) = AsyncStream.makeStream(of: Void.self)
    let permissions = CameraPermissions {
      ask.finish()
      for await _ in answered {}
      return isGranted
    }
    let source = VideoCaptureSession(capturer, permissions: permissions)
    async let isStarted = source.start()
    for await _ in asked {}
    source.stop()
    answer.finish()
    let hasStarted = await isStarted
    #expect(!hasStarted && source.state == .stopped && capturer.present == nil)
  }

  /// KA2: permission is requested once, and the take records the refusal.
  @Test func aDeniedCameraDoesNotStartAndTheTakeRecordsIt() async throws {
    try await LoopbackCall.inFolder { path in
      let call = try LoopbackCall(take: path)
      let video = try await call.caller.addTrack(.video, source: .application)
      let asked = Mutex(0)
      let permissions = CameraPermissions {
        asked.withLock { $0 += 1 }
        return false
      }
      let source = VideoCaptureSession(
        PushedVideoCapturer(supportedFormats: [format]), permissions: permissions,
        startsWhenSent: false)
      source.send(on: video.id, of: call.caller)
      #expect(permissions.status == .undetermined)
      for _ in 0..<2 {
        let isStarted = await source.start()
        #expect(!isStarted && source.state == .failed)
      }
      #expect(permissions.status == .denied && asked.withLock { $0 } == 1)
      try await call.session.finish()
      let take = try TakeFile.openForQueries(path)
      #expect(
        try take.integer("SELECT count(*) FROM call_request WHERE arguments LIKE '%denied%'") == 2)
    }
  }

  /// KA8, KA10: the default capture of client SDKs, rotated with the device.
  @Test func theOptionsOfLocalMediaMakeACapturerThatFollowsTheDevice() async throws {
    var options = LocalMediaOptions()
    options.source = .bypass
    options.rotationType = .deviceOrientation
    let orientation = DeviceOrientation()
    let capturer = try #require(
      try options.makeVideoCapturer(orientation: orientation) as? FilteredVideoCapturer)
    let source = VideoCaptureSession(capturer)
    let renderer = DigestRenderer()
    let subscription = source.addRenderer(renderer)
    let pushed = try #require(capturer.capturer as? PushedVideoCapturer)
    #expect(capturer.supportedFormats == [options.videoFormat])
    let isStarted = await source.start()
    #expect(isStarted)
    pushed.push(try shade(1))
    orientation.device = .quarter
    pushed.push(try shade(2))
    orientation.application = .half
    pushed.push(try shade(3))
    #expect(renderer.sizes == [.init(width: 16, height: 8), .init(width: 8, height: 16)])
    #expect(renderer.shown.count == 3)
    source.stop()
    withExtendedLifetime(subscription) {}
    // Only the application's orientation rotates the frames.
    options.rotationType = .appOrientation
    (orientation.device, orientation.application) = (.none, .quarter)
    let other = try #require(
      try options.makeVideoCapturer(orientation: orientation) as? FilteredVideoCapturer)
    let (turned, screen) = (VideoCaptureSession(other), DigestRenderer())
    let shown = turned.addRenderer(screen)
    #expect(await turned.start())
    (other.capturer as? PushedVideoCapturer)?.push(try shade(4))
    #expect(screen.sizes == [.init(width: 8, height: 16)])
    turned.stop()
    withExtendedLifetime(shown) {}
    options.source = .file
    options.fileName = "nothing.y4m"
    #expect(throws: MediaFileError.self) { try options.makeVideoCapturer() }
    // Without a rotation type, the capturer is not wrapped in one that rotates.
    (options.source, options.rotationType) = (.bypass, .notAvailable)
    #expect(try options.makeVideoCapturer() is PushedVideoCapturer)
  }

  @Test func aPushedCameraIsSentShownRecordedAndReplayed() async throws {
    try await LoopbackCall.inFolder { path in
      let call = try LoopbackCall(take: path)
      let video = try await call.caller.addTrack(.video, source: .application)
      try await call.connect()
      let capturer = PushedVideoCapturer(supportedFormats: [format])
      let source = VideoCaptureSession(capturer)
      source.send(on: video.id, of: call.caller)
      let isStarted = await source.start(format)
      #expect(isStarted)
      let (sizes, continuation) = AsyncStream<[Int]>.makeStream()
      let remote = call.callee.addRenderer(SizeRenderer(continuation))
      let scene = CameraScene(width: 96, height: 64)
      var shown = sizes.makeAsyncIterator()
      let rotation = Mutex(VideoRotation.none)
      let timer = SystemCaptureTimer()
      timer.start(everyNanoseconds: 20_000_000) { now in
        let frame = try? Self.camera(
          scene.videoFrame(now / 20_000_000), rotation.withLock { $0 }, now)
        if let frame { capturer.push(frame) }
      }
      // Frames are pushed until the remote side shows one.
      let first = await shown.next()
      #expect(first == [96, 64])
      rotation.withLock { $0 = .quarter }
      let second = await shown.next()
      #expect(second == [64, 96])
      timer.stop()
      source.stop()
      withExtendedLifetime(remote) {}
      _ = try await call.session.finish()
      let replayer = try Replayer(
        path: path, codecs: { LibraryCodecs() }, peer: { PeerMachine(codecs: $0) })
      if case .identical = try replayer.run().verdict {} else { Issue.record("not identical") }
      let take = try TakeFile.openForQueries(path)
      let notes = "SELECT count(*) FROM call WHERE name = 'noteCapture'"
      #expect(try take.integer(notes) == 2)
    }
  }

  /// Converts a video frame to NV12, as a camera delivers it.
  private static func camera(_ videoFrame: I420Buffer, _ rotation: VideoRotation, _ now: Int64)
    throws
    -> VideoFrame
  {
    let luma = videoFrame.width * videoFrame.height
    let chroma = (videoFrame.samples.count - luma) / 2
    var bytes = Array(videoFrame.samples[..<luma])
    for index in luma..<luma + chroma {
      bytes += [videoFrame.samples[index], videoFrame.samples[index + chroma]]
    }
    return try VideoFrame(
      buffer: try VideoFrameBuffer(
        format: .nv12, codedWidth: videoFrame.width, codedHeight: videoFrame.height, bytes: bytes),
      rotation: rotation, timestampNanoseconds: now)
  }

  private final class SizeRenderer: VideoRenderer {
    let continuation: AsyncStream<[Int]>.Continuation
    init(_ continuation: AsyncStream<[Int]>.Continuation) { self.continuation = continuation }
    func setSize(width: Int, height: Int) { continuation.yield([width, height]) }
    func renderFrame(_ frame: VideoFrame?) {}
  }

  // MARK: Renderers

  @Test func likenessIsMeasured() throws {
    let videoFrame = TestPattern(width: 64, height: 48).videoFrame(1)
    let other = TestPattern(width: 64, height: 48).videoFrame(2)
    let renderer = PSNRRenderer { number, _ in
      number == 3 ? nil : try? VideoFrame(videoFrame, timestampNanoseconds: 0)
    }
    for shown in [videoFrame, other, TestPattern(width: 32, height: 32).videoFrame(1), videoFrame] {
      renderer.renderFrame(try VideoFrame(shown, timestampNanoseconds: 0))
    }
    renderer.renderFrame(nil)
    #expect(renderer.decibels.count == 2 && renderer.decibels.first == 128)
    var sum = 0
    for place in 0..<3_072 {
      let difference = Int(videoFrame.samples[place]) - Int(other.samples[place])
      sum += difference * difference
    }
    let mean = Double(sum) / 3_072
    let wanted = 10 * log10(255.0 * 255.0 / mean)
    #expect(abs((renderer.decibels.last ?? 0) - wanted) < 0.001)
  }

  @Test func aMovieOfWildTimestampsStaysShort() async throws {
    try await LoopbackCall.inFolder { path in
      let renderer = try DumpRenderer(movie: path + ".y4m", framesPerSecond: 1)
      for time in [0, .max, .min, 5, 2_000_000_005] as [Int64] {
        renderer.renderFrame(try shade(1, at: time))
      }
      #expect(try renderer.finish() <= 24)
    }
  }

  @Test func imagesAreWrittenOneByOne() async throws {
    try await LoopbackCall.inFolder { path in
      let renderer = DumpRenderer(images: path + ".png")
      renderer.renderFrame(try shade(255))
      renderer.renderFrame(try shade(0))
      #expect(try renderer.finish() == 2)
      for number in 1...2 {
        let image = try Data(contentsOf: URL(fileURLWithPath: path + "-\(number).png"))
        #expect(Array(image.prefix(4)) == [0x89, 0x50, 0x4e, 0x47])
        #expect(Array(image[16..<24]) == [0, 0, 0, 16, 0, 0, 0, 8])
      }
    }
  }
}
