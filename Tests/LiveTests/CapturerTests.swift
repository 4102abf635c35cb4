import Foundation
import Media
import MediaFiles
import Peer
import Synchronization
import Tape
import Testing
import Wire

@testable import Live

/// Tests video capturers without the system clock.
struct CapturerTests {
  private let format = VideoFormat(
    width: 16, height: 8, framesPerSecond: 15, pixelFormat: .bgra)

  @Test func pushedFramesAreDeliveredBetweenStartAndStop() throws {
    let capturer = PushedVideoCapturer(supportedFormats: [format])
    let consumer = KeepingConsumer()
    #expect(!capturer.push(try shade(1)))
    capturer.startCapture(format, consumer: consumer)
    #expect(consumer.starts == [true])
    let frame = try shade(2, at: 77)
    #expect(capturer.push(frame))
    capturer.stopCapture()
    #expect(!capturer.push(try shade(3)))
    #expect(consumer.frames == [frame])
    // The next run has another consumer.
    let other = KeepingConsumer()
    capturer.startCapture(format, consumer: other)
    capturer.push(frame)
    #expect(consumer.frames.count == 1 && other.frames.count == 1)
  }

  @Test func anUnknownFormatDoesNotStart() {
    let wish = VideoFormat(width: 17, height: 8, framesPerSecond: 15)
    let timer = ManualTimer()
    let capturers: [any VideoCapturer] = [
      PushedVideoCapturer(supportedFormats: [format]), PatternVideoCapturer(timer: timer),
      ScreenVideoCapturer(width: 16, height: 8, timer: timer) { try? shade(1) },
      ProcessVideoCapturer.screen(display: ":0", width: 64, height: 48),
    ]
    for capturer in capturers {
      let consumer = KeepingConsumer()
      capturer.startCapture(wish, consumer: consumer)
      #expect(consumer.starts == [false] && consumer.frames.isEmpty)
    }
    #expect(!timer.isRunning)
  }

  @Test func theNearestFormatIsChosen() {
    let capturer = PatternVideoCapturer(timer: ManualTimer())
    func chosen(_ width: Int, _ height: Int) -> Int? {
      capturer.supportedFormat(
        nearest: VideoFormat(width: width, height: height, framesPerSecond: 15))?.width
    }
    #expect(chosen(640, 480) == 640 && chosen(1_900, 1_000) == 1_280 && chosen(1, 1) == 320)
    #expect(chosen(.max, .max) == 1_280 && chosen(.min, .max) == 320)
    #expect(PushedVideoCapturer(supportedFormats: []).supportedFormat(nearest: format) == nil)
    #expect(LocalMediaOptions().videoFormat.width == 640)
  }

