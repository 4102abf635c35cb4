public import AudioSession
public import Live
public import Room
import Synchronization
import Wire

/// How a channel of a Sora server ended.
public enum SoraCloseEvent: Sendable {
  /// In order: the code and the reason of the close frame, or of the message that closes.
  case ok(code: Int, reason: String)
  /// By an error.
  case error(RoomError)
}

/// What an application hears of a channel of a Sora server, by the names of the service's own SDK;
/// what is nil is not called.
///
/// They are called one after the other, never two at once, on no thread in particular.
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
    /// Whether the channel was there, and what ended it.
    var isConnected = false
    var failure: RoomError?
  }

  private let state = Mutex(State())

  /// Creates handlers that do nothing.
  public init() {}

  /// The channel is there; or why it is not.
  public var onConnect: (@Sendable (RoomError?) -> Void)? {
    get { state.withLock { $0.onConnect } }
    set { state.withLock { $0.onConnect = newValue } }
  }
  /// The channel is over.
  public var onDisconnect: (@Sendable (SoraCloseEvent) -> Void)? {
    get { state.withLock { $0.onDisconnect } }
    set { state.withLock { $0.onDisconnect = newValue } }
  }
  /// A stream was added: the local one, which is called `publisherStreamId`, or one that is
  /// received, which is called as the connection that it comes from.
  public var onAddStream: (@Sendable (MediaStream) -> Void)? {
    get { state.withLock { $0.onAddStream } }
    set { state.withLock { $0.onAddStream = newValue } }
  }
  /// A stream was removed.
  public var onRemoveStream: (@Sendable (MediaStream) -> Void)? {
    get { state.withLock { $0.onRemoveStream } }
    set { state.withLock { $0.onRemoveStream = newValue } }
  }
  /// A message of the server, as JSON.
  public var onReceiveSignaling: (@Sendable (String) -> Void)? {
    get { state.withLock { $0.onReceiveSignaling } }
    set { state.withLock { $0.onReceiveSignaling = newValue } }
  }
  /// A data channel for messages is open; its label.
  public var onDataChannel: (@Sendable (_ label: String) -> Void)? {
    get { state.withLock { $0.onDataChannel } }
    set { state.withLock { $0.onDataChannel = newValue } }
  }
  /// A message on a data channel; its label and the text.
  public var onDataChannelMessage: (@Sendable (_ label: String, _ message: String) -> Void)? {
    get { state.withLock { $0.onDataChannelMessage } }
    set { state.withLock { $0.onDataChannelMessage = newValue } }
  }

  /// Audio of the room's session goes another way: why, and which.
  public var onChangeAudioRoute: (@Sendable (AudioRouteChangeReason, AudioRoute) -> Void)? {
    get { state.withLock { $0.onChangeAudioRoute } }
    set { state.withLock { $0.onChangeAudioRoute = newValue } }
  }

  /// Calls what an update is about.
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
  /// What is called with the events of the channel; copies of the configuration share it from the
  /// first use on.
  public var mediaChannelHandlers: MediaChannelHandlers {
    mutating get {
      if let handlers = currentHandlers { return handlers }
      let handlers = MediaChannelHandlers()
      attachment = SoraAttachment(handlers)
      return handlers
    }
    set { attachment = SoraAttachment(newValue) }
  }

  /// The handlers, where the application has any.
  var currentHandlers: MediaChannelHandlers? { attachment?.object as? MediaChannelHandlers }
}
