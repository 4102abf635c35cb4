import NIOCore
package import Room

/// An open WebSocket, of a client or of a server (RFC 6455).
///
/// Messages come and go whole and in order. Pings are answered, and sent where the other side is
/// silent. Who receives slowly is sent no more than limits allow: the socket is not read meanwhile.
package final class WebSocket: Sendable {
  /// What both sides speak on it; nil when they named nothing.
  package let subprotocol: String?
  private let channel: any Channel
  private let inbox: WebSocketInbox

  init(channel: any Channel, inbox: WebSocketInbox, subprotocol: String?) {
    self.channel = channel
    self.inbox = inbox
    self.subprotocol = subprotocol
  }

  deinit { post(close: .goingAway) }

  /// The next message; nil after the last one, or when the task is cancelled.
  package func receive() async -> SignalingFrame? {
    await inbox.next { channel.triggerUserOutboundEvent(WebSocketRoom(), promise: nil) }
  }

  /// Sends a message, and waits until the system has taken it.
  ///
  /// - Throws: `WebSocketError` when the connection is closed before that.
  package func send(_ message: SignalingFrame) async throws(WebSocketError) {
    do {
      try await channel.writeAndFlush(WebSocketCommand.message(message))
    } catch {
      throw error as? WebSocketError
        ?? WebSocketError(reason: "the message was not sent: \(sentence(of: error))")
    }
  }

  /// Sends a message after those before it, without waiting.
  ///
  /// Where the other side does not read, the connection ends at its limit of unsent bytes; a
  /// message that comes too late is dropped, because the end of the connection tells of it.
  package func post(_ message: SignalingFrame) {
    channel.writeAndFlush(WebSocketCommand.message(message), promise: nil)
  }

  /// Starts to close the connection, without waiting.
  package func post(close code: WebSocketCloseCode, reason: String = "") {
    channel.writeAndFlush(WebSocketCommand.close(code, reason), promise: nil)
  }

  /// Closes the connection, and waits until the other side agrees or its time is over.
  @discardableResult
  package func close(_ code: WebSocketCloseCode = .normal, reason: String = "") async
    -> WebSocketClosure
  {
    post(close: code, reason: reason)
    return await inbox.ending()
  }

  /// How the connection ended; nil while it is open.
  package var closure: WebSocketClosure? { inbox.closure }

  /// Waits until the connection is closed, which it always is at last.
  package func closed() async -> WebSocketClosure { await inbox.ending() }
}
