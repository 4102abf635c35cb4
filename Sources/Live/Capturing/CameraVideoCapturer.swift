import Foundation
import Media

/// Where a camera looks; on Linux a label, that decides which device is taken by default.
public enum CameraPosition: String, CaseIterable, Hashable, Sendable, Codable {
  /// At whoever looks at the screen: the first device.
  case front
  /// Away: the second device.
  case back
}

extension ProcessVideoCapturer {
  /// A capturer of a camera (V4L2).
  ///
  /// - Parameters:
  ///   - position: the label.
  ///   - device: the file of the device; nil takes the first or second one, as the position says.
  public static func camera(
    _ position: CameraPosition = .front, device: String? = nil,
    supportedFormats: [VideoFormat] = VideoFormat.usual
  ) -> ProcessVideoCapturer {
    let path = device ?? (position == .front ? "/dev/video0" : "/dev/video1")
    return ProcessVideoCapturer(
      "the \(position.rawValue) camera", supportedFormats: supportedFormats, isScreencast: false,
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

  /// A capturer of a screen of the X Window System.
  ///
  /// - Parameters:
  ///   - display: `:0`, or with a screen and an offset `:0.0+10,20`.
  ///   - framesPerSecond: 1 to 120.
  public static func screen(
    display: String, width: Int, height: Int, framesPerSecond: Double = 15
  ) -> ProcessVideoCapturer {
    let format = VideoFormat(
      width: width, height: height, framesPerSecond: ScreenCadence.clamped(framesPerSecond),
      pixelFormat: .bgra)
    return ProcessVideoCapturer(
      "the screen \(display)", supportedFormats: [format], isScreencast: true,
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
