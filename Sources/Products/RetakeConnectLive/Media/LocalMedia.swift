import Live
public import RetakeRTC
import RoomClient

/// Local media: what is captured, and sent once a room publishes it.
public protocol LocalMedia: AnyObject, Sendable {
  /// The local video.
  var video: any LocalVideo { get }
  /// The local audio.
  var audio: any LocalAudio { get }
  /// Which camera; setting it switches to another one.
  var position: AVCaptureDevice.Position { get set }
  /// Whether the own view shows the video as in a mirror.
  var isMirror: Bool { get }
  /// The level of the local audio, 0 to 100.
  var audioLevel: Int { get }

  /// Starts to capture; publishing does it by itself.
  func start() async throws
  /// The same; the closure gets what went wrong, nil when nothing did.
  func start(completion: @escaping ((any Error)?) -> Void)
  /// Ends capturing.
  func stop()
  /// Captures another camera in the place of this one.
  func switchCamera(position: AVCaptureDevice.Position, isMirror: Bool) async throws
  /// The same; the closure gets what went wrong, nil when nothing did.
  func switchCamera(
    position: AVCaptureDevice.Position, isMirror: Bool,
    completion: @escaping ((any Error)?) -> Void)
}

/// Own video.
public protocol LocalVideo: AnyObject, Sendable {
  /// The number of the stream; one of this process until it is published.
  var id: Int { get }
  /// The participant that publishes it; empty until it is published.
  var owner: String { get }
  /// Whether it is on; if not, it is black, and the others are notified.
  var active: Bool { get set }
  /// Application data that the others receive with it.
  var extraValue: String { get set }
  /// The view that shows it; empty: none.
  var viewId: String { get }
  /// Whether 1280x720 is captured; takes effect with the next start.
  var hd: Bool { get set }
  /// Shows it in a view, which no longer shows what it showed before.
  func attach(_ view: UIRenderView)
  /// Shows it no longer.
  func detach()
}

/// Own audio.
public protocol LocalAudio: AnyObject, Sendable {
  /// The number of the stream; one of this process until it is published.
  var id: Int { get }
  /// The participant that publishes it; empty until it is published.
  var owner: String { get }
  /// Whether it is on; if not, it is silent, and the others are notified.
  var active: Bool { get set }
  /// Application data that the others receive with it.
  var extraValue: String { get set }
}

extension LocalMedia {
  /// Sends a picture of the application, where the options have `bypass` for their source.
  ///
  /// It is not of the guide, which names the source alone.
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

  /// Makes what the options ask for.
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

/// Own video, or none.
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

/// Own audio, or none.
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
