import NIOCore
import NIOHTTP1
import NIOWebSocket
import Room

/// One of a proxy's client connections, which forwards requests and responses.
///
/// The pipelining handler in front of it passes on one request at a time. Each side is read only as
/// fast as the other side accepts data.
final class ProxyExchange: ChannelDuplexHandler, RemovableChannelHandler {
  typealias InboundIn = HTTPServerRequestPart
  typealias OutboundIn = Never
  typealias OutboundOut = HTTPServerResponsePart

  enum State {
    case idle
    /// The body is being collected, because its signaling is replaced.
    case collecting(ByteBuffer)
    /// The request waits for its signaling to be replaced.
    case rewriting
    /// The request is being sent, or has been sent, to the server.
    case forwarding
    /// The last response was sent; anything further is dropped.
    case finished
  }

  /// The part of the server's response that has arrived.
  struct Response {
    var head: HTTPResponseHead
    var way: ProxiedBody
    var collected = ByteBuffer()
    /// Whether the response's head was sent to the client.
    var isBegun = false
    var isComplete = false
    /// Whether signaling in a part of the response is being replaced.
    var isRewriting = false
  }

  let route: ProxyRoute
  let connections: OpenConnections
  var context: ChannelHandlerContext?
  var state = State.idle
  var request: HTTPRequestHead?
  var requestIsOver = false
  var number = 0
  var upstream: ProxyUpstream?
  var response: Response?
  var reservedBytes = 0
  var isLeaving = false
  var readsAreHeld = false
  var wantsRead = false
  var limit: Scheduled<Void>?

  init(_ route: ProxyRoute, _ connections: OpenConnections) {
    self.route = route
    self.connections = connections
  }

  func handlerAdded(context: ChannelHandlerContext) {
    self.context = context
    expect(within: route.limits.headSeconds)
  }

  func handlerRemoved(context: ChannelHandlerContext) {
    limit?.cancel()
    release()
    upstream?.close()
    self.context = nil
  }

  func channelInactive(context: ChannelHandlerContext) {
    limit?.cancel()
    upstream?.close()
    upstream = nil
    state = .finished
    context.fireChannelInactive()
  }

