public import Live
public import Media
public import Room
import Synchronization
import Wire

/// Another participant in a room.
///
/// Its media is unpublished before the participant is reported to have left.
public final class RemoteParticipant: Sendable {
  private struct State {
    var videos: [Int: RemoteVideo] = [:]
    var audios: [Int: RemoteAudio] = [:]
  }

  /// The participant's identifier in the room.
  public let id: String
  /// The participant's display name; empty if there is none.
  public let name: String
  private let state = Mutex(State())

  init(id: String, name: String) {
    self.id = id
    self.name = name
  }

  /// The participant's published videos by number: a camera and a screen, for example.
  public var videos: [Int: RemoteVideo] { state.withLock { $0.videos } }
  /// The participant's published audio by number.
  public var audios: [Int: RemoteAudio] { state.withLock { $0.audios } }
  /// Whether any of the participant's videos is subscribed to.
  public var isVideoSubscribed: Bool { videos.values.contains { $0.isSubscribed } }

  func add(_ video: RemoteVideo) { state.withLock { $0.videos[video.id] = video } }
  func add(_ audio: RemoteAudio) { state.withLock { $0.audios[audio.id] = audio } }
  func remove(_ id: Int) {
    state.withLock { state in
      state.videos[id] = nil
      state.audios[id] = nil
    }
  }
}

/// The local client as a participant in a room.
public final class LocalParticipant: Sendable {
  private struct State {
    var id = ""
    var media: [LocalMedia] = []
  }
  private let state = Mutex(State())

  init() {}

  /// The identifier in the room; empty before joining.
  public var id: String { state.withLock { $0.id } }
  /// The published media.
  public var media: [LocalMedia] { state.withLock { $0.media } }

  /// The published videos by number in the room.
  public var videos: [Int: LocalVideo] {
    let videos = media.compactMap(\.video).filter { $0.part.isPublished }
    return Dictionary(videos.map { ($0.id, $0) }) { first, _ in first }
  }
  /// The published audio by number in the room.
  public var audios: [Int: LocalAudio] {
    let audios = media.compactMap(\.audio).filter { $0.part.isPublished }
    return Dictionary(audios.map { ($0.id, $0) }) { first, _ in first }
  }

  func setID(_ id: String) { state.withLock { $0.id = id } }
  func add(_ media: LocalMedia) { state.withLock { $0.media.append(media) } }
  func remove(_ media: LocalMedia) {
    state.withLock { state in state.media.removeAll { $0 === media } }
  }
}

// MARK: - RemoteMedia

/// Video published by another participant.
public final class RemoteVideo: Sendable {
  private struct State {
    var media: PublishedMedia
    var track: RemoteVideoTrack?
    var view: RenderView?
    var isSubscribed = false
    var isPaused = false
    var profile = VideoProfile.empty
  }

  /// The video's number in the room.
  public let id: Int
  /// The identifier of the participant who published the video.
  public let owner: String
  private let state: Mutex<State>
  private let driver: WeakDriver

  init(_ media: PublishedMedia, driver: RoomDriver?) {
    id = Int(media.id.number)
    owner = media.owner
    state = Mutex(State(media: media))
    self.driver = WeakDriver(driver)
  }

  /// Whether the owner has the video switched on.
  public var active: Bool { state.withLock { $0.media.isActive } }
  /// The owner's label for the video, such as `screen`.
  public var extraValue: String { state.withLock { $0.media.extraValue } }
  /// The layers to choose from; empty if there is no choice.
  public var profiles: [VideoProfile] { state.withLock { $0.media.profiles } }
  /// The selected layer; `empty` if there is no choice, or no layer was selected.
  public var profile: VideoProfile { state.withLock { $0.profile } }
  /// Whether the video is paused.
  ///
  /// Setting it sends a request to the service; if the service refuses, the value is reset and the
  /// room reports the error. `setPaused` waits for the answer.
  public var pause: Bool {
    get { state.withLock { $0.isPaused } }
    set {
      let former = state.withLock { state in
        defer { state.isPaused = newValue }
        return state.isPaused
      }
      guard former != newValue else { return }
      Task {
        do throws(RoomError) {
          try await setPaused(newValue)
        } catch {
          state.withLock { $0.isPaused = former }
          driver.driver?.report(error)
        }
      }
    }
  }
  /// Whether the video is subscribed to.
  public var isSubscribed: Bool { state.withLock { $0.isSubscribed } }
  /// The identifier of the view that shows the video; nil if there is none.
  public var viewId: Int? { state.withLock { $0.view?.id } }
  /// The received track; nil while nothing is received.
  public var track: RemoteVideoTrack? { state.withLock { $0.track } }

