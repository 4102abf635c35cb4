import Live
public import RetakeRTC
import Room
import RoomClient
import Stats

/// The settings for local media, and how many videos a room receives.
public struct Config: Sendable {
  /// The settings for local media.
  public var mediaOptions = LocalMediaOptions()
  /// The number of video receivers at the start; more are added when all are in use.
  public var videoReceiverInitialCount = 9
  /// The maximum number of received videos; subscribing to more is an error.
  public var videoReceiverMaximumCount = 20
  /// How many receivers are added when all are in use.
  public var videoReceiverGrowthRate = 1

  /// Creates the default configuration.
  public init() {}

  var core: RoomConfig {
    var core = RoomConfig()
    core.videoReceiverInitialCount = videoReceiverInitialCount
    core.videoReceiverMaximumCount = videoReceiverMaximumCount
    core.videoReceiverGrowthRate = videoReceiverGrowthRate
    return core
  }
}

/// The source of local media's video frames.
public enum CapturerType: Sendable {
  /// A camera; if the machine has none, the file `LocalMediaOptions.fileName`.
  case camera
  /// Frames that the application supplies with `LocalMedia.sendVideoFrame(sampleBuffer:)`.
  case bypass
  /// The file `LocalMediaOptions.fileName`, played in a loop.
  case file
}

/// Whether the microphone's echo is cancelled.
public enum AudioProcessingType: String, Sendable {
  /// With echo cancellation.
  case voice
  /// Without echo cancellation.
  case music
}

/// What determines the rotation of camera frames.
///
/// The SDK's guide names only the first case; the other cases are Retake's own.
public enum CameraRotationType: String, Sendable {
  /// Frames are not rotated.
  case notAvailable
  /// Frames follow the orientation of the device.
  case deviceOrientation
  /// Frames follow the orientation of the application's interface.
  case appOrientation
}

/// The size of a received video.
///
/// The SDK's guide names only the type; the cases are the profiles in Retake's own rooms.
public enum VideoProfileType: String, Sendable {
  /// No size was chosen, or the video has no sizes to choose from.
  case empty
  /// The smallest size.
  case low
  /// The medium size.
  case mid
  /// The largest size.
  case high

  init(_ core: VideoProfile) { self = VideoProfileType(rawValue: core.rawValue) ?? .empty }
  var core: VideoProfile { VideoProfile(rawValue: rawValue) ?? .empty }
}

/// The reason that a room ended.
///
/// The SDK's guide names only the type; the cases come from Retake's own rooms.
public enum DisconnectReason: String, Sendable {
  /// The local participant left, or an error ended the room.
  case disconnected
  /// The room no longer exists.
  case destroyed
  /// The service or a moderator removed the local participant.
  case kicked
}

/// The settings for local media.
public struct LocalMediaOptions: Sendable {
  /// The source of video frames.
  public var source = CapturerType.camera
  /// Whether there is audio to capture and publish.
  public var hasAudio = true
  /// Whether there is video to capture and publish.
  public var hasVideo = true
  /// Whether video is initially enabled.
  public var video = true
  /// Whether audio is initially enabled.
  public var audio = true
  /// Application data that the other participants receive with the video.
  public var extraValue = ""
  /// What determines the rotation of camera frames.
  public var rotationType = CameraRotationType.notAvailable
  /// The camera to use.
  public var position = AVCaptureDevice.Position.front
  /// Whether the local view is mirrored.
  public var isMirror = true
  /// The file that supplies the video if the source is `file` or there is no camera.
  public var fileName = "sample.mov"
  // swift-format-ignore
  /// The captured video's width in pixels; the SDK's guide misspells the name in this way.
  public var cameraCapturewWidth = 640
  /// The captured video's height in pixels.
  public var cameraCaptureHeight = 480
  /// Whether the microphone's echo is cancelled.
  public var audioType = AudioProcessingType.voice
  /// Whether automatic gain control is applied to the microphone.
  public var autoGain = false

  /// Creates the default settings.
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
  /// The requested camera; the front camera by default.
  var core: CameraPosition { self == .back ? .back : .front }

  init(_ core: CameraPosition) { self = core == .back ? .back : .front }
}

/// A time interval in seconds, named as in CoreFoundation.
public typealias CFTimeInterval = Double

/// A W3C statistics object.
public struct Statistics {
  /// The object's identifier, which is the same in every report.
  public var id: String
  /// The object's type: `inbound-rtp`, `candidate-pair`, ...
  public var type: String
  /// When the object was sampled, as Unix time in seconds.
  public var timeStamp: CFTimeInterval
  /// Members by name: numbers, strings, Booleans and nested members.
  public var values: [String: Any]

  static func all(_ report: StatisticsReport?) -> [String: Statistics] {
    (report?.statistics ?? [:]).mapValues { object in
      Statistics(
        id: object.id, type: object.type, timeStamp: object.timeStamp,
        values: object.values.mapValues { $0.plain })
    }
  }
}

extension StatsValue {
  /// The value as a plain Foundation type.
  fileprivate var plain: Any {
    switch self {
    case .integer(let number): Int(truncatingIfNeeded: number)
    case .number(let number): number
    case .text(let text): text
    case .flag(let flag): flag
    case .record(let members):
      Dictionary(members.map { ($0.name, $0.value.plain) }) { first, _ in first }
    }
  }
}
