import NIOCore
import NIOWebSocket
import Room

/// One end of a WebSocket on its event loop.
final class WebSocketHandler: ChannelDuplexHandler {
  typealias InboundIn = WebSocketFrame
  typealias OutboundIn = WebSocketCommand
  typealias OutboundOut = WebSocketFrame

  private enum State {
    case open
    /// A close frame was sent; the peer's close frame has not arrived yet.
    case closing(WebSocketClosure)
    case over
  }

  private let limits: WebSocketLimits
  private let isServer: Bool
  private let inbox: WebSocketInbox
  private var assembler: WebSocketAssembler
  private var state = State.open
  private var unsentBytes = 0
  /// Whether reading has stopped because messages are unread.
  private var isReadHeld = false
  /// Whether nothing has arrived since the last ping.
  private var isQuiet = false
  /// The ping to answer once the peer reads again; answering the last ping is enough (RFC 6455
  /// section 5.5.3).
  private var waitingPing: ByteBuffer?
  private var pinging: RepeatedTask?
  private var closing: Scheduled<Void>?

  init(_ limits: WebSocketLimits, isServer: Bool, inbox: WebSocketInbox) {
    self.limits = limits
    self.isServer = isServer
    self.inbox = inbox
    assembler = WebSocketAssembler(
      expectsMask: isServer, messageMaximum: limits.messageBytes)
  }

  func handlerAdded(context: ChannelHandlerContext) {
    let bound = NIOLoopBound((handler: self, context: context), eventLoop: context.eventLoop)
    let interval = TimeAmount.seconds(limits.pingSeconds)
    pinging = context.eventLoop.scheduleRepeatedTask(initialDelay: interval, delay: interval) {
      _ in
      let (handler, context) = bound.value
      handler.ping(context)
    }
  }

