import RetakeRTC
import RoomClient
import Synchronization

/// The application's own participant in a room.
public protocol LocalParticipant: AnyObject, Sendable {
  /// The participant's identifier in the room; empty until connected.
  var id: String { get }
  /// The published videos by number.
  var videos: [Int: any LocalVideo] { get }
  /// The published audio by number.
  var audios: [Int: any LocalAudio] { get }
}

/// A remote participant.
///
/// The object keeps its media after the participant leaves, for as long as the application holds a
/// reference to it.
public protocol RemoteParticipant: AnyObject, Sendable {
  /// The participant's identifier in the room.
  var id: String { get }
  /// The participant's published videos by number: a camera and a screen, for example.
  var videos: [Int: any RemoteVideo] { get }
  /// The participant's published audio by number.
  var audios: [Int: any RemoteAudio] { get }
  /// Whether any of the participant's videos is subscribed to.
  var isVideoSubscribed: Bool { get }
}

/// Wraps `RoomClient.LocalParticipant`.
final class LocalParticipantObject: LocalParticipant {
  private let core: RoomClient.LocalParticipant?
  private let objects: RoomObjects

  init(_ core: RoomClient.LocalParticipant?, _ objects: RoomObjects) {
    (self.core, self.objects) = (core, objects)
  }

  var id: String { core?.id ?? "" }
  var videos: [Int: any LocalVideo] {
    guard let core else { return [:] }
    let published = core.videos
    let own = core.media.map { objects.local($0) }
    return published.compactMapValues { video in own.first { $0.core.video === video }?.video }
  }
  var audios: [Int: any LocalAudio] {
    guard let core else { return [:] }
    let published = core.audios
    let own = core.media.map { objects.local($0) }
    return published.compactMapValues { audio in own.first { $0.core.audio === audio }?.audio }
  }
}

/// Wraps `RoomClient.RemoteParticipant`, and holds a wrapper for each of its media.
final class RemoteParticipantObject: RemoteParticipant {
  let core: RoomClient.RemoteParticipant
  private let made = Mutex<(videos: [RemoteVideoObject], audios: [RemoteAudioObject])>(([], []))

  init(_ core: RoomClient.RemoteParticipant) { self.core = core }

  var id: String { core.id }
  var videos: [Int: any RemoteVideo] { core.videos.mapValues { video($0) } }
  var audios: [Int: any RemoteAudio] { core.audios.mapValues { audio($0) } }
  var isVideoSubscribed: Bool { core.isVideoSubscribed }

  func video(_ core: RoomClient.RemoteVideo) -> RemoteVideoObject {
    made.withLock { made in
      if let known = made.videos.first(where: { $0.core === core }) { return known }
      let object = RemoteVideoObject(core)
      made.videos.append(object)
      return object
    }
  }

  func audio(_ core: RoomClient.RemoteAudio) -> RemoteAudioObject {
    made.withLock { made in
      if let known = made.audios.first(where: { $0.core === core }) { return known }
      let object = RemoteAudioObject(core)
      made.audios.append(object)
      return object
    }
  }

  /// Releases the wrapper of unpublished media.
  func forget(_ id: Int) {
    made.withLock { made in
      made.videos.removeAll { $0.id == id }
      made.audios.removeAll { $0.id == id }
    }
  }
}

/// The wrappers that a room has handed to its application, one for each `RoomClient` object.
final class RoomObjects: Sendable {
  private struct State {
    var people: [RemoteParticipantObject] = []
    var media: [LocalMediaObject] = []
  }

  private let state = Mutex(State())

  func participant(_ core: RoomClient.RemoteParticipant) -> RemoteParticipantObject {
    state.withLock { state in
      if let known = state.people.first(where: { $0.core === core }) { return known }
      let object = RemoteParticipantObject(core)
      state.people.append(object)
      return object
    }
  }

