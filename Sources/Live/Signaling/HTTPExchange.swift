import NIOCore
import NIOHTTP1
import NIOWebSocket
import Synchronization

/// One of a server's connections: collects requests, runs the handler, writes responses.
///
/// The pipelining handler in front of it passes on one request at a time.
final class HTTPExchange: ChannelDuplexHandler, RemovableChannelHandler {
  typealias InboundIn = HTTPServerRequestPart
  typealias OutboundIn = Never
  typealias OutboundOut = HTTPServerResponsePart

  /// An event that closes the connection after the current response.
  struct Farewell: Sendable {}

  private enum State {
    /// Between two requests.
    case idle
    /// The head arrived; the body is being collected.
    case collecting(HTTPRequestHead, ByteBuffer)
    /// The handler is running.
    case answering
    /// The response is sent as fast as the client reads it; later requests wait.
    case sending(Sending)
    /// A refusal is being delayed; the rest of the request may have arrived already.
    case delaying(hasEnded: Bool)
    /// The last response was sent; anything further is dropped.
    case finished
  }

  /// A response body that is written in parts.
  private struct Sending {
    var body: [UInt8]
    var offset = 0
    var keepsAlive: Bool

    /// The next part of the body; empty after the last one.
    mutating func next() -> ArraySlice<UInt8> {
      let end = min(body.count, offset + HTTPExchange.partBytes)
      defer { offset = end }
      return body[offset..<end]
    }
  }

  /// The maximum number of body bytes written at once.
  private static let partBytes = 256 << 10

  private let limits: HTTPServer.Limits
  private let connections: OpenConnections
  private let gate: AccessGate
  private let memory: HTTPMemory
  private let handler: HTTPServer.Handler
  private var state = State.idle
  /// The number of bytes that this connection has reserved in `memory`.
  private var reservedBytes = 0
  private var isLeaving = false
  /// Whether the current request has the server's token.
  private var isAuthorized = false
  /// Closes the connection if the client takes too long.
  private var limit: Scheduled<Void>?

  init(
    limits: HTTPServer.Limits, connections: OpenConnections, gate: AccessGate,
    memory: HTTPMemory, handler: @escaping HTTPServer.Handler
  ) {
    self.limits = limits
    self.connections = connections
    self.gate = gate
    self.memory = memory
    self.handler = handler
  }

  func handlerAdded(context: ChannelHandlerContext) {
    expect(within: limits.headSeconds, context)
  }

  func handlerRemoved(context: ChannelHandlerContext) {
    limit?.cancel()
    release()
  }

  /// Releases the memory reserved for the request and the response.
  private func release() {
    memory.release(reservedBytes)
    reservedBytes = 0
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch unwrapInboundIn(data) {
    case .head(let head): begin(head, context)
    case .body(let part): collect(part, context)
    case .end:
      if case .finished = state { context.close(promise: nil) }
      if case .delaying = state { state = .delaying(hasEnded: true) }
      answer(context)
    }
  }

  private func begin(_ head: HTTPRequestHead, _ context: ChannelHandlerContext) {
    guard case .idle = state else { return }
    let verdict = gate.verdict(on: HTTPRequest(head), from: context.channel.remoteAddress)
    if let refusal = verdict.refusal {
      guard verdict.delay > .zero else { return refuse(refusal, to: head, context) }
      return refuse(refusal, to: head, after: verdict.delay, context)
    }
    isAuthorized = verdict.isAuthorized
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
    guard memory.reserve(part.readableBytes) else {
      refuse(503, "the bodies of other requests use all the memory; try again", context)
      return
    }
    reservedBytes += part.readableBytes
    // Drop the state's copy of the buffer, so that the buffer grows in place.
    state = .idle
    body.writeImmutableBuffer(part)
    state = .collecting(head, body)
  }

  private func answer(_ context: ChannelHandlerContext) {
    guard case .collecting(let head, let body) = state else { return }
    state = .answering
    limit?.cancel()
    connections.setAnswering(context.channel, true)
    var request = HTTPRequest(head, body: Array(body.readableBytesView))
    request.isAuthorized = isAuthorized
    let promise = context.eventLoop.makePromise(of: HTTPResponse.self)
    let handler = handler
    // A client is waiting for the response, so the task runs before background work.
    Task(priority: .high) { [request] in promise.succeed(await handler(request)) }
    let bound = NIOLoopBound((exchange: self, context: context), eventLoop: context.eventLoop)
    promise.futureResult.whenSuccess { response in
      let (exchange, context) = bound.value
      guard case .answering = exchange.state else { return }
      let delay =
        response.status == 401
        ? exchange.gate.delay(ofRefused: HTTPRequest(head), from: context.channel.remoteAddress)
        : .zero
      guard delay > .zero else {
        return exchange.send(exchange.admitted(response), to: head, context)
      }
      context.eventLoop.scheduleTask(in: TimeAmount(delay)) {
        let (exchange, context) = bound.value
        guard case .answering = exchange.state else { return }
        exchange.send(exchange.admitted(response), to: head, context)
      }
    }
  }

