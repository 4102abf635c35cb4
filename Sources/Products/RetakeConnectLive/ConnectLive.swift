public import Dispatch
public import Foundation
public import Live
public import RetakeRTC
import Room
import RoomClient
import Synchronization

/// Receives the result of signing in: code 0, or the service's error code with its message.
public typealias ProvisionCallback = (_ code: Int, _ message: String) -> Void

/// The API of the Kakao i Connect Live SDK for iOS, for Retake's own rooms.
///
/// It is source-compatible with version 2.2.0 for the types, methods, callbacks and errors shown in
/// the guide for that version. It never contacts Kakao's service: rooms exist on a Retake server,
/// such as `retake record serve --rooms`.
///
/// Delegates and closures are called on `callbackQueue`, one at a time.
public enum ConnectLive {
  private struct State {
    var service = Service(rooms: ProcessInfo.processInfo.environment["RETAKE_ROOMS"])
    var entry: Entry?
    var delegate: AudioSessionForwarder?
  }

  /// The URLs for the rooms and for the token endpoint.
  struct Service {
    static let usual = "ws://127.0.0.1:8080/rooms"
    var rooms: String
    var tokens: String

    init(rooms: String?, tokens: String? = nil) {
      self.rooms = rooms ?? Service.usual
      // ws becomes http, and wss becomes https.
      let web = self.rooms.hasPrefix("ws") ? "http" + self.rooms.dropFirst(2) : self.rooms
      self.tokens = tokens ?? web + "/token"
    }
  }

  /// The result of signing in.
  struct Entry: Sendable {
    let authenticator: any Authenticator
    let token: RoomToken
    let since = ContinuousClock().now

    /// The token with its remaining lifetime.
    var present: RoomToken {
      let gone = Int64((ContinuousClock().now - since).components.seconds)
      return RoomToken(
        text: token.text, lifetimeSeconds: token.lifetimeSeconds.map { max(0, $0 - gone) })
    }
  }

  private static let state = Mutex(State())
  static let machine = MachineSession()
  static let calls = CallbackQueue(label: "RetakeConnectLive.callbacks")

  static var service: Service { state.withLock { $0.service } }
  static var entry: Entry? { state.withLock { $0.entry } }

  // MARK: Beyond the guide

  /// The serial queue on which delegates and closures are called.
  ///
  /// Set it before creating the first room; use `.main` if delegates must run on the main thread.
  public static var callbackQueue: DispatchQueue {
    get { calls.queue }
    set { calls.queue = newValue }
  }

  /// Sets the server for rooms created from now on, and signs out.
  /// - Parameters:
  ///   - rooms: `ws://host:port/rooms`; nil uses the environment variable `RETAKE_ROOMS` or, if
  ///     that is not set, the default of `retake record serve --rooms`.
  ///   - tokens: the URL that issues tokens for signing in; nil uses `/token` below `rooms`.
  public static func use(rooms: String?, tokens: String? = nil) {
    let named = rooms ?? ProcessInfo.processInfo.environment["RETAKE_ROOMS"]
    state.withLock { state in
      state.service = Service(rooms: named, tokens: tokens)
      state.entry = nil
    }
  }

  /// Sets the session for rooms created from now on; nil selects a session that is not recorded.
  public static func use(_ session: Session?) { machine.use(session) }

  /// Records rooms created from now on, with their connections and audio.
  /// - Throws: `SessionError` if the take cannot be written.
  public static func record(to path: String) throws { try machine.record(to: path) }

  /// Closes all connections, and completes a recorded session's take.
  /// - Throws: `TapeError` if writing failed; everything written before stays valid.
  public static func finish() async throws { try await machine.finish() }

  // MARK: Signing in

