import NIOCore
package import Room

/// An open WebSocket of a client or server (RFC 6455).
///
/// Messages are complete and in order. Pings are answered, and sent when the peer is silent. A slow
/// receiver limits how much is read from the socket.
package final class WebSocket: Sendable {
  /// The negotiated subprotocol, if any.
  package let subprotocol: String?
  private let channel: any Channel
  private let inbox: WebSocketInbox

  init(channel: any Channel, inbox: WebSocketInbox, subprotocol: String?) {
    self.channel = channel
    self.inbox = inbox
    self.subprotocol = subprotocol
  }

  deinit { post(close: .goingAway) }

  /// The next message; nil after the last one, or if the task is cancelled.
  package func receive() async -> SignalingFrame? {
    await inbox.next { channel.triggerUserOutboundEvent(WebSocketRoom(), promise: nil) }
  }

  /// Sends a message, and waits until the system has accepted it.
  /// - Throws: `WebSocketError` if the connection is closed before that.
  package func send(_ message: SignalingFrame) async throws(WebSocketError) {
    do {
      try await channel.writeAndFlush(WebSocketCommand.message(message))
    } catch {
      throw error as? WebSocketError
        ?? WebSocketError(reason: "the message was not sent: \(sentence(of: error))")
    }
  }

  /// Sends a message after earlier ones, without waiting.
  ///
  /// If the peer does not read, the connection ends at its limit of unsent bytes. A message that is
  /// too late is dropped, because the end of the connection is reported.
  package func post(_ message: SignalingFrame) {
    channel.writeAndFlush(WebSocketCommand.message(message), promise: nil)
  }

  /// Starts to close the connection, without waiting.
  package func post(close code: WebSocketCloseCode, reason: String = "") {
    channel.writeAndFlush(WebSocketCommand.close(code, reason), promise: nil)
  }

  /// Closes the connection, and waits until the peer agrees or the time is over.
  @discardableResult
  package func close(_ code: WebSocketCloseCode = .normal, reason: String = "") async
    -> WebSocketClosure
  {
    post(close: code, reason: reason)
    return await inbox.ending()
  }

  /// How the connection ended; nil while it is open.
  package var closure: WebSocketClosure? { inbox.closure }

  /// Waits until the connection is closed, which eventually happens.
  package func closed() async -> WebSocketClosure { await inbox.ending() }
}
