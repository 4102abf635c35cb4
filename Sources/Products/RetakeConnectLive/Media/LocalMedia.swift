import Live
public import RetakeRTC
import RoomClient

/// Local media: captured, and sent once a room publishes it.
public protocol LocalMedia: AnyObject, Sendable {
  /// The local video.
  var video: any LocalVideo { get }
  /// The local audio.
  var audio: any LocalAudio { get }
  /// The camera in use; setting it switches to another one.
  var position: AVCaptureDevice.Position { get set }
  /// Whether the local view is mirrored.
  var isMirror: Bool { get }
  /// The level of the local audio, 0 to 100.
  var audioLevel: Int { get }

  /// Starts capturing; publishing does so by itself.
  func start() async throws
  /// Starts capturing; the closure receives the error, or nil.
  func start(completion: @escaping ((any Error)?) -> Void)
  /// Stops capturing.
  func stop()
  /// Switches to another camera.
  func switchCamera(position: AVCaptureDevice.Position, isMirror: Bool) async throws
  /// Switches to another camera; the closure receives the error, or nil.
  func switchCamera(
    position: AVCaptureDevice.Position, isMirror: Bool,
    completion: @escaping ((any Error)?) -> Void)
}

/// Local video.
public protocol LocalVideo: AnyObject, Sendable {
  /// The number of the stream; local to the process until it is published.
  var id: Int { get }
  /// The participant that publishes it; empty until it is published.
  var owner: String { get }
  /// Whether it is enabled; if not, it is black, and the other participants are notified.
  var active: Bool { get set }
  /// Application data that the other participants receive with it.
  var extraValue: String { get set }
  /// The view that displays it; empty: none.
  var viewId: String { get }
  /// Whether 1280x720 is captured; takes effect at the next start.
  var hd: Bool { get set }
  /// Displays it in a view, in place of what the view displayed before.
  func attach(_ view: UIRenderView)
  /// Stops displaying it.
  func detach()
}

/// Local audio.
public protocol LocalAudio: AnyObject, Sendable {
  /// The number of the stream; local to the process until it is published.
  var id: Int { get }
  /// The participant that publishes it; empty until it is published.
  var owner: String { get }
  /// Whether it is enabled; if not, it is silent, and the other participants are notified.
  var active: Bool { get set }
  /// Application data that the other participants receive with it.
  var extraValue: String { get set }
}

extension LocalMedia {
  /// Sends an image from the application, when the options have `bypass` as their source.
  ///
  /// The guide names only the source, not this method.
  public func sendVideoFrame(sampleBuffer: CMSampleBuffer) {
    guard let frame = sampleBuffer.videoFrame, let own = self as? LocalMediaObject else { return }
    (own.core.capturer as? PushedVideoCapturer)?.push(frame)
  }
}

/// Local media over that of `RoomClient`.
final class LocalMediaObject: LocalMedia {
  let core: RoomClient.LocalMedia
  let video: any LocalVideo
  let audio: any LocalAudio

  /// Creates the media that the options describe.
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

/// Local video, or none.
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

/// Local audio, or none.
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
