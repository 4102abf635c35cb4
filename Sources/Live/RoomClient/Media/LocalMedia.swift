import AudioSession
import FoundationEssentials
public import Live
import MediaFiles
import Room
import Synchronization

/// Local media: what is captured, and sent when a room publishes it.
public final class LocalMedia: Sendable {
  private struct State {
    var session: VideoCaptureSession?
    var position: CameraPosition
    var isMirror: Bool
    var isStarted = false
    /// The sound of the file that the media come from.
    var fileSound: (any Sendable)?
    var failure: RoomError?
  }

  /// What it was made of.
  public let options: LocalMediaOptions
  /// The local video; nil: there is none.
  public let video: LocalVideo?
  /// The local audio; nil: there is none.
  public let audio: LocalAudio?
  private let state: Mutex<State>
  private let orientation: DeviceOrientation
  private let permissions: CameraPermissions?
  private let program: MediaProgram
  private let cameras: (@Sendable (CameraPosition) -> any VideoCapturer)?

  /// Creates local media with a capturer, and audio of a source.
  /// - Parameters:
  ///   - capturer: what takes the video frames; nil makes the one that the options ask for.
  ///   - orientation: how the device is held, where the options turn frames by that.
  ///   - permissions: who is asked before a camera starts; nil: nobody.
  ///   - cameras: makes the capturer of a camera; nil takes the cameras of the system.
  ///   - audio: where audio comes from; nil: from the file where the media come from one, else from
  ///     the audio session of the room that publishes it, or from the application that delivers it
  ///     to `audio.source`.
  ///   - program: the ffmpeg that reads the cameras of the system and files.
  /// - Throws: `RoomError` 1201 when there is no such capturer.
  public init(
    options: LocalMediaOptions = LocalMediaOptions(), capturer: (any VideoCapturer)? = nil,
    orientation: DeviceOrientation = DeviceOrientation(), permissions: CameraPermissions? = nil,
    cameras: (@Sendable (CameraPosition) -> any VideoCapturer)? = nil, audio: AudioSource? = nil,
    program: MediaProgram = .system
  ) throws(RoomError) {
    self.program = program
    self.cameras = cameras
    self.options = options
    self.orientation = orientation
    self.permissions = permissions
    var session: VideoCaptureSession?
    if options.hasVideo {
      var taken = capturer
      if taken == nil, options.source == .camera { taken = cameras?(options.position) }
      if taken == nil { taken = try LocalMedia.capturer(options, nil, orientation, program) }
      session = taken.map {
        VideoCaptureSession($0, permissions: permissions, startsWhenSent: false)
      }
    }
    video = options.hasVideo ? LocalVideo(VideoSource(), options) : nil
    self.audio =
      options.hasAudio
      ? LocalAudio(
        audio ?? AudioSource(), options,
        from: audio != nil ? .application : options.source == .file ? .file : .microphone) : nil
    state = Mutex(
      State(session: session, position: options.position, isMirror: options.isMirror))
    if let video { session?.feed(video.source) }
  }

  /// Creates local media whose sources need no capturer: video frames and audio that the stack
  /// makes, or that the application hands in.
  /// - Parameters:
  ///   - video: nil: there is none.
  ///   - audio: nil: there is none.
  public init(
    video: VideoSource?, audio: AudioSource?, options: LocalMediaOptions = LocalMediaOptions()
  ) {
    self.options = options
    orientation = DeviceOrientation()
    (permissions, cameras, program) = (nil, nil, .system)
    self.video = video.map { LocalVideo($0, options) }
    self.audio = audio.map { LocalAudio($0, options, from: .application) }
    state = Mutex(
      State(position: options.position, isMirror: options.isMirror, isStarted: true))
  }

  private static func capturer(
    _ options: LocalMediaOptions, _ position: CameraPosition?, _ orientation: DeviceOrientation,
    _ program: MediaProgram
  ) throws(RoomError) -> any VideoCapturer {
    do throws(MediaFileError) {
      return try options.makeVideoCapturer(
        position: position, orientation: orientation, program: program)
    } catch {
      throw RoomError(.cameraFailed, "\(error)")
    }
  }

  /// The capturer of the video frames; nil when the source needs none.
  public var capturer: (any VideoCapturer)? { state.withLock { $0.session?.capturer } }

  /// Which camera.
  ///
  /// Setting it switches to another one as `switchCamera` does, which waits for that; where it
  /// fails, `failure` says why.
  public var position: CameraPosition {
    get { state.withLock { $0.position } }
    set {
      guard newValue != position else { return }
      let isMirror = isMirror
      Task {
        do throws(RoomError) {
          try await switchCamera(position: newValue, isMirror: isMirror)
        } catch {
          state.withLock { $0.failure = error }
        }
      }
    }
  }
  /// Why the last switch by `position` failed; nil while all is well.
  public var failure: RoomError? { state.withLock { $0.failure } }
  /// Whether the local video frames are shown as in a mirror.
  public var isMirror: Bool { state.withLock { $0.isMirror } }

  /// How loud the local audio was in the last 100 ms: 0 to 100, 0 before any.
  public var audioLevel: Int { audio?.track.audioLevel?.percent ?? 0 }

  /// Starts to capture; publishing does it by itself.
  /// - Throws: `RoomError` 1201 when the capturer does not start, 1202 when there is none.
  public func start() async throws(RoomError) {
    let (session, isStarted) = state.withLock { ($0.session, $0.isStarted) }
    guard !isStarted else { return }
    if options.source == .file { try startSound() }
    guard video != nil else { return }
    guard let session else { throw RoomError(.capturerMissing, "there is no capturer") }
    let wish = video?.hd == true ? VideoFormat.highDefinition(options) : options.videoFormat
    if await !session.start(wish), try await !startFile(inPlaceOf: session.capturer) {
      throw RoomError(.cameraFailed, LocalMedia.reason(session.capturer))
    }
    state.withLock { $0.isStarted = true }
  }

