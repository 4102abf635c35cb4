public import Foundation
import Live
import Media
public import RetakeRTC
import RoomClient
import Synchronization

/// Locally captured audio and video, sent once a room publishes it.
public protocol LocalMedia: AnyObject, Sendable {
  /// The local video; if there is none, an object whose methods have no effect.
  var video: any LocalVideo { get }
  /// The local audio; if there is none, an object whose properties have no effect.
  var audio: any LocalAudio { get }
  /// The camera in use; setting it switches to another one.
  var position: AVCaptureDevice.Position { get set }
  /// Whether the local view is mirrored.
  var isMirror: Bool { get }
  /// The local audio's level, from 0 to 100.
  var audioLevel: Int { get }

  /// Starts capturing; publishing the media also starts it.
  func start() async throws
  /// Starts capturing; the closure receives the error, or nil on success.
  func start(completion: @escaping ((any Error)?) -> Void)
  /// Stops capturing.
  func stop()
  /// Switches to another camera; throws if that camera does not start.
  func switchCamera(position: AVCaptureDevice.Position, isMirror: Bool) async throws
  /// Switches to another camera; the closure receives the error, or nil on success.
  func switchCamera(
    position: AVCaptureDevice.Position, isMirror: Bool,
    completion: @escaping ((any Error)?) -> Void)
}

/// Video that the local participant captures and may publish.
public protocol LocalVideo: AnyObject, Sendable {
  /// The stream's number; valid only in this process until the stream is published.
  var id: Int { get }
  /// The identifier of the participant who publishes the video; empty until it is published.
  var owner: String { get }
  /// Whether the video is enabled; disabled video is black, and other participants see that it is
  /// off.
  var active: Bool { get set }
  /// Application data that other participants receive with the video.
  var extraValue: String { get set }
  /// The identifier of the view that displays the video; empty if there is none.
  var viewId: String { get }
  /// Whether the camera captures 1280x720; a change applies at the next start.
  var hd: Bool { get set }
  /// Displays the video in a view, replacing the video shown there.
  func attach(_ view: UIRenderView)
  /// Stops displaying the video.
  func detach()
}

/// Audio that the local participant captures and may publish.
public protocol LocalAudio: AnyObject, Sendable {
  /// The stream's number; valid only in this process until the stream is published.
  var id: Int { get }
  /// The identifier of the participant who publishes the audio; empty until it is published.
  var owner: String { get }
  /// Whether the audio is enabled; disabled audio is silent, and other participants see that it is
  /// off.
  var active: Bool { get set }
  /// Application data that other participants receive with the audio.
  var extraValue: String { get set }
}

extension LocalMedia {
  /// Sends an image from the application if the media's source is `bypass`.
  ///
  /// The SDK's guide names only the source, not this method.
  public func sendVideoFrame(sampleBuffer: CMSampleBuffer) {
    guard let frame = sampleBuffer.videoFrame, let own = self as? LocalMediaObject else { return }
    (own.core.capturer as? PushedVideoCapturer)?.push(frame)
  }
}

/// Wraps `RoomClient.LocalMedia`.
final class LocalMediaObject: LocalMedia {
  let core: RoomClient.LocalMedia
  let video: any LocalVideo
  let audio: any LocalAudio

  convenience init(_ options: LocalMediaOptions) throws(RoomError) {
    let native = options.core
    self.init(
      try RoomClient.LocalMedia(
        options: native, permissions: AVCaptureDevice.permissions,
        cameras: { AVCaptureDevice.capturer($0) ?? ProcessVideoCapturer.camera($0) }))
  }

  init(_ core: RoomClient.LocalMedia) {
    self.core = core
    video = LocalVideoObject(core.video)
    audio = LocalAudioObject(core.audio)
  }

  var position: AVCaptureDevice.Position {
    get { AVCaptureDevice.Position(core.position) }
    set { core.position = newValue.core }
  }
  var isMirror: Bool { core.isMirror }
  var audioLevel: Int { core.audioLevel }

