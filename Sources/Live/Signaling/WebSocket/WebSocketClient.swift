import NIOCore
import NIOHTTP1
import NIOPosix
import NIOWebSocket
import Synchronization
import TLS

extension WebSocket {
  /// Opens a WebSocket at `ws://host:port/path?query`, or a `wss://` URL.
  /// - Parameters:
  ///   - subprotocols: in order of preference; the server selects one.
  ///   - headers: additional request fields.
  ///   - authorities: a file with trusted certificates instead of the system's.
  /// - Throws: `WebSocketError` if it cannot be opened in time or the task is cancelled.
  package static func connect(
    to url: String, subprotocols: [String] = [], token: BearerToken? = nil,
    headers: [(name: String, value: String)] = [], limits: WebSocketLimits = WebSocketLimits(),
    authorities: String? = nil
  ) async throws(WebSocketError) -> WebSocket {
    let opening = try WebSocketOpening(
      url: url, subprotocols: subprotocols, token: token, headers: headers, limits: limits)
    let loop = MultiThreadedEventLoopGroup.singleton.next()
    let promise = loop.makePromise(of: WebSocket.self)
    // Set a longer time limit here than the deadline below, which covers the complete handshake and
    // has its own message.
    let connection = ClientBootstrap(group: loop)
      .connectTimeout(.seconds(limits.handshakeSeconds * 2))
      .channelOption(.tcpOption(.tcp_nodelay), value: 1)
      .channelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          try opening.configure(channel, authorities: authorities, promise: promise)
        }
      }
      .connect(host: opening.target.host, port: opening.target.port)
    connection.whenFailure { promise.fail($0) }
    let deadline = loop.scheduleTask(in: .seconds(limits.handshakeSeconds)) {
      promise.fail(WebSocketError(reason: "no answer within \(limits.handshakeSeconds) s"))
    }
    do {
      let socket = try await withTaskCancellationHandler {
        try await promise.futureResult.get()
      } onCancel: {
        promise.fail(WebSocketError(reason: "the connection was cancelled"))
      }
      deadline.cancel()
      return socket
    } catch {
      deadline.cancel()
      connection.whenSuccess { $0.close(promise: nil) }
      throw WebSocketError(
        reason: "\(url): \(sentence(of: error))", status: (error as? WebSocketError)?.status)
    }
  }
}

/// A client's handshake (RFC 6455 section 4.1).
private struct WebSocketOpening: Sendable {
  let target: HTTPTarget
  let head: HTTPRequestHead
  let subprotocols: [String]
  let limits: WebSocketLimits

  init(
    url: String, subprotocols: [String], token: BearerToken?,
    headers fields: [(name: String, value: String)], limits: WebSocketLimits
  ) throws(WebSocketError) {
    do throws(HTTPError) {
      target = try HTTPTarget(url, schemes: ["ws", "wss"])
    } catch {
      throw WebSocketError(reason: error.reason)
    }
    var headers = HTTPHeaders([("Host", target.authority)])
    if let token { headers.add(name: "Authorization", value: token.field) }
    headers.add(contentsOf: fields.map { ($0.name, $0.value) })
    if !subprotocols.isEmpty {
      headers.add(name: "Sec-WebSocket-Protocol", value: subprotocols.joined(separator: ", "))
    }
    head = HTTPRequestHead(version: .http1_1, method: .GET, uri: target.path, headers: headers)
    self.subprotocols = subprotocols
    self.limits = limits
  }