  /// Captures the file of the options where there is no camera; false where no file is either,
  /// or the camera is there and was refused.
  private func startFile(inPlaceOf camera: any VideoCapturer) async throws(RoomError) -> Bool {
    let camera = (camera as? FilteredVideoCapturer)?.capturer ?? camera
    guard options.source == .camera, let video,
      (camera as? ProcessVideoCapturer)?.failure != nil || camera.supportedFormats.isEmpty,
      FileManager.default.isReadableFile(atPath: options.fileName)
    else { return false }
    let capturer: any VideoCapturer
    do throws(MediaFileError) {
      capturer = try options.makeFileCapturer(program)
    } catch {
      throw RoomError(.cameraFailed, "\(error)")
    }
    let session = VideoCaptureSession(capturer)
    session.feed(video.source)
    guard await session.start(options.videoFormat) else {
      throw RoomError(.cameraFailed, LocalMedia.reason(capturer))
    }
    state.withLock { $0.session = session }
    return true
  }

  /// Begins with the sound of the file, where nothing else gives the audio.
  private func startSound() throws(RoomError) {
    guard let audio, audio.origin == .file, state.withLock({ $0.fileSound == nil }) else { return }
    do {
      var sound: (any Sendable)?
      if options.fileName.lowercased().hasSuffix(".wav") {
        sound = try AudioFile(path: options.fileName, to: audio.source)
      } else if options.needsProgram {
        sound = try ProcessAudioFile(path: options.fileName, to: audio.source, program: program)
      }
      state.withLock { $0.fileSound = sound }
    } catch {
      throw RoomError(.cameraFailed, "\(error)")
    }
  }

  private static func reason(_ capturer: any VideoCapturer) -> String {
    let capturer = (capturer as? FilteredVideoCapturer)?.capturer ?? capturer
    return (capturer as? ProcessVideoCapturer)?.failure?.reason
      ?? (capturer as? FileVideoCapturer)?.failure.map { "\($0)" }
      ?? "the capturer did not start"
  }

  /// Ends capturing.
  public func stop() async { endCapturing() }

  /// Ends capturing, and returns when nothing more is captured.
  package func endCapturing() {
    let session = state.withLock { state in
      // What needs no capturer continues.
      if state.session != nil { state.isStarted = false }
      state.fileSound = nil
      return state.session
    }
    session?.stop()
  }

  /// Captures another camera in the place of this one.
  ///
  /// - Throws: `RoomError` 1201 when it does not start: the one before is stopped then.
  public func switchCamera(position: CameraPosition, isMirror: Bool = true)
    async throws(RoomError)
  {
    guard options.source == .camera, let video, state.withLock({ $0.session != nil }) else {
      throw RoomError(.capturerMissing, "the video frames do not come from a camera")
    }
    let camera: any VideoCapturer
    if let cameras {
      camera = cameras(position)
    } else {
      camera = try LocalMedia.capturer(options, position, orientation, program)
    }
    let next = VideoCaptureSession(
      camera, permissions: permissions, startsWhenSent: false)
    next.feed(video.source)
    let (former, wasStarted) = state.withLock { state in
      defer {
        (state.session, state.position, state.isMirror) = (next, position, isMirror)
        (state.isStarted, state.failure) = (false, nil)
      }
      return (state.session, state.isStarted)
    }
    former?.stop()
    video.isMirrored = isMirror
    if wasStarted { try await start() }
  }

  var parts: [LocalPart] { [video?.part, audio?.part].compactMap(\.self) }
}

extension VideoFormat {
  fileprivate static func highDefinition(_ options: LocalMediaOptions) -> VideoFormat {
    VideoFormat(width: 1_280, height: 720, framesPerSecond: Double(options.videoFPS))
  }
}

/// What a room needs of local media: what it tells of it, and the track.
final class LocalPart: Sendable {
  private struct State {
    var info: LocalMediaInfo
    var media: MediaID?
    var driver: WeakDriver?
  }

  let track: any MediaStreamTrack
  private let state: Mutex<State>
  private static let last = Atomic<UInt32>(0)

  init(
    _ track: any MediaStreamTrack, isActive: Bool, extraValue: String, layers: [String] = []
  ) {
    self.track = track
    let number = LocalPart.last.wrappingAdd(1, ordering: .relaxed).newValue
    state = Mutex(
      State(
        info: LocalMediaInfo(
          id: LocalMediaID(number), kind: track.kind, isActive: isActive, extraValue: extraValue,
          layers: layers)))
    track.isEnabled = isActive
  }

  var info: LocalMediaInfo { state.withLock { $0.info } }
  /// The number in the room; that of this process until it is published.
  var number: Int { state.withLock { Int(($0.media?.number) ?? $0.info.id.number) } }
  /// The number in the room; nil while it is not published.
  var publishedNumber: Int? { state.withLock { $0.media.map { Int($0.number) } } }
  var owner: String? { state.withLock { $0.driver?.driver?.snapshot.localID } }

  func belong(to driver: RoomDriver?) { state.withLock { $0.driver = WeakDriver(driver) } }
  func setMedia(_ media: MediaID?) { state.withLock { $0.media = media } }

  func change(_ change: (inout LocalMediaInfo) -> Void) {
    let (info, driver) = state.withLock { state in
      change(&state.info)
      return (state.info, state.driver?.driver)
    }
    track.isEnabled = info.isActive
    driver?.post(.updateLocal(info))
  }
}
