import NIOCore
package import Room
import Synchronization

/// A client's or server's open WebSocket (RFC 6455).
///
/// Messages are delivered whole and in order. The WebSocket answers pings, and sends pings at
/// intervals. If the receiver is slow, less is read from the socket.
package final class WebSocket: Sendable {
  /// The negotiated subprotocol, if any.
  package let subprotocol: String?
  /// The fields of the server's response that opened the WebSocket; empty at the server.
  let responseFields: [(name: String, value: String)]
  private let channel: any Channel
  private let inbox: WebSocketInbox

  init(
    channel: any Channel, inbox: WebSocketInbox, subprotocol: String?,
    responseFields: [(name: String, value: String)] = []
  ) {
    self.channel = channel
    self.inbox = inbox
    self.subprotocol = subprotocol
    self.responseFields = responseFields
  }

  deinit { post(close: .goingAway) }

  /// Returns the next message; nil after the last one, or if the task is cancelled.
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
  /// If the peer does not read, the connection ends once too many bytes are unsent. A message sent
  /// after the end is dropped silently, because the end itself is reported.
  package func post(_ message: SignalingFrame) {
    channel.writeAndFlush(WebSocketCommand.message(message), promise: nil)
  }

  /// Starts closing the connection, without waiting.
  package func post(close code: WebSocketCloseCode, reason: String = "") {
    channel.writeAndFlush(WebSocketCommand.close(code, reason), promise: nil)
  }

  /// Closes the connection, and waits until the peer agrees or the time limit passes.
  @discardableResult
  package func close(_ code: WebSocketCloseCode = .normal, reason: String = "") async
    -> WebSocketClosure
  {
    post(close: code, reason: reason)
    return await inbox.ending()
  }

  /// How the connection ended; nil while it is open.
  package var closure: WebSocketClosure? { inbox.closure }

  /// Waits until the connection has ended, and returns how it ended.
  package func closed() async -> WebSocketClosure { await inbox.ending() }
}

// MARK: - WebSocketInbox

/// A WebSocket's unread messages.
///
/// The handler bounds their number: it stops reading from the socket while the inbox is full.
final class WebSocketInbox: Sendable {
  private struct Waiter {
    let number: Int
    let continuation: CheckedContinuation<SignalingFrame?, Never>
  }

  private struct State {
    var messages = CircularBuffer<SignalingFrame>()
    var byteCount = 0
    var waiters: [Waiter] = []
    var waiterCount = 0
    var cancelled: Set<Int> = []
    var closure: WebSocketClosure?
    var endings: [CheckedContinuation<WebSocketClosure, Never>] = []
    /// Whether the handler has stopped reading.
    var isHeld = false
  }

  private let state = Mutex(State())
  private let byteMaximum: Int
  private let messageMaximum: Int

  init(_ limits: WebSocketLimits) {
    byteMaximum = limits.unreadBytes
    messageMaximum = limits.unreadMessages
  }

  /// How the connection ended; nil while it is open.
  var closure: WebSocketClosure? { state.withLock { $0.closure } }

  /// Adds a message, or passes it to a waiting reader.
  func put(_ message: SignalingFrame) {
    let waiter = state.withLock { state -> Waiter? in
      guard state.closure == nil else { return nil }
      if !state.waiters.isEmpty { return state.waiters.removeFirst() }
      state.messages.append(message)
      state.byteCount += message.byteCount
      return nil
    }
    waiter?.continuation.resume(returning: message)
  }

  /// Returns whether the inbox is full, so that reading must stop until `next(resume:)` resumes it.
  func holdIfFull() -> Bool {
    state.withLock { state in
      state.isHeld = state.byteCount >= byteMaximum || state.messages.count >= messageMaximum
      return state.isHeld
    }
  }

  /// Ends the stream; unread messages can still be received.
  func end(_ closure: WebSocketClosure) {
    let (waiters, endings) = state.withLock { state in
      guard state.closure == nil else {
        return ([Waiter](), [CheckedContinuation<WebSocketClosure, Never>]())
      }
      state.closure = closure
      defer { (state.waiters, state.endings) = ([], []) }
      return (state.waiters, state.endings)
    }
    for waiter in waiters { waiter.continuation.resume(returning: nil) }
    for ending in endings { ending.resume(returning: closure) }
  }

