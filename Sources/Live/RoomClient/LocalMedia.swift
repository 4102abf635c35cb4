import AudioSession
import FoundationEssentials
public import Live
import Media
package import MediaFiles
import Room
import Synchronization

/// A client's own video and audio, which it captures and publishes in a room.
public final class LocalMedia: Sendable {
  private struct State {
    var session: VideoCaptureSession?
    var position: CameraPosition
    var isMirror: Bool
    var isStarted = false
    /// The object that delivers the file's sound, if the media comes from a file.
    var fileSound: (any Sendable)?
    var failure: RoomError?
  }

  /// The options passed to the initialiser.
  public let options: LocalMediaOptions
  /// The local video; nil if the options exclude video.
  public let video: LocalVideo?
  /// The local audio; nil if the options exclude audio.
  public let audio: LocalAudio?
  private let state: Mutex<State>
  private let orientation: DeviceOrientation
  private let permissions: CameraPermissions?
  private let program: MediaProgram
  private let cameras: (@Sendable (CameraPosition) -> any VideoCapturer)?

  /// Creates local media with a capturer and an audio source.
  /// - Parameters:
  ///   - capturer: the video source; nil to create the one that the options describe.
  ///   - orientation: the device's orientation, if the options refer to it.
  ///   - permissions: checked before a camera starts; nil to start without a check.
  ///   - cameras: creates a camera's capturer; nil for the system's cameras.
  ///   - audio: the audio source; nil for the file's sound if the media comes from a file, or else
  ///     for the microphone of the room's audio session. Without an audio session, the application
  ///     delivers audio to `audio.source`.
  ///   - program: the ffmpeg that reads cameras and files.
  /// - Throws: `RoomError` 1201 if the capturer that the options describe cannot be created.
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

  /// Creates local media that the stack generates or the application provides, without a capturer.
  /// - Parameters:
  ///   - video: the video source; nil for no video.
  ///   - audio: the audio source; nil for no audio.
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

  /// The video's capturer; nil if the source needs no capturer.
  public var capturer: (any VideoCapturer)? { state.withLock { $0.session?.capturer } }

  /// The camera's position.
  ///
  /// Setting it switches cameras as `switchCamera` does, but does not wait; if switching fails,
  /// `failure` says why.
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
  /// Why the last switch by setting `position` failed; nil if it did not fail.
  public var failure: RoomError? { state.withLock { $0.failure } }
  /// Whether the local video is shown mirrored.
  public var isMirror: Bool { state.withLock { $0.isMirror } }

  /// The local audio's level over the last 100 ms, from 0 to 100; 0 before the first window is
  /// complete.
  public var audioLevel: Int { audio?.track.audioLevel?.percent ?? 0 }

  /// Starts capturing; publishing the media also starts it.
  /// - Throws: `RoomError` 1201 if the capturer does not start, 1202 if there is no capturer.
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

  /// Captures the options' file if there is no camera; returns false if there is no file either, or
  /// if access to the camera was refused.
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

  /// Starts the file's sound unless there is another audio source.
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

  /// Stops the capturer; sources without a capturer keep running.
  public func stop() async { endCapturing() }

  /// Stops the capturer like `stop`, for callers that cannot await.
  package func endCapturing() {
    let session = state.withLock { state in
      // Sources without a capturer keep running.
      if state.session != nil { state.isStarted = false }
      state.fileSound = nil
      return state.session
    }
    session?.stop()
  }

  /// Switches to another camera.
  /// - Throws: `RoomError` 1202 if the video is not from a camera, 1201 if the new camera does not
  ///   start, in which case neither camera runs.
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

/// The video or the audio of local media as a room uses it, with its description and track.
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
  /// The media's number in the room; before publication, a number unique in this process.
  var number: Int { state.withLock { Int(($0.media?.number) ?? $0.info.id.number) } }
  /// The media's number in the room; nil while the media is not published.
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

/// Delivers a WAV file's audio to a source in real time, repeatedly unless `loops` is false, until
/// this object is released.
package final class AudioFile: Sendable {
  private let task: Task<Void, Never>

  /// Starts delivering a file.
  /// - Throws: `MediaFileError` if the file cannot be read or has no audio.
  package init(path: String, to source: AudioSource, loops: Bool = true) throws(MediaFileError) {
    let file = try WAVFileSource(path: path, loops: loops)
    task = Task.detached(priority: .high) {
      var file = file
      let clock = ContinuousClock()
      let began = clock.now
      // A read error ends the audio, as the end of the file does.
      while !Task.isCancelled, let next = try? file.next() {
        try? await clock.sleep(until: began + .nanoseconds(next.nanoseconds))
        if case .audio(let block) = next.media { source.deliver(block) }
      }
    }
  }

  deinit { task.cancel() }
}

/// Local media's tracks by number, for a room's connections.
final class LocalSources: Sendable {
  /// The identifier of the single stream that contains all local media.
  let streamID: String
  private let tracks = Mutex<[LocalMediaID: any MediaStreamTrack]>([:])

  init(streamID: String) { self.streamID = streamID }

  func track(_ id: LocalMediaID) -> (any MediaStreamTrack)? { tracks.withLock { $0[id] } }

  func set(_ track: (any MediaStreamTrack)?, _ id: LocalMediaID) {
    tracks.withLock { $0[id] = track }
  }
}