  /// Signs in with the application's credentials.
  /// - Parameters:
  ///   - serviceSecret: `key:secret`, or only the secret; the service identifier is then the key.
  ///   - completion: receives code 0, or an error code from 1101 to 1105.
  public static func signIn(
    serviceId: String, serviceSecret: String, completion: @escaping ProvisionCallback
  ) {
    let told = Handed(completion)
    let secret = serviceSecret.contains(":") ? serviceSecret : "\(serviceId):\(serviceSecret)"
    let authenticator = ServiceAuthenticator(
      serviceId: serviceId, serviceSecret: secret, endpoint: service.tokens)
    Task {
      do throws(RoomError) {
        let token = try await authenticator.token()
        state.withLock { $0.entry = Entry(authenticator: authenticator, token: token) }
        calls.call { told.value(0, "") }
      } catch {
        calls.call { told.value(error.code.rawValue, error.message) }
      }
    }
  }

  /// Discards the token; call it after leaving the room.
  public static func signOut() { state.withLock { $0.entry = nil } }

  // MARK: Audio

  /// Sets the audio session's category, mode, options and I/O buffer duration, for existing and
  /// future rooms.
  /// - Parameters:
  ///   - ioBufferDuration: the preferred I/O buffer duration in seconds.
  ///   - delegate: receives the audio session's events; held weakly.
  public static func setAudioSessionConfiguration(
    category: AVAudioSession.Category, mode: AVAudioSession.Mode,
    options: AVAudioSession.CategoryOptions, ioBufferDuration: TimeInterval = 0.06,
    delegate: (any AudioSessionDelegate)? = nil
  ) {
    let configuration = RTCAudioSessionConfiguration()
    configuration.category = category.rawValue
    configuration.mode = mode.rawValue
    configuration.categoryOptions = options
    configuration.ioBufferDuration = ioBufferDuration
    let audio = RTCAudioSession.sharedInstance()
    let forwarder = delegate.map { AudioSessionForwarder($0, calls) }
    let former = state.withLock { state in
      defer { state.delegate = forwarder }
      return state.delegate
    }
    former.map { audio.remove($0) }
    forwarder.map { audio.add($0) }
    audio.lockForConfiguration()
    // A setting that the device rejects stays unchanged.
    try? audio.setConfiguration(configuration)
    audio.unlockForConfiguration()
  }

  // MARK: Media and rooms

  /// Creates local media; returns nil if its capturer cannot be created.
  public static func createLocalMedia(options: LocalMediaOptions) -> (any LocalMedia)? {
    try? LocalMediaObject(options)
  }

  /// Creates a room on the server that `use(rooms:tokens:)` set.
  /// - Parameter delegate: receives the room's events; held weakly.
  public static func createRoom(config: Config, delegate: any RoomDelegate) -> Room {
    Room(config, delegate)
  }

  /// Creates the object that sends the screen, in the process that captures it.
  /// - Parameter appGroup: the name or path that the room used.
  /// - Throws: an error if the group's folder cannot be created.
  public static func createScreenShare(appGroup: String) throws -> ScreenShare {
    try ScreenShare(appGroup: appGroup)
  }
}

// MARK: - AudioSessionDelegate

/// Receives the audio session's events on the callback queue; every method is optional.
public protocol AudioSessionDelegate: AnyObject {
  /// Reports that the system or another application has taken over the device.
  func didBeginInterruption()
  /// Reports that the device is free again.
  func didEndInterruption(shouldResumeSession: Bool)
  /// Reports a new audio route.
  func didChangeRoute(
    reason: AVAudioSession.RouteChangeReason, previousRoute: AVAudioSessionRouteDescription)
  /// Reports that the system's audio server has terminated.
  func mediaServerTerminated()
  /// Reports that the audio server is available again.
  func mediaServerReset()
  /// Reports whether the device may run.
  func didChangeCanPlayOrRecord(canPlayOrRecord: Bool)
  /// Reports that the first room started to play or record.
  func didStartPlayOrRecord()
  /// Reports that the last room stopped playing and recording.
  func didStopPlayOrRecord()
  /// Reports that the audio session is about to be activated or deactivated.
  func willSetActive(active: Bool)
  /// Reports that the audio session was activated or deactivated.
  func didSetActive(active: Bool)
  /// Reports that activating or deactivating the audio session failed.
  func failedToSetActive(active: Bool, error: any Error)
}

