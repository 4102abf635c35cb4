import NIOCore
import NIOHTTP1

// Forwards the server's response to the client, and answers requests without the server.
extension ProxyExchange {
  func respond(_ head: HTTPResponseHead) {
    guard let request, case .forwarding = state, response == nil else { return }
    var way = mayHaveBody(head) ? ProxiedBody(head.headers) : .stream
    if case .stream = way {
    } else if let encoding = ProxiedBody.encoding(head.headers) {
      return upstreamFailed(
        "the server encodes its answer as \(encoding.prefix(40)), which was not requested")
    }
    let announced = head.headers.first(name: "content-length").flatMap(Int.init) ?? 0
    if announced > route.limits.bodyBytes, case .whole = way {
      route.notice(
        "\(place): a response of \(announced) bytes was forwarded without looking for signaling, "
          + "because the limit is \(route.limits.bodyBytes)")
      way = .stream
    }
    var passed = HTTPResponseHead(version: .http1_1, status: head.status)
    passed.headers = route.gate.responseFields(head, to: request)
    response = Response(head: passed, way: way)
    if case .whole = way { return }
    if case .lines = way { response?.head.headers.remove(name: "content-length") }
    begin(length: nil)
  }

  func mayHaveBody(_ head: HTTPResponseHead) -> Bool {
    request?.method != .HEAD && head.status != .noContent && head.status != .notModified
  }

  /// Sends the head of the response.
  /// - Parameter length: the body's length if it was collected; nil if it is streamed.
  func begin(length: Int?) {
    guard var head = response?.head, let context else { return }
    let version = request?.version ?? .http1_1
    response?.isBegun = true
    if let length {
      head.headers.replaceOrAdd(name: "Content-Length", value: String(length))
      for name in ["content-md5", "digest", "content-digest", "repr-digest"] {
        head.headers.remove(name: name)
      }
    } else if mayHaveBody(head), !head.headers.contains(name: "content-length") {
      if version.minor >= 1 {
        head.headers.replaceOrAdd(name: "Transfer-Encoding", value: "chunked")
      }
    }
    head.headers.remove(name: "connection")
    if !keepsAlive { head.headers.add(name: "Connection", value: "close") }
    head.version = version
    context.writeAndFlush(wrapOutboundOut(.head(head)), promise: nil)
  }

  /// Whether another request may follow on the connection; false if the client or the proxy ends
  /// the connection, if this request is not over yet, or for HTTP/1.0.
  var keepsAlive: Bool {
    guard let request, !isLeaving else { return false }
    return request.isKeepAlive && requestIsOver && request.version.minor >= 1
  }

  func respond(_ part: ByteBuffer) {
    guard let way = response?.way else { return }
    switch way {
    case .stream: write(part)
    case .whole, .lines:
      guard (response?.collected.readableBytes ?? 0) + part.readableBytes <= route.limits.bodyBytes
      else {
        return upstreamFailed(
          "the server's answer exceeds the relay's limit of \(route.limits.bodyBytes) bytes")
      }
      guard reserve(part.readableBytes) else {
        return upstreamFailed("the bodies of other answers use all the memory")
      }
      response?.collected.writeImmutableBuffer(part)
      if case .lines = way { passLines() }
    }
  }

  func respondEnd() {
    upstream = nil
    guard let response else { return upstreamFailed("the server sent no answer") }
    self.response?.isComplete = true
    switch response.way {
    case .stream: conclude()
    case .whole: passWhole(response.collected)
    case .lines: passLines()
    }
  }

  func passWhole(_ body: ByteBuffer) {
    response?.isRewriting = true
    look(Array(body.readableBytesView), isFromClient: false) { exchange, outcome in
      guard exchange.response != nil else { return }
      var body = body
      switch outcome {
      case .unchanged: break
      case .consumed: body.clear()
      case .replaced(let bytes): body = ByteBuffer(bytes: bytes)
      case .refused(let reason):
        exchange.response = nil
        return exchange.upstreamFailed(reason)
      }
      exchange.begin(length: body.readableBytes)
      exchange.write(body)
      exchange.conclude()
    }
  }

