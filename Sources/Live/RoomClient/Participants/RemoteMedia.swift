public import Live
public import Room
import Synchronization
import Wire

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

  /// The number of the video in its room.
  public let id: Int
  /// The identifier of its owner.
  public let owner: String
  private let state: Mutex<State>
  private let driver: WeakDriver

  init(_ media: PublishedMedia, driver: RoomDriver?) {
    id = Int(media.id.number)
    owner = media.owner
    state = Mutex(State(media: media))
    self.driver = WeakDriver(driver)
  }

  /// Whether its owner has it switched on.
  public var active: Bool { state.withLock { $0.media.isActive } }
  /// Its owner's label: `screen`, ...
  public var extraValue: String { state.withLock { $0.media.extraValue } }
  /// The layers to choose from; empty if there is no choice.
  public var profiles: [VideoProfile] { state.withLock { $0.media.profiles } }
  /// The selected layer; `empty` if there is no choice, or none was selected.
  public var profile: VideoProfile { state.withLock { $0.profile } }
  /// Whether it is paused.
  ///
  /// Setting it asks the service; if it refuses, the value is reset and the room reports the error.
  /// `setPaused` waits for the answer.
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
  /// Whether it is subscribed to.
  public var isSubscribed: Bool { state.withLock { $0.isSubscribed } }
  /// The view that shows it, if any.
  public var viewId: Int? { state.withLock { $0.view?.id } }
  /// Its track; nil while it is not received.
  public var track: RemoteVideoTrack? { state.withLock { $0.track } }

  /// Shows it in a view, replacing what the view showed.
  public func attach(_ view: RenderView) {
    detach()
    view.attach { [weak self, weak view] in if let view { self?.letGo(of: view) } }
    let track = state.withLock { state in
      state.view = view
      return state.track
    }
    track?.add(view)
  }

  /// Stops showing it.
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

  /// Pauses or resumes it.
  /// - Throws: `RoomError` 1327 if it is not subscribed to, 1353 or 1354 otherwise.
  public func setPaused(_ isPaused: Bool) async throws(RoomError) {
    try await driver.call(.setPaused(MediaID(UInt32(id)), isPaused))
    state.withLock { $0.isPaused = isPaused }
  }

  /// Selects a layer.
  /// - Throws: `RoomError` 1327 if it is not subscribed to, 1351 or 1352 otherwise.
  public func setProfile(_ profile: VideoProfile) async throws(RoomError) {
    try await driver.call(.setProfile(MediaID(UInt32(id)), profile))
    state.withLock { $0.profile = profile }
  }

  /// Pauses or resumes it without waiting; a later refusal is an error of the room.
  /// - Throws: `RoomError` 1327 if it is not subscribed to, 1353 if it cannot be paused.
  package func beginPausing(_ isPaused: Bool) throws(RoomError) {
    try begin(.setPaused(MediaID(UInt32(id)), isPaused)) { $0.isPaused = isPaused }
  }

  /// Selects a layer without waiting; a later refusal is an error of the room.
  /// - Throws: `RoomError` 1327 if it is not subscribed to, 1351 if it has no such layer.
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

  // MARK: The room's side

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

  /// The number of the audio in its room.
  public let id: Int
  /// The identifier of its owner.
  public let owner: String
  private let state: Mutex<State>
  private let driver: WeakDriver

  init(_ media: PublishedMedia, driver: RoomDriver?) {
    id = Int(media.id.number)
    owner = media.owner
    state = Mutex(State(media: media))
    self.driver = WeakDriver(driver)
  }

  /// Whether its owner has it switched on.
  public var active: Bool { state.withLock { $0.media.isActive } }
  /// Its owner's label.
  public var extraValue: String { state.withLock { $0.media.extraValue } }
  /// Whether it is played whoever else speaks.
  public var alwaysOn: Bool { state.withLock { $0.media.isAlwaysOn } }
  /// Whether it is among the voices that are played.
  public var isOccupant: Bool { state.withLock { $0.isOccupant } }
  /// Its track; nil while it is not received.
  public var track: RemoteAudioTrack? { state.withLock { $0.track } }

  /// Mutes or unmutes this audio, independently of the whole room.
  /// - Throws: `RoomError` 1327 if it is not received.
  public func setMuted(_ isMuted: Bool) async throws(RoomError) {
    try await driver.call(.setMediaMuted(MediaID(UInt32(id)), isMuted))
  }

  // MARK: The room's side

  func change(_ media: PublishedMedia) { state.withLock { $0.media = media } }
  func setTrack(_ track: RemoteAudioTrack?) { state.withLock { $0.track = track } }
  func setOccupant(_ isOccupant: Bool) { state.withLock { $0.isOccupant = isOccupant } }
}

/// The driver of a room, held weakly.
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
