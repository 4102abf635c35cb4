import FoundationEssentials
import Media

/// The position of a camera; on Linux a label that selects the default device.
public enum CameraPosition: String, CaseIterable, Hashable, Sendable, Codable {
  /// Facing the user: the first camera.
  case front
  /// Facing away: the second camera.
  case back
}

extension ProcessVideoCapturer {
  /// A capturer of a camera (V4L2).
  /// - Parameters:
  ///   - position: the label.
  ///   - device: the device file; nil selects the first or second camera by the position.
  ///   - program: the ffmpeg that reads it.
  public static func camera(
    _ position: CameraPosition = .front, device: String? = nil,
    supportedFormats: [VideoFormat] = VideoFormat.usual, program: MediaProgram = .system
  ) -> ProcessVideoCapturer {
    let path = device ?? CameraList.path(of: position, in: CameraList.paths())
    return ProcessVideoCapturer(
      "the \(position.rawValue) camera", supportedFormats: supportedFormats, isScreencast: false,
      program: program,
      obstacle: {
        guard FileManager.default.fileExists(atPath: path) else {
          return "there is no device \(path): connect a camera, or send a file or a pattern"
        }
        return FileManager.default.isReadableFile(atPath: path)
          ? nil : "no permission to read \(path): add the user to the group video"
      },
      input: { format in
        [
          "-f", "v4l2", "-framerate", "\(format.framesPerSecond)", "-video_size",
          "\(format.width)x\(format.height)", "-i", path,
        ]
      })
  }

  /// A capturer of a whole X11 screen, fitted into a format with black bars.
  /// - Parameters:
  ///   - display: `:0`, or with a screen `:0.1`.
  ///   - program: the ffmpeg that reads it.
  package static func wholeScreen(
    display: String, fittedInto format: VideoFormat, program: MediaProgram = .system
  ) -> ProcessVideoCapturer {
    ProcessVideoCapturer(
      "the screen \(display)", supportedFormats: [format], isScreencast: true, program: program,
      obstacle: { display.contains(":") ? nil : "a display has a number, like :0" },
      input: { format in
        let size = "\(format.width):\(format.height)"
        return [
          "-f", "x11grab", "-draw_mouse", "1", "-framerate", "\(format.framesPerSecond)", "-i",
          display, "-vf",
          "scale=\(size):force_original_aspect_ratio=decrease,pad=\(size):(ow-iw)/2:(oh-ih)/2",
        ]
      })
  }

  /// A capturer of an X11 screen.
  /// - Parameters:
  ///   - display: `:0`, or with a screen and an offset `:0.0+10,20`.
  ///   - framesPerSecond: 1 to 120.
  ///   - program: the ffmpeg that reads it.
  public static func screen(
    display: String, width: Int, height: Int, framesPerSecond: Double = 15,
    program: MediaProgram = .system
  ) -> ProcessVideoCapturer {
    let format = VideoFormat(
      width: width, height: height, framesPerSecond: ScreenCadence.clamped(framesPerSecond),
      pixelFormat: .bgra)
    return ProcessVideoCapturer(
      "the screen \(display)", supportedFormats: [format], isScreencast: true, program: program,
      obstacle: {
        display.contains(":") ? nil : "a display has a number, like :0"
      },
      input: { format in
        [
          "-f", "x11grab", "-draw_mouse", "1", "-framerate", "\(format.framesPerSecond)",
          "-video_size", "\(format.width)x\(format.height)", "-i", display,
        ]
      })
  }
}
