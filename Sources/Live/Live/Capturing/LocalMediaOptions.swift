public import AudioSession

/// What an application captures by default, as client SDKs of rooms have it.
public struct LocalMediaOptions: Hashable, Sendable, Codable {
  /// Where the video frames come from.
  public enum Source: String, Hashable, Sendable, Codable {
    /// A camera.
    case camera
    /// The application pushes them.
    case bypass
    /// A file.
    case file
  }

  /// What decides how frames of a camera are turned.
  public enum RotationType: String, Hashable, Sendable, Codable {
    /// Nothing: they stay as they come.
    case notAvailable
    /// How the device is held.
    case deviceOrientation
    /// How the application is shown.
    case appOrientation
  }

  /// What audio is processed for, by an audio session that is asked for it and a device that can
  /// (`VoiceProcessingDevice`).
  public enum AudioType: String, Hashable, Sendable, Codable {
    /// Speech: echo is cancelled.
    case voice
    /// Music: it stays as it is.
    case music

    /// What an audio session is to ask of its device.
    public var processing: AudioProcessingProfile { self == .voice ? .voice : .music }
  }

  /// Where the video frames come from.
  public var source = Source.camera
  /// Whether there is a track of audio.
  public var hasAudio = true
  /// Whether there is a track of video frames.
  public var hasVideo = true
  /// Whether audio is sent at first.
  public var audio = true
  /// Whether video frames are sent at first.
  public var video = true
  /// What the application says of the audio.
  public var audioExtraValue = ""
  /// What the application says of the video frames.
  public var videoExtraValue = ""
  /// What decides how frames are turned.
  public var rotationType = RotationType.notAvailable
  /// Which camera.
  public var position = CameraPosition.front
  /// Whether the local video frames are shown as in a mirror.
  public var isMirror = true
  /// The file, where media come from one: of any format that ffmpeg decodes, with its sound.
  ///
  /// It is also what is sent where there is no camera.
  public var fileName = "sample.mov"
  /// The width in pixels of what a camera gives.
  public var videoWidth = 640
  /// The height in pixels of what a camera gives.
  public var videoHeight = 480
  /// How many frames per second a camera gives.
  public var videoFPS = 20
  /// The names of up to three layers that video is sent in, the smallest first; nil: one layer.
  ///
  /// Servers of rooms give each receiver the layer that it asks for. Each is 1 to 16 letters and
  /// digits; Janus knows `l`, `m` and `h` by their order, and Sora's offer names its own instead.
  public var videoLayers: [String]?
  /// What audio is processed for.
  public var audioType = AudioType.voice
  /// Whether the loudness of the microphone is regulated.
  public var autoGain = false

  /// The defaults.
  public init() {}

  /// What is asked of the capturer.
  public var videoFormat: VideoFormat {
    VideoFormat(width: videoWidth, height: videoHeight, framesPerSecond: Double(videoFPS))
  }
}
