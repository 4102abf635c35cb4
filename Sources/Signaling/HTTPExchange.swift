import NIOCore
import NIOHTTP1
import NIOWebSocket

/// One connection of a server: collects requests, runs the handler, writes responses.
///
/// The pipelining handler before it hands over one request at a time.
final class HTTPExchange: ChannelDuplexHandler, RemovableChannelHandler {
  typealias InboundIn = HTTPServerRequestPart
  typealias OutboundIn = Never
  typealias OutboundOut = HTTPServerResponsePart

  /// Asks the connection to close once it has answered.
  struct Farewell: Sendable {}

  private enum State {
    /// Between two requests.
    case idle
    /// The head came; the body is being collected.
    case collecting(HTTPRequestHead, ByteBuffer)
    /// The handler is at work.
    case answering
    /// The last response was given; what still comes is dropped.
    case finished
  }

  private let limits: HTTPServer.Limits
  private let connections: OpenConnections
  private let gate: AccessGate
  private let handler: HTTPServer.Handler
  private var state = State.idle
  private var isLeaving = false
  /// Ends a wait for the client.
  private var limit: Scheduled<Void>?

  init(
    limits: HTTPServer.Limits, connections: OpenConnections, gate: AccessGate,
    handler: @escaping HTTPServer.Handler
  ) {
    self.limits = limits
    self.connections = connections
    self.gate = gate
    self.handler = handler
  }

  func handlerAdded(context: ChannelHandlerContext) {
    expect(within: limits.headSeconds, context)
  }