  @Test func thePatternMovesAtItsPace() throws {
    let timer = ManualTimer()
    let capturer = PatternVideoCapturer(timer: timer)
    let consumer = KeepingConsumer()
    capturer.startCapture(try #require(capturer.supportedFormats.last), consumer: consumer)
    #expect(timer.interval == 33_333_333)
    for time in 1...3 { timer.fire(Int64(time) * 33) }
    #expect(consumer.frames.map(\.timestampNanoseconds) == [33_000_000, 66_000_000, 99_000_000])
    #expect(consumer.frames[0].buffer != consumer.frames[1].buffer)
    #expect(consumer.frames[0].codedWidth == 320)
    capturer.stopCapture()
    #expect(!timer.isRunning)
  }

  // MARK: Screens

  private final class Screen: Sendable {
    let content = Mutex<VideoFrame?>(nil)
    func show(_ frame: VideoFrame?) { content.withLock { $0 = frame } }
  }

  private func screen(_ options: ScreenVideoCapturer.Options, _ timer: ManualTimer)
    -> (Screen, ScreenVideoCapturer)
  {
    let screen = Screen()
    return (
      screen,
      ScreenVideoCapturer(width: 16, height: 8, options: options, timer: timer) {
        screen.content.withLock { $0 }
      }
    )
  }

  @Test func aScreenWithNothingToSeeDoesNotStart() {
    let timer = ManualTimer()
    let (_, capturer) = screen(.init(), timer)
    let consumer = KeepingConsumer()
    capturer.startCapture(capturer.supportedFormats[0], consumer: consumer)
    #expect(consumer.starts == [false] && !timer.isRunning && capturer.isScreencast)
  }

  @Test func aStillScreenIsSentOnceOrAgainAfterAWhile() throws {
    for (repetition, wanted) in [(nil, [0]), (250, [0, 250, 500])] as [(Int?, [Int64])] {
      var options = ScreenVideoCapturer.Options()
      options.retransmitLastFrameMilliseconds = repetition
      let timer = ManualTimer()
      let (screen, capturer) = screen(options, timer)
      screen.show(try shade(1))
      let consumer = KeepingConsumer()
      capturer.startCapture(capturer.supportedFormats[0], consumer: consumer)
      for time in stride(from: 1_000, through: 1_700, by: 50) { timer.fire(Int64(time)) }
      let times = consumer.frames.map { $0.timestampNanoseconds / 1_000_000 - 1_000 }
      #expect(times == wanted)
      #expect(Set(consumer.frames.map(\.buffer)).count == 1)
      // Changes are delivered immediately.
      screen.show(try shade(2))
      timer.fire(1_750)
      #expect(consumer.frames.count == wanted.count + 1)
    }
  }

  @Test(arguments: [(15.0, 15), (5, 5), (0, 1), (1_000, 60), (.nan, 1)])
  func aScreenHasNoMoreFramesThanItsTarget(target: Double, wanted: Int) throws {
    var options = ScreenVideoCapturer.Options()
    options.targetFramesPerSecond = target
    let timer = ManualTimer()
    let (screen, capturer) = screen(options, timer)
    screen.show(try shade(0))
    let consumer = KeepingConsumer()
    capturer.startCapture(capturer.supportedFormats[0], consumer: consumer)
    // A 60 Hz screen's timer, for two seconds.
    for tick in 0..<120 {
      screen.show(try shade(UInt8(tick + 1)))
      timer.fire(Int64(tick) * 1_000 / 60)
    }
    #expect(abs(consumer.frames.count - 2 * wanted) <= 1, "\(consumer.frames.count)")
  }

  @Test func noFrameIsMadeWhileAnotherIsInProgress() throws {
    let timer = ManualTimer()
    let count = Mutex(0)
    let capturer = ScreenVideoCapturer(width: 16, height: 8, timer: timer) {
      count.withLock { $0 += 1 }
      // The timer fires again before the screen has answered.
      timer.fire(2_000)
      return try? shade(1)
    }
    capturer.startCapture(capturer.supportedFormats[0], consumer: KeepingConsumer())
    timer.fire(1_000)
    #expect(count.withLock { $0 } == 2)
  }

  // MARK: Filters

  private struct Brighter: VideoFilter {
    func process(_ frame: VideoFrame) -> VideoFrame? {
      var frame = frame
      frame.withMutableBytes { bytes in
        for index in bytes.indices { bytes[index] &+= 10 }
      }
      return frame.buffer.bytes[0] < 100 ? frame : nil
    }
  }

  @Test func filtersChangeOnlyFramesOnTheirPath() throws {
    let pushed = PushedVideoCapturer(supportedFormats: [format], isScreencast: true)
    let capturer = FilteredVideoCapturer(pushed, filters: [Brighter(), Brighter()])
    #expect(capturer.isScreencast && capturer.supportedFormats == [format])
    let consumer = KeepingConsumer()
    capturer.startCapture(format, consumer: consumer)
    let frame = try shade(1)
    pushed.push(frame)
    pushed.push(try shade(85))
    #expect(consumer.starts == [true] && consumer.frames.map { $0.buffer.bytes[0] } == [21])
    #expect(frame.buffer.bytes[0] == 1)
    capturer.stopCapture()
    #expect(!pushed.push(frame))
  }

  // MARK: Files

  @Test func aFileIsCapturedAtItsPace() async throws {
    try await LoopbackCall.inFolder { path in
      let movie = path + ".y4m"
      let writer = try DumpRenderer(movie: movie, framesPerSecond: 10)
      for number in 0..<4 {
        let videoFrame = TestPattern(width: 32, height: 16).videoFrame(Int64(number))
        writer.renderFrame(
          try VideoFrame(videoFrame, timestampNanoseconds: Int64(number) * 100_000_000))
      }
      #expect(try writer.finish() == 4)
      let timer = ManualTimer()
      let capturer = try FileVideoCapturer(path: movie, loops: false, timer: timer)
      let format = capturer.supportedFormats[0]
      #expect(format.width == 32 && format.framesPerSecond == 10)
      let consumer = KeepingConsumer()
      capturer.startCapture(format, consumer: consumer)
      for time in stride(from: 5_000, through: 5_200, by: 25) { timer.fire(Int64(time)) }
      #expect(consumer.frames.map { $0.timestampNanoseconds / 1_000_000 } == [5_000, 5_100, 5_200])
      #expect(
        consumer.frames[2].videoFrame().samples
          == TestPattern(width: 32, height: 16).videoFrame(2).samples)
      timer.fire(5_300)
      #expect(consumer.ends == 0)
      timer.fire(5_400)
      #expect(consumer.frames.count == 4 && !timer.isRunning && capturer.failure == nil)
      #expect(consumer.ends == 1)
    }
  }