extension AudioSessionDelegate {
  /// Does nothing by default.
  public func didBeginInterruption() {}
  /// Does nothing by default.
  public func didEndInterruption(shouldResumeSession: Bool) {}
  /// Does nothing by default.
  public func didChangeRoute(
    reason: AVAudioSession.RouteChangeReason, previousRoute: AVAudioSessionRouteDescription
  ) {}
  /// Does nothing by default.
  public func mediaServerTerminated() {}
  /// Does nothing by default.
  public func mediaServerReset() {}
  /// Does nothing by default.
  public func didChangeCanPlayOrRecord(canPlayOrRecord: Bool) {}
  /// Does nothing by default.
  public func didStartPlayOrRecord() {}
  /// Does nothing by default.
  public func didStopPlayOrRecord() {}
  /// Does nothing by default.
  public func willSetActive(active: Bool) {}
  /// Does nothing by default.
  public func didSetActive(active: Bool) {}
  /// Does nothing by default.
  public func failedToSetActive(active: Bool, error: any Error) {}
}

/// Forwards events from the process's audio session to the application.
final class AudioSessionForwarder: RTCAudioSessionDelegate, Sendable {
  private let delegate: WeakDelegate<any AudioSessionDelegate>
  private let calls: CallbackQueue

  init(_ delegate: any AudioSessionDelegate, _ calls: CallbackQueue) {
    self.delegate = WeakDelegate { [weak delegate] in delegate }
    self.calls = calls
  }

  private func notify(_ body: @escaping @Sendable (any AudioSessionDelegate) -> Void) {
    calls.call { [delegate] in delegate.value.map(body) }
  }

  func audioSessionDidBeginInterruption(_ session: RTCAudioSession) {
    notify { $0.didBeginInterruption() }
  }
  func audioSessionDidEndInterruption(_ session: RTCAudioSession, shouldResumeSession: Bool) {
    notify { $0.didEndInterruption(shouldResumeSession: shouldResumeSession) }
  }
  func audioSessionDidChangeRoute(
    _ session: RTCAudioSession, reason: AVAudioSession.RouteChangeReason,
    previousRoute: AVAudioSessionRouteDescription
  ) { notify { $0.didChangeRoute(reason: reason, previousRoute: previousRoute) } }
  func audioSessionMediaServerTerminated(_ session: RTCAudioSession) {
    notify { $0.mediaServerTerminated() }
  }
  func audioSessionMediaServerReset(_ session: RTCAudioSession) { notify { $0.mediaServerReset() } }
  func audioSession(_ session: RTCAudioSession, didChangeCanPlayOrRecord canPlayOrRecord: Bool) {
    notify { $0.didChangeCanPlayOrRecord(canPlayOrRecord: canPlayOrRecord) }
  }
  func audioSessionDidStartPlayOrRecord(_ session: RTCAudioSession) {
    notify { $0.didStartPlayOrRecord() }
  }
  func audioSessionDidStopPlayOrRecord(_ session: RTCAudioSession) {
    notify { $0.didStopPlayOrRecord() }
  }
  func audioSession(_ audioSession: RTCAudioSession, willSetActive active: Bool) {
    notify { $0.willSetActive(active: active) }
  }
  func audioSession(_ audioSession: RTCAudioSession, didSetActive active: Bool) {
    notify { $0.didSetActive(active: active) }
  }
  func audioSession(
    _ audioSession: RTCAudioSession, failedToSetActive active: Bool, error: any Error
  ) { notify { $0.failedToSetActive(active: active, error: error) } }
}