  func handlerRemoved(context: ChannelHandlerContext) { limit?.cancel() }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch unwrapInboundIn(data) {
    case .head(let head): begin(head, context)
    case .body(let part): collect(part, context)
    case .end:
      if case .finished = state { context.close(promise: nil) }
      answer(context)
    }
  }

  private func begin(_ head: HTTPRequestHead, _ context: ChannelHandlerContext) {
    guard case .idle = state else { return }
    if let refusal = gate.refusal(of: HTTPRequest(head)) {
      refuse(refusal, to: head, context)
      return
    }
    let announced = head.headers.first(name: "content-length").flatMap(Int.init) ?? 0
    guard announced <= limits.bodyBytes else {
      refuse(413, "the body is longer than \(limits.bodyBytes) bytes", context)
      return
    }
    state = .collecting(head, ByteBuffer())
    expect(within: limits.bodySeconds, context)
    if head.headers[canonicalForm: "expect"].contains(where: { $0.lowercased() == "100-continue" })
    {
      let head = HTTPResponseHead(version: head.version, status: .continue)
      context.writeAndFlush(wrapOutboundOut(.head(head)), promise: nil)
    }
  }

  private func collect(_ part: ByteBuffer, _ context: ChannelHandlerContext) {
    guard case .collecting(let head, var body) = state else { return }
    guard body.readableBytes + part.readableBytes <= limits.bodyBytes else {
      refuse(413, "the body is longer than \(limits.bodyBytes) bytes", context)
      return
    }
    // Leaves the buffer with one owner, so that it grows in place.
    state = .idle
    body.writeImmutableBuffer(part)
    state = .collecting(head, body)
  }

  private func answer(_ context: ChannelHandlerContext) {
    guard case .collecting(let head, let body) = state else { return }
    state = .answering
    limit?.cancel()
    connections.note(context.channel, isAnswering: true)
    let request = HTTPRequest(head, body: Array(body.readableBytesView))
    let promise = context.eventLoop.makePromise(of: HTTPResponse.self)
    let handler = handler
    promise.completeWithTask { await handler(request) }
    let bound = NIOLoopBound((exchange: self, context: context), eventLoop: context.eventLoop)
    promise.futureResult.whenSuccess { response in
      let (exchange, context) = bound.value
      guard case .answering = exchange.state else { return }
      exchange.write(
        response, to: head, keepsAlive: head.isKeepAlive && !exchange.isLeaving, context)
    }
  }

  /// Refuses a request that is not complete.
  ///
  /// Closing with unread bytes would reset the connection before the client has read the refusal,
  /// so that the rest is read and dropped for a while.
  private func refuse(_ status: Int, _ sentence: String, _ context: ChannelHandlerContext) {
    refuse(.refusal(status, sentence), to: nil, context)
  }

  private func refuse(
    _ refusal: HTTPResponse, to head: HTTPRequestHead?, _ context: ChannelHandlerContext
  ) {
    write(refusal, to: head, keepsAlive: false, lingers: true, context)
    let bound = NIOLoopBound(context, eventLoop: context.eventLoop)
    context.eventLoop.scheduleTask(in: HTTPExchange.lingerTime) {
      bound.value.close(promise: nil)
    }
  }

  private static let lingerTime = TimeAmount.seconds(1)

  private func write(
    _ response: HTTPResponse, to request: HTTPRequestHead?, keepsAlive: Bool,
    lingers: Bool = false, _ context: ChannelHandlerContext
  ) {
    state = keepsAlive ? .idle : .finished
    guard context.channel.isActive else { return }
    connections.note(context.channel, isAnswering: false)
    expect(within: limits.idleSeconds, context)
    var headers = HTTPHeaders(response.headers.map { ($0.name, $0.value) })
    headers.replaceOrAdd(name: "Content-Length", value: String(response.body.count))
    if !keepsAlive { headers.replaceOrAdd(name: "Connection", value: "close") }
    for field in request.map({ gate.fields(for: HTTPRequest($0)) }) ?? [] {
      headers.add(name: field.name, value: field.value)
    }
    let head = HTTPResponseHead(
      version: request?.version ?? .http1_1,
      status: HTTPResponseStatus(statusCode: response.status), headers: headers)
    context.write(wrapOutboundOut(.head(head)), promise: nil)
    if request?.method != .HEAD, !response.body.isEmpty {
      let body = context.channel.allocator.buffer(bytes: response.body)
      context.write(wrapOutboundOut(.body(.byteBuffer(body))), promise: nil)
    }
    let bound = NIOLoopBound(context, eventLoop: context.eventLoop)
    context.writeAndFlush(wrapOutboundOut(.end(nil))).whenComplete { _ in
      if !keepsAlive, !lingers { bound.value.close(promise: nil) }
    }
  }

  // MARK: Failures and silence

  func triggerUserOutboundEvent(
    context: ChannelHandlerContext, event: Any, promise: EventLoopPromise<Void>?
  ) {
    guard event is Farewell else {
      context.triggerUserOutboundEvent(event, promise: promise)
      return
    }
    isLeaving = true
    if case .answering = state { return }
    // What was answered last goes out before the connection ends.
    if case .finished = state { return }
    context.close(promise: nil)
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    // The request comes as any other after this, and is answered.
    if error is NIOWebSocketUpgradeError { return }
    guard error is HTTPParserError else {
      context.close(promise: nil)
      return
    }
    // The decoder closes the connection after this, so that the answer must be written at once.
    switch state {
    case .idle, .collecting:
      let isTooLong = (error as? HTTPParserError) == .headerOverflow
      refuse(
        isTooLong ? 431 : 400,
        isTooLong ? "the header is longer than \(limits.headerBytes) bytes" : "this is not HTTP",
        context)
    case .answering, .finished: context.close(promise: nil)
    }
  }

  /// Begins a wait for the client, in the place of the one before.
  ///
  /// It does not begin anew with each byte, so that nobody can hold a connection by drops.
  private func expect(within seconds: Int64, _ context: ChannelHandlerContext) {
    limit?.cancel()
    let bound = NIOLoopBound((exchange: self, context: context), eventLoop: context.eventLoop)
    limit = context.eventLoop.scheduleTask(in: .seconds(seconds)) {
      let (exchange, context) = bound.value
      exchange.giveUp(context)
    }
  }

  private func giveUp(_ context: ChannelHandlerContext) {
    switch state {
    case .collecting: refuse(408, "the body took longer than \(limits.bodySeconds) s", context)
    case .idle, .finished: context.close(promise: nil)
    case .answering: break
    }
  }
}

extension HTTPRequest {
  init(_ head: HTTPRequestHead, body: [UInt8] = []) {
    self.init(
      method: head.method.rawValue, target: head.uri,
      headers: head.headers.map { ($0.name, $0.value) }, body: body)
  }
}
