import FoundationEssentials
import Media
import Tape

// Files of any format that ffmpeg decodes.
extension ProcessVideoCapturer {
  /// A capturer of a video file that ffmpeg decodes, repeated at its own pace and fitted into the
  /// format with black bars.
  /// - Parameter program: the ffmpeg that reads it.
  public static func file(
    _ path: String, supportedFormats: [VideoFormat] = VideoFormat.usual,
    program: MediaProgram = .system
  ) -> ProcessVideoCapturer {
    ProcessVideoCapturer(
      "the file \(path)", supportedFormats: supportedFormats, isScreencast: false,
      program: program,
      obstacle: {
        FileManager.default.isReadableFile(atPath: path)
          ? nil : "it is not there or cannot be read: check its name"
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

/// Common arguments of ffmpeg for files.
enum MediaFileCommand {
  /// Reads a file repeatedly at its own pace; the name is never taken for an option or a protocol.
  static func input(_ path: String) -> [String] {
    ["-re", "-stream_loop", "-1", "-i", "file:\(path)"]
  }
}

/// Delivers the sound of a file that ffmpeg decodes to a source, repeated at its own pace, for as
/// long as it is kept; nothing if the file has no sound.
package final class ProcessAudioFile: Sendable {
  private let process: ChildProcess

  /// Starts reading a file.
  /// - Throws: `VideoCaptureError` if there is no ffmpeg, or it cannot be started.
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

  /// Reads blocks of 20 ms until the pipe ends or nobody wants them any more.
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