  /// Returns the next message; nil after the last one, or if the task is cancelled.
  /// - Parameter resume: called when a full inbox has room again.
  func next(resume: () -> Void) async -> SignalingFrame? {
    let number = state.withLock { state in
      state.waiterCount += 1
      return state.waiterCount
    }
    let message = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let (isSettled, message, isRoomy) = receive(number, continuation)
        if isRoomy { resume() }
        if isSettled { continuation.resume(returning: message) }
      }
    } onCancel: {
      cancel(number)
    }
    // If the wait was cancelled after it received its message, its number is still in the set.
    state.withLock { _ = $0.cancelled.remove(number) }
    return message
  }

  private func receive(_ number: Int, _ continuation: CheckedContinuation<SignalingFrame?, Never>)
    -> (isSettled: Bool, message: SignalingFrame?, isRoomy: Bool)
  {
    state.withLock { state in
      if state.cancelled.remove(number) != nil { return (true, nil, false) }
      guard let message = state.messages.popFirst() else {
        if state.closure != nil { return (true, nil, false) }
        state.waiters.append(Waiter(number: number, continuation: continuation))
        return (false, nil, false)
      }
      state.byteCount -= message.byteCount
      let isRoomy =
        state.isHeld && state.byteCount <= byteMaximum / 2
        && state.messages.count <= messageMaximum / 2
      if isRoomy { state.isHeld = false }
      return (true, message, isRoomy)
    }
  }

  private func cancel(_ number: Int) {
    let waiter = state.withLock { state -> Waiter? in
      guard let index = state.waiters.firstIndex(where: { $0.number == number }) else {
        // The wait was cancelled before it began, or already has its message.
        state.cancelled.insert(number)
        return nil
      }
      return state.waiters.remove(at: index)
    }
    waiter?.continuation.resume(returning: nil)
  }

  /// Waits until the connection has ended, and returns how it ended.
  func ending() async -> WebSocketClosure {
    await withCheckedContinuation { continuation in
      let closure = state.withLock { state -> WebSocketClosure? in
        if state.closure == nil { state.endings.append(continuation) }
        return state.closure
      }
      if let closure { continuation.resume(returning: closure) }
    }
  }
}

// MARK: - WebSocketClosure

extension SignalingFrame {
  /// The frame's length on the wire without headers.
  var byteCount: Int {
    switch self {
    case .text(let text): text.utf8.count
    case .binary(let bytes): bytes.count
    }
  }
}

/// A WebSocket's close code (RFC 6455 section 7.4 and the IANA registry).
package struct WebSocketCloseCode: RawRepresentable, Hashable, Sendable {
  package var rawValue: UInt16

  package init(rawValue: UInt16) { self.rawValue = rawValue }

  package static let normal = WebSocketCloseCode(rawValue: 1000)
  package static let goingAway = WebSocketCloseCode(rawValue: 1001)
  package static let protocolError = WebSocketCloseCode(rawValue: 1002)
  package static let unsupportedData = WebSocketCloseCode(rawValue: 1003)
  /// The peer stated no code; never on the wire.
  package static let noStatus = WebSocketCloseCode(rawValue: 1005)
  /// The connection ended without a close frame; never on the wire.
  package static let abnormal = WebSocketCloseCode(rawValue: 1006)
  package static let invalidPayload = WebSocketCloseCode(rawValue: 1007)
  package static let policyViolation = WebSocketCloseCode(rawValue: 1008)
  package static let messageTooBig = WebSocketCloseCode(rawValue: 1009)
  package static let internalError = WebSocketCloseCode(rawValue: 1011)
  package static let tryAgainLater = WebSocketCloseCode(rawValue: 1013)

  /// Whether a close frame may contain the code.
  var isSendable: Bool {
    switch rawValue {
    case 1000...1003, 1007...1014, 3000...4999: true
    default: false
    }
  }
}

/// How a WebSocket ended.
package struct WebSocketClosure: Hashable, Sendable {
  /// The code sent by the peer that closed first.
  package var code: WebSocketCloseCode
  /// The stated reason, or what broke the connection.
  package var reason: String
  /// Whether both peers sent close frames.
  package var isClean: Bool

  package init(_ code: WebSocketCloseCode, _ reason: String = "", isClean: Bool) {
    self.code = code
    self.reason = reason
    self.isClean = isClean
  }
}

/// A WebSocket's limits on messages, unread and unsent data, and the handshake.
package struct WebSocketLimits: Hashable, Sendable {
  /// The longest message in bytes, over all its frames; longer messages end the connection.
  package var messageBytes = 1 << 20
  /// The number of bytes of unread messages at which reading pauses.
  package var unreadBytes = 1 << 20
  /// The number of unread messages at which reading pauses.
  package var unreadMessages = 256
  /// The maximum number of unsent bytes; the connection ends if there are more.
  package var unsentBytes = 4 << 20
  /// The time limit for the handshake, in seconds.
  package var handshakeSeconds: Int64 = 10
  /// The interval between pings, in seconds; the connection ends if nothing arrives between two
  /// pings.
  package var pingSeconds: Int64 = 20
  /// The maximum time that the peer may take to agree to a close, in seconds.
  package var closeSeconds: Int64 = 5

  package init() {}
}

/// An error that says, in one sentence, why a WebSocket could not be opened or a message could not
/// be sent.
package struct WebSocketError: Error, Hashable, Sendable, CustomStringConvertible {
  package var reason: String
  /// The status of the response that refused a connection; nil for other reasons.
  package var status: Int?

  package init(reason: String, status: Int? = nil) {
    self.reason = reason
    self.status = status
  }

  package var description: String { reason }
}
