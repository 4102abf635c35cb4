public import AudioSession
import FoundationEssentials
public import MediaFiles

/// Options for an application's local media, as in client SDKs for rooms.
public struct LocalMediaOptions: Hashable, Sendable, Codable {
  /// A video source.
  public enum Source: String, Hashable, Sendable, Codable {
    /// A camera (V4L2).
    case camera
    /// The application provides the frames.
    case bypass
    /// The file `fileName`, repeated.
    case file
  }

  /// What determines how a capturer's frames are rotated.
  public enum RotationType: String, Hashable, Sendable, Codable {
    /// Nothing: frames are not rotated.
    case notAvailable
    /// The device's orientation.
    case deviceOrientation
    /// The application's orientation.
    case appOrientation
  }

  /// The kind of sound for which a microphone's audio is processed.
  public enum AudioType: String, Hashable, Sendable, Codable {
    /// Speech: echo is cancelled.
    case voice
    /// Music: unprocessed.
    case music

    /// The processing that an audio session requests of its device.
    public var processing: AudioProcessingProfile { self == .voice ? .voice : .music }
  }

  /// Where video comes from: a camera, the application or a file.
  public var source = Source.camera
  /// Whether there is an audio track.
  public var hasAudio = true
  /// Whether there is a video track.
  public var hasVideo = true
  /// Whether audio is sent initially.
  public var audio = true
  /// Whether video is sent initially.
  public var video = true
  /// The application's label for the audio.
  public var audioExtraValue = ""
  /// The application's label for the video.
  public var videoExtraValue = ""
  /// What determines how the frames are rotated.
  public var rotationType = RotationType.notAvailable
  /// Which side of the device the camera is on.
  public var position = CameraPosition.front
  /// Whether the local video is shown mirrored.
  public var isMirror = true
  /// The file to send, in any format that ffmpeg decodes, with its sound.
  ///
  /// It also replaces a missing camera.
  public var fileName = "sample.mov"
  /// The width of camera frames in pixels.
  public var videoWidth = 640
  /// The height of camera frames in pixels.
  public var videoHeight = 480
  /// The camera's frame rate.
  public var videoFPS = 20
  /// The names of up to three simulcast layers, the smallest first; nil for one layer.
  ///
  /// A room's server selects a layer for each receiver. Each name has 1 to 16 letters and digits;
  /// Janus expects `l`, `m` and `h` in this order, and Sora's offer uses its own names instead.
  public var videoLayers: [String]?
  /// The kind of sound for which the microphone's audio is processed.
  public var audioType = AudioType.voice
  /// Whether the microphone's gain is controlled automatically.
  public var autoGain = false

  /// Creates the default options.
  public init() {}

  /// The format requested from the capturer.
  public var videoFormat: VideoFormat {
    VideoFormat(width: videoWidth, height: videoHeight, framesPerSecond: Double(videoFPS))
  }
}

// MARK: - Capturing

extension LocalMediaOptions {
  /// Creates the options' capturer; a filter rotates its frames if requested.
  /// - Parameters:
  ///   - position: the camera to use; nil for the camera in the options.
  ///   - orientation: read at each frame, unless `rotationType` is `notAvailable`.
  ///   - program: the ffmpeg that reads cameras and files.
  /// - Throws: `MediaFileError` if the file cannot be read or has no video.
  public func makeVideoCapturer(
    position: CameraPosition? = nil, orientation: DeviceOrientation = DeviceOrientation(),
    program: MediaProgram = .system
  ) throws(MediaFileError) -> any VideoCapturer {
    let capturer: any VideoCapturer
    switch source {
    case .camera:
      capturer = ProcessVideoCapturer.camera(position ?? self.position, program: program)
    case .bypass: capturer = PushedVideoCapturer(supportedFormats: [videoFormat])
    case .file: capturer = try makeFileCapturer(program)
    }
    guard rotationType != .notAvailable else { return capturer }
    return FilteredVideoCapturer(
      capturer, filters: [OrientationFilter(orientation, by: rotationType)])
  }

  /// Creates a capturer for `fileName`: YUV4MPEG2, IVF and H.264 byte streams are read directly,
  /// everything else through ffmpeg.
  /// - Throws: `MediaFileError` if the file cannot be read or has no video.
  package func makeFileCapturer(_ program: MediaProgram = .system) throws(MediaFileError)
    -> any VideoCapturer
  {
    guard needsProgram else { return try FileVideoCapturer(path: fileName) }
    guard FileManager.default.isReadableFile(atPath: fileName) else {
      throw MediaFileError(
        path: fileName, reason: "the file does not exist or cannot be read: check its name")
    }
    return ProcessVideoCapturer.file(fileName, supportedFormats: [videoFormat], program: program)
  }

  /// Whether ffmpeg has to read `fileName`.
  package var needsProgram: Bool {
    let name = fileName.lowercased()
    return ![".y4m", ".ivf", ".h264", ".264"].contains { name.hasSuffix($0) }
  }
}
