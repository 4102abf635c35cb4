import RetakeRTC
import RoomClient

/// Video that another participant publishes.
public protocol RemoteVideo: AnyObject, Sendable {
  /// The number of the stream, by which it is subscribed to.
  var id: Int { get }
  /// The participant that publishes it.
  var owner: String { get }
  /// Whether its owner has it enabled.
  var active: Bool { get }
  /// Its owner's application data.
  var extraValue: String { get }
  /// The chosen size.
  var profile: VideoProfileType { get }
  /// Whether reception is paused; a failure is reported as an error of the room.
  var pause: Bool { get set }
  /// The view that displays it; empty: none.
  var viewId: String { get }
  /// Whether it is subscribed to.
  var isSubscribed: Bool { get }
  /// Displays it in a view, in place of what the view displayed before.
  func attach(_ view: UIRenderView)
  /// Stops displaying it in a view.
  func detach(_ view: UIRenderView)
  /// Pauses or resumes reception.
  /// - Throws: an error when it is not subscribed to, or cannot be paused.
  func setPaused(_ pause: Bool) throws
  /// Chooses a size.
  /// - Throws: an error when it is not subscribed to, or has no such size.
  func setProfile(_ profile: VideoProfileType) throws
}

/// Audio that another participant publishes.
public protocol RemoteAudio: AnyObject, Sendable {
  /// The number of the stream.
  var id: Int { get }
  /// The participant that publishes it.
  var owner: String { get }
  /// Whether its owner has it enabled.
  var active: Bool { get }
  /// Its owner's application data.
  var extraValue: String { get }
  /// Whether it is always received, whoever speaks.
  var alwaysOn: Bool { get }
}

/// Video over that of `RoomClient`.
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

/// Audio over that of `RoomClient`.
final class RemoteAudioObject: RemoteAudio {
  let core: RoomClient.RemoteAudio

  init(_ core: RoomClient.RemoteAudio) { self.core = core }

  var id: Int { core.id }
  var owner: String { core.owner }
  var active: Bool { core.active }
  var extraValue: String { core.extraValue }
  var alwaysOn: Bool { core.alwaysOn }
}
