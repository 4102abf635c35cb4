import FoundationEssentials
import Media
public import MediaFiles
import Synchronization
import Tape

/// Captures a file at its own pace: YUV4MPEG2, VP8 or VP9 in IVF, or an H.264 byte stream.
///
/// H.264 is not decoded here; it needs a consumer that accepts encoded video.
public final class FileVideoCapturer: VideoCapturer {
  /// The only format: the file's own.
  public let supportedFormats: [VideoFormat]
  /// False: a file is not a screen.
  public var isScreencast: Bool { false }

  private let path: String
  private let kind: Kind
  private let loops: Bool
  private let timer: any CaptureTimer
  private let run = CaptureRun()
  private let lastFailure = Mutex<MediaFileError?>(nil)
  private let reading = Mutex(Reading())

  private enum Kind {
    case y4m
    case ivf
    case h264
  }

  private struct Reading {
    var source: (any TimedMedia)?
    var next: (media: MediaContent, nanoseconds: Int64)?
    var began: Int64?
  }

  /// How early a frame may be delivered, in nanoseconds, because the timer is not exact.
  private static let grain: Int64 = 1_000_000
  /// The factor by which the timer runs faster than the frame rate, so that no frame is very late.
  private static let asking = 4.0

  /// Opens a file.
  /// - Throws: `MediaFileError` if the file cannot be read or has no video.
  public init(
    path: String, loops: Bool = true, timer: any CaptureTimer = SystemCaptureTimer()
  ) throws(MediaFileError) {
    self.path = path
    self.loops = loops
    self.timer = timer
    if path.lowercased().hasSuffix(".ivf") {
      kind = .ivf
      supportedFormats = [try IVFFileSource(path: path, loops: loops).videoFormat]
    } else if MediaFileFormat(path: path) == .h264 {
      kind = .h264
      let source = try H264FileSource(path: path, loops: loops)
      supportedFormats = [
        VideoFormat(
          width: source.width, height: source.height, framesPerSecond: source.framesPerSecond)
      ]
    } else {
      kind = .y4m
      let source = try Y4MFileSource(path: path, loops: loops)
      supportedFormats = [
        VideoFormat(
          width: source.width, height: source.height, framesPerSecond: source.framesPerSecond)
      ]
    }
  }

  /// The last error in reading the file, which prevented or ended a capture; nil if there was none.
  public var failure: MediaFileError? { lastFailure.withLock { $0 } }

  /// Starts capturing from the beginning of the file.
  ///
  /// Fails if the format is not supported, if the file is gone, or if it is H.264 and the consumer
  /// does not accept encoded video.
  public func startCapture(_ format: VideoFormat, consumer: any VideoConsumer) {
    let number = run.begin(consumer)
    guard supportedFormats.contains(format), kind != .h264 || consumer is any EncodedVideoConsumer
    else { return run.didStart(false, number) }
    do throws(MediaFileError) {
      try reading.withLock { reading throws(MediaFileError) in
        reading = Reading()
        switch kind {
        case .y4m: reading.source = try Y4MFileSource(path: path, loops: loops)
        case .ivf: reading.source = try IVFFileSource(path: path, loops: loops)
        case .h264: reading.source = try H264FileSource(path: path, loops: loops)
        }
      }
    } catch {
      lastFailure.withLock { $0 = error }
      return run.didStart(false, number)
    }
    run.didStart(true, number)
    // Limit the frame rate, because a file may state any rate.
    let rate = min(max(format.framesPerSecond, 1), 250) * FileVideoCapturer.asking
    timer.start(everyNanoseconds: Int64(1e9 / rate)) { [weak self] now in
      self?.tick(number, now)
    }
  }

  /// Stops capturing; the next capture starts at the file's beginning.
  public func stopCapture() {
    run.end()
    timer.stop()
  }

  private func tick(_ number: Int, _ now: Int64) {
    guard let consumer = run.consumer(of: number) else { return }
    var due: [(MediaContent, Int64)] = []
    var hasEnded = false
    reading.withLock { reading in
      let began = reading.began ?? now
      reading.began = began
      while due.count < 2 {
        do throws(MediaFileError) {
          if reading.next == nil { reading.next = try reading.source?.next() }
        } catch {
          lastFailure.withLock { $0 = error }
        }
        guard let next = reading.next else {
          // The end of the capture clears the view, so if the last frame is due now, the capture
          // ends only at the next tick.
          hasEnded = due.isEmpty
          break
        }
        let time = began.addingReportingOverflow(next.nanoseconds)
        guard !time.overflow, time.partialValue <= now + FileVideoCapturer.grain else { break }
        due.append((next.media, time.partialValue))
        reading.next = nil
      }
    }
    for (media, time) in due {
      switch media {
      case .videoFrame(let videoFrame):
        let frame = try? VideoFrame(videoFrame, timestampNanoseconds: time)
        if let frame { run.deliver(frame, number) }
      case .encodedVideo(let videoFrame):
        (consumer as? any EncodedVideoConsumer)?.consumeEncodedVideo(videoFrame)
      case .audio: break
      }
    }
    if hasEnded {
      timer.stop()
      run.didEnd(number)
    }
  }
}