  /// Forwards complete lines, and the remaining bytes once the response is complete.
  func passLines() {
    guard let response, !response.isRewriting else { return }
    let view = response.collected.readableBytesView
    let end = view.lastIndex(of: UInt8(ascii: "\n")).map { $0 - view.startIndex + 1 }
    let count = response.isComplete ? view.count : end ?? 0
    guard count > 0, let lines = self.response?.collected.readSlice(length: count) else {
      if response.isComplete { conclude() }
      return
    }
    self.response?.isRewriting = true
    upstream?.hold(true)
    look(Array(lines.readableBytesView), isFromClient: false) { exchange, outcome in
      exchange.response?.isRewriting = false
      switch outcome {
      case .unchanged: exchange.write(lines)
      case .consumed: break
      case .replaced(let bytes): exchange.write(ByteBuffer(bytes: bytes))
      case .refused(let reason): return exchange.upstreamFailed(reason)
      }
      exchange.release()
      exchange.upstream?.hold(exchange.context?.channel.isWritable == false)
      exchange.passLines()
    }
  }

  func write(_ part: ByteBuffer) {
    guard let context, response?.isBegun == true, part.readableBytes > 0 else { return }
    context.writeAndFlush(wrapOutboundOut(.body(.byteBuffer(part))), promise: nil)
    if !context.channel.isWritable {
      upstream?.hold(true)
      expect(within: route.limits.silenceSeconds)
    }
  }

  /// Ends the response; the next request may arrive while its end is written.
  func conclude() {
    guard let context else { return }
    let keepsAlive = keepsAlive
    response = nil
    upstream = nil
    release()
    state = keepsAlive ? .idle : .finished
    connections.setAnswering(context.channel, false)
    expect(within: route.limits.idleSeconds)
    let bound = NIOLoopBound(context, eventLoop: context.eventLoop)
    context.writeAndFlush(wrapOutboundOut(.end(nil))).whenComplete { _ in
      if !keepsAlive { bound.value.close(promise: nil) }
    }
  }

  /// Handles a response that failed or that must not be forwarded.
  ///
  /// Before the response begins, the client gets status 502. Later its connection is closed, so
  /// that it does not mistake a truncated body for a complete one.
  func upstreamFailed(_ reason: String) {
    upstream?.close()
    upstream = nil
    guard case .forwarding = state else { return }
    route.notice("\(place): \(reason)")
    guard response?.isBegun != true else {
      state = .finished
      context?.close(promise: nil)
      return
    }
    response = nil
    refuse(.refusal(502, reason))
  }

  /// Answers without the server, and accepts no further request on the connection.
  ///
  /// Closing the connection before its bytes are read would reset it, and the client could not read
  /// the refusal. The rest of the request is therefore read and dropped for a while.
  func refuse(_ refusal: HTTPResponse) {
    guard let context else { return }
    isLeaving = true
    state = .finished
    upstreamIsWritable()
    response = Response(
      head: HTTPResponseHead(
        version: .http1_1, status: HTTPResponseStatus(statusCode: refusal.status),
        headers: HTTPHeaders(refusal.headers.map { ($0.name, $0.value) })), way: .stream)
    begin(length: refusal.body.count)
    if request?.method != .HEAD { write(ByteBuffer(bytes: refusal.body)) }
    release()
    context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
    let bound = NIOLoopBound(context, eventLoop: context.eventLoop)
    limit?.cancel()
    context.eventLoop.scheduleTask(in: .seconds(1)) { bound.value.close(promise: nil) }
  }

  /// Answers a request without involving the server; a request body, if any, is dropped.
  func answer(_ whole: HTTPResponse) {
    response = Response(
      head: HTTPResponseHead(
        version: .http1_1, status: HTTPResponseStatus(statusCode: whole.status),
        headers: HTTPHeaders(whole.headers.map { ($0.name, $0.value) })), way: .stream)
    begin(length: nil)
    conclude()
  }
}