  @Test func aMissingFileIsReported() {
    let error = #expect(throws: MediaFileError.self) {
      try FileVideoCapturer(path: "/nowhere/clip.y4m")
    }
    #expect(error?.cause == .missing)
  }

  // MARK: Child processes

  @Test func aMissingCameraIsReportedInOneSentence() {
    let capturer = ProcessVideoCapturer.camera(.back, device: "/dev/video-none")
    let consumer = KeepingConsumer()
    capturer.startCapture(capturer.supportedFormats[0], consumer: consumer)
    #expect(consumer.starts == [false] && !capturer.isScreencast)
    #expect(
      capturer.failure?.description
        == "the back camera: there is no device /dev/video-none: connect a camera, or send a file"
        + " or a pattern")
  }

  private static let hasX = ["/usr/bin/Xvfb", "/usr/bin/ffmpeg"].allSatisfy {
    FileManager.default.isExecutableFile(atPath: $0)
  }

  /// Makes a folder with an ffmpeg that records its arguments and outputs 320x240 pixels.
  static func standIn(then end: String = "exec sleep 60") throws -> String {
    let folder = FileManager.default.temporaryDirectory.path + "/camera-\(UUID().uuidString)"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    let stand = """
      #!/bin/sh
      echo "$@" > \(folder)/asked
      head -c 115200 /dev/zero
      \(end)
      """
    try stand.write(toFile: folder + "/ffmpeg", atomically: true, encoding: .utf8)
    try FileManager.default.setAttributes(
      [.posixPermissions: 0o755], ofItemAtPath: folder + "/ffmpeg")
    return folder
  }

  @Test(.timeLimit(.minutes(10))) func aWholeScreenIsFittedIntoTheFormat() async throws {
    let folder = try Self.standIn()
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let format = VideoFormat(width: 320, height: 240, framesPerSecond: 15)
    let screen = ProcessVideoCapturer.wholeScreen(
      display: ":7", fittedInto: format, program: MediaProgram(searchPath: folder))
    #expect(screen.isScreencast && screen.obstacleNow == nil)
    let consumer = KeepingConsumer()
    screen.startCapture(format, consumer: consumer)
    while consumer.frames.isEmpty, screen.failure == nil { await Task.yield() }
    screen.stopCapture()
    #expect(consumer.frames.first?.displayWidth == 320)
    let asked = try String(contentsOfFile: folder + "/asked", encoding: .utf8)
    #expect(asked.contains("-f x11grab -draw_mouse 1 -framerate 15.0 -i :7 -vf scale=320:240:"))
    let nowhere = ProcessVideoCapturer.wholeScreen(
      display: "7", fittedInto: format, program: MediaProgram(searchPath: folder))
    #expect(nowhere.obstacleNow?.contains("has a number") == true)
    let nothing = MediaProgram(path: folder + "/none")
    let missing = ProcessVideoCapturer.wholeScreen(
      display: ":7", fittedInto: format, program: nothing)
    #expect(missing.obstacleNow?.contains("none is not an executable program") == true)
  }

  // TW17: the ffmpeg arguments for a camera, checked with a script that records them and outputs a
  // picture.
  @Test(.timeLimit(.minutes(10)), arguments: CameraPosition.allCases)
  func aCameraIsOpenedByItsDeviceSizeAndRate(position: CameraPosition) async throws {
    let folder = try Self.standIn()
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let device = folder + "/video"
    try Data().write(to: URL(fileURLWithPath: device))
    let camera = ProcessVideoCapturer.camera(
      position, device: device, program: MediaProgram(searchPath: folder))
    let wish = VideoFormat(width: 300, height: 200, framesPerSecond: 30)
    let format = try #require(camera.supportedFormat(nearest: wish))
    let consumer = KeepingConsumer()
    camera.startCapture(format, consumer: consumer)
    while consumer.frames.isEmpty, camera.failure == nil { await Task.yield() }
    #expect(consumer.starts == [true] && camera.failure == nil)
    let first = consumer.frames.first
    #expect(first?.displayWidth == 320 && first?.displayHeight == 240)
    camera.stopCapture()
    let asked = try String(contentsOfFile: folder + "/asked", encoding: .utf8)
    #expect(asked.contains("-f v4l2 -framerate 30.0 -video_size 320x240 -i \(device) "), "\(asked)")
    #expect(asked.hasSuffix("-an -f rawvideo -pix_fmt yuv420p -s 320x240 -\n"), "\(asked)")
  }

  // TW17: constraints choose among 360, 480 and 720 rows; an impossible one is reported.
  @Test(arguments: [(360, 360, 360), (720, 720, 720), (400, 600, 480), (361, 361, nil)])
  func constraintsChooseTheFormat(least: Int, most: Int, height: Int?) {
    var constraints = VideoConstraints()
    (constraints.minHeight, constraints.maxHeight) = (least, most)
    let camera = ProcessVideoCapturer.camera()
    #expect(camera.supportedFormat(within: constraints)?.height == height)
    constraints.minFrameRate = 60
    #expect(camera.supportedFormat(within: constraints) == nil)
    #expect(camera.supportedFormat(within: .usual)?.height == 480)
  }

  /// A camera may have a second device node, for metadata, which does not count as a camera.
  @Test func theFrontCameraIsTheFirstOneTheBackTheSecond() throws {
    let folder = FileManager.default.temporaryDirectory.path + "/cameras-\(UUID().uuidString)"
    defer { try? FileManager.default.removeItem(atPath: folder) }
    for (name, index) in [("video0", "0"), ("video1", "1"), ("video10", "0"), ("video2", "0")] {
      for part in ["system/\(name)", "devices"] {
        try FileManager.default.createDirectory(
          atPath: "\(folder)/\(part)", withIntermediateDirectories: true)
      }
      try Data("\(index)\n".utf8).write(
        to: URL(fileURLWithPath: "\(folder)/system/\(name)/index"))
      try Data().write(to: URL(fileURLWithPath: "\(folder)/devices/\(name)"))
    }
    let paths = CameraList.paths(system: folder + "/system", devices: folder + "/devices")
    #expect(paths == ["video0", "video2", "video10"].map { "\(folder)/devices/\($0)" })
    #expect(CameraList.path(of: .front, in: paths) == paths[0])
    #expect(CameraList.path(of: .back, in: paths) == paths[1])
    #expect(CameraList.path(of: .back, in: [paths[0]]) == "/dev/video1")
  }

  /// Runs only with a camera: a V4L2 device, including `v4l2loopback`'s.
  @Test(
    .enabled(if: hasCamera, "no /dev/video0 can be read here, so no V4L2 device was captured"),
    .timeLimit(.minutes(10)))
  func theCameraOfTheMachineIsCaptured() async throws {
    let camera = ProcessVideoCapturer.camera()
    let consumer = KeepingConsumer()
    camera.startCapture(try #require(camera.supportedFormats.first), consumer: consumer)
    while consumer.frames.count < 3, camera.failure == nil { await Task.yield() }
    #expect(camera.failure == nil && consumer.frames.first?.displayWidth == 640)
    camera.stopCapture()
  }

  private static let hasCamera = FileManager.default.isReadableFile(atPath: "/dev/video0")

  @Test(.enabled(if: hasX), .timeLimit(.minutes(10))) func aScreenOfXIsCaptured() async throws {
    // The X server picks a free display number and prints it when it is ready.
    let server = Process()
    let number = Pipe()
    server.executableURL = URL(fileURLWithPath: "/usr/bin/Xvfb")
    server.arguments = [
      "-displayfd", "1", "-screen", "0", "128x96x24", "-nolisten", "tcp", "-br",
    ]
    server.standardOutput = number
    server.standardError = FileHandle.nullDevice
    try server.run()
    defer { server.terminate() }
    let text = String(decoding: number.fileHandleForReading.availableData, as: UTF8.self)
    let display = ":" + text.trimmingCharacters(in: .whitespacesAndNewlines)
    let capturer = ProcessVideoCapturer.screen(
      display: display, width: 128, height: 96, framesPerSecond: 30)
    let consumer = KeepingConsumer()
    capturer.startCapture(capturer.supportedFormats[0], consumer: consumer)
    await consumer.wait { $0.frames.count >= 2 || $0.starts == [false] }
    capturer.stopCapture()
    #expect(consumer.starts == [true], "\(capturer.failure?.description ?? "")")
    #expect(consumer.framesBeforeStart == 0)
    let frame = try #require(consumer.frames.first)
    #expect(frame.format == .bgra && frame.codedWidth == 128 && frame.codedHeight == 96)
    // The root window is black; the pointer is in the middle.
    #expect(frame.videoFrame().samples[..<(128 * 20)].allSatisfy { $0 == 16 })
  }

  /// A child process may ignore SIGTERM, as in this test, or inherit a mask that blocks it; SIGKILL
  /// then ends the child.
  @Test(.timeLimit(.minutes(10))) func aChildThatReceivesNoSignalEnds() throws {
    let ready = try ChildPipe()
    let child = try ChildProcess(
      "/bin/sh", ["-c", "trap '' TERM; echo ready; exec sleep 1000"],
      output: .pipe(ready.writing))
    ready.closeWriting()
    #expect(!ready.reading.read(atMost: 100).isEmpty)
    child.terminate()
    child.end()
    #expect(child.waitUntilExit() == .killed(signal: SIGKILL))
  }

  @Test(.enabled(if: hasX), .timeLimit(.minutes(10))) func aScreenThatIsNotThereIsReported() async {
    let capturer = ProcessVideoCapturer.screen(display: ":9999", width: 64, height: 48)
    let consumer = KeepingConsumer()
    capturer.startCapture(capturer.supportedFormats[0], consumer: consumer)
    await consumer.wait { !$0.starts.isEmpty }
    #expect(consumer.starts == [false])
    #expect(capturer.failure?.reason.contains(":9999") == true)
  }
}
