import RetakeRTC
import RoomClient
import Synchronization

/// How a channel ended; not on the page.
public enum SoraCloseEvent: Sendable {
  /// Properly: the server's code and reason.
  case ok(code: Int, reason: String)
  /// With an error.
  case error(any Error)
}

/// The handlers of a channel's events; those that are nil are not called.
///
/// They are called one at a time on the callback queue.
public final class MediaChannelHandlers: Sendable {
  private struct State {
    var onConnect: Handed<((any Error)?) -> Void>?
    var onAddStream: Handed<(MediaStream) -> Void>?
    var onDisconnect: Handed<(SoraCloseEvent) -> Void>?
    var onRemoveStream: Handed<(MediaStream) -> Void>?
    var onReceiveSignaling: Handed<(String) -> Void>?
  }

  private let state = Mutex(State())

  /// Creates handlers that do nothing.
  public init() {}

  private func value<Value>(_ path: any KeyPath<State, Handed<Value>?> & Sendable) -> Value? {
    state.withLock { $0[keyPath: path] }?.value
  }

  private func set<Value>(
    _ path: any WritableKeyPath<State, Handed<Value>?> & Sendable, _ value: Value?
  ) {
    let handed = value.map { Handed($0) }
    state.withLock { $0[keyPath: path] = handed }
  }

  /// Connecting succeeded, or failed with an error.
  public var onConnect: (((any Error)?) -> Void)? {
    get { value(\.onConnect) }
    set { set(\.onConnect, newValue) }
  }
  /// A stream was added: the local one, with the identifier `publisherStreamId`, or a received one,
  /// with the identifier of its connection.
  public var onAddStream: ((MediaStream) -> Void)? {
    get { value(\.onAddStream) }
    set { set(\.onAddStream, newValue) }
  }
  /// The channel ended; not on the page.
  public var onDisconnect: ((SoraCloseEvent) -> Void)? {
    get { value(\.onDisconnect) }
    set { set(\.onDisconnect, newValue) }
  }
  /// A stream was removed; not on the page.
  public var onRemoveStream: ((MediaStream) -> Void)? {
    get { value(\.onRemoveStream) }
    set { set(\.onRemoveStream, newValue) }
  }
  /// A message arrived from the server, as JSON; not on the page.
  public var onReceiveSignaling: ((String) -> Void)? {
    get { value(\.onReceiveSignaling) }
    set { set(\.onReceiveSignaling, newValue) }
  }

  /// Forwards the handlers of a room to these.
  func follow(_ core: RoomClient.MediaChannelHandlers, _ channel: MediaChannel) {
    core.onConnect = { channel.answer($0) }
    core.onAddStream = { [weak channel] stream in
      guard let channel else { return }
      let stream = channel.added(stream)
      channel.calls.call { self.onAddStream?(stream) }
    }
    core.onRemoveStream = { [weak channel] stream in
      guard let channel, let stream = channel.removed(stream) else { return }
      channel.calls.call { self.onRemoveStream?(stream) }
    }
    core.onReceiveSignaling = { [weak channel] text in
      channel?.calls.call { self.onReceiveSignaling?(text) }
    }
    core.onDisconnect = { [weak channel] event in
      let told: SoraCloseEvent
      switch event {
      case .ok(let code, let reason): told = .ok(code: code, reason: reason)
      case .error(let error): told = .error(error)
      }
      channel?.calls.call { self.onDisconnect?(told) }
    }
  }
}
