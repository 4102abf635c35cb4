import AudioSession
public import Live
import Room
import Synchronization

/// Own video.
public final class LocalVideo: Sendable {
  /// Where the video frames come from.
  public let source: VideoSource
  /// What is sent.
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

  /// The number in the room; one of this process until it is published.
  public var id: Int { part.number }
  /// The identifier of this participant; nil before the room is there.
  public var owner: String? { part.owner }
  /// Whether it is switched on: else it is black, and the others are told.
  public var active: Bool {
    get { part.info.isActive }
    set { part.change { $0.isActive = newValue } }
  }
  /// What is said of it to the others.
  public var extraValue: String {
    get { part.info.extraValue }
    set { part.change { $0.extraValue = newValue } }
  }
  /// Whether 1280x720 is captured; takes effect with the next start.
  public var hd: Bool {
    get { isHD.withLock { $0 } }
    set { isHD.withLock { $0 = newValue } }
  }
  /// The view that shows it; nil: none.
  public var viewId: Int? { view.withLock { $0?.id } }
  /// Whether its view shows it as in a mirror; what is sent never is.
  var isMirrored: Bool {
    get { mirrors.withLock { $0 } }
    set {
      mirrors.withLock { $0 = newValue }
      view.withLock { $0 }?.isMirrored = newValue
    }
  }

  /// Shows it in a view, which no longer shows what it showed before.
  public func attach(_ view: RenderView) {
    detach()
    view.isMirrored = isMirrored
    view.attach { [weak self, weak view] in if let view { self?.letGo(of: view) } }
    self.view.withLock { $0 = view }
    track.add(view)
  }

  /// Shows it no longer.
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

/// Own audio.
public final class LocalAudio: Sendable {
  /// Where the audio comes from.
  public let source: AudioSource
  /// What is sent.
  public let track: LocalAudioTrack
  let part: LocalPart
  /// Where the audio is to come from.
  let origin: Origin
  private let options: LocalMediaOptions
  private let microphone = Mutex<AudioAttachment?>(nil)

  /// Where local audio comes from.
  enum Origin {
    /// The application chose a source.
    case application
    /// The audio session of a room, or the application if there is none.
    case microphone
    /// The file of the options.
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

  /// The number in the room; one of this process until it is published.
  public var id: Int { part.number }
  /// The identifier of this participant; nil before the room is there.
  public var owner: String? { part.owner }
  /// Whether it is switched on: else it is silent, and the others are told.
  public var active: Bool {
    get { part.info.isActive }
    set { part.change { $0.isActive = newValue } }
  }
  /// What is said of it to the others.
  public var extraValue: String {
    get { part.info.extraValue }
    set { part.change { $0.extraValue = newValue } }
  }
  /// Sends the microphone of an audio session, processed by the options, until `closeMicrophone`.
  ///
  /// - Throws: `RoomError` 1441 when it may not be used.
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

  /// The room is there: the device gets the category and the mode of a call once more, over what
  /// the application set meanwhile.
  func roomIsThere() { microphone.withLock { $0 }?.establish() }

  /// Whether it is heard whoever speaks.
  public var alwaysOn: Bool {
    get { part.info.isAlwaysOn }
    set { part.change { $0.isAlwaysOn = newValue } }
  }
}

/// Names of local tracks, which no two of a process share.
enum LocalTrackNames {
  private static let last = Atomic(0)
  static var next: Int { last.wrappingAdd(1, ordering: .relaxed).newValue }
}