  /// Shows the video in a view, replacing the video shown there.
  public func attach(_ view: RenderView) {
    detach()
    view.attach { [weak self, weak view] in if let view { self?.letGo(of: view) } }
    let track = state.withLock { state in
      state.view = view
      return state.track
    }
    track?.add(view)
  }

  /// Stops showing the video.
  public func detach() {
    let view = state.withLock { $0.view }
    guard let view else { return }
    view.release()
    letGo(of: view)
  }

  private func letGo(of view: RenderView) {
    let track = state.withLock { state in
      if state.view === view { state.view = nil }
      return state.track
    }
    track?.remove(view)
    view.renderFrame(nil)
  }

  /// Pauses or resumes the video.
  /// - Throws: `RoomError` 1327 if the video is not subscribed to, 1353 or 1354 for other refusals.
  public func setPaused(_ isPaused: Bool) async throws(RoomError) {
    try await driver.call(.setPaused(MediaID(UInt32(id)), isPaused))
    state.withLock { $0.isPaused = isPaused }
  }

  /// Selects a layer.
  /// - Throws: `RoomError` 1327 if the video is not subscribed to, 1351 or 1352 for other refusals.
  public func setProfile(_ profile: VideoProfile) async throws(RoomError) {
    try await driver.call(.setProfile(MediaID(UInt32(id)), profile))
    state.withLock { $0.profile = profile }
  }

  /// Pauses or resumes the video without waiting; the room reports a later refusal as an error.
  /// - Throws: `RoomError` 1327 if the video is not subscribed to, 1353 if it cannot be paused.
  package func beginPausing(_ isPaused: Bool) throws(RoomError) {
    try begin(.setPaused(MediaID(UInt32(id)), isPaused)) { $0.isPaused = isPaused }
  }

  /// Selects a layer without waiting; the room reports a later refusal as an error.
  /// - Throws: `RoomError` 1327 if the video is not subscribed to, 1351 if it has no such layer.
  package func beginChoosing(_ profile: VideoProfile) throws(RoomError) {
    try begin(.setProfile(MediaID(UInt32(id)), profile)) { $0.profile = profile }
  }

  private func begin(
    _ call: RoomCall, _ change: @escaping @Sendable (inout State) -> Void
  ) throws(RoomError) {
    guard let room = driver.driver else { throw RoomError(.invalidState, "the room is over") }
    try room.begin(call) { [weak self, weak room] error in
      if let error { room?.report(error) } else { self?.state.withLock { change(&$0) } }
    }
  }

  // MARK: Called by the room

  func change(_ media: PublishedMedia) { state.withLock { $0.media = media } }

  func setSubscribed(_ isSubscribed: Bool) {
    state.withLock { $0.isSubscribed = isSubscribed }
  }

  func setTrack(_ track: RemoteVideoTrack?, isSubscribed: Bool) {
    let (view, former) = state.withLock { state in
      defer { (state.track, state.isSubscribed) = (track, isSubscribed) }
      return (state.view, state.track)
    }
    guard let view, former !== track else { return }
    former?.remove(view)
    track?.add(view)
  }
}

/// Audio published by another participant.
public final class RemoteAudio: Sendable {
  private struct State {
    var media: PublishedMedia
    var track: RemoteAudioTrack?
    var isOccupant = false
  }

  /// The audio's number in the room.
  public let id: Int
  /// The identifier of the participant who published the audio.
  public let owner: String
  private let state: Mutex<State>
  private let driver: WeakDriver

  init(_ media: PublishedMedia, driver: RoomDriver?) {
    id = Int(media.id.number)
    owner = media.owner
    state = Mutex(State(media: media))
    self.driver = WeakDriver(driver)
  }

