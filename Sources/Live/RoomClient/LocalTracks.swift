import AudioSession
public import Live
import Room
import Synchronization

/// A participant's own video, as published in a room.
public final class LocalVideo: Sendable {
  /// The source that supplies the video.
  public let source: VideoSource
  /// The sent track.
  public let track: LocalVideoTrack
  let part: LocalPart
  private let isHD = Mutex(false)
  private let view = Mutex<RenderView?>(nil)
  private let mirrors: Mutex<Bool>

  init(_ source: VideoSource, _ options: LocalMediaOptions) {
    self.source = source
    mirrors = Mutex(options.isMirror)
    track = LocalVideoTrack(source: source, id: "video-\(LocalTrackNames.next)")
    part = LocalPart(
      track, isActive: options.video, extraValue: options.videoExtraValue,
      layers: options.videoLayers ?? [])
  }

  /// The video's number in the room; before the video is published, a number unique in this
  /// process.
  public var id: Int { part.number }
  /// The local participant's identifier; nil before joining.
  public var owner: String? { part.owner }
  /// Whether the video is switched on; otherwise it is black, and other participants are informed.
  public var active: Bool {
    get { part.info.isActive }
    set { part.change { $0.isActive = newValue } }
  }
  /// A label that other participants see.
  public var extraValue: String {
    get { part.info.extraValue }
    set { part.change { $0.extraValue = newValue } }
  }
  /// Whether to capture 1280x720; a change takes effect when capturing next starts.
  public var hd: Bool {
    get { isHD.withLock { $0 } }
    set { isHD.withLock { $0 = newValue } }
  }
  /// The identifier of the view that shows the video; nil if there is none.
  public var viewId: Int? { view.withLock { $0?.id } }
  /// Whether the view is mirrored; the sent video is never mirrored.
  var isMirrored: Bool {
    get { mirrors.withLock { $0 } }
    set {
      mirrors.withLock { $0 = newValue }
      view.withLock { $0 }?.isMirrored = newValue
    }
  }

  /// Shows the video in a view, replacing the video shown there.
  public func attach(_ view: RenderView) {
    detach()
    view.isMirrored = isMirrored
    view.attach { [weak self, weak view] in if let view { self?.letGo(of: view) } }
    self.view.withLock { $0 = view }
    track.add(view)
  }

  /// Stops showing the video.
  public func detach() {
    guard let view = view.withLock({ $0 }) else { return }
    view.release()
    letGo(of: view)
  }

  private func letGo(of view: RenderView) {
    self.view.withLock { if $0 === view { $0 = nil } }
    track.remove(view)
    view.renderFrame(nil)
    view.isMirrored = false
  }
}

/// A participant's own audio, as published in a room.
public final class LocalAudio: Sendable {
  /// The source that supplies the audio.
  public let source: AudioSource
  /// The sent track.
  public let track: LocalAudioTrack
  let part: LocalPart
  let origin: Origin
  private let options: LocalMediaOptions
  private let microphone = Mutex<AudioAttachment?>(nil)

  /// The source of local audio.
  enum Origin {
    /// A source that the application chose.
    case application
    /// The microphone of the room's audio session, or the application if there is no audio session.
    case microphone
    /// The options' file.
    case file
  }

  init(_ source: AudioSource, _ options: LocalMediaOptions, from origin: Origin) {
    self.source = source
    self.options = options
    self.origin = origin
    track = LocalAudioTrack(source: source, id: "audio-\(LocalTrackNames.next)")
    part = LocalPart(
      track, isActive: options.audio, extraValue: options.audioExtraValue)
  }

  /// The audio's number in the room; before the audio is published, a number unique in this
  /// process.
  public var id: Int { part.number }
  /// The local participant's identifier; nil before joining.
  public var owner: String? { part.owner }
  /// Whether the audio is switched on; otherwise it is silent, and other participants are informed.
  public var active: Bool {
    get { part.info.isActive }
    set { part.change { $0.isActive = newValue } }
  }
  /// A label that other participants see.
  public var extraValue: String {
    get { part.info.extraValue }
    set { part.change { $0.extraValue = newValue } }
  }
  /// Sends the microphone's audio, processed according to the options, until `closeMicrophone`.
  /// - Throws: `RoomError` 1441 if the microphone cannot be used.
  func openMicrophone(of session: AudioSession) throws(RoomError) {
    guard origin == .microphone, microphone.withLock({ $0 == nil }) else { return }
    do throws(AudioSessionError) {
      try session.processMicrophone(
        options.audioType.processing, controlsGain: options.autoGain)
      let opened = try session.openMicrophone { [weak source] in source?.deliver($0) }
      microphone.withLock { $0 = opened }
    } catch {
      throw RoomError(.publishFailed, "the microphone cannot be used: \(error)")
    }
  }

  func closeMicrophone() { microphone.withLock { $0 = nil } }

  /// Sets the audio session's category and mode for calls again once the room is joined, overriding
  /// the application's settings.
  func roomIsThere() { microphone.withLock { $0 }?.establish() }

  /// Whether the audio is played even if other voices are louder.
  public var alwaysOn: Bool {
    get { part.info.isAlwaysOn }
    set { part.change { $0.isAlwaysOn = newValue } }
  }
}

/// Numbers for local tracks, unique in the process.
enum LocalTrackNames {
  private static let last = Atomic(0)
  static var next: Int { last.wrappingAdd(1, ordering: .relaxed).newValue }
}
