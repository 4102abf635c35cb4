public import Dispatch
public import Foundation
public import Live
public import RetakeRTC
import Room
import RoomClient
import Synchronization

/// Receives the result of signing in: code 0, or an error number of the service with its message.
public typealias ProvisionCallback = (_ code: Int, _ message: String) -> Void

/// The SDK of Kakao i Connect Live for iOS by its names, over Retake's own rooms.
///
/// It is compatible by interface with version 2.2.0, as far as that version's guide shows types,
/// methods, callbacks and errors. Nothing of the service itself is here: rooms are those of a
/// server of Retake's own, as `retake record serve --rooms` is one.
///
/// Delegates and closures are ordinary ones: they are called on `callbackQueue`, one after the
/// other.
public enum ConnectLive {
  private struct State {
    var service = Service(rooms: ProcessInfo.processInfo.environment["RETAKE_ROOMS"])
    var entry: Entry?
    var delegate: AudioSessionForwarder?
  }

  /// Where rooms are entered, and where tokens are given.
  struct Service {
    static let usual = "ws://127.0.0.1:8080/rooms"
    var rooms: String
    var tokens: String

    init(rooms: String?, tokens: String? = nil) {
      self.rooms = rooms ?? Service.usual
      // ws becomes http, and wss https.
      let web = self.rooms.hasPrefix("ws") ? "http" + self.rooms.dropFirst(2) : self.rooms
      self.tokens = tokens ?? web + "/token"
    }
  }

  /// What signing in gave.
  struct Entry: Sendable {
    let authenticator: any Authenticator
    let token: RoomToken
    let since = ContinuousClock().now

    /// The token with what is left of its life.
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

  // MARK: What is not of the guide

  /// The serial queue on which delegates and closures are called.
  ///
  /// Set it before the first room: to `.main` in an application whose delegates live there.
  public static var callbackQueue: DispatchQueue {
    get { calls.queue }
    set { calls.queue = newValue }
  }

  /// Chooses the server whose rooms are entered from now on.
  ///
  /// - Parameters:
  ///   - rooms: `ws://host:port/rooms`; nil: what the variable `RETAKE_ROOMS` of the environment
  ///     says, or the server that `retake record serve --rooms` is by default.
  ///   - tokens: where signing in asks for a token; nil: `/token` below the rooms.
  public static func use(rooms: String?, tokens: String? = nil) {
    let named = rooms ?? ProcessInfo.processInfo.environment["RETAKE_ROOMS"]
    state.withLock { state in
      state.service = Service(rooms: named, tokens: tokens)
      state.entry = nil
    }
  }

  /// Chooses the session that rooms which are made from now on belong to; nil: one that is not
  /// recorded.
  public static func use(_ session: Session?) { machine.use(session) }

  /// Records the rooms that are made from now on, with their connections and their audio.
  ///
  /// - Throws: `SessionError` when the take cannot be written.
  public static func record(to path: String) throws { try machine.record(to: path) }

  /// Ends all connections, and completes the take of rooms that are recorded.
  ///
  /// - Throws: `TapeError` when something could not be written; what was written stays valid.
  public static func finish() async throws { try await machine.finish() }

  // MARK: Signing in

  /// Signs in with what an application has of its service.
  ///
  /// - Parameters:
  ///   - serviceSecret: `key:secret`; a secret alone has the service's identifier for its key.
  ///   - completion: code 0, or 1101 to 1105.
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

  /// Forgets the token; to be called after the room was left.
  public static func signOut() { state.withLock { $0.entry = nil } }

  // MARK: Audio

  /// Sets what audio is used for, and how much of it the device hands over at once; it holds for
  /// the rooms that are there and for those that come.
  ///
  /// - Parameters:
  ///   - ioBufferDuration: in seconds.
  ///   - delegate: receives the events of the audio session; held weakly.
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
    // What the device refuses, it keeps as it was.
    try? audio.setConfiguration(configuration)
    audio.unlockForConfiguration()
  }

  // MARK: Media and rooms

  /// Makes local media; nil when its capturer cannot be made.
  public static func createLocalMedia(options: LocalMediaOptions) -> (any LocalMedia)? {
    try? LocalMediaObject(options)
  }

  /// Creates a room.
  /// - Parameter delegate: receives its events; held weakly.
  public static func createRoom(config: Config, delegate: any RoomDelegate) -> Room {
    Room(config, delegate)
  }

  /// Creates the side of the process that shares the screen.
  /// - Parameter appGroup: the name that the room asked with.
  /// - Throws: an error where the group can have no folder.
  public static func createScreenShare(appGroup: String) throws -> ScreenShare {
    try ScreenShare(appGroup: appGroup)
  }
}