  /// Returns the response, or a refusal if buffered requests and responses leave no memory for it.
  private func admitted(_ response: HTTPResponse) -> HTTPResponse {
    guard memory.reserve(response.body.count, isAnswer: true) else {
      var refusal = HTTPResponse.refusal(
        503, "unread answers to other requests use all the memory; try again")
      refusal.headers.append(("Retry-After", "5"))
      return refusal
    }
    reservedBytes += response.body.count
    return response
  }

  /// Refuses an incomplete request.
  ///
  /// Closing the connection before its bytes are read would reset it, and the client could not read
  /// the refusal. The rest of the request is therefore read and dropped for a while.
  private func refuse(_ status: Int, _ sentence: String, _ context: ChannelHandlerContext) {
    refuse(.refusal(status, sentence), to: nil, context)
  }

  private func refuse(
    _ refusal: HTTPResponse, to head: HTTPRequestHead?, _ context: ChannelHandlerContext
  ) {
    state = .finished
    guard context.channel.isActive else { return }
    writeHead(of: refusal, to: head, keepsAlive: false, promise: nil, context)
    if head?.method != .HEAD, !refusal.body.isEmpty {
      writeBody(refusal.body[...], promise: nil, context)
    }
    context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
    let bound = NIOLoopBound(context, eventLoop: context.eventLoop)
    context.eventLoop.scheduleTask(in: HTTPExchange.lingerTime) {
      bound.value.close(promise: nil)
    }
  }

  /// Refuses an incomplete request after a delay.
  private func refuse(
    _ refusal: HTTPResponse, to head: HTTPRequestHead, after delay: Duration,
    _ context: ChannelHandlerContext
  ) {
    state = .delaying(hasEnded: false)
    let bound = NIOLoopBound((exchange: self, context: context), eventLoop: context.eventLoop)
    context.eventLoop.scheduleTask(in: TimeAmount(delay)) {
      let (exchange, context) = bound.value
      guard case .delaying(let hasEnded) = exchange.state else { return }
      exchange.refuse(refusal, to: head, context)
      if hasEnded { context.close(promise: nil) }
    }
  }

  private static let lingerTime = TimeAmount.seconds(1)

  // MARK: Responses

  /// Starts sending a response.
  ///
  /// The pipelining handler passes on the next request once the end of the response is written. The
  /// end is therefore written only after the system has accepted the rest of the response, so that
  /// a client that reads nothing gets only one response.
  private func send(
    _ response: HTTPResponse, to request: HTTPRequestHead, _ context: ChannelHandlerContext
  ) {
    guard context.channel.isActive else {
      state = .finished
      return
    }
    connections.setAnswering(context.channel, false)
    let keepsAlive = request.isKeepAlive && !isLeaving
    let body = request.method == .HEAD ? [] : response.body
    state = .sending(Sending(body: body, keepsAlive: keepsAlive))
    guard body.isEmpty else {
      writeHead(of: response, to: request, keepsAlive: keepsAlive, promise: nil, context)
      return proceed(context)
    }
    expect(within: limits.sendSeconds, context)
    let written = context.eventLoop.makePromise(of: Void.self)
    whenWritten(written.futureResult, context)
    writeHead(of: response, to: request, keepsAlive: keepsAlive, promise: written, context)
    context.flush()
  }

  /// Sends the next part of the response, or ends it.
  private func proceed(_ context: ChannelHandlerContext) {
    guard case .sending(var sending) = state else { return }
    let part = sending.next()
    guard !part.isEmpty else { return conclude(sending, context) }
    // Move the body back into the state, so that the body has only one owner.
    state = .sending(sending)
    expect(within: limits.sendSeconds, context)
    let written = context.eventLoop.makePromise(of: Void.self)
    whenWritten(written.futureResult, context)
    writeBody(part, promise: written, context)
    context.flush()
  }

  private func whenWritten(_ written: EventLoopFuture<Void>, _ context: ChannelHandlerContext) {
    let bound = NIOLoopBound((exchange: self, context: context), eventLoop: context.eventLoop)
    written.whenComplete { result in
      let (exchange, context) = bound.value
      switch result {
      case .success: exchange.proceed(context)
      case .failure: context.close(promise: nil)
      }
    }
  }