extension IVFFileSource {
  fileprivate var videoFormat: VideoFormat {
    VideoFormat(width: width, height: height, framesPerSecond: framesPerSecond)
  }
}

// MARK: - MediaFileCapturing

// Files of any format that ffmpeg decodes.
extension ProcessVideoCapturer {
  /// Creates a capturer for any video file that ffmpeg decodes, repeated at its own pace and fitted
  /// into the format with black bars.
  /// - Parameter program: the ffmpeg that reads the file.
  public static func file(
    _ path: String, supportedFormats: [VideoFormat] = VideoFormat.usual,
    program: MediaProgram = .system
  ) -> ProcessVideoCapturer {
    ProcessVideoCapturer(
      "the file \(path)", supportedFormats: supportedFormats, isScreencast: false,
      program: program,
      obstacle: {
        FileManager.default.isReadableFile(atPath: path)
          ? nil : "it does not exist or cannot be read: check its name"
      },
      input: { format in
        let size = "\(format.width):\(format.height)"
        return MediaFileCommand.input(path) + [
          "-vf",
          "scale=\(size):force_original_aspect_ratio=decrease,"
            + "pad=\(size):(ow-iw)/2:(oh-ih)/2,fps=\(format.framesPerSecond)",
        ]
      })
  }
}

/// ffmpeg arguments for files.
enum MediaFileCommand {
  /// Returns arguments that read a file repeatedly at its own pace; the prefix `file:` keeps ffmpeg
  /// from reading the path as an option or a protocol.
  static func input(_ path: String) -> [String] {
    ["-re", "-stream_loop", "-1", "-i", "file:\(path)"]
  }
}

/// Passes a file's sound, which ffmpeg decodes and repeats at its own pace, to a source until this
/// object is released.
///
/// If the file has no sound, nothing is passed.
package final class ProcessAudioFile: Sendable {
  private let process: ChildProcess

  /// Starts reading a file.
  /// - Throws: `VideoCaptureError` if there is no ffmpeg or it cannot be started.
  package init(path: String, to source: AudioSource, program wanted: MediaProgram = .system)
    throws(VideoCaptureError)
  {
    guard let program = wanted.path else {
      throw VideoCaptureError(reason: "the file \(path): \(wanted.missing)")
    }
    let arguments =
      ["-nostdin", "-hide_banner", "-loglevel", "error"] + MediaFileCommand.input(path) + [
        "-vn", "-f", "s16le", "-ar", "\(AudioBlock.sampleRate)", "-ac", "1", "-",
      ]
    do throws(SystemError) {
      let pipe = try ChildPipe()
      let process = try ChildProcess(
        program, arguments, output: .pipe(pipe.writing), errors: .nothing)
      pipe.closeWriting()
      self.process = process
      let reading = pipe.reading
      startWorker(named: "sound") { [weak source] in
        ProcessAudioFile.read(reading) { source?.deliver($0) != nil }
        process.end()
      }
    } catch {
      throw VideoCaptureError(
        reason: "the file \(path): ffmpeg cannot be started: \(error.description)")
    }
  }

  deinit { process.end() }

  /// Reads blocks of 20 ms until the pipe ends or the source is gone.
  private static func read(_ pipe: FileDescriptor, _ deliver: (AudioBlock) -> Bool) {
    let length = AudioBlock.sampleRate / 50 * 2
    var bytes: [UInt8] = []
    while true {
      let more = pipe.read(atMost: length - bytes.count)
      if more.isEmpty { return }
      bytes += more
      guard bytes.count == length else { continue }
      let samples = stride(from: 0, to: length, by: 2).map {
        Int16(truncatingIfNeeded: Int(bytes[$0]) | Int(bytes[$0 + 1]) << 8)
      }
      bytes.removeAll(keepingCapacity: true)
      guard deliver(AudioBlock(samples: samples, channels: 1)) else { return }
    }
  }
}