  /// Whether the owner has the audio switched on.
  public var active: Bool { state.withLock { $0.media.isActive } }
  /// The owner's label for the audio.
  public var extraValue: String { state.withLock { $0.media.extraValue } }
  /// Whether the audio is played even if other voices are louder.
  public var alwaysOn: Bool { state.withLock { $0.media.isAlwaysOn } }
  /// Whether the audio is among the voices being played.
  public var isOccupant: Bool { state.withLock { $0.isOccupant } }
  /// The received track; nil while nothing is received.
  public var track: RemoteAudioTrack? { state.withLock { $0.track } }

  /// Mutes or unmutes this audio, independently of the room's own muting.
  /// - Throws: `RoomError` 1327 if the audio is not received.
  public func setMuted(_ isMuted: Bool) async throws(RoomError) {
    try await driver.call(.setMediaMuted(MediaID(UInt32(id)), isMuted))
  }

  // MARK: Called by the room

  func change(_ media: PublishedMedia) { state.withLock { $0.media = media } }
  func setTrack(_ track: RemoteAudioTrack?) { state.withLock { $0.track = track } }
  func setOccupant(_ isOccupant: Bool) { state.withLock { $0.isOccupant = isOccupant } }
}

/// A weak reference to a room's driver.
final class WeakDriver: Sendable {
  private struct Box {
    weak var driver: RoomDriver?
  }
  private let box: Mutex<Box>

  init(_ driver: RoomDriver?) { box = Mutex(Box(driver: driver)) }

  var driver: RoomDriver? { box.withLock { $0.driver } }

  func call(_ call: RoomCall) async throws(RoomError) {
    guard let driver else { throw RoomError(.invalidState, "the room is over") }
    if case .failed(let failure) = await driver.call(call) { throw RoomError(failure) }
  }
}

// MARK: - RenderView

/// A view that shows one video at a time.
///
/// Attaching another video replaces the previous one.
public final class RenderView: VideoRenderer {
  /// Identifies the view in this process.
  public let id: Int
  private let renderer: any VideoRenderer
  private let detachOwner = Mutex<(@Sendable () -> Void)?>(nil)
  private let mirrors = Mutex(false)
  private static let last = Atomic(0)

  /// Creates a view that passes frames to a renderer.
  public init(_ renderer: any VideoRenderer) {
    self.renderer = renderer
    id = RenderView.last.wrappingAdd(1, ordering: .relaxed).newValue
  }

  /// Passes the size of the frames that follow to the renderer.
  public func setSize(width: Int, height: Int) { renderer.setSize(width: width, height: height) }
  /// Shows a frame; nil clears the view.
  public func renderFrame(_ frame: VideoFrame?) {
    let isMirrored = mirrors.withLock { $0 }
    renderer.renderFrame(isMirrored ? frame.map(\.mirrored) : frame)
  }

  var isMirrored: Bool {
    get { mirrors.withLock { $0 } }
    set { mirrors.withLock { $0 = newValue } }
  }

  /// Detaches the previous video, and keeps a closure that detaches the new video.
  func attach(_ detach: @escaping @Sendable () -> Void) {
    let former = detachOwner.withLock { owner in
      defer { owner = detach }
      return owner
    }
    former?()
  }

  /// Forgets the attached video, which calls this when it detaches itself.
  func release() { detachOwner.withLock { $0 = nil } }
}

extension VideoFrame {
  /// An upright, mirrored copy of the frame; the frame itself if it has no samples.
  var mirrored: VideoFrame {
    let upright = videoFrame()
    guard !upright.samples.isEmpty else { return self }
    let (width, height) = (upright.width, upright.height)
    let (halfWidth, halfHeight) = ((width + 1) / 2, (height + 1) / 2)
    var samples = upright.samples
    var start = 0
    for (columns, rows) in [(width, height), (halfWidth, halfHeight), (halfWidth, halfHeight)] {
      for row in 0..<rows {
        samples[(start + row * columns)..<(start + (row + 1) * columns)].reverse()
      }
      start += columns * rows
    }
    let turned = I420Buffer(width: width, height: height, samples: samples)
    return (try? VideoFrame(turned, timestampNanoseconds: timestampNanoseconds)) ?? self
  }
}