  func start() async throws { try await core.start() }
  func start(completion: @escaping ((any Error)?) -> Void) {
    answer(completion) { [core] () throws(RoomError) in try await core.start() }
  }
  func stop() { core.endCapturing() }
  func switchCamera(position: AVCaptureDevice.Position, isMirror: Bool) async throws {
    try await core.switchCamera(position: position.core, isMirror: isMirror)
  }
  func switchCamera(
    position: AVCaptureDevice.Position, isMirror: Bool,
    completion: @escaping ((any Error)?) -> Void
  ) {
    answer(completion) { [core] () throws(RoomError) in
      try await core.switchCamera(position: position.core, isMirror: isMirror)
    }
  }

  private func answer(
    _ completion: @escaping ((any Error)?) -> Void,
    _ work: @escaping @Sendable () async throws(RoomError) -> Void
  ) {
    let told = Handed(completion)
    Task {
      do throws(RoomError) {
        try await work()
        ConnectLive.calls.call { told.value(nil) }
      } catch {
        ConnectLive.calls.call { told.value(error) }
      }
    }
  }
}

/// Wraps `RoomClient.LocalVideo`; if the media has no video, setters and methods have no effect.
final class LocalVideoObject: LocalVideo {
  private let core: RoomClient.LocalVideo?

  init(_ core: RoomClient.LocalVideo?) { self.core = core }

  var id: Int { core?.id ?? 0 }
  var owner: String { core?.owner ?? "" }
  var active: Bool {
    get { core?.active ?? false }
    set { core?.active = newValue }
  }
  var extraValue: String {
    get { core?.extraValue ?? "" }
    set { core?.extraValue = newValue }
  }
  var viewId: String { core?.viewId.map(String.init) ?? "" }
  var hd: Bool {
    get { core?.hd ?? false }
    set { core?.hd = newValue }
  }
  func attach(_ view: UIRenderView) { core?.attach(view.core) }
  func detach() { core?.detach() }
}

/// Wraps `RoomClient.LocalAudio`; if the media has no audio, setters have no effect.
final class LocalAudioObject: LocalAudio {
  private let core: RoomClient.LocalAudio?

  init(_ core: RoomClient.LocalAudio?) { self.core = core }

  var id: Int { core?.id ?? 0 }
  var owner: String { core?.owner ?? "" }
  var active: Bool {
    get { core?.active ?? false }
    set { core?.active = newValue }
  }
  var extraValue: String {
    get { core?.extraValue ?? "" }
    set { core?.extraValue = newValue }
  }
}

// MARK: - UIRenderView

/// A view for one video, which draws nothing itself.
///
/// It holds the current video frame, and forwards every frame to the application's renderer, if
/// any.
public final class UIRenderView: Sendable {
  let core: RenderView
  private let screen: Screen

  /// Creates a view.
  /// - Parameter renderer: draws the video frames, on the thread that delivers them; nil to draw
  ///   nothing.
  public init(frame: CGRect = .zero, renderer: (any RTCVideoRenderer)? = nil) {
    let screen = Screen(frame, renderer.map { ShownFrames($0) })
    self.screen = screen
    core = RenderView(screen)
  }

  /// The view's position and size.
  public var frame: CGRect {
    get { screen.state.withLock { $0.frame } }
    set { screen.state.withLock { $0.frame = newValue } }
  }

  /// The displayed video frame; nil before the first, and while there is nothing to display.
  public var videoFrame: RTCVideoFrame? {
    screen.state.withLock { $0.shown }.map { RTCVideoFrame($0) }
  }

  private final class Screen: VideoRenderer {
    struct State {
      var frame: CGRect
      var shown: VideoFrame?
    }

    let state: Mutex<State>
    private let next: ShownFrames?

    init(_ frame: CGRect, _ next: ShownFrames?) {
      state = Mutex(State(frame: frame))
      self.next = next
    }

    func setSize(width: Int, height: Int) { next?.setSize(width: width, height: height) }
    func renderFrame(_ frame: VideoFrame?) {
      state.withLock { $0.shown = frame }
      next?.renderFrame(frame)
    }
  }
}