  func forget(_ participant: RemoteParticipantObject) {
    state.withLock { state in state.people.removeAll { $0 === participant } }
  }

  func add(_ media: LocalMediaObject) {
    state.withLock { state in
      if !state.media.contains(where: { $0 === media }) { state.media.append(media) }
    }
  }

  /// Returns the wrapper of published local media or of a shared screen.
  func local(_ core: RoomClient.LocalMedia) -> LocalMediaObject {
    state.withLock { state in
      if let known = state.media.first(where: { $0.core === core }) { return known }
      let object = LocalMediaObject(core)
      state.media.append(object)
      return object
    }
  }

  func forget(_ media: LocalMediaObject) {
    state.withLock { state in state.media.removeAll { $0 === media } }
  }
}

// MARK: - RemoteMedia

/// Video that another participant publishes.
public protocol RemoteVideo: AnyObject, Sendable {
  /// The stream's number, to pass to `subscribe`.
  var id: Int { get }
  /// The identifier of the participant who publishes the video.
  var owner: String { get }
  /// Whether the owner has the video enabled.
  var active: Bool { get }
  /// The owner's application data.
  var extraValue: String { get }
  /// The size that was chosen for reception.
  var profile: VideoProfileType { get }
  /// Whether reception is paused; if pausing or resuming fails, the room reports an error.
  var pause: Bool { get set }
  /// The identifier of the view that displays the video; empty if there is none.
  var viewId: String { get }
  /// Whether the video is subscribed to.
  var isSubscribed: Bool { get }
  /// Displays the video in a view, replacing the video shown there.
  func attach(_ view: UIRenderView)
  /// Stops displaying the video in a view.
  func detach(_ view: UIRenderView)
  /// Pauses or resumes reception.
  /// - Throws: an error if the video is not subscribed to or cannot be paused.
  func setPaused(_ pause: Bool) throws
  /// Chooses a size.
  /// - Throws: an error if the video is not subscribed to or has no such size.
  func setProfile(_ profile: VideoProfileType) throws
}

/// Audio that another participant publishes.
public protocol RemoteAudio: AnyObject, Sendable {
  /// The stream's number.
  var id: Int { get }
  /// The identifier of the participant who publishes the audio.
  var owner: String { get }
  /// Whether the owner has the audio enabled.
  var active: Bool { get }
  /// The owner's application data.
  var extraValue: String { get }
  /// Whether the audio is always received, even if other voices are louder.
  var alwaysOn: Bool { get }
}

/// Wraps `RoomClient.RemoteVideo`.
final class RemoteVideoObject: RemoteVideo {
  let core: RoomClient.RemoteVideo

  init(_ core: RoomClient.RemoteVideo) { self.core = core }

  var id: Int { core.id }
  var owner: String { core.owner }
  var active: Bool { core.active }
  var extraValue: String { core.extraValue }
  var profile: VideoProfileType { VideoProfileType(core.profile) }
  var pause: Bool {
    get { core.pause }
    set { core.pause = newValue }
  }
  var viewId: String { core.viewId.map(String.init) ?? "" }
  var isSubscribed: Bool { core.isSubscribed }
  func attach(_ view: UIRenderView) { core.attach(view.core) }
  func detach(_ view: UIRenderView) {
    if core.viewId == view.core.id { core.detach() }
  }
  func setPaused(_ pause: Bool) throws { try core.beginPausing(pause) }
  func setProfile(_ profile: VideoProfileType) throws { try core.beginChoosing(profile.core) }
}

/// Wraps `RoomClient.RemoteAudio`.
final class RemoteAudioObject: RemoteAudio {
  let core: RoomClient.RemoteAudio

  init(_ core: RoomClient.RemoteAudio) { self.core = core }

  var id: Int { core.id }
  var owner: String { core.owner }
  var active: Bool { core.active }
  var extraValue: String { core.extraValue }
  var alwaysOn: Bool { core.alwaysOn }
}