  // MARK: Requests

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch unwrapInboundIn(data) {
    case .head(let head): begin(head)
    case .body(let part): receive(part)
    case .end(let trailers): endRequest(trailers)
    }
  }

  func begin(_ head: HTTPRequestHead) {
    guard case .idle = state else { return }
    if let channel = context?.channel { connections.setAnswering(channel, true) }
    (request, requestIsOver, response) = (head, false, nil)
    number = route.numbers.next()
    if let refusal = route.gate.refusal(of: head) {
      route.notice("\(place): \(refusal.sentence ?? "refused")")
      return refuse(refusal)
    }
    if let fields = route.gate.preflight(head) {
      var permission = HTTPResponse(status: 204)
      permission.headers = fields.map { ($0.name, $0.value) }
      state = .forwarding
      return answer(permission)
    }
    if head.headers[canonicalForm: "expect"].contains(where: { $0.lowercased() == "100-continue" })
    {
      context?.writeAndFlush(
        wrapOutboundOut(.head(HTTPResponseHead(version: head.version, status: .continue))),
        promise: nil)
    }
    guard case .stream = way(of: head) else {
      if let encoding = ProxiedBody.encoding(head.headers) {
        return refuse(
          .refusal(
            415,
            "the relay cannot search a body encoded as \(encoding.prefix(40)); send it unencoded"))
      }
      state = .collecting(ByteBuffer())
      return expect(within: route.limits.bodySeconds)
    }
    state = .forwarding
    expect(within: route.limits.silenceSeconds)
    connect(length: head.headers.first(name: "content-length").flatMap(Int.init))
  }

  /// Returns how a request's body is forwarded; an empty body is not collected.
  func way(of head: HTTPRequestHead) -> ProxiedBody {
    let length = head.headers.first(name: "content-length")
    guard head.headers.contains(name: "transfer-encoding") || (length != nil && length != "0")
    else { return .stream }
    if case .stream = ProxiedBody(head.headers) { return .stream }
    return .whole
  }

  func receive(_ part: ByteBuffer) {
    switch state {
    case .collecting(var body):
      guard body.readableBytes + part.readableBytes <= route.limits.bodyBytes else {
        return refuse(
          .refusal(413, "the body exceeds the relay's limit of \(route.limits.bodyBytes) bytes"))
      }
      guard reserve(part.readableBytes) else { return refuse(ProxyExchange.isFull) }
      // Drop the state's copy of the buffer, so that the buffer grows in place.
      state = .rewriting
      body.writeImmutableBuffer(part)
      state = .collecting(body)
    case .forwarding where upstream != nil:
      expect(within: route.limits.silenceSeconds)
      if upstream?.send(.body(.byteBuffer(part))) == false { readsAreHeld = true }
    case .forwarding, .idle, .rewriting, .finished: break
    }
  }

  static let isFull = HTTPResponse.refusal(
    503, "the bodies of other requests use all the memory; try again")

  func endRequest(_ trailers: HTTPHeaders?) {
    requestIsOver = true
    switch state {
    case .collecting(let body):
      state = .rewriting
      look(Array(body.readableBytesView), isFromClient: true) { exchange, outcome in
        exchange.forward(body, outcome)
      }
    case .forwarding:
      _ = upstream?.send(.end(trailers))
      listen()
    case .finished: context?.close(promise: nil)
    case .idle, .rewriting: break
    }
  }

  /// Forwards a request whose body was collected.
  func forward(_ body: ByteBuffer, _ outcome: ProxiedOutcome) {
    guard case .rewriting = state else { return }
    var body = body
    switch outcome {
    case .unchanged: break
    case .replaced(let bytes): body = ByteBuffer(bytes: bytes)
    case .consumed: return answer(HTTPResponse(status: 204))
    case .refused(let reason):
      route.notice("\(place): \(reason)")
      return refuse(.refusal(501, reason))
    }
    state = .forwarding
    connect(length: body.readableBytes)
    _ = upstream?.send(.body(.byteBuffer(body)))
    _ = upstream?.send(.end(nil))
    listen()
  }

  /// The request's name in notices, such as `POST /whip`.
  var place: String {
    guard let request else { return "" }
    return "\(request.method.rawValue) \(request.uri.prefix { $0 != "?" }.prefix(100))"
  }

  func connect(length: Int?) {
    guard let request, let context else { return }
    var fields = route.gate.requestFields(request)
    fields.remove(name: "content-length")
    if let length {
      fields.add(name: "Content-Length", value: String(length))
    } else if request.headers.contains(name: "transfer-encoding") {
      fields.add(name: "Transfer-Encoding", value: "chunked")
    }
    if request.headers.contains(name: "upgrade") {
      // The server has refused the upgrade. Send it the request again, because the client needs the
      // server's reason.
      fields.add(name: "Connection", value: "Upgrade")
      fields.add(name: "Upgrade", value: request.headers.first(name: "upgrade") ?? "")
      fields.remove(name: "sec-websocket-extensions")
    } else {
      fields.add(name: "Connection", value: "close")
    }
    let upstream = ProxyUpstream(self, route.limits)
    self.upstream = upstream
    upstream.open(route, on: context.eventLoop)
    _ = upstream.send(
      .head(
        HTTPRequestHead(
          version: .http1_1, method: request.method, uri: request.uri, headers: fields)))
  }

  /// Reads from the client only as fast as the server accepts.
  func read(context: ChannelHandlerContext) {
    if readsAreHeld { wantsRead = true } else { context.read() }
  }

  func upstreamIsWritable() {
    readsAreHeld = false
    guard wantsRead else { return }
    wantsRead = false
    context?.read()
  }

  func channelWritabilityChanged(context: ChannelHandlerContext) {
    if context.channel.isWritable, response?.isRewriting != true {
      limit?.cancel()
      upstream?.hold(false)
    }
    context.fireChannelWritabilityChanged()
  }

  // MARK: Looking into bodies

  func look(
    _ bytes: [UInt8], isFromClient: Bool,
    _ use: @escaping (ProxyExchange, ProxiedOutcome) -> Void
  ) {
    guard let context, let request else { return }
    let fields = isFromClient ? request.headers : response?.head.headers ?? HTTPHeaders()
    var message = ProxiedMessage(
      channel: number, isFromClient: isFromClient, transport: "http", place: place,
      type: fields.first(name: "content-type"), bytes: bytes)
    message.path = request.uri
    message.location = isFromClient ? nil : location
    limit?.cancel()
    let promise = context.eventLoop.makePromise(of: ProxiedOutcome.self)
    let (rewrite, number) = (route.rewrite, number)
    // A client is waiting for the response, so the task runs before background work.
    Task(priority: .high) { promise.succeed(await rewrite(message)) }
    let bound = NIOLoopBound((exchange: self, use: use), eventLoop: context.eventLoop)
    promise.futureResult.whenSuccess { outcome in
      let (exchange, use) = bound.value
      guard exchange.context != nil, exchange.number == number else { return }
      use(exchange, outcome)
    }
  }

  /// The path and query in the response's `Location` field (RFC 9110 section 10.2.2).
  private var location: String? {
    guard let request, let field = response?.head.headers.first(name: "location") else {
      return nil
    }
    let base = "http://\(request.headers.first(name: "host") ?? "relay")"
    return URLReference(base + request.uri).resolving(field).map { $0.path + $0.query }
  }

  func reserve(_ count: Int) -> Bool {
    guard route.memory.reserve(count) else { return false }
    reservedBytes += count
    return true
  }

  func release() {
    route.memory.release(reservedBytes)
    reservedBytes = 0
  }

  // MARK: Failures and silence

  func triggerUserOutboundEvent(
    context: ChannelHandlerContext, event: Any, promise: EventLoopPromise<Void>?
  ) {
    guard event is HTTPExchange.Farewell else {
      context.triggerUserOutboundEvent(event, promise: promise)
      return
    }
    isLeaving = true
    if case .rewriting = state { return }
    if response?.isRewriting == true { return }
    context.close(promise: nil)
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    // A request that could not be upgraded arrives afterwards as a plain request.
    if error is NIOWebSocketUpgradeError { return }
    guard let error = error as? HTTPParserError else { return context.close(promise: nil) }
    switch state {
    case .idle, .collecting:
      let isTooLong = error == .headerOverflow
      refuse(
        .refusal(
          isTooLong ? 431 : 400,
          isTooLong
            ? "the header is longer than \(route.limits.headerBytes) bytes" : "this is not HTTP"))
    case .rewriting, .forwarding, .finished: context.close(promise: nil)
    }
  }

  /// Ends the client's time limit, because the server's time limit applies from now on.
  func listen() { limit?.cancel() }

  func expect(within seconds: Int64) {
    limit?.cancel()
    guard let context else { return }
    let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
    limit = context.eventLoop.scheduleTask(in: .seconds(seconds)) {
      let exchange = bound.value
      if case .collecting = exchange.state {
        exchange.refuse(
          .refusal(408, "the body took longer than \(exchange.route.limits.bodySeconds) s"))
      } else {
        exchange.upstream?.close()
        exchange.context?.close(promise: nil)
      }
    }
  }
}