  private func conclude(_ sending: Sending, _ context: ChannelHandlerContext) {
    release()
    let keepsAlive = sending.keepsAlive && !isLeaving
    // The next request may arrive while the end is being written.
    state = keepsAlive ? .idle : .finished
    expect(within: limits.idleSeconds, context)
    let bound = NIOLoopBound(context, eventLoop: context.eventLoop)
    context.writeAndFlush(wrapOutboundOut(.end(nil))).whenComplete { _ in
      if !keepsAlive { bound.value.close(promise: nil) }
    }
  }

  private func writeHead(
    of response: HTTPResponse, to request: HTTPRequestHead?, keepsAlive: Bool,
    promise: EventLoopPromise<Void>?, _ context: ChannelHandlerContext
  ) {
    var headers = HTTPHeaders(response.headers.map { ($0.name, $0.value) })
    headers.replaceOrAdd(name: "Content-Length", value: String(response.body.count))
    if !keepsAlive { headers.replaceOrAdd(name: "Connection", value: "close") }
    for field in request.map({ gate.fields(for: HTTPRequest($0)) }) ?? [] {
      headers.add(name: field.name, value: field.value)
    }
    let head = HTTPResponseHead(
      version: request?.version ?? .http1_1,
      status: HTTPResponseStatus(statusCode: response.status), headers: headers)
    context.write(wrapOutboundOut(.head(head)), promise: promise)
  }

  private func writeBody(
    _ bytes: ArraySlice<UInt8>, promise: EventLoopPromise<Void>?, _ context: ChannelHandlerContext
  ) {
    let buffer = context.channel.allocator.buffer(bytes: bytes)
    context.write(wrapOutboundOut(.body(.byteBuffer(buffer))), promise: promise)
  }

  // MARK: Errors and time limits

  func triggerUserOutboundEvent(
    context: ChannelHandlerContext, event: Any, promise: EventLoopPromise<Void>?
  ) {
    guard event is Farewell else {
      context.triggerUserOutboundEvent(event, promise: promise)
      return
    }
    isLeaving = true
    switch state {
    // The last response is sent before the connection ends.
    case .answering, .sending, .delaying, .finished: break
    case .idle, .collecting: context.close(promise: nil)
    }
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    // A request that could not be upgraded arrives afterwards as a plain request, and is answered.
    if error is NIOWebSocketUpgradeError { return }
    guard error is HTTPParserError else {
      context.close(promise: nil)
      return
    }
    // The decoder closes the connection after this, so the response must be written immediately.
    switch state {
    case .idle, .collecting:
      let isTooLong = (error as? HTTPParserError) == .headerOverflow
      refuse(
        isTooLong ? 431 : 400,
        isTooLong ? "the header is longer than \(limits.headerBytes) bytes" : "this is not HTTP",
        context)
    case .answering, .sending, .delaying, .finished: context.close(promise: nil)
    }
  }

  /// Starts a time limit for the client, replacing the previous limit.
  ///
  /// The limit does not restart with each byte, so a client cannot hold a connection open by
  /// sending single bytes.
  private func expect(within seconds: Int64, _ context: ChannelHandlerContext) {
    limit?.cancel()
    let bound = NIOLoopBound((exchange: self, context: context), eventLoop: context.eventLoop)
    limit = context.eventLoop.scheduleTask(in: .seconds(seconds)) {
      let (exchange, context) = bound.value
      exchange.abort(context)
    }
  }

  private func abort(_ context: ChannelHandlerContext) {
    switch state {
    case .collecting: refuse(408, "the body took longer than \(limits.bodySeconds) s", context)
    case .idle, .sending, .finished: context.close(promise: nil)
    case .answering, .delaying: break
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

/// Counts the bytes of requests and responses on all of a server's connections.
final class HTTPMemory: Sendable {
  private let used = Mutex(0)
  private let maximum: Int

  /// The maximum size of a small response, in bytes; every refusal is much smaller.
  private static let smallBytes = 64 << 10

  init(maximum: Int) { self.maximum = maximum }

  /// Reserves bytes; returns false if there is no room.
  /// - Parameter isAnswer: whether the bytes belong to a response; if so, small reservations always
  ///   pass, and large ones pass if little else is reserved.
  func reserve(_ count: Int, isAnswer: Bool = false) -> Bool {
    used.withLock { used in
      let isFree = isAnswer && (count <= HTTPMemory.smallBytes || used <= HTTPMemory.smallBytes)
      guard isFree || used + count <= maximum else { return false }
      used += count
      return true
    }
  }

  func release(_ count: Int) { used.withLock { $0 -= count } }
}
