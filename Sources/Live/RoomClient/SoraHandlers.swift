public import AudioSession
public import Live
public import Room
import Synchronization
import Wire

/// How a Sora channel ended.
public enum SoraCloseEvent: Sendable {
  /// A normal end, with the code and reason from the close frame or closing message.
  case ok(code: Int, reason: String)
  /// An error ended the channel.
  case error(RoomError)
}

/// Handlers for a Sora channel's events, named as in Sora's own SDK; nil handlers are not called.
///
/// They may be called on any thread, one at a time except for `onChangeAudioRoute`.
public final class MediaChannelHandlers: Sendable {
  private struct State {
    var onConnect: (@Sendable (RoomError?) -> Void)?
    var onDisconnect: (@Sendable (SoraCloseEvent) -> Void)?
    var onAddStream: (@Sendable (MediaStream) -> Void)?
    var onRemoveStream: (@Sendable (MediaStream) -> Void)?
    var onReceiveSignaling: (@Sendable (String) -> Void)?
    var onDataChannel: (@Sendable (String) -> Void)?
    var onDataChannelMessage: (@Sendable (String, String) -> Void)?
    var onChangeAudioRoute: (@Sendable (AudioRouteChangeReason, AudioRoute) -> Void)?
    /// Whether the channel was joined, and which error ended it.
    var isConnected = false
    var failure: RoomError?
  }

  private let state = Mutex(State())

  /// Creates handlers that are all nil.
  public init() {}

  /// Called with nil once the channel is joined, or with the error if joining failed.
  public var onConnect: (@Sendable (RoomError?) -> Void)? {
    get { state.withLock { $0.onConnect } }
    set { state.withLock { $0.onConnect = newValue } }
  }
  /// Called when the channel has ended, unless joining it failed.
  public var onDisconnect: (@Sendable (SoraCloseEvent) -> Void)? {
    get { state.withLock { $0.onDisconnect } }
    set { state.withLock { $0.onDisconnect = newValue } }
  }
  /// Called with each added stream: the local stream, named `publisherStreamId`, or a received
  /// stream, named after its sender's connection.
  public var onAddStream: (@Sendable (MediaStream) -> Void)? {
    get { state.withLock { $0.onAddStream } }
    set { state.withLock { $0.onAddStream = newValue } }
  }
  /// Called with each stream that is removed, local or received.
  public var onRemoveStream: (@Sendable (MediaStream) -> Void)? {
    get { state.withLock { $0.onRemoveStream } }
    set { state.withLock { $0.onRemoveStream = newValue } }
  }
  /// Called with each message from the server, as JSON.
  public var onReceiveSignaling: (@Sendable (String) -> Void)? {
    get { state.withLock { $0.onReceiveSignaling } }
    set { state.withLock { $0.onReceiveSignaling = newValue } }
  }
  /// Called when a data channel for messages opens, with the channel's label.
  public var onDataChannel: (@Sendable (_ label: String) -> Void)? {
    get { state.withLock { $0.onDataChannel } }
    set { state.withLock { $0.onDataChannel = newValue } }
  }
  /// Called with a text message and the label of the data channel it arrived on.
  public var onDataChannelMessage: (@Sendable (_ label: String, _ message: String) -> Void)? {
    get { state.withLock { $0.onDataChannelMessage } }
    set { state.withLock { $0.onDataChannelMessage = newValue } }
  }

  /// Called when the route of the room's audio session changes, with the reason and the new route.
  public var onChangeAudioRoute: (@Sendable (AudioRouteChangeReason, AudioRoute) -> Void)? {
    get { state.withLock { $0.onChangeAudioRoute } }
    set { state.withLock { $0.onChangeAudioRoute = newValue } }
  }

  /// Calls the handlers that match an update.
  func receive(_ update: RoomUpdate, closure: RoomClosure?) {
    switch update {
    case .connected:
      state.withLock { $0.isConnected = true }
      onConnect?(nil)
    case .error(let error) where error.isCritical: state.withLock { $0.failure = error }
    case .disconnected: disconnect(closure)
    case .streamAdded(let stream): onAddStream?(stream)
    case .streamRemoved(let stream): onRemoveStream?(stream)
    case .notification("signaling", let text): onReceiveSignaling?(text)
    case .notification("datachannel", let text):
      let label = (try? JSONValue(parsing: text))?["label"]?.text
      if let label { onDataChannel?(label) }
    case .userMessage(_, let message, let label): onDataChannelMessage?(label, message)
    default: break
    }
  }

  private func disconnect(_ closure: RoomClosure?) {
    let (wasConnected, failure) = state.withLock { ($0.isConnected, $0.failure) }
    guard let failure else {
      onDisconnect?(.ok(code: closure?.code ?? 1_000, reason: closure?.message ?? ""))
      return
    }
    if wasConnected { onDisconnect?(.error(failure)) } else { onConnect?(failure) }
  }
}

extension SoraConfiguration {
  /// The channel's event handlers; copies of the configuration that are made after the first access
  /// share them.
  public var mediaChannelHandlers: MediaChannelHandlers {
    mutating get {
      if let handlers = currentHandlers { return handlers }
      let handlers = MediaChannelHandlers()
      attachment = SoraAttachment(handlers)
      return handlers
    }
    set { attachment = SoraAttachment(newValue) }
  }

  /// The handlers, if the application has any.
  var currentHandlers: MediaChannelHandlers? { attachment?.object as? MediaChannelHandlers }
}