  // MARK: Reading

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    isQuiet = false
    if case .over = state { return }
    switch assembler.receive(unwrapInboundIn(data)) {
    case .nothing, .pong: break
    case .message(let message): if case .open = state { inbox.put(message) }
    case .ping(let data): answer(data, context)
    case .close(let code, let reason): agree(code, reason, context)
    case .violation(let code, let reason): refuse(code, reason, context)
    }
  }

  func read(context: ChannelHandlerContext) {
    if case .open = state, inbox.holdIfFull() {
      isReadHeld = true
    } else {
      context.read()
    }
  }

  private func answer(_ ping: ByteBuffer, _ context: ChannelHandlerContext) {
    guard context.channel.isWritable else {
      waitingPing = ping
      return
    }
    send(.pong, ping, context, nil)
  }

  func channelWritabilityChanged(context: ChannelHandlerContext) {
    if context.channel.isWritable, let ping = waitingPing.take() {
      send(.pong, ping, context, nil)
    }
    context.fireChannelWritabilityChanged()
  }

  // MARK: Writing

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    switch unwrapOutboundIn(data) {
    case .message(let message): write(message, context, promise)
    case .close(let code, let reason):
      close(code, reason, context)
      promise?.succeed()
    }
  }

  private func write(
    _ message: SignalingFrame, _ context: ChannelHandlerContext,
    _ promise: EventLoopPromise<Void>?
  ) {
    guard case .open = state else {
      promise?.fail(WebSocketError(reason: "the WebSocket is closed"))
      return
    }
    let count = message.byteCount
    guard unsentBytes == 0 || unsentBytes + count <= limits.unsentBytes else {
      let error = WebSocketError(
        reason: "the remote peer left more than \(limits.unsentBytes) bytes unread")
      promise?.fail(error)
      end(WebSocketClosure(.abnormal, error.reason, isClean: false), context)
      return
    }
    unsentBytes += count
    let written = promise ?? context.eventLoop.makePromise()
    let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
    written.futureResult.whenComplete { _ in bound.value.unsentBytes -= count }
    switch message {
    case .text(let text):
      send(.text, context.channel.allocator.buffer(string: text), context, written)
    case .binary(let bytes):
      send(.binary, context.channel.allocator.buffer(bytes: bytes), context, written)
    }
  }

  private func send(
    _ opcode: WebSocketOpcode, _ data: ByteBuffer, _ context: ChannelHandlerContext,
    _ promise: EventLoopPromise<Void>?
  ) {
    let key = isServer ? nil : WebSocketMaskingKey.random()
    let frame = WebSocketFrame(fin: true, opcode: opcode, maskKey: key, data: data)
    context.writeAndFlush(wrapOutboundOut(frame), promise: promise)
  }

  /// Sends a close frame; the returned future completes once it is written.
  private func sendClose(
    _ code: WebSocketCloseCode, _ reason: String, _ context: ChannelHandlerContext
  ) -> EventLoopFuture<Void> {
    var data = context.channel.allocator.buffer(capacity: 2)
    if code.isSendable {
      data.writeInteger(code.rawValue)
      data.writeSubstring(reason.prefix(utf8Count: 123))
    }
    let sent = context.eventLoop.makePromise(of: Void.self)
    send(.connectionClose, data, context, sent)
    return sent.futureResult
  }

  // MARK: Pings

  private func ping(_ context: ChannelHandlerContext) {
    // While reading is stopped, silence does not mean that the peer is gone.
    guard case .open = state, !isReadHeld else { return }
    guard !isQuiet else {
      let reason = "the remote peer sent nothing for \(limits.pingSeconds) s after a ping"
      end(WebSocketClosure(.abnormal, reason, isClean: false), context)
      return
    }
    isQuiet = true
    if context.channel.isWritable { send(.ping, ByteBuffer(), context, nil) }
  }

  // MARK: Closing

  /// Starts closing, and waits for the peer for a limited time.
  private func close(
    _ code: WebSocketCloseCode, _ reason: String, _ context: ChannelHandlerContext
  ) {
    guard case .open = state else { return }
    state = .closing(WebSocketClosure(code, reason, isClean: false))
    _ = sendClose(code, reason, context)
    resumeReading(context)
    let bound = NIOLoopBound((handler: self, context: context), eventLoop: context.eventLoop)
    closing = context.eventLoop.scheduleTask(in: .seconds(limits.closeSeconds)) {
      let (handler, context) = bound.value
      guard case .closing(let closure) = handler.state else { return }
      handler.end(closure, context)
    }
  }

  /// Handles the peer's close frame.
  private func agree(
    _ code: WebSocketCloseCode, _ reason: String, _ context: ChannelHandlerContext
  ) {
    switch state {
    case .open:
      let sent = sendClose(code, "", context)
      guard settle(WebSocketClosure(code, reason, isClean: true)) else { return }
      let bound = NIOLoopBound(context, eventLoop: context.eventLoop)
      sent.whenComplete { _ in bound.value.close(promise: nil) }
      close(context, within: limits.closeSeconds)
    case .closing(var closure):
      closure.isClean = true
      end(closure, context)
    case .over: break
    }
  }

  /// Ends a connection whose peer violates the protocol.
  ///
  /// Closing the connection before its bytes are read would reset it, and the peer could not read
  /// the reason. Further bytes are therefore read and dropped for a while.
  private func refuse(
    _ code: WebSocketCloseCode, _ reason: String, _ context: ChannelHandlerContext
  ) {
    if case .open = state { _ = sendClose(code, reason, context) }
    guard settle(WebSocketClosure(code, reason, isClean: false)) else { return }
    resumeReading(context)
    close(context, within: WebSocketHandler.lingerSeconds)
  }

  private static let lingerSeconds: Int64 = 1

  private func end(_ closure: WebSocketClosure, _ context: ChannelHandlerContext) {
    if settle(closure) { context.close(promise: nil) }
  }

  private func close(_ context: ChannelHandlerContext, within seconds: Int64) {
    let bound = NIOLoopBound(context, eventLoop: context.eventLoop)
    let limit = context.eventLoop.scheduleTask(in: .seconds(seconds)) {
      bound.value.close(promise: nil)
    }
    context.channel.closeFuture.whenComplete { _ in limit.cancel() }
  }

  /// Reports how the connection ended; returns false if that has already been reported.
  private func settle(_ closure: WebSocketClosure) -> Bool {
    if case .over = state { return false }
    state = .over
    pinging?.cancel()
    closing?.cancel()
    inbox.end(closure)
    return true
  }

  func triggerUserOutboundEvent(
    context: ChannelHandlerContext, event: Any, promise: EventLoopPromise<Void>?
  ) {
    switch event {
    case is WebSocketRoom: resumeReading(context)
    case is HTTPExchange.Farewell: close(.goingAway, "the server stops", context)
    default: context.triggerUserOutboundEvent(event, promise: promise)
    }
  }

  private func resumeReading(_ context: ChannelHandlerContext) {
    guard isReadHeld else { return }
    isReadHeld = false
    context.read()
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    switch error as? NIOWebSocketError {
    case .invalidFrameLength?:
      refuse(.messageTooBig, "a frame is longer than \(limits.messageBytes) bytes", context)
    case _?: refuse(.protocolError, "a control frame is too long or fragmented", context)
    case nil: end(WebSocketClosure(.abnormal, sentence(of: error), isClean: false), context)
    }
  }

  func channelInactive(context: ChannelHandlerContext) {
    if case .closing(let closure) = state {
      _ = settle(closure)
    } else {
      _ = settle(
        WebSocketClosure(
          .abnormal,
          "the connection was closed without a close frame", isClean: false))
    }
    context.fireChannelInactive()
  }

  func handlerRemoved(context: ChannelHandlerContext) {
    _ = settle(WebSocketClosure(.abnormal, "the connection is gone", isClean: false))
  }
}

