import Live
public import RetakeRTC
import Room
import RoomClient

/// What local media is made of, and how many videos a room receives.
public struct Config: Sendable {
  /// What local media is made of.
  public var mediaOptions = LocalMediaOptions()
  /// How many videos are received at first.
  public var videoReceiverInitialCount = 9
  /// How many videos are received at most; subscribing to more is an error.
  public var videoReceiverMaximumCount = 20
  /// By how many the receivers grow when all are taken.
  public var videoReceiverGrowthRate = 1

  /// The defaults.
  public init() {}

  var core: RoomConfig {
    var core = RoomConfig()
    core.videoReceiverInitialCount = videoReceiverInitialCount
    core.videoReceiverMaximumCount = videoReceiverMaximumCount
    core.videoReceiverGrowthRate = videoReceiverGrowthRate
    return core
  }
}

/// Where the video frames of local media come from.
public enum CapturerType: Sendable {
  /// A camera; if there is none, the file of the options.
  case camera
  /// The application hands them in: see `LocalMedia.sendVideoFrame(sampleBuffer:)`.
  case bypass
  /// A file.
  case file
}

/// Whether echo is taken out of the microphone.
public enum AudioProcessingType: String, Sendable {
  /// It is.
  case voice
  /// It is not.
  case music
}

/// What decides how the frames of a camera are turned.
///
/// The guide names the first alone; the others are those of Retake's own media.
public enum CameraRotationType: String, Sendable {
  /// Nothing: they stay as they come.
  case notAvailable
  /// How the device is held.
  case deviceOrientation
  /// How the application is shown.
  case appOrientation
}

/// How large a received video is.
///
/// The guide names the type alone; the cases are the profiles of Retake's own rooms.
public enum VideoProfileType: String, Sendable {
  /// There is no choice, or none was made.
  case empty
  /// The smallest.
  case low
  /// One between.
  case mid
  /// The largest.
  case high

  init(_ core: VideoProfile) { self = VideoProfileType(rawValue: core.rawValue) ?? .empty }
  var core: VideoProfile { VideoProfile(rawValue: rawValue) ?? .empty }
}

/// Why a room is over.
///
/// The guide names the type alone; the cases are those of Retake's own rooms.
public enum DisconnectReason: String, Sendable {
  /// This side left, or an error ended the room.
  case disconnected
  /// The room is no longer there.
  case destroyed
  /// The service or a moderator ended it for this side.
  case kicked
}

/// What local media is made of.
public struct LocalMediaOptions: Sendable {
  /// Where the video frames come from.
  public var source = CapturerType.camera
  /// Whether there is audio.
  public var hasAudio = true
  /// Whether there is video.
  public var hasVideo = true
  /// Whether video is on at first.
  public var video = true
  /// Whether audio is on at first.
  public var audio = true
  /// Application data that the others receive with the video.
  public var extraValue = ""
  /// What decides how the frames of the camera are turned.
  public var rotationType = CameraRotationType.notAvailable
  /// Which camera.
  public var position = AVCaptureDevice.Position.front
  /// Whether the own view shows the video as in a mirror.
  public var isMirror = true
  /// The file that stands for the camera if there is none.
  public var fileName = "sample.mov"
  // swift-format-ignore
  /// The width in pixels of what the camera gives; the guide spells it so.
  public var cameraCapturewWidth = 640
  /// The height in pixels of what the camera gives.
  public var cameraCaptureHeight = 480
  /// Whether echo is taken out of the microphone.
  public var audioType = AudioProcessingType.voice
  /// Whether the loudness of the microphone is regulated.
  public var autoGain = false

  /// The defaults.
  public init() {}

  var core: Live.LocalMediaOptions {
    var core = Live.LocalMediaOptions()
    core.source =
      switch source {
      case .camera: .camera
      case .bypass: .bypass
      case .file: .file
      }
    (core.hasAudio, core.hasVideo, core.audio, core.video) = (hasAudio, hasVideo, audio, video)
    core.videoExtraValue = extraValue
    core.rotationType = .init(rawValue: rotationType.rawValue) ?? .notAvailable
    core.position = position.core
    (core.isMirror, core.fileName) = (isMirror, fileName)
    (core.videoWidth, core.videoHeight) = (cameraCapturewWidth, cameraCaptureHeight)
    core.audioType = audioType == .voice ? .voice : .music
    core.autoGain = autoGain
    return core
  }
}

extension AVCaptureDevice.Position {
  /// The camera that is meant: the one at the front where nobody says.
  var core: CameraPosition { self == .back ? .back : .front }

  init(_ core: CameraPosition) { self = core == .back ? .back : .front }
}
