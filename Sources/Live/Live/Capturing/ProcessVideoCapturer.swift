import Dispatch
import FoundationEssentials
import Glibc
import Media
import Synchronization
import Tape

/// An error that says why a device or a screen cannot be captured.
public struct VideoCaptureError: Error, Hashable, Sendable, CustomStringConvertible {
  /// One sentence that says what is wrong and usually what to do.
  public var reason: String

  /// The same as `reason`.
  public var description: String { reason }
}

/// Captures anything that `ffmpeg` reads: frames of one size arrive through a pipe from a child
/// process.
public final class ProcessVideoCapturer: VideoCapturer {
  /// The formats that ffmpeg can deliver, in order of preference.
  public let supportedFormats: [VideoFormat]
  /// Whether a screen is captured.
  public let isScreencast: Bool

  /// The name of the device, screen or file in error messages.
  private let title: String
  /// ffmpeg's arguments for the input, with a filter if the input has to be fitted into the format.
  private let input: @Sendable (VideoFormat) -> [String]
  /// Returns why capturing cannot start; nil if it can.
  private let obstacle: @Sendable () -> String?
  private let program: MediaProgram
  private let run = CaptureRun()
  private let state = Mutex(State())

  private struct State {
    var process: ChildProcess?
    var failure: VideoCaptureError?
  }

  init(
    _ title: String, supportedFormats: [VideoFormat], isScreencast: Bool, program: MediaProgram,
    obstacle: @escaping @Sendable () -> String?,
    input: @escaping @Sendable (VideoFormat) -> [String]
  ) {
    self.title = title
    self.supportedFormats = supportedFormats
    self.isScreencast = isScreencast
    self.obstacle = obstacle
    self.input = input
    self.program = program
  }

  deinit { stopCapture() }

  /// Why the last capture did not start or ended by itself; nil if neither happened.
  public var failure: VideoCaptureError? { state.withLock { $0.failure } }

  /// Why capturing cannot start now, naming the device; nil if nothing prevents it.
  package var obstacleNow: String? {
    (obstacle() ?? (program.path == nil ? program.missing : nil)).map { "\(title): \($0)" }
  }

  /// Starts the child process; the consumer is notified when the first frame arrives or capturing
  /// fails.
  public func startCapture(_ format: VideoFormat, consumer: any VideoConsumer) {
    stopCapture()
    let number = run.begin(consumer)
    state.withLock { $0.failure = nil }
    guard supportedFormats.contains(format) else {
      return fail("the format is not supported", number)
    }
    if let obstacle = obstacle() { return fail(obstacle, number) }
    guard let program = self.program.path else { return fail(self.program.missing, number) }
    let arguments =
      ["-nostdin", "-hide_banner", "-loglevel", "error"] + input(format)
      + [
        "-an", "-f", "rawvideo", "-pix_fmt", format.pixelFormat.ffmpegName, "-s",
        "\(format.width)x\(format.height)", "-",
      ]
    let (frames, errors): (ChildPipe, ChildPipe)
    let process: ChildProcess
    do throws(SystemError) {
      (frames, errors) = (try ChildPipe(), try ChildPipe())
      process = try ChildProcess(
        program, arguments, output: .pipe(frames.writing), errors: .pipe(errors.writing))
    } catch {
      return fail("ffmpeg cannot be started: \(error.description)", number)
    }
    frames.closeWriting()
    errors.closeWriting()
    state.withLock { $0.process = process }
    // Both pipes are read concurrently: the child blocks when either is full.
    let words = LastWords()
    startWorker(named: "errors") { words.end(with: errors.readLast(500)) }
    startWorker(named: "frames") { [weak self] in
      ProcessVideoCapturer.read(frames.reading, format, whileHeld: { self }, number)
      process.end()
      process.waitUntilExit()
      self?.end(words.text, number)
    }
  }

  /// Stops the child process.
  public func stopCapture() {
    run.end()
    let process = state.withLock { state in
      defer { state.process = nil }
      return state.process
    }
    process?.end()
  }

  private func fail(_ reason: String, _ number: Int) {
    state.withLock { $0.failure = VideoCaptureError(reason: "\(title): \(reason)") }
    run.didEnd(number)
  }

  private func end(_ words: String, _ number: Int) {
    guard run.goesOn(number) else { return }
    let last = words.split(separator: "\n").last.map(String.init)
    fail(last ?? "ffmpeg ended", number)
  }

  /// Reads frames until the pipe ends, or until the capturer is gone or has been stopped.
  private static func read(
    _ pipe: FileDescriptor, _ format: VideoFormat,
    whileHeld capturer: () -> ProcessVideoCapturer?, _ number: Int
  ) {
    let length = format.pixelFormat.byteCount(width: format.width, height: format.height)
    while true {
      // Read each frame directly into memory that the frame then owns.
      var isWhole = false
      let bytes = [UInt8](unsafeUninitializedCapacity: length) { target, count in
        while count < length {
          let got = Glibc.read(
            pipe.number, target.baseAddress.map { $0 + count }, length - count)
          if got < 0, errno == EINTR { continue }
          guard got > 0 else { return }
          count += got
        }
        isWhole = true
      }
      guard isWhole, let capturer = capturer(), capturer.run.goesOn(number) else { return }
      let now = Int64(clamping: DispatchTime.now().uptimeNanoseconds)
      guard
        let buffer = try? VideoFrameBuffer(
          format: format.pixelFormat, codedWidth: format.width, codedHeight: format.height,
          bytes: bytes),
        let frame = try? VideoFrame(buffer: buffer, timestampNanoseconds: now)
      else { return }
      capturer.run.didStart(true, number)
      capturer.run.deliver(frame, number)
    }
  }
}

/// The end of a child process's error output, read by another thread.
private final class LastWords: Sendable {
  private let content = Mutex("")
  private let isOver = DispatchSemaphore(value: 0)

  func end(with text: String) {
    content.withLock { $0 = text }
    isOver.signal()
  }

  /// The output, after waiting at most 1 s for its end, because the child's own children may keep
  /// the pipe open.
  var text: String {
    _ = isOver.wait(timeout: .now() + 1)
    return content.withLock { $0 }
  }
}

extension VideoPixelFormat {
  /// The pixel format's name in ffmpeg.
  fileprivate var ffmpegName: String {
    switch self {
    case .i420: "yuv420p"
    case .nv12: "nv12"
    case .bgra: "bgra"
    case .argb: "argb"
    }
  }
}

/// The ffmpeg that reads cameras, screens and files.
public struct MediaProgram: Hashable, Sendable {
  /// The first `ffmpeg` in the process's PATH.
  public static let system = MediaProgram()

  private let file: String?
  private let searchPath: String?

  /// Selects a program.
  /// - Parameters:
  ///   - path: the executable file; nil to look for `ffmpeg`.
  ///   - searchPath: folders to search, separated by colons; nil for the process's PATH.
  public init(path: String? = nil, searchPath: String? = nil) {
    file = path
    self.searchPath = searchPath
  }

  /// The executable file; nil if there is none.
  package var path: String? {
    let folders = searchPath ?? ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"
    let candidates = file.map { [$0] } ?? folders.split(separator: ":").map { "\($0)/ffmpeg" }
    return candidates.first { FileManager.default.isExecutableFile(atPath: $0) }
  }

  /// Why there is no program, and what to do about it.
  package var missing: String {
    file.map { "\($0) is not an executable program" }
      ?? "there is no ffmpeg: install the package ffmpeg"
  }
}