  func configure(
    _ channel: any Channel, authorities: String?, promise: EventLoopPromise<WebSocket>
  ) throws {
    let pipeline = channel.pipeline.syncOperations
    if target.isSecure {
      let role = TLSRole.client(
        host: target.host, authorities: authorities, protocol: nil)
      try pipeline.addHandler(TLSHandler(role))
    }
    let opening = self
    let upgrader = NIOWebSocketClientUpgrader(
      maxFrameSize: limits.messageBytes, automaticErrorHandling: false
    ) { channel, head in
      channel.eventLoop.makeCompletedFuture {
        do throws(WebSocketError) {
          promise.succeed(try opening.open(channel, head))
        } catch {
          promise.fail(error)
          channel.close(promise: nil)
        }
      }
    }
    try pipeline.addHTTPClientHandlers(
      leftOverBytesStrategy: .forwardBytes,
      withClientUpgrade: (
        upgraders: [upgrader],
        completionHandler: { context in
          let pipeline = context.pipeline.syncOperations
          guard let asking = try? pipeline.context(handlerType: WebSocketAsking.self) else {
            return
          }
          pipeline.removeHandler(context: asking, promise: nil)
        }
      ))
    try pipeline.addHandler(WebSocketAsking(head, promise))
  }

  /// Checks the server's response and starts the WebSocket.
  private func open(_ channel: any Channel, _ head: HTTPResponseHead) throws(WebSocketError)
    -> WebSocket
  {
    let chosen = head.headers["Sec-WebSocket-Protocol"]
    guard chosen.count <= 1, chosen.allSatisfy(subprotocols.contains) else {
      throw WebSocketError(
        reason: "the server chose the subprotocol \(chosen.joined(separator: ", ").prefix(100)), "
          + "which was not offered")
    }
    guard !head.headers.contains(name: "Sec-WebSocket-Extensions") else {
      throw WebSocketError(reason: "the server chose an extension that was not offered")
    }
    let inbox = WebSocketInbox(limits)
    do {
      try channel.pipeline.syncOperations.addHandler(
        WebSocketHandler(limits, isServer: false, inbox: inbox))
    } catch {
      throw WebSocketError(reason: sentence(of: error))
    }
    return WebSocket(
      channel: channel, inbox: inbox, subprotocol: chosen.first,
      responseFields: head.headers.map { ($0.name, $0.value) })
  }
}

/// Requests the upgrade, and reports a failure's reason.
private final class WebSocketAsking: ChannelInboundHandler, RemovableChannelHandler {
  typealias InboundIn = HTTPClientResponsePart
  typealias OutboundOut = HTTPClientRequestPart

  private static let wordsMaximum = 4096

  private let head: HTTPRequestHead
  private let promise: EventLoopPromise<WebSocket>
  private var refusal: HTTPResponse?

  init(_ head: HTTPRequestHead, _ promise: EventLoopPromise<WebSocket>) {
    self.head = head
    self.promise = promise
  }

  func channelActive(context: ChannelHandlerContext) {
    context.write(wrapOutboundOut(.head(head)), promise: nil)
    context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch unwrapInboundIn(data) {
    case .head(let head):
      guard head.status.code >= 200 else { return }
      var response = HTTPResponse(status: Int(head.status.code))
      response.headers = head.headers.map { ($0.name, $0.value) }
      refusal = response
    case .body(let part):
      let room = WebSocketAsking.wordsMaximum - (refusal?.body.count ?? 0)
      refusal?.body.append(contentsOf: part.readableBytesView.prefix(room))
    case .end: refuse(context)
    }
  }

  private func refuse(_ context: ChannelHandlerContext) {
    guard let refusal else { return }
    let told = refusal.sentence.map { ": \($0)" } ?? ""
    let reason =
      (200..<300).contains(refusal.status)
      ? "the server sent a page instead of opening a WebSocket"
      : "the server answered with status \(refusal.status)"
    fail(WebSocketError(reason: reason + told, status: refusal.status), context)
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    if error is HTTPParserError {
      fail(WebSocketError(reason: "the answer is not HTTP"), context)
    } else if error is NIOHTTPClientUpgradeError {
      fail(
        WebSocketError(reason: "the server switched to a protocol other than WebSocket"), context)
    } else {
      fail(error, context)
    }
  }

  func channelInactive(context: ChannelHandlerContext) {
    if refusal != nil { refuse(context) }
    promise.fail(WebSocketError(reason: "the connection was closed before the answer"))
    context.fireChannelInactive()
  }

  private func fail(_ error: any Error, _ context: ChannelHandlerContext) {
    promise.fail(error)
    context.close(promise: nil)
  }
}