enum WebSocketCommand: Sendable {
  case message(SignalingFrame)
  case close(WebSocketCloseCode, String)
}

/// An event that resumes reading, because there is room for messages again.
struct WebSocketRoom: Sendable {}

extension String {
  /// Returns the longest prefix of complete characters that fits into a number of bytes.
  fileprivate func prefix(utf8Count maximum: Int) -> Substring {
    var end = startIndex
    var count = 0
    while end < endIndex {
      count += self[end].utf8.count
      if count > maximum { break }
      end = index(after: end)
    }
    return self[..<end]
  }
}

// MARK: - WebSocketAssembler

/// Assembles messages from frames, and detects violations of RFC 6455.
struct WebSocketAssembler {
  /// The result of receiving a frame.
  enum Outcome: Equatable {
    /// Nothing yet: part of a message, or an unsolicited pong.
    case nothing
    case message(SignalingFrame)
    case ping(ByteBuffer)
    case pong
    case close(WebSocketCloseCode, String)
    case violation(WebSocketCloseCode, String)
  }

  private enum Kind { case text, binary }

  /// Whether received frames must be masked, as frames from clients must be (RFC 6455 section 5.1).
  private let expectsMask: Bool
  private let messageMaximum: Int
  private var kind: Kind?
  private var collected = ByteBuffer()

  init(expectsMask: Bool, messageMaximum: Int) {
    self.expectsMask = expectsMask
    self.messageMaximum = messageMaximum
  }

  mutating func receive(_ frame: WebSocketFrame) -> Outcome {
    guard !frame.rsv1, !frame.rsv2, !frame.rsv3 else {
      return .violation(.protocolError, "a frame has bits of an extension that was not negotiated")
    }
    guard (frame.maskKey != nil) == expectsMask else {
      return .violation(
        .protocolError,
        expectsMask ? "a frame of a client is not masked" : "a frame of a server is masked")
    }
    var data = frame.data
    if let key = frame.maskKey { data.webSocketUnmask(key) }
    switch frame.opcode {
    case .text: return begin(.text, data, isLast: frame.fin)
    case .binary: return begin(.binary, data, isLast: frame.fin)
    case .continuation: return proceed(data, isLast: frame.fin)
    case .ping: return .ping(data)
    case .pong: return .pong
    case .connectionClose: return close(data)
    default: return .violation(.protocolError, "a frame has an unknown opcode")
    }
  }

  private mutating func begin(_ kind: Kind, _ data: ByteBuffer, isLast: Bool) -> Outcome {
    guard self.kind == nil else {
      return .violation(.protocolError, "a message begins inside another")
    }
    if isLast { return message(kind, data) }
    self.kind = kind
    collected = data
    return .nothing
  }

  private mutating func proceed(_ data: ByteBuffer, isLast: Bool) -> Outcome {
    guard let kind else {
      return .violation(.protocolError, "a continuation frame has no message to continue")
    }
    guard collected.readableBytes + data.readableBytes <= messageMaximum else {
      return .violation(.messageTooBig, "a message is longer than \(messageMaximum) bytes")
    }
    collected.writeImmutableBuffer(data)
    guard isLast else { return .nothing }
    self.kind = nil
    let whole = collected
    collected = ByteBuffer()
    return message(kind, whole)
  }

  private func message(_ kind: Kind, _ data: ByteBuffer) -> Outcome {
    guard data.readableBytes <= messageMaximum else {
      return .violation(.messageTooBig, "a message is longer than \(messageMaximum) bytes")
    }
    guard kind == .text else { return .message(.binary(Array(data.readableBytesView))) }
    guard let text = String(validating: data.readableBytesView, as: UTF8.self) else {
      return .violation(.invalidPayload, "a text is not UTF-8")
    }
    return .message(.text(text))
  }

  private func close(_ data: ByteBuffer) -> Outcome {
    var data = data
    guard data.readableBytes > 0 else { return .close(.noStatus, "") }
    guard let number = data.readInteger(as: UInt16.self) else {
      return .violation(.protocolError, "a close frame has an incomplete code")
    }
    let code = WebSocketCloseCode(rawValue: number)
    guard code.isSendable else {
      return .violation(.protocolError, "a close frame has the code \(number)")
    }
    guard let reason = String(validating: data.readableBytesView, as: UTF8.self) else {
      return .violation(.invalidPayload, "the reason of a close is not UTF-8")
    }
    return .close(code, reason)
  }
}
